package datatype

import (
	stdelf "debug/elf"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/flow"
)

// ReadBPF finds what the code of function fn of a BPF program accesses in the values of maps, among them the
// program's global variables. Values are followed through the BPF instructions, in which maps have numbers; the
// operands of the machine's code are those of the BPF instructions. It is nil if either code or the types are not
// known, and for machines other than x86-64.
//
// Other types are not used: loaders replace the offsets of members of the kernel's types, of which the program's
// BTF has another version.
func ReadBPF(p *bpf.Program, fn int, machine stdelf.Machine, maps map[uint32]BPFMap) (*Table, error) {
	f := &p.Funcs[fn]
	in, err := p.Instructions(fn)
	if err != nil || machine != stdelf.EM_X86_64 || p.BigEndian || p.BTF == nil || len(f.Image) == 0 {
		return nil, nil // annotate prints why BPF instructions are missing
	}
	r := &bpfReader{program: p, code: in.Code, maps: maps}
	types, err := r.readTypes(f)
	if err != nil {
		return nil, err
	}
	whole := addr.Range{End: addr.Addr(len(in.Code))}
	rows, reason := flow.New(r, stdelf.EM_BPF, types).Function(&flow.Function{Ranges: []addr.Range{whole},
		Variables: r.variables(), Result: r.result, Bare: true})
	for i := range rows {
		if id := r.unpadded[rows[i].Type]; rows[i].Reason == flow.Known && id != 0 {
			rows[i].Type = id
		}
	}
	out := reader{types: types, funcs: []Func{{Range: addr.Range{End: addr.Addr(f.Length)}, Reason: reason,
		Rows: r.compiled(rows, f.Image)}}}
	t, err := out.table(Options{})
	if t != nil {
		t.Source = FromBTF
	}
	return t, err
}

// bpfReader is the state of ReadBPF. It is the flow.Object.
type bpfReader struct {
	program  *bpf.Program
	code     []byte
	maps     map[uint32]BPFMap
	values   map[uint32]*mapValues // of the maps that the code names
	params   []btf.ID              // of the function
	results  []btf.ID              // of the functions of the program, 0 for no type
	unpadded map[btf.ID]btf.ID     // types of values, by those of padded elements
}

// Bytes implements flow.Object.
func (r *bpfReader) Bytes(a addr.Addr, n int) []byte {
	if a >= addr.Addr(len(r.code)) || n <= 0 {
		return nil
	}
	return r.code[a:min(int(a)+n, len(r.code))]
}

// Global implements flow.Object.
func (r *bpfReader) Global(a addr.Addr) (flow.Global, bool) {
	id, at, ok := flow.BPFMapOf(a)
	v := r.values[id]
	if !ok || v == nil {
		return flow.Global{}, false
	}
	if v.vars != nil {
		g, ok := find(v.vars, addr.Addr(at))
		g.At += a - addr.Addr(at)
		return g, ok
	}
	return flow.Global{Type: v.all, At: a - addr.Addr(at)}, v.all != 0 && at < v.size
}

// Call implements flow.Object.
func (r *bpfReader) Call(addr.Addr) flow.Effect { return flow.ByABI }

// result returns what the program's function at an address returns.
func (r *bpfReader) result(a addr.Addr) btf.ID {
	if n, ok := flow.BPFFunctionOf(a); ok && n < len(r.results) {
		return r.results[n]
	}
	return 0
}

// CFA implements flow.Object: the frame pointer does not change.
func (r *bpfReader) CFA(addr.Range) []flow.CFA { return nil }

// The rest of flow.Object: BPF has none of it.
func (r *bpfReader) ThreadLocal(int64) (flow.Global, bool)     { return flow.Global{}, false }
func (r *bpfReader) Slot(addr.Addr) (flow.Slot, bool)          { return flow.Slot{}, false }
func (r *bpfReader) Extent(addr.Addr) (r2 addr.Range, ok bool) { return addr.Range{}, false }
func (r *bpfReader) Jumps(addr.Addr) []addr.Addr               { return nil }
func (r *bpfReader) Kernel() bool                              { return false }

// compiledRegisters are the registers that the kernel's compiler for x86-64 has for those of BPF, by DWARF's numbers
// (reg2hex in arch/x86/net/bpf_jit_comp.c); privateFrame has the frame of a private stack.
var compiledRegisters = [...]uint8{0, 5, 4, 1, 2, 8, 3, 13, 14, 15, 6}

const (
	bpfFrame     = 10
	privateFrame = 9
)

// compiled returns the accesses of the machine's code: it has the operands of the BPF instructions in their order, with
// the same sizes and places. Others, of what the compiler adds, are not known.
func (r *bpfReader) compiled(rows []flow.Access, image []byte) (list []flow.Access) {
	from := flow.Operands(stdelf.EM_BPF, r.code, 0)
	for _, x := range flow.Operands(stdelf.EM_X86_64, image, 0) {
		a := flow.Access{At: x.At, Reason: flow.StackOp}
		if x.Size > 0 {
			a.Reason = flow.Untracked
			for len(from) > 0 && from[0].Size == 0 { // a call
				from = from[1:]
			}
			if len(from) > 0 && isCompiled(&from[0], &x) {
				for len(rows) > 0 && rows[0].At < from[0].At {
					rows = rows[1:]
				}
				if len(rows) > 0 && rows[0].At == from[0].At {
					a = rows[0]
					a.At = x.At
				}
				from = from[1:]
			}
		}
		list = append(list, a)
	}
	return list
}

// isCompiled reports whether a BPF instruction has an operand of the machine's code.
func isCompiled(b, x *flow.Operand) bool {
	if b.Size != x.Size || b.Write != x.Write || b.Disp != x.Disp || int(b.Base) >= len(compiledRegisters) {
		return false
	}
	return compiledRegisters[b.Base] == x.Base || b.Base == bpfFrame && x.Base == privateFrame
}
