package x86

// OperandSize returns the size of an instruction's general operands in bytes, by its prefixes and the
// lowest bit of the opcode, if Bytes says that it has one.
func (in *Inst) OperandSize() int {
	switch {
	case in.Bytes():
		return 1
	case in.Wide:
		return 8
	case in.Small && !in.VEX:
		return 2
	}
	return 4
}

// Bytes reports whether the operands of an opcode are bytes.
func (in *Inst) Bytes() bool {
	op := in.Op
	switch in.Map {
	case OneByte:
		return op < 0x40 && op&1 == 0 && op&7 < 6 || op >= 0x80 && op <= 0x8a && op&1 == 0 ||
			op >= 0xb0 && op < 0xb8 || op == 0xa8 || op == 0xc0 || op == 0xc6 || op == 0xd0 || op == 0xd2 ||
			op == 0xf6 || op == 0xfe
	case TwoByte:
		return !in.VEX && (op&0xf0 == 0x90 || op == 0xb0 || op == 0xc0)
	}
	return false
}

// Access returns how many bytes of its operand in memory an instruction reads or writes; 0 if it has
// no such operand, or only computes its address (lea, nop, prefetches).
func (in *Inst) Access() int {
	switch {
	case !in.Memory():
		return 0
	case in.Map == OneByte:
		return in.accessOne()
	case in.Map == TwoByte && (in.General || in.VEX && in.Op >= 0x90 && in.Op <= 0x93):
		return in.accessTwo()
	case in.Map == TwoByte:
		return in.accessVector()
	case in.General:
		return in.access38()
	}
	return in.accessWide()
}

// accessOne is Access of opcodes of one byte.
func (in *Inst) accessOne() int {
	switch op, group := in.Op, in.Reg&7; {
	case op == 0x8d || op == 0x62:
		return 0
	case op == 0x63:
		return 4
	case op == 0x8f, op == 0xff && group >= 2 && !in.Small:
		return 8
	case op >= 0xd8 && op <= 0xdf:
		return floatAccess[op-0xd8][group]
	case op == 0x8c || op == 0x8e:
		return 2
	}
	return in.OperandSize()
}

// floatAccess has the bytes of operands of x87, by opcode and group; 0 for states, and for none.
var floatAccess = [8][8]int{
	{4, 4, 4, 4, 4, 4, 4, 4},
	{4, 0, 4, 4, 0, 2, 0, 2},
	{4, 4, 4, 4, 4, 4, 4, 4},
	{4, 4, 4, 4, 0, 10, 0, 10},
	{8, 8, 8, 8, 8, 8, 8, 8},
	{8, 8, 8, 8, 0, 0, 0, 2},
	{2, 2, 2, 2, 2, 2, 2, 2},
	{2, 2, 2, 2, 10, 8, 10, 8},
}

// accessTwo is Access of opcodes after 0f with general registers.
func (in *Inst) accessTwo() int {
	switch op := in.Op; {
	case op == 0xb6 || op == 0xbe:
		return 1
	case op == 0xb7 || op == 0xbf || op <= 0x01:
		return 2
	case op == 0x2c || op == 0x2d:
		return in.scalar()
	case op == 0x7e:
		return in.accessVector()
	case op == 0xc7 && in.Wide:
		return 16
	case op == 0xc7:
		return 8
	case op == 0xae: // states, fences, clflush
		return 0
	}
	return in.OperandSize()
}

// scalar is the size of a floating-point number by the prefix; 16 bytes, or the vector, for none.
func (in *Inst) scalar() int {
	switch in.Rep {
	case 0xf3:
		return 4
	case 0xf2:
		return 8
	}
	return 16 << in.L
}

// accessVector is Access of opcodes after 0f with vector registers.
func (in *Inst) accessVector() int {
	word := 4
	if in.Wide {
		word = 8
	}
	switch op := in.Op; {
	case op == 0x0d || op >= 0x18 && op <= 0x1f:
		return 0 // prefetches, nops
	case op >= 0x12 && op <= 0x17:
		if op == 0x14 || op == 0x15 {
			return 16 << in.L
		}
		return 8
	case op == 0x2a && in.Rep != 0, op == 0x6e || op == 0x7e && in.Rep == 0:
		return word
	case op == 0x2e || op == 0x2f:
		if in.Small {
			return 8
		}
		return 4
	case op == 0x7e || op == 0xd6, op == 0xe6 && in.Rep == 0xf3, op == 0x5a && in.Rep == 0 && !in.Small:
		return 8 << in.L
	case op == 0xc4:
		return 2
	case op == 0x6f || op == 0x7f || op == 0x70 || op == 0xf0:
		if !in.Small && in.Rep == 0 && !in.VEX {
			return 8 // MMX
		}
		return 16 << in.L
	case op >= 0xd0 && !in.Small && in.Rep == 0 && !in.VEX || op >= 0x60 && op <= 0x6b && !in.Small && !in.VEX:
		return 8
	}
	return in.scalar()
}

// access38 is Access of the maps 0f38 and 0f3a with general registers.
func (in *Inst) access38() int {
	switch {
	case in.Map == Map38 && !in.VEX && in.Rep == 0xf2 && in.Op == 0xf0:
		return 1
	case in.Map == Map3A && in.Op == 0x14, in.Map == Map3A && in.Op == 0x20:
		return 1
	case in.Map == Map3A && in.Op == 0x15:
		return 2
	case in.Map == Map3A && in.Op == 0x17:
		return 4
	}
	return in.OperandSize()
}

// accessWide is Access of the maps 0f38 and 0f3a with vector registers. Where a vector's elements are
// broadcast, it is the size of one.
func (in *Inst) accessWide() int {
	full, word := 16<<in.L, 4
	if in.Wide {
		word = 8
	}
	if in.Map != Map38 {
		switch {
		case in.Op == 0x19 || in.Op == 0x39 || in.Op == 0x18 || in.Op == 0x38:
			return 16 // vextracti128, vinserti128
		case in.Op == 0x21 || in.Op == 0x0a:
			return 4
		case in.Op == 0x0b:
			return 8
		}
		return full
	}
	switch op := in.Op; {
	case op == 0x18 || op == 0x58:
		return 4
	case op == 0x19 || op == 0x59:
		return 8
	case op == 0x1a || op == 0x5a:
		return 16
	case op == 0x78:
		return 1
	case op == 0x79:
		return 2
	case op >= 0x20 && op <= 0x25 || op >= 0x30 && op <= 0x35:
		return full >> [6]byte{1, 2, 3, 1, 2, 1}[op&0xf]
	case op >= 0x90 && op <= 0x93:
		return word // gathers
	case op >= 0x96 && op <= 0xbf && op&0xf >= 9 && op&1 == 1:
		return word // fused operations on one number
	}
	return full
}
