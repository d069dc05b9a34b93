package pgo

import (
	"cmp"
	stdelf "debug/elf"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/calls"
	"symbolize/ingest/object/elf"
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
}

// readBlocks decodes a function. Code that cannot be decoded ends it: blocks behind it are not known.
func readBlocks(f *elf.File, r addr.Range) *blocks {
	b := &blocks{starts: []addr.Addr{r.Start}}
	off, n, ok := f.Mapped(r.Start)
	if size := uint64(r.End - r.Start); ok && r.Start < r.End && size <= min(n, maxFunction) {
		code := make([]byte, size)
		if f.ReadBytes(off, code) == nil {
			b.decode(f.Machine, code, r)
		}
	}
	slices.Sort(b.starts)
	b.starts = slices.Compact(b.starts)
	return b
}

func (b *blocks) decode(machine stdelf.Machine, code []byte, r addr.Range) {
	var targets []addr.Addr
	last := calls.NoBranch
	for at := r.Start; at < r.End; {
		in, ok := calls.DecodeBranch(machine, code[at-r.Start:], at)
		if !ok {
			break
		}
		if last == calls.ConditionalJump && in.Kind == calls.Jump {
			b.starts = b.starts[:len(b.starts)-1]
		}
		last = in.Kind
		b.code = append(b.code, instruction{at, in.Kind})
		at += addr.Addr(in.Len)
		if in.Kind != calls.NoBranch && in.Kind != calls.CallBranch {
			b.starts = append(b.starts, at)
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

func (b *blocks) returns(x addr.Addr) bool { return b.is(x, calls.Return) }

func (b *blocks) indirect(x addr.Addr) bool { return b.is(x, calls.IndirectJump) }

// begin adds the start of a block.
func (b *blocks) begin(x addr.Addr) {
	if i, found := slices.BinarySearch(b.starts, x); !found {
		b.starts = slices.Insert(b.starts, i, x)
	}
}

// between visits the ends of blocks that code from an address to an instruction ran over: the last
// instruction of each, and the start of the next block.
func (b *blocks) between(from, to addr.Addr, visit func(last, next addr.Addr)) {
	_, begins := b.find(from)
	if _, ends := b.find(to); !begins || !ends {
		return
	}
	first, found := slices.BinarySearch(b.starts, from)
	if found {
		first++
	}
	for _, next := range b.starts[first:] {
		if next > to {
			return
		}
		i, found := b.find(next)
		if found && i > 0 {
			visit(b.code[i-1].at, next)
		}
	}
}
