package datatype

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/object/flow"
)

// BPFMap is what is known of a map that a BPF program uses.
type BPFMap struct {
	Types   *btf.Types
	Value   btf.ID // of Types; 0 if it is not known
	Kind    uint32 // enum bpf_map_type
	Size    uint32 // of a value, bytes
	Entries uint32 // of an array
}

// Kinds of maps (enum bpf_map_type in include/uapi/linux/bpf.h).
const (
	mapHash, mapPerCPUHash, mapPerCPUArray, mapLRUHash, mapLRUPerCPUHash = 1, 5, 6, 9, 10
)

// mapValues are the types of a map's values.
type mapValues struct {
	pointer btf.ID            // to a value
	all     btf.ID            // the array of all values; of a map for each processor an array of pointers to them
	size    uint64            // of all
	vars    []dwarfvar.Global // instead, of a section with global variables
}

// Codes of the instructions of look-ups.
const (
	bpfLoad      = 0x79 // 8 bytes
	bpfLoadByte  = 0x71
	bpfAddNumber = 0x07
	bpfMove      = 0xbf
	bpfIfZero    = 0x15
)

// op returns instruction i; one that does nothing behind the end.
func (r *bpfReader) op(i int) (x bpf.Insn) {
	if b := r.Bytes(addr.Addr(i*bpf.InsnSize), 2*bpf.InsnSize); len(b) >= bpf.InsnSize {
		x = bpf.DecodeInsn(b, false)
	}
	return x
}

// insns visits the instructions with their numbers; a wide one counts twice.
func (r *bpfReader) insns() iter.Seq2[int, bpf.Insn] {
	return func(yield func(int, bpf.Insn) bool) {
		for i := 0; i < len(r.code)/bpf.InsnSize; {
			x := r.op(i)
			if !yield(i, x) {
				return
			}
			i += x.Size
		}
	}
}

// maxMapBytes bounds the arrays that are made for maps: addresses in larger ones would be those of other maps.
const maxMapBytes = 1 << 28

// readTypes makes the types of the values of the maps that the program names, and of the parameters and results of
// the program's functions. What pointers of these point to is known if it is in a map.
func (r *bpfReader) readTypes(f *bpf.Func) (*btf.Types, error) {
	parts := map[*btf.Types]*pruner{}
	order := []*pruner{}
	of := func(t *btf.Types) *pruner {
		if parts[t] == nil {
			parts[t] = newPruner(t)
			order = append(order, parts[t])
		}
		return parts[t]
	}
	own := of(r.program.BTF)
	var params, results []int
	for _, x := range own.types.Params(own.types.Ref(f.Type)) {
		params = append(params, own.whole(x.Type))
	}
	for i := range r.program.Funcs {
		results = append(results, own.whole(own.types.Ref(own.types.Ref(r.program.Funcs[i].Type))))
	}
	var list []*mapDefs
	for _, id := range r.named() {
		if m, ok := r.maps[id]; ok && m.Types != nil && m.Value != 0 && int(m.Value) < m.Types.Len() {
			list = append(list, of(m.Types).valuesOf(id, &m))
		}
	}
	b := btf.NewBuilder(false, 8)
	for _, p := range order {
		p.fillAll()
		p.made = b.Add(p.defs)
	}
	types, final, err := b.Types("types")
	if err != nil {
		return nil, err
	}
	id := func(p *pruner, n int) btf.ID {
		if n == 0 {
			return 0
		}
		return final(p.made[n])
	}
	for _, n := range params {
		r.params = append(r.params, id(own, n))
	}
	for _, n := range results {
		r.results = append(r.results, id(own, n))
	}
	r.values, r.unpadded = make(map[uint32]*mapValues), make(map[btf.ID]btf.ID)
	for _, d := range list {
		v := &mapValues{pointer: id(d.part, d.pointer), all: id(d.part, d.all), size: d.size}
		for _, x := range d.vars {
			x.Type = id(d.part, int(x.Type))
			v.vars = append(v.vars, x)
		}
		if d.padded != 0 {
			r.unpadded[id(d.part, d.padded)] = id(d.part, d.value)
		}
		r.values[d.id] = v
	}
	return types, nil
}

