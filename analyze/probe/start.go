package probe

import (
	stdelf "debug/elf"
	"fmt"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/x86"
	"symbolize/ingest/texts"
)

// maxDecoded bounds the bytes of a function that are decoded to find where its instructions start.
const maxDecoded = 1 << 24

// checkStart returns an error if a place is inside of an instruction. The kernel refuses such kprobes, but inserts
// such uprobes, which change the instruction. Entries and places of lines are not checked: debug information has them.
func (s *site) checkStart(q *Query) error {
	if q.Offset == 0 || s.off == 0 {
		return nil
	}
	before, after, ok := s.p.instruction(s.table(s.at)-addr.Addr(s.off), s.off)
	switch {
	case !ok:
		s.unchecked = true
	case before != s.off:
		return fmt.Errorf("%s+%#x is inside of an instruction; instructions start at +%#x and +%#x",
			texts.Printable(s.symbol), s.off, before, after)
	}
	return nil
}

// instruction returns the start of the instruction at an offset in a function, and of the next one. Ok is false if the
// code is unknown, or has something else than instructions before the offset.
func (p *Program) instruction(function addr.Addr, off uint64) (start, next uint64, ok bool) {
	if p.Arch.ELF != stdelf.EM_X86_64 {
		return off &^ 3, off&^3 + 4, true
	}
	if p.Code == nil || off > maxDecoded {
		return 0, 0, false
	}
	code := p.Code(function, int(off)+x86.MaxLen)
	for next <= off {
		if start = next; start >= uint64(len(code)) {
			return 0, 0, false
		}
		in, ok := x86.Decode(code[start:])
		if !ok {
			return 0, 0, false
		}
		next += uint64(in.Len)
	}
	return start, next, true
}
