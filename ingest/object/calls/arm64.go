package calls

import (
	"encoding/binary"

	"symbolize/ingest/addr"
)

// arm64 decodes one instruction of A64 at the start of b (Arm ARM, C4.1.93). Of address computations
// it knows the pair of a stub in the procedure linkage table alone: adrp x16, page; ldr x17, [x16, #n].
func arm64(b []byte, at addr.Addr) (in insn, ok bool) {
	if len(b) < 4 {
		return in, false
	}
	w := binary.LittleEndian.Uint32(b)
	in.size = 4
	to := func(bits, low uint) addr.Addr {
		v := int64(int32(w<<(32-bits-low)) >> (32 - bits))
		return at + addr.Addr(v*4)
	}
	switch {
	case w>>26 == 0x25: // bl
		in.kind, in.target = call, to(26, 0)
	case w>>26 == 0x05: // b
		in.kind, in.target = jump, to(26, 0)
	case w>>24 == 0x54, w>>25&0x3f == 0x1a: // b.cond, bc.cond; cbz, cbnz
		in.kind, in.target, in.conditional = jump, to(19, 5), true
	case w>>25&0x3f == 0x1b: // tbz, tbnz
		in.kind, in.target, in.conditional = jump, to(14, 5), true
	case w&0xfefff000 == 0xd63f0000: // blr, blraa …
		in.kind = callIndirect
	case w&0xfefff000 == 0xd61f0000: // br, braa …
		in.kind = jumpIndirect
	case w&0xfffff000 == 0xd65f0000: // ret, retaa …
		in.kind = ret
	case w&0x9f00001f == 0x90000010 && len(b) >= 8: // adrp x16
		page := int64(w>>29&3|w>>5&0x7ffff<<2) << 43 >> 31
		if ldr := binary.LittleEndian.Uint32(b[4:]); ldr&0xffc003ff == 0xf9400211 {
			in.memory = true
			in.target = at&^0xfff + addr.Addr(page) + addr.Addr(ldr>>10&0xfff*8)
		}
	}
	return in, true
}
