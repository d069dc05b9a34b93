package flow

import (
	"cmp"
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
	known  map[tableAt][]addr.Addr
}

// tableAt is a jump table: its address, and the size of its words.
type tableAt struct {
	at   addr.Addr
	size int
}

// readGraph decodes a function; false if it has too many instructions.
func (n *analysis) readGraph(f *Function) (*graph, bool) {
	g := &graph{m: n.machine, ranges: f.Ranges, bytes: n.object.Bytes, tables: make(map[int][]addr.Addr),
		known: make(map[tableAt][]addr.Addr)}
	for _, r := range f.Ranges {
		if r.End < r.Start || r.End-r.Start > maxInsns*4 || !g.decode(r) {
			return nil, false
		}
	}
	slices.SortFunc(g.insns, func(a, b insn) int { return cmp.Compare(a.at, b.at) })
	for i := range g.insns {
		switch x := &g.insns[i]; {
		case x.jump == indirect:
			g.tables[i] = g.table(i)
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

// decode decodes a range. Where no instruction is, control does not go on.
func (g *graph) decode(r addr.Range) bool {
	code := g.bytes(r.Start, int(r.End-r.Start))
	for at := r.Start; len(code) > 0; {
		x, ok := g.m.decode(code, at)
		if !ok {
			n := min(g.m.shortest, len(code))
			x = insn{at: at, size: uint8(n), operation: operation{dst: noReg, a: noReg, src: noReg}, control: control{jump: stop}}
			x.mem.base, x.mem.index = noReg, noReg
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

// tableWindow is how many instructions before an indirect jump its table's address can be.
const tableWindow = 24

// table returns the targets of an indirect jump through a table of x86-64: words of eight bytes with
// addresses, "jmp *T(,%rax,8)", or of four with distances from the table,
// "lea T(%rip),%ra; movslq (%ra,%rb,4),%r; add %ra,%r; jmp *%r".
func (g *graph) table(i int) []addr.Addr {
	x := &g.insns[i]
	scaled := func(m *memory) bool { return m.base == noReg && m.index != noReg && m.scale == 8 }
	if x.form == memForm {
		if scaled(&x.mem) {
			return g.words(addr.Addr(x.mem.disp), 8)
		}
		return nil
	}
	for j := i - 1; j >= 0 && j > i-tableWindow; j-- {
		y := &g.insns[j]
		switch {
		case y.op == opAddr && y.mem.absolute:
			if list := g.words(addr.Addr(y.mem.disp), 4); len(list) > 0 {
				return list
			}
		case y.op == opMove && y.form == memForm && scaled(&y.mem) && y.dst == x.src:
			return g.words(addr.Addr(y.mem.disp), 8)
		}
	}
	return nil
}

// words reads a jump table up to the first target outside of the function.
func (g *graph) words(at addr.Addr, size int) (list []addr.Addr) {
	if list, ok := g.known[tableAt{at, size}]; ok {
		return list
	}
	b := g.bytes(at, maxTable*size)
	for ; len(b) >= size; b = b[size:] {
		t := at
		if size == 8 {
			t = addr.Addr(binary.LittleEndian.Uint64(b))
		} else {
			t += addr.Addr(int64(int32(binary.LittleEndian.Uint32(b))))
		}
		if !g.contains(t) {
			break
		}
		list = append(list, t)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	g.known[tableAt{at, size}] = list
	return list
}
