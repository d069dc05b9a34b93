package calls

import (
	"encoding/binary"

	"symbolize/ingest/addr"
)

// insn is an instruction as far as calls, jumps and addresses of functions need it.
type insn struct {
	size   int
	kind   insnKind
	target addr.Addr // of direct calls and jumps; of memory by the instruction's address
	memory bool      // an operand is memory at target
	scaled bool      // a jump through a table of eight-byte words at the absolute address target
	// The rest is for x86-64 alone.
	notrack bool  // prefix of jumps through tables of a switch
	class   class // effect on the frame pointer
	imm     int64 // an immediate of four or eight bytes, else 0
	move    bool  // movslq
	add     bool  // add of registers
}

type insnKind uint8

const (
	plain insnKind = iota
	call
	callIndirect
	jump // also conditional
	jumpIndirect
	ret
)

// class is what an instruction does to the frame pointer of x86-64.
type class uint8

const (
	leaves   class = iota
	saves          // push %rbp
	sets           // mov %rsp,%rbp; lea n(%rsp),%rbp
	restores       // mov n(%rsp),%rbp; pop %rbp; leave
	replaces       // gives it another value
	touches        // any other use as an operand, perhaps only as a source
)

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

// x86 decodes one instruction of x86-64 at the start of b; false if there is none, or if it is cut
// off. It knows the encodings of the legacy maps, VEX, EVEX and XOP.
func x86(b []byte, at addr.Addr) (in insn, ok bool) {
	if len(b) > 15 {
		b = b[:15]
	}
	d := x86Decoder{b: b, at: at}
	d.prefixes()
	if d.i >= len(b) {
		return in, false
	}
	op := b[d.i]
	d.i++
	flags := oneByte[op]
	switch {
	case op == 0x0f:
		if d.i >= len(b) {
			return in, false
		}
		op = b[d.i]
		d.i++
		d.opMap, flags = 1, twoByte[op]
		if op == 0x38 || op == 0x3a {
			if d.i >= len(b) {
				return in, false
			}
			d.opMap, flags = 2, modRM
			if op == 0x3a {
				d.opMap, flags = 3, modRM|imm8
			}
			op = b[d.i]
			d.i++
			if !generalMap(d.opMap, op) {
				flags |= vector
			}
		}
	case op == 0xc4 || op == 0xc5 || op == 0x62 || op == 0x8f && d.i < len(b) && b[d.i]&0x1f >= 8:
		if op, flags, ok = d.extended(op); !ok {
			return in, false
		}
	case op >= 0xa0 && op <= 0xa3:
		d.i += 8
		if d.short {
			d.i -= 4
		}
	}
	if flags&bad != 0 {
		return in, false
	}
	return d.operands(op, flags)
}

// generalMap reports whether an opcode of the maps 0f38 (2) and 0f3a (3) has general registers.
func generalMap(opMap int, op byte) bool {
	if opMap == 2 {
		return op >= 0xf0
	}
	return op >= 0x14 && op <= 0x17 || op == 0x20 || op == 0x22 || op == 0xf0
}

// x86Decoder is the state of x86.
type x86Decoder struct {
	b     []byte
	at    addr.Addr
	i     int
	rex   byte
	opMap int // 0: one byte, 1: 0f, 2: 0f38, 3: 0f3a, 4: others
	vvvv  byte
	small bool // operand-size prefix
	short bool // address-size prefix
	other bool // a segment prefix, of which 3e is notrack
	not   bool
}

func (d *x86Decoder) prefixes() {
	for ; d.i < len(d.b); d.i++ {
		switch p := d.b[d.i]; p {
		case 0x66:
			d.small = true
		case 0x67:
			d.short = true
		case 0x3e:
			d.not = true
		case 0xf2, 0xf3, 0xf0, 0x2e, 0x36, 0x26:
		case 0x64, 0x65:
			d.other = true
		default:
			if p&0xf0 != 0x40 {
				return
			}
			d.rex = p
			d.i++
			return
		}
	}
}

