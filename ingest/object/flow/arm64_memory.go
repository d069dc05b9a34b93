package flow

// memory decodes loads and stores (Arm ARM, C4.1.94).
func (d *arm64Insn) memory() {
	d.x.mem.base = d.stacked(5)
	switch group := d.bits(24, 6); {
	case group == 0x08:
		d.exclusive()
	case group == 0x0c:
		d.structures()
	case group == 0x0d:
		d.structure()
	case group&0x3b == 0x18:
		d.literal()
	case group&0x3a == 0x28:
		d.pairs()
	case group == 0x19 && d.bits(10, 2) == 1, group == 0x1d && d.bits(10, 2) == 1: // cpy, set
		d.x.text = true
		d.loses(d.general(0).bit() | d.general(5).bit() | d.general(16).bit())
	case group == 0x19 && d.bits(21, 1) == 0 && d.bits(10, 2) == 0: // ldapur, stlur
		d.x.mem.disp = d.signed(12, 9)
		d.single()
	case group&0x3a == 0x38:
		d.offsets()
	default: // tags, ordered pairs, atomics of 16 bytes
		d.x.vague = true
		d.loses(d.general(0).bit() | d.general(5).bit() | d.general(16).bit())
	}
}

// offsets decodes loads and stores of one register.
func (d *arm64Insn) offsets() {
	x := &d.x
	scale := d.bits(30, 2)
	if d.vector() {
		scale |= d.bits(23, 1) << 2
	}
	switch {
	case d.bits(24, 1) != 0:
		x.mem.disp = int64(d.bits(10, 12)) << scale
		d.single()
	case d.bits(21, 1) == 0:
		d.immediateOffset()
		d.single()
	case d.bits(10, 2) == 2:
		d.indexed(scale)
		d.single()
	case d.bits(10, 2) == 0:
		d.atomic()
	case scale == 3 && !d.vector(): // ldraa, ldrab
		x.mem.disp = int64(d.bits(12, 9))<<3 | -int64(d.bits(22, 1))<<12
		if d.bits(11, 1) != 0 && d.bits(10, 1) != 0 {
			x.update = x.mem.disp
		}
		d.load(8, false)
	default:
		d.kills()
	}
}

func (d *arm64Insn) vector() bool { return d.bits(26, 1) != 0 }

// immediateOffset decodes an offset, or what the base is changed by, before the access or after it.
func (d *arm64Insn) immediateOffset() {
	x := &d.x
	v := d.signed(12, 9)
	switch d.bits(10, 2) {
	case 1:
		x.update = v
	case 3:
		x.mem.disp, x.update = v, v
	default:
		x.mem.disp = v
	}
}

// indexed decodes a base and an index.
func (d *arm64Insn) indexed(scale uint32) {
	m, option := &d.x.mem, d.bits(13, 3)
	m.index, m.scale = d.general(16), 1
	if d.bits(12, 1) != 0 {
		m.scale = 1 << scale
	}
	m.part = option&1 == 0
}

// single decodes what a load or store of one register does, with the operand set.
func (d *arm64Insn) single() {
	size, opc := d.bits(30, 2), d.bits(22, 2)
	switch {
	case d.vector() && opc&2 != 0:
		d.vectorAccess(16, opc&1 != 0)
	case d.vector():
		d.vectorAccess(1<<size, opc&1 != 0)
	case opc == 0:
		d.store(1 << size)
	case opc == 1:
		d.load(1<<size, false)
	case size < 3:
		d.load(1<<size, true)
	default: // prfm
		d.x.update = 0
	}
}

// vectorAccess is an access of a vector register: values in memory are unknown then.
func (d *arm64Insn) vectorAccess(size uint8, load bool) {
	d.x.access, d.x.width, d.x.writes = size, size, !load
}

// load is a load into the register at bit 0.
func (d *arm64Insn) load(size uint8, signed bool) {
	x := &d.x
	x.op, x.form, x.dst, x.width, x.access = opMove, memForm, d.general(0), size, size
	if signed {
		x.op = opExtend
	}
}

// store is a store of the register at bit 0.
func (d *arm64Insn) store(size uint8) {
	x := &d.x
	x.op, x.width, x.access, x.writes = opStore, size, size, true
	d.from(0)
}

