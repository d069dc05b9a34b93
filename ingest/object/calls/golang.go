package calls

import (
	"encoding/binary"

	"symbolize/ingest/addr"
)

// goFunc has the rows of states of a function of Go.
type goFunc struct {
	addr.Range
	rows []Row
}

// golang puts the states of functions of Go in place of those that their rules have, but for places
// where by its rules a function has no frame.
func (r *callReader) golang() {
	if len(r.goRows) == 0 {
		return
	}
	old := Table{States: r.t.States}
	r.t.States = nil
	k := 0
	before := func(end addr.Addr) { // copies rows below end
		for ; k < len(old.States) && old.States[k].At < end; k++ {
			r.t.put(old.States[k].At, old.States[k].State)
		}
	}
	for _, f := range r.goRows {
		before(f.Start)
		state, own := old.State(f.Start), Unproven
		rows := f.rows
		for at := f.Start; at < f.End && len(f.rows) > 0; {
			next := f.End
			for len(rows) > 0 && rows[0].At <= at {
				own, rows = rows[0].State, rows[1:]
			}
			for k < len(old.States) && old.States[k].At <= at {
				state, k = old.States[k].State, k+1
			}
			if state == Outer {
				r.t.put(at, Outer)
			} else {
				r.t.put(at, own)
			}
			if len(rows) > 0 {
				next = min(next, rows[0].At)
			}
			if k < len(old.States) {
				next = min(next, old.States[k].At)
			}
			at = next
		}
		before(f.End)
		r.t.put(f.End, old.State(f.End))
	}
	before(^addr.Addr(0))
}

func uint64le(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// goFrames finds the state of the frame pointer in a function of Go for x86-64. Its table has only the
// stack pointer; the compiler saves the frame pointer below the return address and sets it where the
// function has a frame. Assembly may use the register for something else.
type goFrames struct {
	set   addr.Addr   // behind the instruction that sets it, 0 before
	back  []addr.Addr // behind those that restore it
	ends  []addr.Addr // behind returns and jumps: what follows is reached from elsewhere
	other bool        // another instruction has it as an operand
}

// add adds an instruction that ends at next.
func (g *goFrames) add(in *insn, next addr.Addr) {
	switch in.class {
	case sets:
		if g.set == 0 {
			g.set = next
		}
	case restores:
		g.back = append(g.back, next)
	case touches, replaces:
		g.other = true
	}
	if in.kind == ret || in.kind == jump || in.kind == jumpIndirect {
		g.ends = append(g.ends, next)
	}
}

// states returns the rows of the function, in place of those that follow from its rules.
func (g *goFrames) states(t *Table, fn *Func) (list []Row) {
	switch first := t.State(fn.Start); {
	case first == Ends || first == Signal:
		return nil
	case g.other || fn.Unknown:
		return []Row{{fn.Start, Unproven}}
	case g.set == 0:
		// Without a frame; or assembly that moves the stack pointer.
		if len(g.back) > 0 {
			return []Row{{fn.Start, Unproven}}
		}
		return []Row{{fn.Start, Outer}}
	}
	list = append(list, Row{fn.Start, Outer}, Row{g.set, Own})
	ends := g.ends
	for _, at := range g.back {
		for len(ends) > 0 && ends[0] <= at {
			ends = ends[1:]
		}
		if at < g.set {
			continue
		}
		list = append(list, Row{at, Outer})
		if len(ends) > 0 {
			list = append(list, Row{ends[0], Own})
		}
	}
	return list
}
