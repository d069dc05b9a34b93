// Package flow finds which member of which type each instruction of a function reads or writes.
//
// It follows the values of registers and stack slots through the control flow of a function to a
// fixpoint: pointers to types, constants, multiples, addresses of the stack and of variables. They come
// from the variables of debug information, which say of places in code what is in a register, and from
// the instructions: a load through a pointer gives the type of the member. Values that differ where paths
// join are lost. A wrong answer is worse than no answer: what follows from weak evidence is not told.
// JumpTargets is a part of it alone: the jumps of a function through tables.
//
// The idea is perf's (tools/perf/util/annotate-data.c of Linux 6.8 and later), which follows one path
// back from an instruction.
package flow

import (
	"container/heap"
	"debug/elf"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
)

// analysis is what all functions of an object share.
type analysis struct {
	object  Object
	layouts *Layouts
	machine *machine
	changes map[callee]uint32 // registers that functions change
	scratch
}

// scratch is memory that is used again for each function.
type scratch struct {
	insns  []insn
	found  []Access
	states []*state // free ones
	cuts   []addr.Addr
	active []Variable
	list   []span
	claims []claim // of the spans
	frames []frameVar
}

// state returns a state with any content.
func (m *scratch) state() *state {
	if n := len(m.states); n > 0 {
		s := m.states[n-1]
		m.states = m.states[:n-1]
		return s
	}
	return new(state)
}

// copyOf returns a state that is equal to s.
func (m *scratch) copyOf(s *state) *state {
	c := m.state()
	c.copyFrom(s)
	return c
}

// free gives states back.
func (m *scratch) free(s *state) {
	if s != nil {
		m.states = append(m.states, s)
	}
}

// Analyzer analyzes the functions of an object. It is for one goroutine.
type Analyzer struct{ n analysis }

// machines has how code is read, by the machine's number in ELF.
var machines = map[elf.Machine]*machine{elf.EM_X86_64: &x86Machine, elf.EM_AARCH64: &arm64Machine,
	elf.EM_BPF: &bpfMachine}

// Knows reports whether code of a machine can be analyzed.
func Knows(m elf.Machine) bool { return machines[m] != nil }

// New returns an Analyzer of an object with types: of little-endian code of 64 bits, of a machine that Knows.
func New(o Object, m elf.Machine, types *btf.Types) *Analyzer {
	return &Analyzer{analysis{object: o, layouts: NewLayouts(types), machine: machines[m],
		changes: make(map[callee]uint32)}}
}

// function is the state of one analysis.
type function struct {
	*analysis
	*graph
	spans   []span
	rows    []CFA
	results map[addr.Addr]btf.ID
	result  func(addr.Addr) btf.ID
	bare    bool
	span    *span // at the instruction that is executed
	found   []Access
	left    int // steps
}

// Function returns the accesses of a function's instructions to memory, in order of address; TooLarge for
// one beyond the bounds of the analysis. It sorts the function's variables.
func (a *Analyzer) Function(fn *Function) (list []Access, reason Reason) {
	g, ok := a.n.readGraph(fn)
	if !ok {
		return nil, TooLarge
	}
	spans, ok := a.n.spans(fn)
	if !ok {
		return nil, TooLarge
	}
	f := &function{analysis: &a.n, graph: g, spans: spans, results: fn.Results, result: fn.Result, bare: fn.Bare,
		found: a.n.found[:0]}
	for _, r := range fn.Ranges {
		f.rows = append(f.rows, a.n.object.CFA(r)...)
	}
	slices.SortStableFunc(f.rows, func(a, b CFA) int { return compareAddr(a.At, b.At) })
	ok = f.run()
	for b := range f.blocks {
		a.n.free(f.blocks[b].in)
	}
	a.n.insns, a.n.found = g.insns, f.found
	if !ok {
		return nil, TooLarge
	}
	return slices.Clone(f.found), Known
}

func compareAddr(a, b addr.Addr) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// queue has the blocks to visit, lowest first.
type queue struct {
	list []int
	in   []bool
}