// named returns the maps that the program's code names, in order: functions get pointers to values of them.
func (r *bpfReader) named() (list []uint32) {
	for fn := range r.program.Funcs {
		in, err := r.program.Instructions(fn)
		if err != nil {
			continue
		}
		code := bpfReader{code: in.Code}
		for _, x := range code.insns() {
			if x.Code == bpf.CodeLoadWide && (x.Src == bpf.SrcMap || x.Src == bpf.SrcMapValue) {
				list = append(list, uint32(x.Imm))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// mapDefs are the types of a map's values by their numbers in part.
type mapDefs struct {
	part                        *pruner
	id                          uint32
	value, pointer, all, padded int
	size                        uint64
	vars                        []dwarfvar.Global
}

// valuesOf adds the types of a map's values. Elements of arrays are padded to 8 bytes.
func (p *pruner) valuesOf(id uint32, m *BPFMap) *mapDefs {
	d := &mapDefs{part: p, id: id}
	if p.types.Kind(m.Value) == btf.KindDatasec {
		for _, x := range p.types.Sections(m.Value) {
			if p.types.Kind(x.Type) == btf.KindVar && x.Size > 0 {
				d.vars = append(d.vars, dwarfvar.Global{Name: p.types.Name(x.Type), Addr: addr.Addr(x.Offset),
					Size: uint64(x.Size), Type: btf.ID(p.whole(p.types.Ref(x.Type)))})
			}
		}
		slices.SortStableFunc(d.vars, func(a, b dwarfvar.Global) int { return cmp.Compare(a.Addr, b.Addr) })
		return d
	}
	d.value = p.whole(m.Value)
	size, err := p.types.Size(m.Value)
	if d.value == 0 || err != nil || uint64(size) > uint64(m.Size) {
		return d
	}
	d.pointer = p.add(btf.Def{Kind: btf.KindPtr, Ref: d.value})
	element, stride := d.value, (uint64(m.Size)+7)&^7
	switch {
	case m.Kind == mapPerCPUArray:
		element, stride = d.pointer, 8
	case uint64(size) != stride && stride <= math.MaxUint32:
		d.padded = p.add(btf.Def{Kind: btf.KindStruct, Size: uint32(stride), Items: []btf.DefItem{{Ref: d.value}}})
		element = d.padded
	}
	if n := min(uint64(m.Entries), maxMapBytes/max(stride, 1)); n > 0 {
		d.all, d.size = p.add(btf.Def{Kind: btf.KindArray, Ref: element, Len: uint32(n)}), n*stride
	}
	return d
}

// variables returns what registers have where it is known: parameters at the entry, and pointers to values of maps
// where functions of the kernel returned them.
func (r *bpfReader) variables() (list []flow.Variable) {
	at := func(i int, reg uint8, id btf.ID) {
		start := addr.Addr(i * bpf.InsnSize)
		if id != 0 {
			list = append(list, flow.Variable{Type: id, Reg: reg, Range: addr.Range{Start: start, End: start + bpf.InsnSize}})
		}
	}
	for i, id := range r.params {
		if i < 5 {
			at(0, uint8(i+1), id)
		}
	}
	targets := r.targets()
	for i, x := range r.insns() {
		if x.Code != bpf.CodeCall || x.Src != 0 {
			continue
		}
		if id, ok := r.mapOf(i, targets); ok && r.values[id] != nil {
			at(r.found(i+1, r.maps[id].Kind), 0, r.values[id].pointer)
		}
	}
	return list
}

// targets returns the instructions to which others jump.
func (r *bpfReader) targets() map[int]bool {
	list := make(map[int]bool)
	for i, x := range r.insns() {
		switch class := x.Code & 7; {
		case x.Code == bpf.CodeJump32:
			list[i+1+int(x.Imm)] = true
		case class == bpf.ClassJMP || class == bpf.ClassJMP32:
			list[i+1+int(x.Off)] = true
		}
	}
	return list
}

// mapOf returns the map that the call at i is for: the one that was last loaded into r1, on the only way to it.
func (r *bpfReader) mapOf(i int, targets map[int]bool) (uint32, bool) {
	for j := i - 1; j > 0 && !targets[j+1]; j-- {
		x, first := r.op(j), r.op(j-1)
		switch class := x.Code & 7; {
		case first.Code == bpf.CodeLoadWide && x.Code == 0:
			if first.Dst == 1 {
				return uint32(first.Imm), first.Src == bpf.SrcMap
			}
			j--
		case class == bpf.ClassJMP || class == bpf.ClassJMP32: // a call is one, too
			return 0, false
		case x.Dst == 1 && class != bpf.ClassST && class != bpf.ClassSTX:
			return 0, false
		}
	}
	return 0, false
}

// found returns the instruction from which on r0 has the address of a value. The verifier inlines the look-ups of
// hashes: it calls functions that return the address of an element, and adds what is before the value
// (htab_map_gen_lookup and others in kernel/bpf/hashtab.c).
func (r *bpfReader) found(i int, kind uint32) int {
	check, at := r.op(i), i+1
	if check.Code != bpfIfZero || check.Dst != 0 || check.Imm != 0 {
		return i
	}
	switch kind {
	case mapHash, mapLRUHash, mapPerCPUHash, mapLRUPerCPUHash:
	default:
		return i
	}
	if x := r.op(at); x.Code == bpfLoadByte && x.Src == 0 { // a note that the element was used
		at += 3
	}
	x := r.op(at)
	if x.Code != bpfAddNumber || x.Dst != 0 || x.Imm < leastKey {
		return i
	}
	at++
	if kind == mapPerCPUHash || kind == mapLRUPerCPUHash {
		if x := r.op(at); x.Code != bpfLoad || x.Dst != 0 || x.Src != 0 {
			return i
		}
		if at++; r.op(at).Code == bpfMove && r.op(at).Off == -1 {
			at++
		}
	}
	if i+1+int(check.Off) != at {
		return i
	}
	return at
}

// leastKey is a lower bound of where keys begin in elements of hashes (struct htab_elem).
const leastKey = 40
