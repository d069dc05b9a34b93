// Package x86 decodes the lengths and operands of instructions of x86-64: of the legacy maps, VEX,
// EVEX and XOP (Intel SDM volume 2, appendix A). It names no instruction.
//
// golang.org/x/arch/x86/x86asm (0.32), by which analyze/disasm prints instructions, has no VEX and EVEX,
// and without their lengths what follows in the function is not found either.
package x86

import "encoding/binary"

// Map is the map of an opcode.
type Map uint8

// The maps.
const (
	OneByte Map = iota
	TwoByte     // after 0f
	Map38       // after 0f 38
	Map3A       // after 0f 3a
	Other       // of XOP, and the maps 5 and 6 of EVEX
)

// None is the number of a register that an operand does not have.
const None = 0xff

// Inst is a decoded instruction. Registers are numbered as the processor numbers them.
type Inst struct {
	Len  int
	Map  Map
	Op   byte
	VEX  bool // a VEX, EVEX or XOP prefix; VVVV is its register
	EVEX bool
	VVVV byte
	// L is log2 of the vector's length in units of 16 bytes.
	L     byte
	Lock  bool
	Rep   byte // the last prefix f2 or f3, also as part of VEX; 0 for none
	Small bool // operands of 16 bits (66, also as part of VEX)
	Wide  bool // operands of 64 bits (REX.W)
	REX   bool // byte registers 4 to 7 are spl, bpl, sil, dil
	Short bool // addresses of 32 bits
	// Segment is the prefix 64 (fs) or 65 (gs); 0 for none.
	Segment byte
	NoTrack bool // 3e

	Low byte // the register in an opcode's low three bits
	// ModRM is set if the instruction has a ModRM byte; General if its registers are general ones.
	ModRM, General bool
	Mod, Reg, RM   byte // with the bits of REX; RM is a register if Mod is 3
	// The operand in memory, if Mod is not 3: registers, or None.
	Base, Index, Scale byte
	RIP                bool // relative to the next instruction
	Disp               int64
	// Imm is the immediate, sign-extended, of ImmSize bytes; Rel that it is a distance to jump.
	Imm     int64
	ImmSize int
	Rel     bool
}

// Memory reports whether the instruction has an operand in memory by its ModRM byte.
func (in *Inst) Memory() bool { return in.ModRM && in.Mod != 3 }

// Operands of opcodes: bits of the tables.
const (
	modRM = 1 << iota
	imm8
	imm16
	imm32 // two bytes with an operand-size prefix
	rel8
	rel32
	bad
	vector // the registers of a ModRM byte are no general ones
)

// oneByte has the operands of opcodes in 64-bit mode (Intel SDM volume 2, appendix A).
var oneByte = makeOneByte()

func makeOneByte() (t [256]uint8) {
	set := func(from, to int, v uint8) {
		for i := from; i <= to; i++ {
			t[i] = v
		}
	}
	for op := 0; op < 0x40; op += 8 {
		set(op, op+3, modRM)
		t[op+4], t[op+5], t[op+6], t[op+7] = imm8, imm32, bad, bad
	}
	set(0x60, 0x62, bad)
	t[0x63] = modRM
	t[0x68], t[0x69], t[0x6a], t[0x6b] = imm32, modRM|imm32, imm8, modRM|imm8
	set(0x70, 0x7f, rel8)
	t[0x80], t[0x81], t[0x82], t[0x83] = modRM|imm8, modRM|imm32, bad, modRM|imm8
	set(0x84, 0x8f, modRM)
	t[0x9a] = bad
	t[0xa8], t[0xa9] = imm8, imm32
	set(0xb0, 0xb7, imm8)
	set(0xb8, 0xbf, imm32)
	t[0xc0], t[0xc1], t[0xc2] = modRM|imm8, modRM|imm8, imm16
	t[0xc6], t[0xc7], t[0xc8], t[0xca] = modRM|imm8, modRM|imm32, imm16|imm8, imm16
	t[0xcd], t[0xce] = imm8, bad
	set(0xd0, 0xd3, modRM)
	set(0xd4, 0xd6, bad)
	set(0xd8, 0xdf, modRM|vector)
	set(0xe0, 0xe3, rel8)
	set(0xe4, 0xe7, imm8)
	t[0xe8], t[0xe9], t[0xea], t[0xeb] = rel32, rel32, bad, rel8
	set(0xf6, 0xf7, modRM)
	set(0xfe, 0xff, modRM)
	return t
}

// twoByte is oneByte for opcodes after 0f.
var twoByte = makeTwoByte()