// literal decodes loads relative to the instruction.
func (d *arm64Insn) literal() {
	m := &d.x.mem
	m.base, m.absolute = noReg, true
	m.disp = int64(d.x.at) + d.signed(5, 19)*4
	switch opc := d.bits(30, 2); {
	case d.vector():
		d.vectorAccess(4<<opc, true)
	case opc == 3: // prfm
	default:
		d.load([3]uint8{4, 8, 4}[opc], opc == 2)
	}
}

// pairs decodes ldp, stp and the like.
func (d *arm64Insn) pairs() {
	x := &d.x
	opc, load := d.bits(30, 2), d.bits(22, 1) != 0
	size := uint8(4)
	switch {
	case d.vector():
		size <<= opc
	case opc == 2:
		size = 8
	case opc == 1 && !load: // stgp
		size = 8
	}
	offset := d.signed(15, 7) * int64(size)
	if opc == 1 && !load && !d.vector() {
		offset *= 2 // it tags 16 bytes
	}
	switch d.bits(23, 2) {
	case 1:
		x.update = offset
	case 3:
		x.mem.disp, x.update = offset, offset
	default:
		x.mem.disp = offset
	}
	switch {
	case d.vector():
		d.vectorAccess(size, load)
	case load:
		d.load(size, opc == 1)
		x.second = d.general(10)
	default:
		d.store(size)
		x.form, x.second = regForm, d.general(10)
	}
	x.pair, x.access = true, 2*size
}

// exclusive decodes exclusive and ordered accesses, and compare and swap.
func (d *arm64Insn) exclusive() {
	x := &d.x
	size, load, old := uint8(1)<<d.bits(30, 2), d.bits(22, 1) != 0, d.general(16)
	two := d.bits(21, 1) != 0
	switch ordered := d.bits(23, 1) != 0; {
	case ordered && two: // cas
		d.modify(size, old.bit())
	case ordered && load:
		d.load(size, false)
	case ordered:
		d.store(size)
	case two && d.w>>31 == 0: // casp
		d.modify(8<<d.bits(30, 1), old.bit()|reg(d.bits(16, 5)+1).bit())
		x.pair = true
	case two && load: // ldxp
		size = 4 << d.bits(30, 1)
		d.load(size, false)
		x.second, x.pair, x.access = d.general(10), true, 2*size
	case two: // stxp
		d.modify(8<<d.bits(30, 1), old.bit())
		x.pair = true
	case load:
		d.load(size, false)
	default: // stxr
		d.store(size)
		d.loses(old.bit())
	}
}

// modify is an access that reads and writes; what it writes is not followed.
func (d *arm64Insn) modify(size uint8, kill uint32) {
	d.x.op, d.x.access, d.x.width, d.x.writes, d.x.kill = opKill, size, size, true, kill
}

// atomic decodes atomic operations, which return the old value.
func (d *arm64Insn) atomic() {
	switch op := d.bits(12, 4); {
	case d.vector():
		d.vectorAccess(1<<d.bits(30, 2), true)
		d.x.writes = true
	case op == 12: // ldapr
		d.load(1<<d.bits(30, 2), false)
	case op > 8: // ld64b, st64b and the like
		d.modify(64, ^uint32(0)>>1)
	default:
		d.modify(1<<d.bits(30, 2), d.general(0).bit())
	}
}

// structures decodes loads and stores of whole vector registers, ld1 to ld4 and st1 to st4.
func (d *arm64Insn) structures() {
	registers := [16]uint8{0: 4, 2: 4, 4: 3, 6: 3, 7: 1, 8: 2, 10: 2}[d.bits(12, 4)]
	d.many(registers * (8 << d.bits(30, 1)))
}

// structure decodes loads and stores of an element of each register.
func (d *arm64Insn) structure() {
	registers := uint8(d.bits(13, 1)<<1|d.bits(21, 1)) + 1
	size := uint8(1) << d.bits(14, 2)
	switch {
	case d.bits(14, 2) == 3: // one element for all of the register
		size = 1 << d.bits(10, 2)
	case d.bits(14, 2) == 2 && d.bits(10, 1) != 0:
		size = 8
	}
	d.many(registers * size)
}

// many is an access of vector registers; the base may be changed by the size or a register then.
func (d *arm64Insn) many(size uint8) {
	x := &d.x
	d.vectorAccess(size, d.bits(22, 1) != 0)
	switch {
	case d.bits(23, 1) == 0:
	case d.bits(16, 5) == 31:
		x.update = int64(size)
	default:
		d.loses(d.stacked(5).bit())
	}
}
