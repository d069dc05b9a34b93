package datatype

import (
	stdelf "debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/flow"
)

// Numbers of the types of bpfTypes, in its Defs.
const (
	bLong = 1 + iota
	bInt
	bStat
	bStatPtr
	bOdd
	bTask
	bTaskPtr
	bHist
	bMainProto
	bMain
	bSubProto
	bSub
)

// bpfTypes makes the types of a program int main(struct task *), struct stat *sub(struct stat *) with
//
//	struct stat { long calls; int last, pad; long hist[4]; };
//	struct odd { int a, b, c; };
//	struct task { int pid; };
func bpfTypes(t testing.TB) (*btf.Types, func(n int) btf.ID) {
	t.Helper()
	b := btf.NewBuilder(false, 8)
	ids := b.Add([]btf.Def{
		{Kind: btf.KindInt, Name: "long", Size: 8, Int: btf.Int{Bits: 64, Signed: true}},
		{Kind: btf.KindInt, Name: "int", Size: 4, Int: btf.Int{Bits: 32, Signed: true}},
		{Kind: btf.KindStruct, Name: "stat", Size: 48, Items: []btf.DefItem{{Name: "calls", Ref: bLong},
			{Name: "last", Ref: bInt, Value: 64}, {Name: "pad", Ref: bInt, Value: 96}, {Name: "hist", Ref: bHist, Value: 128}}},
		{Kind: btf.KindPtr, Ref: bStat},
		{Kind: btf.KindStruct, Name: "odd", Size: 12, Items: []btf.DefItem{{Name: "a", Ref: bInt},
			{Name: "b", Ref: bInt, Value: 32}, {Name: "c", Ref: bInt, Value: 64}}},
		{Kind: btf.KindStruct, Name: "task", Size: 4, Items: []btf.DefItem{{Name: "pid", Ref: bInt}}},
		{Kind: btf.KindPtr, Ref: bTask},
		{Kind: btf.KindArray, Ref: bLong, Len: 4},
		{Kind: btf.KindFuncProto, Ref: bInt, Items: []btf.DefItem{{Name: "ctx", Ref: bTaskPtr}}},
		{Kind: btf.KindFunc, Name: "main", Ref: bMainProto},
		{Kind: btf.KindFuncProto, Ref: bStatPtr, Items: []btf.DefItem{{Name: "s", Ref: bStatPtr}}},
		{Kind: btf.KindFunc, Name: "sub", Ref: bSubProto},
	})
	types, final, err := b.Types("test")
	if err != nil {
		t.Fatal(err)
	}
	return types, func(n int) btf.ID { return final(ids[n]) }
}

// insn encodes a BPF instruction, wide a load of 64 bits.
func insn(code, dst, src byte, off int16, imm int32) string {
	b := binary.LittleEndian.AppendUint16([]byte{code, src<<4 | dst}, uint16(off))
	return string(binary.LittleEndian.AppendUint32(b, uint32(imm)))
}

func wide(dst, src byte, low, high int32) string {
	return insn(0x18, dst, src, 0, low) + insn(0, 0, 0, 0, high)
}

// bpfProgram decodes a program of two functions, main and sub; the second one is sub's instructions and code if sub
// is set, else one that returns.
func bpfProgram(t testing.TB, code, image string, sub bool) (p *bpf.Program, fn int) {
	t.Helper()
	const exit = "\x95\x00\x00\x00\x00\x00\x00\x00"
	types, id := bpfTypes(t)
	codes, images := [2]string{code, exit}, [2]string{image, "\xc3"}
	if sub {
		codes, images = [2]string{wide(1, 1, 7, 0) + exit, code}, [2]string{"\xc3", image}
		fn = 1
	}
	info, _ := bpfbuild.Sections(false, bpfbuild.Program{ID: 1, BTFID: 1, Xlated: []byte(codes[0] + codes[1]),
		Funcs: []bpfbuild.Func{{Name: "main", Start: 0x1000, Code: []byte(images[0])},
			{Name: "sub", Start: 0x2000, Code: []byte(images[1]), Insn: uint32(len(codes[0]) / bpf.InsnSize)}}})
	list, err := bpf.DecodePrograms("test", info, 0, false, nil)
	if err != nil || list[0].Err != nil {
		t.Fatal(err, list[0].Err)
	}
	p = &list[0]
	p.BTF = types
	p.Funcs[0].Type, p.Funcs[1].Type = id(bMain), id(bSub)
	return p, fn
}

