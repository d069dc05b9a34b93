package gopclntab

import (
	"symbolize/ingest/addr"
)

// layout is the encoding of an entry of an inline tree, runtime.inlinedCall.
type layout uint8

const (
	// callGo9: parent, file, line, name int32.
	callGo9 layout = iota
	// callGo12: parent int16, funcID uint8, padding; file, line, name, parentPc int32.
	callGo12
	// callGo20: funcID uint8, padding; name, parentPc, startLine int32. Parent, file and
	// line are those of parentPc.
	callGo20
)

// form is a function's reference to its inline tree, and the tree's layout.
type form struct {
	funcdata uint32 // FUNCDATA_InlTree
	pcdata   uint32 // PCDATA_InlTreeIndex
	layout   layout
}

func (f form) size() int {
	if f.layout == callGo12 {
		return 20
	}
	return 16
}

func (f form) byPC() bool { return f.layout == callGo20 }

// forms lists the possible forms of each version, in the order of trials. Those of Go 1.2: Go 1.13
// to 1.15, 1.12, 1.9 to 1.11.
var forms = [...][]form{
	go12:  {{4, 2, callGo12}, {2, 1, callGo12}, {2, 1, callGo9}},
	go116: {{3, 2, callGo12}},
	go118: {{3, 2, callGo12}},
	go120: {{3, 2, callGo20}},
}

// trees is the memory with the inline trees.
type trees struct {
	form form
	base []byte // memory that has them; nil: none found
	addr uint64 // of base
	zero uint64 // base of the funcdata offsets
}

// Limits of the memory with inline trees: the distance between the first and the last, and
// the size of the last. That of cmd/go is 0.8 MB.
const (
	maxTrees    = 512 << 20
	maxLastTree = maxInlines * 20
)

// Limits of the trial of a form: the number of trees, and of steps in each; one step in
// wrongTrees may be inconsistent.
const (
	sampleTrees = 256
	sampleSteps = 1 << 14
	wrongTrees  = 16
)

// findTrees tries the forms of the version, and uses the first with consistent trees.
func (t *Table) findTrees() {
	for _, f := range forms[t.version] {
		lo, hi, ok := t.extent(f)
		if !ok {
			continue
		}
		zeros := []addr.Addr{0}
		if t.shape.relative {
			zeros = t.in.FuncData
		}
		for _, zero := range zeros {
			c := trees{form: f, zero: uint64(zero), addr: uint64(zero) + lo}
			c.base = t.memory(c.addr, min(hi-lo+maxLastTree, maxTrees))
			if len(c.base) > 0 && t.makesSense(c) {
				return
			}
		}
	}
	t.trees = trees{}
}

// extent returns the least and greatest address of an inline tree in some form.
func (t *Table) extent(f form) (lo, hi uint64, ok bool) {
	lo = ^uint64(0)
	for i := range t.numFuncs {
		r, reason := t.record(i)
		if reason != "" || t.pcdataOf(&r, f.pcdata) == 0 {
			continue
		}
		if v, found := t.funcdataOf(&r, f.funcdata); found {
			lo, hi, ok = min(lo, v), max(hi, v), true
		}
	}
	return lo, hi, ok
}

// memory returns the bytes at an address: part of the table itself since Go 1.26.
func (t *Table) memory(at, limit uint64) []byte {
	if off := at - uint64(t.in.Addr); off < uint64(len(t.in.Data)) {
		b := t.in.Data[off:]
		return b[:min(uint64(len(b)), limit)]
	}
	if t.in.Memory == nil {
		return nil
	}
	return t.in.Memory(addr.Addr(at), limit)
}

// makesSense sets t.trees and reports whether the trees of some functions are consistent.
func (t *Table) makesSense(c trees) bool {
	t.trees = c
	good, bad := 0, 0
	for i := 0; i < t.numFuncs && good+bad < sampleTrees; i++ {
		r, reason := t.record(i)
		if reason != "" {
			continue
		}
		tree, table, ok := t.treeOf(&r)
		if !ok {
			continue
		}
		if t.treeMakesSense(&r, tree, table) {
			good++
		} else {
			bad++
		}
	}
	return good > 0 && bad <= good/wrongTrees
}

// treeMakesSense checks the entries of one tree that its table refers to.
func (t *Table) treeMakesSense(r *record, tree []byte, table uint32) bool {
	s := t.stream(table, r.entry)
	n := int32(0)
	for range sampleSteps {
		if s.end >= r.limit || !s.next() {
			break
		}
		n = max(n, s.value+1)
	}
	size := t.trees.form.size()
	if n < 0 || int(n) > len(tree)/size {
		return false
	}
	for i := range min(n, sampleSteps) {
		c, ok := t.decodeCall(r, tree[int(i)*size:])
		if !ok || c.parent >= n {
			return false
		}
		if !t.trees.form.byPC() && (c.callFile == NoFile || c.callLine == 0) {
			return false
		}
	}
	return true
}

// treeOf returns the inline tree of a function, up to the end of the memory, and the table
// of indexes into it by address. Ok is false if it has none.
func (t *Table) treeOf(r *record) (tree []byte, table uint32, ok bool) {
	c := &t.trees
	if c.base == nil {
		return nil, 0, false
	}
	if table = t.pcdataOf(r, c.form.pcdata); table == 0 {
		return nil, 0, false
	}
	v, ok := t.funcdataOf(r, c.form.funcdata)
	if !ok {
		return nil, 0, false
	}
	if off := c.zero + v - c.addr; off < uint64(len(c.base)) {
		tree = c.base[off:]
	}
	return tree, table, true
}

// rawCall is a decoded entry of an inline tree.
type rawCall struct {
	name, startLine, parentPC uint32
	parent                    int32 // index of the enclosing call, or less than 0
	callFile, callLine        uint32
}

// decodeCall decodes the entry that b begins with. Ok is false if it is inconsistent.
func (t *Table) decodeCall(r *record, b []byte) (c rawCall, ok bool) {
	get := func(off int) uint32 {
		v, _ := t.u32(b, off)
		return v
	}
	switch t.trees.form.layout {
	case callGo9:
		c.parent, c.name = int32(get(0)), get(12)
		c.callFile, c.callLine = t.fileOf(r.cu, int32(get(4))), line(int32(get(8)))
	case callGo12:
		c.parent = int32(int16(get(0)))
		if t.big {
			c.parent = int32(get(0)) >> 16
		}
		c.callFile, c.callLine = t.fileOf(r.cu, int32(get(4))), line(int32(get(8)))
		c.name, c.parentPC = get(12), get(16)
	case callGo20:
		c.name, c.parentPC, c.startLine = get(4), get(8), line(int32(get(12)))
		if b[1]|b[2]|b[3] != 0 {
			return c, false
		}
	}
	return c, t.isName(c.name) && uint64(c.parentPC) < r.limit-r.entry && c.parent >= NoParent
}

// isName reports whether a name starts at off. Only since Go 1.16 are names contiguous.
func (t *Table) isName(off uint32) bool {
	if uint64(off) >= uint64(len(t.names)) || t.names[off] <= ' ' {
		return false
	}
	return t.version == go12 || off == 0 || t.names[off-1] == 0
}
