package sframe

import (
	"encoding/binary"

	"symbolize/ingest/object/cfi"
)

// rowReader reads the rows of a function.
type rowReader struct {
	s    *Section
	f    *function
	b    *cfi.Builder
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
	row.rule = cfi.Rule{Kind: cfi.Frame, Signal: r.f.info&infoSignal != 0}
	for i := range r.b.Arch.Saved {
		row.rule.Saved[i].How = cfi.Undefined
	}
	row.rule.Saved[0] = cfi.Where{}
	ok := true
	switch {
	case count == 0:
		row.rule = cfi.Rule{Kind: cfi.End}
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
func (r *rowReader) fixed(rule *cfi.Rule, data []int32, bySP bool) bool {
	a := r.b.Arch
	rule.CFA = cfi.Where{How: cfi.Register, Reg: a.FP, Off: data[0]}
	if bySP {
		rule.CFA.Reg = a.SP
	}
	data = data[1:]
	take := func(fixed int8) cfi.Where {
		off := int32(fixed)
		if fixed == 0 && len(data) > 0 {
			off, data = data[0], data[1:]
		}
		if off == 0 {
			return cfi.Where{} // it is where it was
		}
		return cfi.Where{How: cfi.AtCFA, Off: off}
	}
	rule.RA = take(r.s.fixedRA)
	rule.Saved[0] = take(r.s.fixedFP)
	return a.LinkRegister || rule.RA.How == cfi.AtCFA
}

// Bits of the first word of a pair.
const (
	byRegister  = 1
	dereference = 2
)

// flex sets a rule by pairs of words.
func (r *rowReader) flex(rule *cfi.Rule, data []int32) bool {
	ok := true
	take := func(missing cfi.Where) cfi.Where {
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
	rule.CFA = take(cfi.Where{How: cfi.Undefined})
	ra := cfi.Where{}
	if r.s.fixedRA != 0 {
		ra = cfi.Where{How: cfi.AtCFA, Off: int32(r.s.fixedRA)}
	}
	rule.RA = take(ra)
	rule.Saved[0] = take(cfi.Where{})
	return ok && (rule.CFA.How == cfi.Register || rule.CFA.How == cfi.Expr)
}

// pair returns the place of a value. One in memory at a register becomes an expression:
// DW_OP_breg, DW_OP_deref.
func (r *rowReader) pair(control uint32, off int32) (cfi.Where, bool) {
	const opBreg0, opDeref = 0x70, 0x06
	reg := control >> 3 & 0x1f
	switch control & (byRegister | dereference) {
	case dereference:
		return cfi.Where{How: cfi.AtCFA, Off: off}, true
	case byRegister:
		return cfi.Where{How: cfi.Register, Reg: uint8(reg), Off: off}, true
	case byRegister | dereference:
		code := append([]byte{opBreg0 + byte(reg)}, sleb(off)...)
		n, ok := r.b.Expr(append(code, opDeref))
		return cfi.Where{How: cfi.Expr, Off: n}, ok
	}
	return cfi.Where{How: cfi.CFAPlus, Off: off}, true
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
