package dwarfvar

import (
	"symbolize/ingest/decode"
	"symbolize/ingest/object/dwarf"
)

// Operations of expressions. DWARF 5, table 7.9, and GNU extensions.
const (
	opAddr         = 0x03
	opDeref        = 0x06
	opConst1u      = 0x08
	opConst1s      = 0x09
	opConst2u      = 0x0a
	opConst2s      = 0x0b
	opConst4u      = 0x0c
	opConst4s      = 0x0d
	opConst8u      = 0x0e
	opConst8s      = 0x0f
	opConstu       = 0x10
	opConsts       = 0x11
	opDup          = 0x12
	opDrop         = 0x13
	opOver         = 0x14
	opPick         = 0x15
	opSwap         = 0x16
	opRot          = 0x17
	opXDeref       = 0x18
	opAbs          = 0x19
	opAnd          = 0x1a
	opDiv          = 0x1b
	opMinus        = 0x1c
	opMod          = 0x1d
	opMul          = 0x1e
	opNeg          = 0x1f
	opNot          = 0x20
	opOr           = 0x21
	opPlus         = 0x22
	opPlusUconst   = 0x23
	opShl          = 0x24
	opShr          = 0x25
	opShra         = 0x26
	opXor          = 0x27
	opBra          = 0x28
	opEq           = 0x29
	opNe           = 0x2e
	opLit0         = 0x30
	opReg0         = 0x50
	opBreg0        = 0x70
	opRegx         = 0x90
	opFbreg        = 0x91
	opBregx        = 0x92
	opPiece        = 0x93
	opDerefSize    = 0x94
	opXDerefSize   = 0x95
	opNop          = 0x96
	opPushObject   = 0x97
	opFormTLS      = 0x9b
	opCallFrameCFA = 0x9c
	opBitPiece     = 0x9d
	opImplicit     = 0x9e
	opStackValue   = 0x9f
	opImplicitPtr  = 0xa0
	opAddrx        = 0xa1
	opConstx       = 0xa2
	opEntryValue   = 0xa3
	opConstType    = 0xa4
	opRegvalType   = 0xa5
	opDerefType    = 0xa6
	opConvert      = 0xa8
	opReinterpret  = 0xa9
	opGNUTLS       = 0xe0
	opGNUUninit    = 0xf0
	opGNUImplicit  = 0xf2
	opGNUEntry     = 0xf3
	opGNUConst     = 0xf4
	opGNURegval    = 0xf5
	opGNUDeref     = 0xf6
	opGNUConvert   = 0xf7
	opGNUReinter   = 0xf9
	opGNUAddrIndex = 0xfb
	opGNUConstIdx  = 0xfc
)

// Bounds of an expression: its operations, its parts and the values on its stack. The longest one
// seen has 130 operations and 16 parts.
const (
	maxOps   = 1 << 10
	maxParts = 256
	maxStack = 64
)

// base is what a symbolic value is relative to.
type base uint8

const (
	baseNumber base = iota
	baseRegister
	baseCFA
	baseAddress
	baseTLS
	baseEntry // value of a register at the function's entry
	baseUnknown
)

// symbol is a value that an expression computes: something plus a number.
type symbol struct {
	base base
	reg  uint16
	n    int64
}

var unknown = symbol{base: baseUnknown}

// evaluation reads one expression.
type evaluation struct {
	root  *dwarf.Root
	tree  *dwarf.Tree
	frame symbol // DW_AT_frame_base

	r     *decode.Reader
	stack []symbol
	parts []Part
	done  bool  // place is the result so far
	place Place // of DW_OP_reg and the like
	value bool  // DW_OP_stack_value
}

// evaluate returns the place that an expression describes.
func evaluate(t *dwarf.Tree, root *dwarf.Root, frame symbol, expr []byte) Place {
	if len(expr) == 0 {
		return Place{}
	}
	v := evaluation{root: root, tree: t, frame: frame, r: decode.New("", expr, 0, t.BigEndian())}
	for n := 0; v.r.Left() > 0; n++ {
		if n >= maxOps || len(v.stack) > maxStack || len(v.parts) > maxParts || !v.step(v.r.U8()) ||
			v.r.Err() != nil {
			return Place{Kind: Computed}
		}
	}
	if v.parts == nil {
		return v.result()
	}
	if v.done || v.value || len(v.stack) > 0 { // not followed by a piece
		return Place{Kind: Computed}
	}
	return Place{Kind: Parts, Parts: v.parts}
}

// result returns the place that the operations so far describe.
func (v *evaluation) result() Place {
	if v.done {
		if v.value && v.place.Kind == Register {
			return Place{Kind: Sum, Reg: v.place.Reg}
		}
		return v.place
	}
	if len(v.stack) == 0 {
		return Place{}
	}
	s := v.stack[len(v.stack)-1]
	kind := placeOf(s.base)
	if v.value {
		kind = valueOf(s.base)
	}
	if kind == Computed {
		return Place{Kind: Computed}
	}
	return Place{Kind: kind, Reg: s.reg, Off: s.n}
}