// extended decodes the rest of a VEX, EVEX or XOP prefix.
func (d *x86Decoder) extended(first byte) (op byte, flags uint8, ok bool) {
	n := map[byte]int{0xc5: 1, 0xc4: 2, 0x8f: 2, 0x62: 3}[first]
	if d.i+n >= len(d.b) || d.rex != 0 {
		return 0, 0, false
	}
	p := d.b[d.i : d.i+n]
	d.i += n
	op = d.b[d.i]
	d.i++
	opMap := 1
	if n > 1 {
		opMap = int(p[0] & 0x1f)
		if first == 0x62 {
			opMap &= 7
		}
		d.rex = ^p[0] >> 5 & 7 // R, X, B inverted, in their order of REX
		d.vvvv = ^p[1] >> 3 & 15
	} else {
		d.rex, d.vvvv = ^p[0]>>7<<2, ^p[0]>>3&15
	}
	flags = modRM | vector
	switch {
	case first == 0x8f:
		d.opMap, flags = 4, modRM
		switch opMap {
		case 8:
			flags |= imm8
		case 9:
		case 10:
			flags |= imm32
			d.small = false
		default:
			return 0, 0, false
		}
		return op, flags, true
	case opMap == 1:
		if op == 0x77 && first != 0x62 {
			return op, 0, true // vzeroupper
		}
		flags |= twoByte[op] & imm8
		if t := twoByte[op]; t&vector == 0 && t&modRM != 0 || op >= 0x90 && op <= 0x93 {
			flags &^= vector
		}
	case opMap == 2 || opMap == 3:
		if opMap == 3 {
			flags |= imm8
		}
		if generalMap(opMap, op) {
			flags &^= vector
		}
	case first == 0x62 && (opMap == 5 || opMap == 6):
	default:
		return 0, 0, false
	}
	d.opMap = 4
	return op, flags, true
}

// operands decodes what follows an opcode.
func (d *x86Decoder) operands(op byte, flags uint8) (in insn, ok bool) {
	const none = 0xff
	mod, reg, rm := byte(none), byte(0), byte(0)
	disp, ripRelative, noBase, index := int64(0), false, false, byte(4)
	if flags&modRM != 0 {
		if d.i >= len(d.b) {
			return in, false
		}
		m := d.b[d.i]
		d.i++
		mod, reg, rm = m>>6, m>>3&7|d.rex&4<<1, m&7|d.rex&1<<3
		base := rm
		if mod != 3 && m&7 == 4 {
			if d.i >= len(d.b) {
				return in, false
			}
			s := d.b[d.i]
			d.i++
			base = s&7 | d.rex&1<<3
			index = s>>3&7 | d.rex&2<<2
			if s>>6 != 3 {
				index = 4 // scaled by less than 8
			}
			noBase = s&7 == 5 && mod == 0
		}
		size := 0
		switch {
		case mod == 1:
			size = 1
		case mod == 2, noBase, mod == 0 && m&7 == 5:
			size = 4
		}
		ripRelative = mod == 0 && m&7 == 5
		if d.i+size > len(d.b) {
			return in, false
		}
		if size == 1 {
			disp = int64(int8(d.b[d.i]))
		} else if size == 4 {
			disp = int64(int32(binary.LittleEndian.Uint32(d.b[d.i:])))
		}
		d.i += size
		if mod != 3 {
			rm = base
		}
	}
	return d.immediate(op, flags, operand{mod, reg, rm, disp, ripRelative, noBase && index != 4})
}

// operand is the memory or register of a ModRM byte.
type operand struct {
	mod, reg, rm byte // rm is the base of memory
	disp         int64
	rip, table   bool
}

// immediate decodes the rest of an instruction.
func (d *x86Decoder) immediate(op byte, flags uint8, m operand) (in insn, ok bool) {
	wide, size := d.rex&8 != 0, 0
	group := m.reg & 7
	if d.opMap == 0 && (op == 0xf6 || op == 0xf7) && group < 2 {
		flags |= imm8 << (op & 1 * 2)
	}
	if flags&imm16 != 0 {
		size += 2
	}
	switch {
	case flags&(imm8|rel8) != 0:
		size++
	case flags&imm32 != 0 && d.small && !wide:
		size += 2
	case d.opMap == 0 && op&0xf8 == 0xb8 && wide:
		size += 8
	case flags&(imm32|rel32) != 0:
		size += 4
	}
	if d.i+size > len(d.b) {
		return in, false
	}
	rest := d.b[d.i : d.i+size]
	d.i += size
	in.size = d.i
	next := d.at + addr.Addr(d.i)
	switch {
	case flags&rel8 != 0:
		in.kind, in.target = jump, next+addr.Addr(int64(int8(rest[0])))
	case flags&rel32 != 0:
		in.kind, in.target = jump, next+addr.Addr(int64(int32(binary.LittleEndian.Uint32(rest))))
		if op == 0xe8 && d.opMap == 0 {
			in.kind = call
		}
	case size == 4:
		in.imm = int64(int32(binary.LittleEndian.Uint32(rest)))
	case size == 8:
		in.imm = int64(binary.LittleEndian.Uint64(rest))
	}
	if m.rip {
		in.target, in.memory = next+addr.Addr(m.disp), !d.other
	}
	if d.opMap == 0 {
		d.flow(&in, op, m)
	}
	in.class = d.framePointer(op, flags, m)
	return in, true
}

