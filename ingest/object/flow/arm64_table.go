package flow

import "symbolize/ingest/addr"

// arm64Window is how many instructions before an indirect jump those that make its target can be.
const arm64Window = 48

// arm64Table returns the targets of an indirect jump through a table of bytes, halves or words:
//
//	cmp w0, #9; b.hi default; adrp x1, T; add x1, x1, T; ldrb w1, [x1, w0, uxtw]; adr x0, base;
//	add x1, x0, w1, sxtb #2; br x1
//
// The parts can be in another order. Without the comparison the table ends at the first target outside.
func arm64Table(g *graph, i int) []addr.Addr {
	sum := g.defines(i, g.insns[i].src)
	if sum < 0 {
		return nil
	}
	t := jumpTable{n: maxTable}
	base, index, part, ok := g.scaledSum(sum, &t)
	if !ok {
		return nil
	}
	from, ok := g.address(sum, base, 0)
	load := g.defines(sum, index)
	if !ok || load < 0 {
		return nil
	}
	x := &g.insns[load]
	if x.form != memForm || x.mem.index == noReg || x.access > 4 || x.pair {
		return nil
	}
	at, ok := g.address(load, x.mem.base, 0)
	if !ok {
		return nil
	}
	t.at, t.base, t.size = at, from, int(x.access)
	t.signed = t.signed && part <= t.size || x.op == opExtend
	if n := g.compared(load, x.mem.index); n > 0 {
		t.n = n
	}
	return g.words(t)
}

// scaledSum returns the registers of "add x, base, index, extension #shift", and how many bytes are extended.
func (g *graph) scaledSum(i int, t *jumpTable) (base, index reg, part int, ok bool) {
	b := g.bytes(g.insns[i].at, 4)
	if len(b) < 4 {
		return
	}
	d := arm64Insn{w: uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24}
	base, index, part = d.general(5), d.general(16), 8
	switch d.w >> 21 {
	case 0x8b200000 >> 21:
		option := d.bits(13, 3)
		t.signed, part, t.shift = option >= 4, 1<<(option&3), uint(d.bits(10, 3))
	case 0x8b000000 >> 21:
		t.shift = uint(d.bits(10, 6))
	default:
		return
	}
	return base, index, part, base != noReg && index != noReg
}

// defines returns the last instruction before another one that changes a register, −1 for none near.
func (g *graph) defines(i int, r reg) int {
	for j := i - 1; j >= 0 && j > i-arm64Window; j-- {
		switch x := &g.insns[j]; {
		case x.changed()&r.bit() != 0:
			return j
		case x.jump == always, x.jump == indirect, x.jump == stop, x.op == opCall && armCall&r.bit() != 0:
			return -1
		}
	}
	return -1
}

// address returns the address that a register has before an instruction, by adr, adrp and add. It can have
// been spilled before.
func (g *graph) address(i int, r reg, depth int) (addr.Addr, bool) {
	j := g.defines(i, r)
	if j < 0 || depth > 2 {
		return 0, false
	}
	switch x := &g.insns[j]; {
	case x.op == opAddr && x.mem.absolute:
		return addr.Addr(x.mem.disp), true
	case x.op == opAdd && x.form == immForm && x.width == 8:
		a, ok := g.address(j, x.a, depth+1)
		return a + addr.Addr(x.imm), ok
	case x.form == memForm && x.width == 8 && spillSlot(x):
		if j := g.spilled(x.mem.disp); j >= 0 {
			return g.address(j, g.insns[j].src, depth+1)
		}
	}
	return 0, false
}

// spillSlot reports whether an instruction accesses a word of the frame.
func spillSlot(x *insn) bool {
	return x.mem.base == armSP && x.mem.index == noReg && x.update == 0 && x.access == 8 && !x.pair
}

// spilled returns the only instruction of the function that writes a word of the frame, −1 for none or more.
func (g *graph) spilled(disp int64) int {
	if g.spills == nil {
		g.spills = make(map[int64]int)
		for i := range g.insns {
			x := &g.insns[i]
			switch _, again := g.spills[x.mem.disp]; {
			case !x.writes || x.mem.base != armSP:
			case again || x.op != opStore || x.form != regForm || !spillSlot(x):
				for at := range (int64(x.access) + 7) / 8 {
					g.spills[x.mem.disp+8*at] = -1
				}
			default:
				g.spills[x.mem.disp] = i
			}
		}
	}
	if i, ok := g.spills[disp]; ok {
		return i
	}
	return -1
}

// compared returns how many values of an index are below a bound that it is compared with; 0 if that is not
// near.
func (g *graph) compared(i int, index reg) int {
	for j := i - 1; j >= 0 && j > i-arm64Window; j-- {
		switch x := &g.insns[j]; {
		case x.op == opCompare && x.a == index && x.form == immForm && x.imm < maxTable && g.unsigned(j+1):
			return int(x.imm) + 1
		case x.changed()&index.bit() != 0, x.jump == always, x.jump == indirect, x.jump == stop, x.op == opCall:
			return 0
		}
	}
	return 0
}

// unsigned reports whether an instruction is a jump by an unsigned comparison: b.hs, b.lo, b.hi, b.ls.
func (g *graph) unsigned(i int) bool {
	b := g.bytes(g.insns[i].at, 4)
	if len(b) < 4 || b[3] != 0x54 {
		return false
	}
	cond := b[0] & 15
	return cond == 2 || cond == 3 || cond == 8 || cond == 9
}
