package pgo

import (
	"cmp"
	stdelf "debug/elf"
	"iter"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/calls"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/flow"
)

// maxFunction bounds the code of one function that is decoded.
const maxFunction = 16 << 20

// instruction is a decoded instruction.
type instruction struct {
	at   addr.Addr
	kind calls.BranchKind
}

// blocks are the basic blocks of a function as BOLT has them: they end with a jump or a return, and before
// the target of a jump. Calls end no block, nor does a conditional jump before a jump.
type blocks struct {
	code   []instruction
	starts []addr.Addr // ascending
	// entered are starts, besides the first, that no call before them returns to: landing pads of exceptions,
	// and targets of jumps in other functions.
	entered map[addr.Addr]bool
}

// readBlocks decodes a function. Code that cannot be decoded ends it: blocks behind it are not known.
func readBlocks(f *elf.File, r addr.Range) *blocks {
	b := &blocks{starts: []addr.Addr{r.Start}, entered: make(map[addr.Addr]bool)}
	b.decode(f.Machine, readCode(f, r), r)
	if slices.ContainsFunc(b.code, func(in instruction) bool { return in.kind == calls.IndirectJump }) {
		b.starts = append(b.starts, flow.JumpTargets(f.Machine, r, func(a addr.Addr, n int) []byte {
			_, rest, _ := f.Mapped(a)
			return readCode(f, addr.Range{Start: a, End: a + addr.Addr(min(uint64(n), rest))})
		})...)
	}
	slices.Sort(b.starts)
	b.starts = slices.Compact(b.starts)
	return b
}

// readCode reads the code of a function; nil if the file has none of it.
func readCode(f *elf.File, r addr.Range) []byte {
	off, n, ok := f.Mapped(r.Start)
	size := uint64(r.End - r.Start)
	if !ok || r.Start >= r.End || size > min(n, maxFunction) {
		return nil
	}
	code := make([]byte, size)
	if f.ReadBytes(off, code) != nil {
		return nil
	}
	return code
}

// branchesIn visits the instructions of code up to one that cannot be decoded.
func branchesIn(machine stdelf.Machine, code []byte, r addr.Range) iter.Seq2[addr.Addr, calls.Branch] {
	return func(visit func(addr.Addr, calls.Branch) bool) {
		for at := r.Start; at-r.Start < addr.Addr(len(code)); {
			in, ok := calls.DecodeBranch(machine, code[at-r.Start:], at)
			if !ok || !visit(at, in) {
				return
			}
			at += addr.Addr(in.Len)
		}
	}
}

// jumpsOut visits the targets of jumps out of a function.
func jumpsOut(f *elf.File, r addr.Range, visit func(addr.Addr)) {
	for _, in := range branchesIn(f.Machine, readCode(f, r), r) {
		if (in.Kind == calls.Jump || in.Kind == calls.ConditionalJump) && !r.Contains(in.Target) {
			visit(in.Target)
		}
	}
}

func (b *blocks) decode(machine stdelf.Machine, code []byte, r addr.Range) {
	last := calls.NoBranch
	var targets []addr.Addr
	for at, in := range branchesIn(machine, code, r) {
		if last == calls.ConditionalJump && in.Kind == calls.Jump {
			b.starts = b.starts[:len(b.starts)-1]
		}
		last = in.Kind
		b.code = append(b.code, instruction{at, in.Kind})
		if in.Kind != calls.NoBranch && in.Kind != calls.CallBranch {
			b.starts = append(b.starts, at+addr.Addr(in.Len))
		}
		if (in.Kind == calls.Jump || in.Kind == calls.ConditionalJump) && r.Contains(in.Target) {
			targets = append(targets, in.Target)
		}
	}
	b.starts = append(b.starts, targets...)
}

// find returns the number of the instruction at an address; false for none.
func (b *blocks) find(x addr.Addr) (int, bool) {
	return slices.BinarySearchFunc(b.code, x, func(in instruction, x addr.Addr) int { return cmp.Compare(in.at, x) })
}

// is reports whether the instruction at an address is of a kind.
func (b *blocks) is(x addr.Addr, kind calls.BranchKind) bool {
	i, found := b.find(x)
	return found && b.code[i].kind == kind
}

// begin adds the start of a block.
func (b *blocks) begin(x addr.Addr) {
	if i, found := slices.BinarySearch(b.starts, x); !found {
		b.starts = slices.Insert(b.starts, i, x)
	}
}

// enter adds the start of a block that code outside of the function enters.
func (b *blocks) enter(x addr.Addr) {
	if x != b.starts[0] {
		b.begin(x)
		b.entered[x] = true
	}
}

// end is the end of a block that code ran over: its last instruction, and the start of the next block.
type end struct{ last, next addr.Addr }

// between returns the ends of blocks that code from an address to an instruction ran over; none if it cannot
// have run so, over a jump. If the code before it was another function, a call before it has returned: the
// block of the call ended, too, unless the address was entered otherwise.
func (b *blocks) between(from, to addr.Addr, resumed bool) (list []end) {
	at, begins := b.find(from)
	if _, ends := b.find(to); !begins || !ends {
		return nil
	}
	first, found := slices.BinarySearch(b.starts, from)
	if found && !(resumed && first > 0 && at > 0 && b.code[at-1].kind == calls.CallBranch) {
		first++
	}
	for _, next := range b.starts[first:] {
		if next > to {
			break
		}
		i, found := b.find(next)
		if !found || i == 0 {
			continue
		}
		last := b.code[i-1]
		if last.kind == calls.Jump || last.kind == calls.IndirectJump || last.kind == calls.Return {
			return nil
		}
		list = append(list, end{last.at, next})
	}
	return list
}