// placeOf returns the kind of a place at an address relative to a base.
func placeOf(b base) PlaceKind {
	switch b {
	case baseRegister:
		return Memory
	case baseCFA:
		return Stack
	case baseAddress, baseNumber:
		return Static
	case baseTLS:
		return ThreadLocal
	}
	return Computed
}

// valueOf returns the kind of a value relative to a base.
func valueOf(b base) PlaceKind {
	switch b {
	case baseRegister:
		return Sum
	case baseCFA:
		return StackAddress
	case baseAddress, baseNumber:
		return Constant
	case baseEntry:
		return Entry
	}
	return Computed
}

func (v *evaluation) push(s symbol) { v.stack = append(v.stack, s) }

func (v *evaluation) pop() symbol {
	if len(v.stack) == 0 {
		v.r.Fail("expression has too few operands")
		return unknown
	}
	s := v.stack[len(v.stack)-1]
	v.stack = v.stack[:len(v.stack)-1]
	return s
}

func (v *evaluation) number(n int64) { v.push(symbol{n: n}) }

// step executes one operation. It reports false for one that is beyond this evaluation.
func (v *evaluation) step(op uint8) bool {
	switch {
	case op >= opLit0 && op < opReg0:
		if op-opLit0 > 31 {
			return false
		}
		v.number(int64(op - opLit0))
	case op >= opReg0 && op < opBreg0:
		return v.register(uint64(op - opReg0))
	case op >= opBreg0 && op < opRegx:
		v.push(symbol{baseRegister, uint16(op - opBreg0), v.signed()})
	case op == opRegx:
		return v.register(v.r.Uvarint())
	case op == opBregx:
		reg := v.r.Uvarint()
		v.push(symbol{baseRegister, uint16(min(reg, 0xffff)), v.signed()})
	case op == opFbreg:
		s := v.frame
		s.n += v.signed()
		v.push(s)
	case op == opCallFrameCFA:
		v.push(symbol{base: baseCFA})
	case op >= opConst1u && op <= opConsts:
		v.number(v.constant(op))
	case op >= opDup && op <= opRot:
		return v.shuffle(op)
	case op >= opAbs && op <= opXor || op >= opEq && op <= opNe:
		v.arithmetic(op)
	case op == opPiece:
		return v.piece(8*v.r.Uvarint(), 0)
	case op == opBitPiece:
		bits := v.r.Uvarint()
		return v.piece(bits, v.r.Uvarint())
	default:
		return v.special(op)
	}
	return true
}

// special executes the operations on addresses, and those that end a place.
func (v *evaluation) special(op uint8) bool {
	switch op {
	case opNop, opGNUUninit:
	case opAddr:
		v.push(symbol{base: baseAddress, n: int64(v.address())})
	case opAddrx, opGNUAddrIndex:
		a, ok := v.tree.Indexed(v.root, v.r.Uvarint())
		v.push(symbol{base: baseAddress, n: int64(a)})
		return ok
	case opConstx, opGNUConstIdx:
		a, ok := v.tree.Indexed(v.root, v.r.Uvarint())
		v.number(int64(a))
		return ok
	case opFormTLS, opGNUTLS:
		s := v.pop()
		if s.base != baseNumber && s.base != baseAddress {
			return false
		}
		v.push(symbol{base: baseTLS, n: s.n})
	case opStackValue:
		v.value = true
	case opEntryValue, opGNUEntry:
		return v.entry(v.r.Bytes(v.r.Uvarint()))
	case opImplicit:
		v.done, v.place = true, Place{Kind: Bytes, Data: v.r.Bytes(v.r.Uvarint())}
	case opImplicitPtr, opGNUImplicit:
		v.done, v.place = true, Place{Kind: Pointee}
		v.reference()
		v.signed()
	case opDeref, opXDeref, opPushObject:
		if op != opPushObject {
			v.pop()
		}
		v.push(unknown)
	case opDerefSize, opXDerefSize:
		v.r.U8()
		v.pop()
		v.push(unknown)
	case opConstType, opGNUConst:
		v.r.Uvarint()
		v.r.Bytes(uint64(v.r.U8()))
		v.push(unknown)
	case opRegvalType, opGNURegval:
		v.r.Uvarint()
		v.r.Uvarint()
		v.push(unknown)
	case opDerefType, opGNUDeref:
		v.r.U8()
		v.r.Uvarint()
		v.pop()
		v.push(unknown)
	case opConvert, opReinterpret, opGNUConvert, opGNUReinter:
		v.r.Uvarint()
		v.pop()
		v.push(unknown)
	default:
		return false
	}
	return true
}