func makeTwoByte() (t [256]uint8) {
	for i := range t {
		t[i] = modRM | vector
	}
	set := func(v uint8, list ...int) {
		for _, i := range list {
			t[i] = v
		}
	}
	set(0, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x0e, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x37, 0x77,
		0xa0, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf)
	set(bad, 0x04, 0x0a, 0x0c, 0x24, 0x25, 0x26, 0x27, 0x36, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e,
		0x3f, 0x7a, 0x7b)
	set(modRM, 0x00, 0x01, 0x02, 0x03, 0x20, 0x21, 0x22, 0x23, 0x2c, 0x2d, 0x50, 0x7e, 0xa3, 0xa5, 0xab,
		0xad, 0xae, 0xaf, 0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xbb, 0xbc, 0xbd, 0xbe,
		0xbf, 0xc0, 0xc1, 0xc3, 0xc7, 0xd7)
	for i := 0x40; i < 0x50; i++ {
		t[i] = modRM // cmov
		t[i+0x40] = rel32
		t[i+0x50] = modRM // set
	}
	set(modRM|imm8, 0xa4, 0xac, 0xba)
	set(modRM|imm8|vector, 0x0f, 0x70, 0x71, 0x72, 0x73, 0xc2, 0xc4, 0xc6)
	t[0xc5] = modRM | imm8
	t[0x0d], t[0x18], t[0x19], t[0x1a], t[0x1b], t[0x1c], t[0x1d], t[0x1e], t[0x1f] = modRM|vector,
		modRM|vector, modRM|vector, modRM|vector, modRM|vector, modRM|vector, modRM|vector,
		modRM|vector, modRM|vector // prefetches and nops read nothing
	return t
}

// MaxLen is the number of bytes that the longest instruction has.
const MaxLen = 15

// Decode decodes the instruction at the start of b; false if there is none, or if it is cut off.
func Decode(b []byte) (in Inst, ok bool) {
	if len(b) > MaxLen {
		b = b[:MaxLen]
	}
	d := decoder{b: b}
	d.prefixes()
	op, ok := d.next()
	if !ok {
		return in, false
	}
	flags := oneByte[op]
	switch {
	case op == 0x0f:
		if op, flags, ok = d.legacy(); !ok {
			return in, false
		}
	case op == 0xc4 || op == 0xc5 || op == 0x62 || op == 0x8f && d.i < len(b) && b[d.i]&0x1f >= 8:
		if op, flags, ok = d.extended(op); !ok {
			return in, false
		}
	case op >= 0xa0 && op <= 0xa3:
		d.i += 8
		if d.in.Short {
			d.i -= 4
		}
	}
	if flags&bad != 0 {
		return in, false
	}
	d.in.Op, d.in.Low = op, op&7|d.rex&1<<3
	d.in.General = flags&(modRM|vector) == modRM
	if flags&modRM != 0 && !d.modRM() || !d.immediate(flags) {
		return in, false
	}
	d.in.Len = d.i
	return d.in, true
}

// decoder is the state of Decode.
type decoder struct {
	b   []byte
	i   int
	rex byte
	in  Inst
}

// next returns the next byte.
func (d *decoder) next() (byte, bool) {
	if d.i >= len(d.b) {
		return 0, false
	}
	d.i++
	return d.b[d.i-1], true
}

func (d *decoder) prefixes() {
	for ; d.i < len(d.b); d.i++ {
		switch p := d.b[d.i]; p {
		case 0x66:
			d.in.Small = true
		case 0x67:
			d.in.Short = true
		case 0x3e:
			d.in.NoTrack = true
		case 0xf2, 0xf3:
			d.in.Rep = p
		case 0xf0:
			d.in.Lock = true
		case 0x2e, 0x36, 0x26:
		case 0x64, 0x65:
			d.in.Segment = p
		default:
			if p&0xf0 != 0x40 {
				return
			}
			d.rex = p
			d.in.REX, d.in.Wide = true, p&8 != 0
			d.i++
			return
		}
	}
}

// legacy decodes the opcode after 0f.
func (d *decoder) legacy() (op byte, flags uint8, ok bool) {
	if op, ok = d.next(); !ok {
		return 0, 0, false
	}
	d.in.Map, flags = TwoByte, twoByte[op]
	if op != 0x38 && op != 0x3a {
		return op, flags, true
	}
	d.in.Map, flags = Map38, modRM
	if op == 0x3a {
		d.in.Map, flags = Map3A, modRM|imm8
	}
	if op, ok = d.next(); ok && !generalMap(d.in.Map, op) {
		flags |= vector
	}
	return op, flags, ok
}

// extended decodes the rest of a VEX, EVEX or XOP prefix, and the opcode.
func (d *decoder) extended(first byte) (op byte, flags uint8, ok bool) {
	n := map[byte]int{0xc5: 1, 0xc4: 2, 0x8f: 2, 0x62: 3}[first]
	if d.i+n >= len(d.b) || d.rex != 0 {
		return 0, 0, false
	}
	p := d.b[d.i : d.i+n]
	d.i += n
	op, _ = d.next()
	opMap, last := byte(1), p[0]
	d.in.VEX, d.in.EVEX = true, first == 0x62
	if n > 1 {
		opMap = p[0] & 0x1f
		if first == 0x62 {
			opMap &= 7
		}
		last = p[1]
		d.rex = ^p[0] >> 5 & 7 // R, X, B inverted, in their order of REX
		d.in.Wide = p[1]&0x80 != 0
	} else {
		d.rex = ^p[0] >> 7 << 2
	}
	d.in.VVVV, d.in.L = ^last>>3&15, last>>2&1
	d.in.Small, d.in.Rep = last&3 == 1, [4]byte{2: 0xf3, 3: 0xf2}[last&3]
	if first == 0x62 {
		d.in.L = p[2] >> 5 & 3
	}
	flags, ok = d.extendedMap(first, opMap, op)
	return op, flags, ok
}