// bpfMaps are the maps of the programs.
func bpfMaps(t testing.TB) map[uint32]BPFMap {
	types, id := bpfTypes(t)
	return map[uint32]BPFMap{
		7:  {Types: types, Value: id(bStat), Kind: 2, Size: 48, Entries: 16},
		8:  {Types: types, Value: id(bStat), Kind: mapHash, Size: 48, Entries: 16},
		10: {Types: types, Value: id(bOdd), Kind: 2, Size: 12, Entries: 16},
		11: {Types: types, Value: id(bStat), Kind: mapPerCPUHash, Size: 48, Entries: 16},
		12: {Types: types, Value: 1 << 20, Kind: 2, Size: 48, Entries: 16},
		13: {Types: types, Value: id(bStat), Kind: 2, Size: 8, Entries: 16},
		14: {Types: types, Value: id(bStat), Kind: mapLRUHash, Size: 48},
	}
}

// rowsOf prints the accesses of a function besides those of the stack: offset, type.member, or the reason.
func rowsOf(t *Table) string {
	if t == nil {
		return "none"
	}
	var list []string
	l := flow.NewLayouts(t.Types)
	for _, f := range t.Funcs {
		for i := range f.Rows {
			x := &f.Rows[i]
			switch leaves := l.Leaves(x); {
			case x.Reason == flow.StackOp:
			case x.Reason != flow.Known:
				list = append(list, fmt.Sprintf("%x (%s)", x.At, x.Reason))
			case len(leaves) == 0:
				list = append(list, fmt.Sprintf("%x %s", x.At, t.Types.TypeName(x.Type)))
			default:
				list = append(list, fmt.Sprintf("%x %s.%s", x.At, t.Types.TypeName(x.Type), leaves[0].Path))
			}
		}
	}
	return strings.Join(list, ", ")
}

// TestReadBPF: BPF instructions and the machine's code that the kernel makes of them. In the code rax is r0, rdi r1,
// rsi r2, rbx r6, rbp r10.
func TestReadBPF(t *testing.T) {
	const ret = "\xc3"
	lookup := func(id uint32) string {
		return wide(1, 1, int32(id), 0) + insn(0x85, 0, 0, 0, 4711)
	}
	array := func(id uint32, size int32) string { // as the verifier inlines it
		return wide(1, 1, int32(id), 0) + insn(0x07, 1, 0, 0, 312) + insn(0x61, 0, 2, 0, 0) + insn(0x35, 0, 0, 3, 16) +
			insn(0x27, 0, 0, 0, size) + insn(0x0f, 0, 1, 0, 0) + insn(0x05, 0, 0, 1, 0) + insn(0xb7, 0, 0, 0, 0)
	}
	const (
		check      = "\x48\x85\xc0\x74\x00" // test rax,rax; je
		loadKey    = "\x8b\x46\x00"         // mov 0(rsi),eax
		loadCalls  = "\x48\x8b\x78\x00"     // mov 0(rax),rdi
		storeLast  = "\x89\x78\x08"         // mov edi,8(rax)
		storeStack = "\x48\x89\x7d\xf8"     // mov rdi,-8(rbp)
	)
	exit := insn(0x95, 0, 0, 0, 0)
	use := insn(0x15, 0, 0, 2, 0) + insn(0x79, 1, 0, 0, 0) + insn(0x63, 0, 1, 8, 0) + exit
	for _, c := range []struct {
		name, code, image string
		sub               bool
		want              string
	}{
		{name: "an array", code: array(7, 48) + use, image: loadKey + check + loadCalls + storeLast + ret,
			want: "0 (address not followed), 8 struct stat.calls, c struct stat.last"},
		{name: "a function that looks up", code: lookup(7) + use, image: check + loadCalls + storeLast + ret,
			want: "5 struct stat.calls, 9 struct stat.last"},
		{name: "an inlined look-up in a hash", code: lookup(8) + insn(0x15, 0, 0, 1, 0) + insn(0x07, 0, 0, 0, 56) + use,
			image: check + loadCalls + storeLast + ret, want: "5 struct stat.calls, 9 struct stat.last"},
		{name: "one that notes the use", code: lookup(14) + insn(0x15, 0, 0, 4, 0) + insn(0x71, 1, 0, 35, 0) +
			insn(0x55, 1, 0, 1, 0) + insn(0x72, 0, 0, 35, 1) + insn(0x07, 0, 0, 0, 56) + use,
			image: check + "\x0f\xb6\x78\x23" + "\xc6\x40\x23\x01" + check + loadCalls + storeLast + ret,
			want:  "5 (address not followed), 9 (address not followed), 12 struct stat.calls, 16 struct stat.last"},
		{name: "a hash for each processor", code: lookup(11) + insn(0x15, 0, 0, 3, 0) + insn(0x07, 0, 0, 0, 56) +
			insn(0x79, 0, 0, 0, 0) + insn(0xbf, 0, 0, -1, 0) + use,
			image: "\x48\x8b\x40\x00" + loadCalls + storeLast + ret, // the first is of the look-up
			want:  "0 (address not followed), 4 struct stat.calls, 8 struct stat.last"},
		{name: "the program's own addition", code: lookup(8) + insn(0x15, 0, 0, 2, 0) + insn(0x07, 0, 0, 0, 16) +
			insn(0x79, 1, 0, 0, 0) + exit, image: check + loadCalls + ret, want: "5 struct stat.hist[]"},
		{name: "elements with padding", code: array(10, 16) + insn(0x63, 0, 1, 8, 0) + exit,
			image: loadKey + storeLast + ret, want: "0 (address not followed), 3 struct odd.c"},
		{name: "a parameter", code: insn(0x79, 0, 1, 16, 0) + exit, sub: true, image: "\x48\x8b\x47\x10" + ret,
			want: "0 struct stat.hist[]"},
		{name: "one with a type of no map", code: insn(0x61, 0, 1, 0, 0) + exit,
			image: "\x8b\x47\x00" + ret, want: "0 (pointer without a type)"},
		{name: "what a function of the program returns", code: wide(6, 1, 7, 0) + insn(0x85, 0, 1, 0, 1) + insn(0x79, 1, 0, 0, 0) +
			exit, image: loadCalls + ret, want: "0 struct stat.calls"},
		{name: "a map with a number that comes on two ways", code: insn(0x15, 2, 0, 2, 0) + wide(1, 1, 7, 0) +
			insn(0x85, 0, 0, 0, 9) + insn(0x79, 1, 0, 0, 0) + exit, image: loadCalls + ret, want: "0 (address not followed)"},
		{name: "a type that is none", code: lookup(12) + use, image: loadCalls + ret, want: "0 (address not followed)"},
		{name: "values that are too small", code: lookup(13) + use, image: loadCalls + ret, want: "0 (address not followed)"},
		{name: "the stack, and a frame of its own", code: insn(0x7b, 10, 1, -8, 0) + insn(0x7b, 10, 1, -8, 0) + exit,
			image: storeStack + "\x49\x89\x79\xf8" + ret, want: "0 (spill slot), 4 (spill slot)"},
		{name: "operands that the compiler adds", code: lookup(7) + use,
			image: "\x48\x8b\x45\xd0" + loadCalls + "\x65\x48\x03\x05\x00\x00\x00\x00" + storeLast + ret,
			want:  "0 (address not followed), 4 struct stat.calls, 8 (address not followed), 10 struct stat.last"},
		{name: "other code", code: lookup(7) + use, image: "\x8b\x78\x04" + ret, want: "0 (address not followed)"},
	} {
		p, fn := bpfProgram(t, c.code, c.image, c.sub)
		table, err := ReadBPF(p, fn, stdelf.EM_X86_64, bpfMaps(t))
		if got := rowsOf(table); got != c.want || err != nil {
			t.Errorf("%s: %s, %v\nwant %s", c.name, got, err, c.want)
		}
	}
}

