package unwind

import (
	"encoding/binary"
)

// Limits of one expression; real ones need under 12 steps.
const (
	maxSteps = 256
	maxDepth = 32
)

// DWARF 5, 7.7.1: the operations that expressions of call frame information use.
const (
	opAddr       = 0x03
	opDeref      = 0x06
	opConst1u    = 0x08
	opConst8s    = 0x0f
	opConstu     = 0x10
	opConsts     = 0x11
	opDup        = 0x12
	opDrop       = 0x13
	opOver       = 0x14
	opPick       = 0x15
	opSwap       = 0x16
	opRot        = 0x17
	opAbs        = 0x19
	opAnd        = 0x1a
	opDiv        = 0x1b
	opMinus      = 0x1c
	opMod        = 0x1d
	opMul        = 0x1e
	opNeg        = 0x1f
	opNot        = 0x20
	opOr         = 0x21
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opShr        = 0x25
	opShra       = 0x26
	opXor        = 0x27
	opBra        = 0x28
	opEq         = 0x29
	opGe         = 0x2a
	opGt         = 0x2b
	opLe         = 0x2c
	opLt         = 0x2d
	opNe         = 0x2e
	opSkip       = 0x2f
	opLit0       = 0x30
	opLit31      = 0x4f
	opBreg0      = 0x70
	opBreg31     = 0x8f
	opBregx      = 0x92
	opDerefSize  = 0x94
	opNop        = 0x96
)

// evaluator evaluates one expression.
type evaluator struct {
	f     *frame
	code  []byte
	at    int
	stack [maxDepth]uint64
	depth int
	bad   bool
}

// eval evaluates an expression, with one value on the stack if push is set.
func (f *frame) eval(code []byte, push bool, value uint64) (uint64, bool) {
	m := evaluator{f: f, code: code}
	if push {
		m.push(value)
	}
	for steps := 0; m.at < len(m.code); steps++ {
		if f.w.work++; steps == maxSteps || f.w.work > maxWork {
			return 0, false
		}
		op := m.code[m.at]
		m.at++
		m.step(op)
		if m.bad {
			return 0, false
		}
	}
	v := m.pop()
	return v & f.w.mask, !m.bad
}

func (m *evaluator) push(v uint64) {
	if m.depth == maxDepth {
		m.bad = true
		return
	}
	m.stack[m.depth] = v & m.f.w.mask
	m.depth++
}

func (m *evaluator) pop() uint64 {
	if m.depth == 0 {
		m.bad = true
		return 0
	}
	m.depth--
	return m.stack[m.depth]
}

// signed returns a value of the machine's word as a signed number.
func (m *evaluator) signed(v uint64) int64 {
	if m.f.w.arch.Word == 4 {
		return int64(int32(v))
	}
	return int64(v)
}

// fixed reads a number of n bytes.
func (m *evaluator) fixed(n int) uint64 {
	if len(m.code)-m.at < n {
		m.bad = true
		return 0
	}
	var b [8]byte
	copy(b[:], m.code[m.at:m.at+n])
	m.at += n
	return binary.LittleEndian.Uint64(b[:])
}

// uleb and sleb read LEB128 numbers.
func (m *evaluator) uleb() uint64 {
	v, _ := m.leb()
	return v
}

func (m *evaluator) sleb() uint64 {
	v, bits := m.leb()
	if bits < 64 && v>>(bits-1)&1 != 0 {
		v |= ^uint64(0) << bits
	}
	return v
}

func (m *evaluator) leb() (v uint64, bits uint) {
	for bits < 70 && m.at < len(m.code) {
		b := m.code[m.at]
		m.at++
		v |= uint64(b&0x7f) << bits
		bits += 7
		if b&0x80 == 0 {
			return v, bits
		}
	}
	m.bad = true
	return 0, 64
}