// flow recognizes calls and jumps through registers and memory.
func (d *x86Decoder) flow(in *insn, op byte, m operand) {
	switch op {
	case 0xff:
		switch m.reg & 7 {
		case 2, 3:
			in.kind = callIndirect
		case 4, 5:
			in.kind, in.notrack = jumpIndirect, d.not
			if m.table {
				in.scaled, in.target = true, addr.Addr(m.disp)
			}
		}
	case 0xc2, 0xc3, 0xca, 0xcb, 0xcf:
		in.kind = ret
	case 0x63:
		in.move = true
	case 0x01, 0x03:
		in.add = m.mod == 3
	}
}

// Numbers of registers.
const (
	rsp = 4
	rbp = 5
)

// framePointer returns the effect of an instruction on the frame pointer.
func (d *x86Decoder) framePointer(op byte, flags uint8, m operand) class {
	low := op&7 | d.rex&1<<3
	if d.opMap == 0 && flags&modRM == 0 {
		switch {
		case op == 0xc9, op&0xf8 == 0x58 && low == rbp:
			return restores
		case op&0xf8 == 0x50 && low == rbp:
			return saves
		case op&0xf8 == 0xb8 && low == rbp:
			return replaces
		case (op&0xf8 == 0xb0 || op&0xf8 == 0x90) && low == rbp:
			return touches
		case op == 0xc8:
			return touches
		}
		return leaves
	}
	if d.opMap == 1 && op&0xf8 == 0xc8 {
		if low == rbp {
			return touches
		}
		return leaves
	}
	if flags&modRM == 0 || flags&vector != 0 {
		return leaves
	}
	wide := d.rex&8 != 0
	switch {
	case d.opMap != 0:
	case op == 0x89 && m.mod == 3 && m.rm == rbp && m.reg == rsp && wide,
		op == 0x8b && m.mod == 3 && m.reg == rbp && m.rm == rsp && wide,
		op == 0x8d && m.reg == rbp && m.rm == rsp && !m.rip && wide:
		return sets
	case op == 0x8b && m.reg == rbp && m.mod != 3 && m.rm == rsp && !m.rip && wide:
		return restores
	case op == 0x89 && m.reg == rbp && m.mod != 3 && m.rm == rsp && !m.rip && wide:
		return leaves // saved
	}
	if d.opMap == 0 && !d.small && (op == 0x89 && m.mod == 3 && m.rm == rbp && m.reg != rbp ||
		(op == 0x8b || op == 0x8d || op == 0x63) && m.reg == rbp && (m.mod != 3 || m.rm != rbp) ||
		op == 0x31 && m.mod == 3 && m.rm == rbp && m.reg == rbp) ||
		d.opMap == 1 && (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf) && m.reg == rbp {
		return replaces
	}
	if m.reg == rbp && !d.isGroup(op) || m.mod == 3 && m.rm == rbp || d.opMap == 4 && d.vvvv == rbp {
		return touches
	}
	return leaves
}

// isGroup reports whether the register field of an opcode's ModRM byte selects an operation.
func (d *x86Decoder) isGroup(op byte) bool {
	switch d.opMap {
	case 0:
		switch op {
		case 0x80, 0x81, 0x83, 0x8f, 0xc0, 0xc1, 0xc6, 0xc7, 0xd0, 0xd1, 0xd2, 0xd3, 0xf6, 0xf7, 0xfe, 0xff:
			return true
		}
	case 1:
		return op <= 0x01 || op == 0xae || op == 0xba || op == 0xc7 || op&0xf0 == 0x90
	}
	return false
}