// extendedMap returns the operands of an opcode after a VEX, EVEX or XOP prefix.
func (d *decoder) extendedMap(first, opMap, op byte) (flags uint8, ok bool) {
	flags = modRM | vector
	switch {
	case first == 0x8f:
		d.in.Map, flags = Other, modRM
		switch opMap {
		case 8:
			flags |= imm8
		case 9:
		case 10:
			flags |= imm32
			d.in.Small = false
		default:
			return 0, false
		}
	case opMap == 1:
		d.in.Map = TwoByte
		if op == 0x77 && first != 0x62 {
			return 0, true // vzeroupper
		}
		flags |= twoByte[op] & imm8
		if t := twoByte[op]; t&vector == 0 && t&modRM != 0 || op >= 0x90 && op <= 0x93 {
			flags &^= vector
		}
	case opMap == 2 || opMap == 3:
		d.in.Map = Map(opMap)
		if opMap == 3 {
			flags |= imm8
		}
		if generalMap(d.in.Map, op) {
			flags &^= vector
		}
	case first == 0x62 && (opMap == 5 || opMap == 6):
		d.in.Map = Other
	default:
		return 0, false
	}
	return flags, true
}

// modRM decodes a ModRM byte, with the SIB byte and the displacement.
func (d *decoder) modRM() bool {
	m, ok := d.next()
	if !ok {
		return false
	}
	in := &d.in
	in.ModRM, in.Mod, in.Reg, in.RM = true, m>>6, m>>3&7|d.rex&4<<1, m&7|d.rex&1<<3
	in.Base, in.Index = None, None
	if in.Mod == 3 {
		return true
	}
	in.Base, in.Scale = in.RM, 1
	if m&7 == 4 {
		s, ok := d.next()
		if !ok {
			return false
		}
		in.Base = s&7 | d.rex&1<<3
		if x := s>>3&7 | d.rex&2<<2; x != 4 {
			in.Index, in.Scale = x, 1<<(s>>6)
		}
		if s&7 == 5 && in.Mod == 0 {
			in.Base = None
		}
	}
	size := 0
	switch {
	case in.Mod == 1:
		size = 1
	case in.Mod == 0 && m&7 == 5:
		in.RIP, in.Base, size = true, None, 4
	case in.Mod == 2, in.Base == None:
		size = 4
	}
	in.Disp, ok = d.signed(size)
	return ok
}

// signed reads a signed number of 0, 1, 2, 4 or 8 bytes.
func (d *decoder) signed(size int) (v int64, ok bool) {
	if d.i+size > len(d.b) {
		return 0, false
	}
	p := d.b[d.i:]
	d.i += size
	switch size {
	case 1:
		v = int64(int8(p[0]))
	case 2:
		v = int64(int16(binary.LittleEndian.Uint16(p)))
	case 4:
		v = int64(int32(binary.LittleEndian.Uint32(p)))
	case 8:
		v = int64(binary.LittleEndian.Uint64(p))
	}
	return v, true
}

// immediate decodes the rest of an instruction.
func (d *decoder) immediate(flags uint8) (ok bool) {
	in := &d.in
	if in.Map == OneByte && (in.Op == 0xf6 || in.Op == 0xf7) && in.Reg&7 < 2 {
		flags |= imm8 << (in.Op & 1 * 2)
	}
	size, after := 0, 0
	switch {
	case flags&(imm8|rel8) != 0:
		size = 1
	case flags&imm32 != 0 && in.Small && !in.Wide:
		size = 2
	case in.Map == OneByte && in.Op&0xf8 == 0xb8 && in.Wide:
		size = 8
	case flags&(imm32|rel32) != 0:
		size = 4
	}
	if flags&imm16 != 0 { // enter, retf
		size, after = 2, size
	}
	in.ImmSize, in.Rel = size, flags&(rel8|rel32) != 0
	if in.Imm, ok = d.signed(size); !ok || d.i+after > len(d.b) {
		return false
	}
	d.i += after
	return true
}

// generalMap reports whether an opcode of the maps 0f38 (2) and 0f3a (3) has general registers.
func generalMap(m Map, op byte) bool {
	if m == Map38 {
		return op >= 0xf0
	}
	return op >= 0x14 && op <= 0x17 || op == 0x20 || op == 0x22 || op == 0xf0
}