func (q *queue) Len() int           { return len(q.list) }
func (q *queue) Less(i, j int) bool { return q.list[i] < q.list[j] }
func (q *queue) Swap(i, j int)      { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *queue) Push(x any)         { q.list = append(q.list, x.(int)) }
func (q *queue) Pop() any {
	n := len(q.list) - 1
	x := q.list[n]
	q.list = q.list[:n]
	return x
}

func (q *queue) add(b int) {
	if !q.in[b] {
		q.in[b] = true
		heap.Push(q, b)
	}
}

func (q *queue) next() int {
	b := heap.Pop(q).(int)
	q.in[b] = false
	return b
}

// maxMerges is how often the state before a block can change until unequal values are lost at once.
// maxSteps bounds the instructions that are executed, as a multiple of those of the function; seen: 11.
const (
	maxMerges = 16
	maxSteps  = 64
)

// run follows the values to a fixpoint, and then collects what the instructions access; false if that
// would take too long.
func (f *function) run() bool {
	if len(f.blocks) == 0 {
		return true
	}
	f.left = maxSteps * len(f.insns)
	entry := f.unreached()
	entry.regs[f.machine.sp] = value{kind: stackAt, off: f.machine.entry}
	first := 0
	for b := range f.blocks {
		if f.insns[f.blocks[b].from].at == f.ranges[0].Start {
			first = b
		}
	}
	f.blocks[first].in = entry
	q := &queue{in: make([]bool, len(f.blocks))}
	q.add(first)
	f.settle(q)
	for b := range f.blocks {
		if f.blocks[b].in == nil { // landing pads, padding: only variables are known
			f.blocks[b].in, f.blocks[b].orphan = f.unreached(), true
			q.add(b)
			f.settle(q)
		}
	}
	s := f.state()
	defer f.free(s)
	for b := range f.blocks {
		s.copyFrom(f.blocks[b].in)
		f.block(s, &f.blocks[b], true)
	}
	return f.left > 0
}

// unreached is the state before a block of which no block before is known.
func (f *function) unreached() *state {
	s := f.state()
	s.slots = s.slots[:0]
	for i := range s.regs {
		s.regs[i] = value{why: whyEntry}
	}
	return s
}

// settle visits blocks until nothing changes.
func (f *function) settle(q *queue) {
	s := f.state()
	defer f.free(s)
	for q.Len() > 0 && f.left > 0 {
		b := &f.blocks[q.next()]
		f.left -= b.to - b.from + len(b.next)
		s.copyFrom(b.in)
		f.block(s, b, false)
		for _, to := range b.next {
			t := &f.blocks[to]
			switch {
			case t.in == nil:
				t.in, t.orphan = f.copyOf(s), b.orphan
				q.add(to)
			case b.orphan && !t.orphan: // code that is not reached adds nothing to code that is
			default:
				if f.merge(t.in, s, f.machine.registers, t.merges >= maxMerges) {
					t.merges++
					q.add(to)
				}
			}
		}
	}
}

// block executes the instructions of a block; with collect it adds what they access.
func (f *function) block(s *state, b *block, collect bool) {
	at := f.insns[b.from].at
	row, _ := slices.BinarySearchFunc(f.rows, at+1, func(c CFA, a addr.Addr) int { return compareAddr(c.At, a) })
	for i := b.from; i < b.to; i++ {
		x := &f.insns[i]
		for row < len(f.rows) && f.rows[row].At <= x.at {
			row++
		}
		c := CFA{Reg: NoRegister}
		if row > 0 {
			c = f.rows[row-1]
		}
		if f.span == nil || !f.span.Contains(x.at) {
			f.span = spanAt(f.spans, x.at)
		}
		var claims []claim
		if f.span != nil {
			claims = f.span.claims
		}
		f.overlay(s, c, claims)
		if collect {
			f.collect(s, i, i == b.from)
		}
		f.step(s, x)
	}
}