// TestReadBPFNone: what gives no table.
func TestReadBPFNone(t *testing.T) {
	exit := insn(0x95, 0, 0, 0, 0)
	for _, c := range []struct {
		name    string
		machine stdelf.Machine
		change  func(*bpf.Program)
	}{
		{name: "ARM64", machine: stdelf.EM_AARCH64, change: func(*bpf.Program) {}},
		{name: "no BTF", machine: stdelf.EM_X86_64, change: func(p *bpf.Program) { p.BTF = nil }},
		{name: "no image", machine: stdelf.EM_X86_64, change: func(p *bpf.Program) { p.Funcs[0].Image = nil }},
		{name: "no entry", machine: stdelf.EM_X86_64, change: func(p *bpf.Program) { p.Raw = nil }},
	} {
		p, fn := bpfProgram(t, exit, "\xc3", false)
		c.change(p)
		if table, err := ReadBPF(p, fn, c.machine, nil); table != nil || err != nil {
			t.Errorf("%s: %s, %v", c.name, rowsOf(table), err)
		}
	}
}

func FuzzReadBPF(f *testing.F) {
	f.Add(wide(1, 1, 7, 0)+insn(0x85, 0, 0, 0, 9)+insn(0x79, 1, 0, 0, 0), "\x48\x8b\x78\x00\xc3")
	f.Add(insn(0x15, 0, 0, -2, 0)+insn(0x06, 0, 0, 0, -9)+"\x18", "\x65\x48\x03\x05")
	f.Fuzz(func(t *testing.T, code, image string) {
		code = code[:len(code)/bpf.InsnSize*bpf.InsnSize]
		if code == "" || image == "" || len(code)+len(image) > 1<<12 {
			return
		}
		p, fn := bpfProgram(t, code, image, false)
		table, err := ReadBPF(p, fn, stdelf.EM_X86_64, bpfMaps(t))
		if err != nil {
			t.Fatal(err)
		}
		rowsOf(table)
	})
}