// step runs an operation.
func (m *evaluator) step(op byte) {
	switch {
	case op >= opLit0 && op <= opLit31:
		m.push(uint64(op - opLit0))
	case op >= opBreg0 && op <= opBreg31:
		m.register(uint64(op-opBreg0), m.sleb())
	case op >= opConst1u && op <= opConst8s:
		n := 1 << ((op - opConst1u) / 2)
		v := m.fixed(n)
		if shift := 64 - 8*n; op&1 != 0 {
			v = uint64(int64(v<<shift) >> shift)
		}
		m.push(v)
	case op >= opDup && op <= opRot:
		m.shuffle(op)
	case op == opBra || op == opSkip:
		m.jump(op)
	case op == opAbs || op == opNeg || op == opNot || op == opPlusUconst:
		m.unary(op)
	case op >= opAnd && op <= opNe:
		m.binary(op)
	default:
		m.other(op)
	}
}

func (m *evaluator) other(op byte) {
	switch op {
	case opAddr:
		m.push(m.fixed(m.f.w.arch.Word))
	case opConstu:
		m.push(m.uleb())
	case opConsts:
		m.push(m.sleb())
	case opBregx:
		reg := m.uleb()
		m.register(reg, m.sleb())
	case opDeref:
		m.load(m.f.w.arch.Word)
	case opDerefSize:
		m.load(int(m.fixed(1)))
	case opNop:
	default:
		m.bad = true
	}
}

// register pushes a register's value and an offset.
func (m *evaluator) register(reg, off uint64) {
	if reg >= numRegs || m.f.valid>>reg&1 == 0 {
		m.bad = true
		return
	}
	m.push(m.f.regs[reg] + off)
}

// load replaces an address by the n bytes there.
func (m *evaluator) load(n int) {
	a := m.pop()
	if m.bad || n < 1 || n > 8 {
		m.bad = true
		return
	}
	v, ok := m.f.w.read(a, n)
	m.bad = m.bad || !ok
	m.push(v)
}

// shuffle runs the operations that only move values.
func (m *evaluator) shuffle(op byte) {
	pick := func(n uint64) {
		if n >= uint64(m.depth) {
			m.bad = true
			return
		}
		m.push(m.stack[uint64(m.depth)-1-n])
	}
	switch op {
	case opDup:
		pick(0)
	case opOver:
		pick(1)
	case opPick:
		pick(m.fixed(1))
	case opDrop:
		m.pop()
	case opSwap:
		a, b := m.pop(), m.pop()
		m.push(a)
		m.push(b)
	case opRot:
		a, b, c := m.pop(), m.pop(), m.pop()
		m.push(a)
		m.push(c)
		m.push(b)
	}
}

func (m *evaluator) jump(op byte) {
	by := int(int16(m.fixed(2)))
	to := m.at + by
	if op == opBra && m.pop() == 0 {
		return
	}
	if to < 0 || to > len(m.code) {
		m.bad = true
		return
	}
	m.at = to
}

func (m *evaluator) unary(op byte) {
	v := m.pop()
	switch op {
	case opAbs:
		if m.signed(v) < 0 {
			v = -v
		}
	case opNeg:
		v = -v
	case opNot:
		v = ^v
	case opPlusUconst:
		v += m.uleb()
	}
	m.push(v)
}

// binary runs an operation on the two top values, a the upper one.
func (m *evaluator) binary(op byte) {
	a, b := m.pop(), m.pop()
	sa, sb := m.signed(a), m.signed(b)
	switch op {
	case opAnd:
		b &= a
	case opOr:
		b |= a
	case opXor:
		b ^= a
	case opPlus:
		b += a
	case opMinus:
		b -= a
	case opMul:
		b *= a
	case opShl:
		b <<= a
	case opShr:
		b >>= a
	case opShra:
		b = uint64(sb >> min(a, 63))
	case opDiv, opMod:
		if a == 0 {
			m.bad = true
			return
		}
		if op == opMod {
			b %= a
		} else if sa == -1 {
			b = -b
		} else {
			b = uint64(sb / sa)
		}
	default:
		b = m.compare(op, sb, sa)
	}
	m.push(b)
}

func (m *evaluator) compare(op byte, b, a int64) uint64 {
	yes := false
	switch op {
	case opEq:
		yes = b == a
	case opGe:
		yes = b >= a
	case opGt:
		yes = b > a
	case opLe:
		yes = b <= a
	case opLt:
		yes = b < a
	case opNe:
		yes = b != a
	default:
		m.bad = true
	}
	if yes {
		return 1
	}
	return 0
}