// register ends a place in a register.
func (v *evaluation) register(reg uint64) bool {
	if v.done || reg > 0xffff {
		return false
	}
	v.done, v.place = true, Place{Kind: Register, Reg: uint16(reg)}
	return true
}

// address reads an address of the unit's size.
func (v *evaluation) address() uint64 {
	if v.root.AddrSize == 4 {
		return uint64(v.r.U32())
	}
	return v.r.U64()
}

// reference skips the position of an entry: of an address's size in DWARF 2.
func (v *evaluation) reference() {
	if v.root.Version == 2 {
		v.address()
	} else if v.root.Is64 {
		v.r.U64()
	} else {
		v.r.U32()
	}
}

func (v *evaluation) constant(op uint8) int64 {
	switch op {
	case opConst1u:
		return int64(v.r.U8())
	case opConst1s:
		return int64(int8(v.r.U8()))
	case opConst2u:
		return int64(v.r.U16())
	case opConst2s:
		return int64(int16(v.r.U16()))
	case opConst4u:
		return int64(v.r.U32())
	case opConst4s:
		return int64(int32(v.r.U32()))
	case opConst8u, opConst8s:
		return int64(v.r.U64())
	case opConstu:
		return int64(v.r.Uvarint())
	}
	return v.signed()
}

// shuffle executes an operation that moves values on the stack.
func (v *evaluation) shuffle(op uint8) bool {
	n := len(v.stack)
	at := 0
	switch op {
	case opDrop:
		v.pop()
		return true
	case opOver:
		at = 1
	case opPick:
		at = int(v.r.U8())
	case opSwap:
		if n < 2 {
			return false
		}
		v.stack[n-1], v.stack[n-2] = v.stack[n-2], v.stack[n-1]
		return true
	case opRot:
		if n < 3 {
			return false
		}
		s := v.stack[n-3:]
		s[0], s[1], s[2] = s[2], s[0], s[1]
		return true
	}
	if at >= n {
		return false
	}
	v.push(v.stack[n-1-at])
	return true
}

// arithmetic executes an operation on numbers; with anything else only sums are known.
func (v *evaluation) arithmetic(op uint8) {
	if op == opPlusUconst {
		s := v.pop()
		s.n += int64(v.r.Uvarint())
		v.push(s)
		return
	}
	b := v.pop()
	if op == opAbs || op == opNeg || op == opNot {
		v.push(unary(op, b))
		return
	}
	a := v.pop()
	switch {
	case a.base == baseUnknown || b.base == baseUnknown:
		v.push(unknown)
	case op == opPlus && b.base == baseNumber:
		a.n += b.n
		v.push(a)
	case op == opPlus && a.base == baseNumber:
		b.n += a.n
		v.push(b)
	case op == opMinus && b.base == baseNumber:
		a.n -= b.n
		v.push(a)
	case a.base == baseNumber && b.base == baseNumber:
		v.push(binary(op, a.n, b.n))
	default:
		v.push(unknown)
	}
}

func unary(op uint8, s symbol) symbol {
	switch {
	case s.base != baseNumber:
		return unknown
	case op == opNot:
		s.n = ^s.n
	case op == opNeg || s.n < 0:
		s.n = -s.n
	}
	return s
}

func binary(op uint8, a, b int64) symbol {
	switch op {
	case opAnd:
		a &= b
	case opOr:
		a |= b
	case opXor:
		a ^= b
	case opMul:
		a *= b
	case opShl, opShr, opShra:
		if b < 0 || b > 63 {
			return unknown
		}
		switch op {
		case opShl:
			a <<= b
		case opShr:
			a = int64(uint64(a) >> b)
		default:
			a >>= b
		}
	default:
		return unknown
	}
	return symbol{n: a}
}

// entry is the value of a register at the function's entry.
func (v *evaluation) entry(expr []byte) bool {
	p := evaluate(v.tree, v.root, unknown, expr)
	switch p.Kind {
	case Register:
		v.push(symbol{base: baseEntry, reg: p.Reg})
	case Memory: // DW_OP_breg without stack_value: its value is pushed
		v.push(symbol{baseEntry, p.Reg, p.Off})
	default:
		v.push(unknown)
	}
	return true
}

// piece ends a part of a variable.
func (v *evaluation) piece(bits, offset uint64) bool {
	p := v.result()
	if offset != 0 && p.Kind != Lost {
		p = Place{Kind: Computed}
	}
	v.parts = append(v.parts, Part{Place: p, Bits: bits})
	v.stack, v.done, v.value, v.place = v.stack[:0], false, false, Place{}
	return true
}

// signed reads a signed LEB128 number.
func (v *evaluation) signed() (n int64) {
	for shift := uint(0); v.r.Err() == nil; {
		c := v.r.U8()
		if shift < 64 {
			n |= int64(c&0x7f) << shift
		}
		shift += 7
		if c < 0x80 {
			if shift < 64 && c&0x40 != 0 {
				n |= -1 << shift
			}
			break
		}
	}
	return n
}
