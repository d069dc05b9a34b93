package pgo

import (
	stdelf "debug/elf"
	"encoding/binary"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/x86"
)

// maxFunction bounds the code of one function that is decoded.
const maxFunction = 16 << 20

// branchKind is what an instruction does to the flow within a function.
type branchKind uint8

const (
	noBranch    branchKind = iota // calls, too
	jump                          // to target
	conditional                   // to target, or to the next instruction
	indirectJump
	ret
)

// instruction is a decoded instruction.
type instruction struct {
	at     addr.Addr
	kind   branchKind
	target addr.Addr
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
	for i := range f.Segments {
		s := &f.Segments[i]
		if r.Start < s.Addr || uint64(r.End-s.Addr) > s.FileSize || r.End < r.Start || r.End-r.Start > maxFunction {
			continue
		}
		code := make([]byte, r.End-r.Start)
		if f.ReadBytes(s.Offset+addr.Offset(r.Start-s.Addr), code) == nil {
			b.decode(f.Machine, code, r)
		}
		break
	}
	slices.Sort(b.starts)
	b.starts = slices.Compact(b.starts)
	return b
}

func (b *blocks) decode(machine stdelf.Machine, code []byte, r addr.Range) {
	var targets []addr.Addr
	last := noBranch
	for at := r.Start; at < r.End; {
		in, length := decodeBranch(machine, code[at-r.Start:], at)
		if length == 0 {
			break
		}
		if last == conditional && in.kind == jump {
			b.starts = b.starts[:len(b.starts)-1]
		}
		last = in.kind
		b.code = append(b.code, in)
		at += addr.Addr(length)
		if in.kind != noBranch {
			b.starts = append(b.starts, at)
		}
		if (in.kind == jump || in.kind == conditional) && in.target >= r.Start && in.target < r.End {
			targets = append(targets, in.target)
		}
	}
	b.starts = append(b.starts, targets...)
}

// decodeBranch decodes one instruction; its length is 0 if that fails.
func decodeBranch(machine stdelf.Machine, code []byte, at addr.Addr) (in instruction, length int) {
	in.at = at
	switch machine {
	case stdelf.EM_X86_64:
		x, ok := x86.Decode(code)
		if !ok {
			return in, 0
		}
		in.kind = kindOfX86(&x)
		in.target = at + addr.Addr(x.Len) + addr.Addr(x.Imm)
		return in, x.Len
	case stdelf.EM_AARCH64:
		if len(code) < 4 {
			return in, 0
		}
		var distance int64
		in.kind, distance = kindOfARM64(binary.LittleEndian.Uint32(code))
		in.target = at + addr.Addr(distance)
		return in, 4
	}
	return in, 0
}

func kindOfX86(x *x86.Inst) branchKind {
	switch {
	case x.VEX || x.Map > x86.TwoByte:
	case x.Map == x86.TwoByte:
		if x.Op&0xf0 == 0x80 {
			return conditional
		}
	case x.Op == 0xe9 || x.Op == 0xeb:
		return jump
	case x.Op&0xf0 == 0x70 || x.Op&0xfc == 0xe0:
		return conditional
	case x.Op == 0xff && x.Reg&7 == 4:
		return indirectJump
	case x.Op == 0xc3 || x.Op == 0xc2:
		return ret
	}
	return noBranch
}

// kindOfARM64 returns what an instruction of arm64 does, and the distance of its target (Arm Architecture
// Reference Manual, C4.1 "Branches").
func kindOfARM64(word uint32) (kind branchKind, distance int64) {
	field := func(low, bits uint) int64 { return int64(int32(word<<(32-low-bits))>>(32-bits)) * 4 }
	switch {
	case word>>26 == 0x05: // b
		return jump, field(0, 26)
	case word>>24 == 0x54 || word>>25&0x3f == 0x1a: // b.cond, cbz, cbnz
		return conditional, field(5, 19)
	case word>>25&0x3f == 0x1b: // tbz, tbnz
		return conditional, field(5, 14)
	case word&0xfffffc1f == 0xd61f0000: // br
		return indirectJump, 0
	case word&0xfffffc1f == 0xd65f0000: // ret
		return ret, 0
	}
	return noBranch, 0
}

// at returns the instruction at an address, nil for none.
func (b *blocks) at(x addr.Addr) *instruction {
	i, found := slices.BinarySearchFunc(b.code, x, func(in instruction, x addr.Addr) int {
		return int(int64(in.at - x))
	})
	if !found {
		return nil
	}
	return &b.code[i]
}

func (b *blocks) returns(x addr.Addr) bool {
	in := b.at(x)
	return in != nil && in.kind == ret
}

func (b *blocks) indirect(x addr.Addr) bool {
	in := b.at(x)
	return in != nil && in.kind == indirectJump
}

// begin adds the start of a block.
func (b *blocks) begin(x addr.Addr) {
	if i, found := slices.BinarySearch(b.starts, x); !found {
		b.starts = slices.Insert(b.starts, i, x)
	}
}

// between visits the ends of blocks that code from an address to an instruction ran over: the last
// instruction of each, and the start of the next block.
func (b *blocks) between(from, to addr.Addr, visit func(last, next addr.Addr)) {
	if b.at(from) == nil || b.at(to) == nil {
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
		i, found := slices.BinarySearchFunc(b.code, next, func(in instruction, x addr.Addr) int {
			return int(int64(in.at - x))
		})
		if found && i > 0 {
			visit(b.code[i-1].at, next)
		}
	}
}
