package cfi

import "encoding/binary"

// rowReader reads the rows of a function.
type rowReader struct {
	s    *SFrame
	f    *function
	b    *Builder
	at   int
	data [15]int32 // of the present row
}

// Reasons of damage.
const (
	cutOff  = "its rows are cut off"
	badRule = "a row has no rule that is known"
)

// next reads a row.
func (r *rowReader) next() (row offRule, why string) {
	b := r.f.rows[min(r.at, len(r.f.rows)):]
	width := 1 << (r.f.info & 0xf)
	if len(b) < width+1 {
		return row, cutOff
	}
	row.off = uint32(word(b, width))
	info := b[width]
	count, size := int(info>>1&0xf), 1<<(info>>5&3)
	b = b[width+1:]
	if size > 4 || len(b) < count*size {
		return row, cutOff
	}
	r.at += width + 1 + count*size
	data := r.data[:count]
	for i := range data {
		v := word(b[i*size:], size)
		shift := 32 - 8*size
		data[i] = int32(v<<shift) >> shift
	}
	row.rule = Rule{Kind: Frame, Signal: r.f.info&infoSignal != 0}
	for i := range r.b.Arch.Saved {
		row.rule.Saved[i].How = Undefined
	}
	row.rule.Saved[0] = Where{}
	ok := true
	switch {
	case count == 0:
		row.rule = Rule{Kind: End}
	case r.f.flex:
		ok = r.flex(&row.rule, data)
	default:
		ok = r.fixed(&row.rule, data, info&1 != 0)
	}
	if !ok {
		return row, badRule
	}
	return row, ""
}

// word reads a number of 1, 2 or 4 bytes.
func word(b []byte, size int) uint32 {
	switch size {
	case 1:
		return uint32(b[0])
	case 2:
		return uint32(binary.LittleEndian.Uint16(b))
	}
	return binary.LittleEndian.Uint32(b)
}

// fixed sets a rule by offsets.
func (r *rowReader) fixed(rule *Rule, data []int32, bySP bool) bool {
	a := r.b.Arch
	rule.CFA = Where{How: Register, Reg: a.FP, Off: data[0]}
	if bySP {
		rule.CFA.Reg = a.SP
	}
	data = data[1:]
	take := func(fixed int8) Where {
		off := int32(fixed)
		if fixed == 0 && len(data) > 0 {
			off, data = data[0], data[1:]
		}
		if off == 0 {
			return Where{} // it is where it was
		}
		return Where{How: AtCFA, Off: off}
	}
	rule.RA = take(r.s.fixedRA)
	rule.Saved[0] = take(r.s.fixedFP)
	return a.LinkRegister || rule.RA.How == AtCFA
}

// Bits of the first word of a pair.
const (
	byRegister  = 1
	dereference = 2
)

// flex sets a rule by pairs of words.
func (r *rowReader) flex(rule *Rule, data []int32) bool {
	ok := true
	take := func(missing Where) Where {
		if len(data) == 0 || data[0] == 0 {
			data = data[min(1, len(data)):]
			return missing
		}
		if len(data) == 1 {
			ok = false
			return missing
		}
		where, valid := r.pair(uint32(data[0]), data[1])
		ok = ok && valid
		data = data[2:]
		return where
	}
	rule.CFA = take(Where{How: Undefined})
	ra := Where{}
	if r.s.fixedRA != 0 {
		ra = Where{How: AtCFA, Off: int32(r.s.fixedRA)}
	}
	rule.RA = take(ra)
	rule.Saved[0] = take(Where{})
	return ok && (rule.CFA.How == Register || rule.CFA.How == Expr)
}

// pair returns the place of a value. One in memory at a register becomes an expression:
// DW_OP_breg, DW_OP_deref.
func (r *rowReader) pair(control uint32, off int32) (Where, bool) {
	const opBreg0, opDeref = 0x70, 0x06
	reg := control >> 3 & 0x1f
	switch control & (byRegister | dereference) {
	case dereference:
		return Where{How: AtCFA, Off: off}, true
	case byRegister:
		return Where{How: Register, Reg: uint8(reg), Off: off}, true
	case byRegister | dereference:
		code := append([]byte{opBreg0 + byte(reg)}, sleb(off)...)
		n, ok := r.b.Expr(append(code, opDeref))
		return Where{How: Expr, Off: n}, ok
	}
	return Where{How: CFAPlus, Off: off}, true
}

// sleb encodes a signed LEB128 number.
func sleb(v int32) (out []byte) {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
