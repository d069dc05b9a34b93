package flow

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/x86"
)

// two decodes opcodes after 0f.
func (d *x86Insn) two() {
	in, x := d.in, &d.x
	switch op := in.Op; {
	case op == 0x05:
		d.kills(rax, rcx, r11)
	case op == 0x0b || op == 0xb9 || op == 0xff:
		x.jump = stop
	case op == 0x0d, op >= 0x18 && op <= 0x1d, op == 0x1f:
	case op == 0x1e:
		if in.Rep == 0xf3 && in.Mod == 3 && in.Reg&7 == 1 {
			d.killsRM() // rdssp
		}
	case op >= 0x40 && op < 0x50:
		d.from()
		d.into(opSelect)
	case op >= 0x80 && op < 0x90:
		x.jump, x.target = branch, x.end()+addr.Addr(in.Imm)
	case op >= 0x90 && op < 0xa0:
		d.killsRM()
	case op == 0xa0 || op == 0xa8:
		x.stack, x.op = true, opPush
	case op == 0xa1 || op == 0xa9:
		x.stack, x.op = true, opPop
	case op == 0xa2:
		d.kills(rax, rbx, rcx, rdx)
	case op >= 0x30 && op < 0x34:
		d.kills(rax, rdx)
	case op >= 0xc8 && op < 0xd0:
		d.kills(general(in.Low))
	default:
		d.twoRest(op)
	}
}

// twoRest decodes the other opcodes after 0f.
func (d *x86Insn) twoRest(op byte) {
	in, x := d.in, &d.x
	switch {
	case op == 0xa3, op == 0xba && in.Reg&7 == 4:
	case op == 0xa4, op == 0xa5, op == 0xac, op == 0xad, op == 0xab, op == 0xb3, op == 0xbb, op == 0xba:
		d.killsRM()
	case op == 0xb0 || op == 0xb1:
		d.kills(rax)
		d.killsRM()
	case op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf:
		d.extend(1 + op&1)
	case op == 0xc0 || op == 0xc1:
		d.kills(d.general(in.Reg))
		d.killsRM()
	case op == 0xc3:
		x.form, x.src = regForm, general(in.Reg)
		d.to(opMove)
	case op == 0xc7:
		if in.Mod != 3 {
			x.writes = true
			d.kills(rax, rdx)
			return
		}
		d.killsRM()
	case op == 0x01 && in.Mod == 3:
		d.kills(rax, rcx, rdx)
	case !in.General:
		x.writes = in.Memory() && storesVector(op)
	case op == 0x7e:
		d.killsRM()
	default:
		if in.Mod == 3 {
			d.killsRM()
		}
		d.kills(general(in.Reg))
	}
}

// extend decodes movzx and movsx from width bytes.
func (d *x86Insn) extend(width byte) {
	d.x.dst = general(d.in.Reg)
	d.x.width = width
	d.from()
	d.x.op = opExtend
}

// storesVector reports whether an opcode after 0f stores a vector register.
func storesVector(op byte) bool {
	switch op {
	case 0x11, 0x13, 0x17, 0x29, 0x2b, 0x7f, 0xd6, 0xe7, 0x7e:
		return true
	}
	return false
}

// other decodes the maps 0f38 and 0f3a with general registers.
func (d *x86Insn) other() {
	in, x := d.in, &d.x
	switch {
	case in.Map == x86.Map38 && in.Op == 0xf0 && in.Rep == 0:
		d.from()
		d.into(opMove) // movbe: the bytes are reversed
		x.op = opKill
		d.kills(x.dst)
	case in.Map == x86.Map38 && in.Op == 0xf1 && in.Rep == 0:
		x.writes = true
	case in.Map == x86.Map3A:
		if in.Op < 0x20 {
			d.killsRM()
		}
	default:
		d.kills(general(in.Reg))
	}
}

// vex decodes instructions with VEX, EVEX and XOP prefixes.
func (d *x86Insn) vex() {
	in, x := d.in, &d.x
	switch {
	case !in.General && in.Map == x86.TwoByte:
		x.writes = in.Memory() && storesVector(in.Op)
	case !in.General && in.Map == x86.Map38:
		op := in.Op
		x.writes = in.Memory() && (op == 0x2e || op == 0x2f || op == 0x8e || op == 0x8a || op == 0x8b ||
			op == 0x63 || op >= 0xa0 && op <= 0xa3 || in.EVEX && (op >= 0x10 && op <= 0x15 ||
			op >= 0x20 && op <= 0x25 || op >= 0x30 && op <= 0x35))
	case !in.General && in.Map == x86.Map3A:
		x.writes = in.Memory() && (in.Op&0xdf == 0x19 || in.Op&0xdf == 0x1b || in.Op == 0x1d)
	case in.General && in.Map == x86.Map3A && in.Op < 0x20, in.General && in.Map == x86.TwoByte && in.Op == 0x7e:
		d.killsRM()
	default:
		d.kills(general(in.Reg), general(in.VVVV))
		if in.Mod == 3 {
			d.kills(general(in.RM))
		}
	}
}
