package flow

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"

	"symbolize/ingest/addr"
)

// block is a run of instructions that control enters at the first one.
type block struct {
	from, to int   // of the function's instructions
	next     []int // blocks
	in       *state
	merges   int
	orphan   bool // not reached from the entry, but for example from an exception's table
}

// Bounds of a function: of a larger one nothing is told.
const (
	maxInsns = 1 << 18
	maxTable = 1 << 10 // targets of a jump table
)

// graph is the control flow of a function.
type graph struct {
	m      *machine
	insns  []insn
	blocks []block
	ranges []addr.Range
	bytes  func(a addr.Addr, n int) []byte
	tables map[int][]addr.Addr // targets of indirect jumps, and Object.Jumps, by instruction
	known  map[jumpTable][]addr.Addr
	spills map[int64]int // by offset from the stack pointer, the instruction that writes there
}

// jumpTable is a jump table: n words at an address, each a target's distance from base, shifted to the
// right.
type jumpTable struct {
	at, base addr.Addr
	size     int // of a word, 1, 2, 4 or 8 bytes
	n        int
	shift    uint
	signed   bool
}

// readGraph decodes a function; false if it has too many instructions.
func (n *analysis) readGraph(f *Function) (*graph, bool) {
	g := &graph{m: n.machine, ranges: f.Ranges, bytes: n.object.Bytes, tables: make(map[int][]addr.Addr),
		known: make(map[jumpTable][]addr.Addr), insns: n.insns[:0]}
	for _, r := range f.Ranges {
		if r.End < r.Start || r.End-r.Start > maxInsns*4 || !g.decode(r) {
			return nil, false
		}
	}
	slices.SortFunc(g.insns, func(a, b insn) int { return cmp.Compare(a.at, b.at) })
	for i := range g.insns {
		switch x := &g.insns[i]; {
		case x.jump == indirect:
			g.tables[i] = g.m.table(g, i)
		case x.jump == callTo && n.object.Call(x.target) == Never:
			x.jump = stop
		}
		if to := n.object.Jumps(g.insns[i].at); to != nil {
			g.tables[i] = append(slices.Clone(to), g.tables[i]...)
		}
	}
	g.split()
	return g, true
}

// JumpTargets returns the targets of the jumps of a function through tables, as far as they are found. bytes is
// as of Object.
func JumpTargets(m elf.Machine, r addr.Range, bytes func(a addr.Addr, n int) []byte) (list []addr.Addr) {
	g := &graph{m: machines[m], ranges: []addr.Range{r}, bytes: bytes, known: make(map[jumpTable][]addr.Addr)}
	if g.m == nil || r.End < r.Start || r.End-r.Start > maxInsns*4 || !g.decode(r) {
		return nil
	}
	for i := range g.insns {
		if g.insns[i].jump == indirect {
			list = append(list, g.m.table(g, i)...)
		}
	}
	return list
}

// decode decodes a range. Where no instruction is, control does not go on.
func (g *graph) decode(r addr.Range) bool {
	code := g.bytes(r.Start, int(r.End-r.Start))
	for at := r.Start; len(code) > 0; {
		x, ok := g.m.decode(code, at)
		if !ok {
			n := min(g.m.shortest, len(code))
			x = newInsn(at, n)
			x.jump = stop
		}
		if len(g.insns) >= maxInsns {
			return false
		}
		g.insns = append(g.insns, x)
		code, at = code[x.size:], at+addr.Addr(x.size)
	}
	return true
}

// find returns the instruction at an address, −1 for none.
func (g *graph) find(a addr.Addr) int {
	i, ok := slices.BinarySearchFunc(g.insns, a, func(x insn, a addr.Addr) int { return cmp.Compare(x.at, a) })
	if !ok {
		return -1
	}
	return i
}

// split makes the blocks.
func (g *graph) split() {
	lead := make([]bool, len(g.insns)+1)
	mark := func(a addr.Addr) {
		if i := g.find(a); i >= 0 {
			lead[i] = true
		}
	}
	for _, r := range g.ranges {
		mark(r.Start)
	}
	for i := range g.insns {
		x := &g.insns[i]
		if x.jump == branch || x.jump == always {
			mark(x.target)
		}
		for _, t := range g.tables[i] {
			mark(t)
		}
		if x.jump != next && x.jump != callTo && x.jump != callThrough || len(g.tables[i]) > 0 {
			lead[i+1] = true
		}
	}
	blockOf := make([]int, len(g.insns))
	for i := range g.insns {
		if i == 0 || lead[i] || g.insns[i].at != g.insns[i-1].end() {
			g.blocks = append(g.blocks, block{from: i})
		}
		blockOf[i] = len(g.blocks) - 1
		g.blocks[len(g.blocks)-1].to = i + 1
	}
	for b := range g.blocks {
		g.link(b, blockOf)
	}
}

// link sets where control goes from a block.
func (g *graph) link(b int, blockOf []int) {
	last := g.blocks[b].to - 1
	x := &g.insns[last]
	to := func(i int) {
		if i >= 0 && i < len(blockOf) && !slices.Contains(g.blocks[b].next, blockOf[i]) {
			g.blocks[b].next = append(g.blocks[b].next, blockOf[i])
		}
	}
	if x.jump == branch || x.jump == always {
		to(g.find(x.target))
	}
	for _, t := range g.tables[last] {
		to(g.find(t))
	}
	if x.jump != always && x.jump != indirect && x.jump != stop {
		to(g.find(x.end()))
	}
}

func (g *graph) contains(a addr.Addr) bool {
	return slices.ContainsFunc(g.ranges, func(r addr.Range) bool { return r.Contains(a) })
}

// words reads a jump table up to the first target outside of the function.
func (g *graph) words(t jumpTable) (list []addr.Addr) {
	if list, ok := g.known[t]; ok {
		return list
	}
	b := g.bytes(t.at, min(t.n, maxTable)*t.size)
	for ; len(b) >= t.size; b = b[t.size:] {
		target := t.base + addr.Addr(t.word(b)<<t.shift)
		if !g.contains(target) {
			break
		}
		list = append(list, target)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	g.known[t] = list
	return list
}

// word returns the first word of b.
func (t *jumpTable) word(b []byte) int64 {
	var v [8]byte
	copy(v[:], b[:t.size])
	n := int64(binary.LittleEndian.Uint64(v[:]))
	if unused := 64 - 8*uint(t.size); t.signed {
		n = n << unused >> unused
	}
	return n
}
