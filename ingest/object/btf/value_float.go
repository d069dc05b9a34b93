package btf

import (
	"math"
	"math/big"
	"strconv"
)

// float prints a FLOAT of 2, 4, 8, 12 or 16 bytes, in its shortest unique representation.
func (v *valuePrinter) float(id ID, data []byte) {
	switch len(data) {
	case 2:
		v.binary(half(uint16(v.t.whole(data))), 32)
	case 4:
		v.binary(float64(math.Float32frombits(uint32(v.t.whole(data)))), 32)
	case 8:
		v.binary(math.Float64frombits(v.t.whole(data)), 64)
	default:
		v.longDouble(data)
	}
}

// binary prints a number, or the word for NaN and the infinities.
func (v *valuePrinter) binary(x float64, bits int) {
	switch {
	case math.IsNaN(x):
		v.noNumber("NaN")
	case math.IsInf(x, 1):
		v.noNumber("Inf")
	case math.IsInf(x, -1):
		v.noNumber("-Inf")
	default:
		v.w.separate()
		v.w.b = strconv.AppendFloat(v.w.b, x, 'g', -1, bits)
	}
}

func (v *valuePrinter) noNumber(word string) {
	if v.opts.JSON {
		v.w.quoted(word)
	} else {
		v.w.word(word)
	}
}

// half widens an IEEE 754 binary16.
func half(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&0x3ff)
	x := math.Ldexp(fraction+0x400, exponent-25)
	switch {
	case exponent == 0:
		x = math.Ldexp(fraction, -24)
	case exponent == 31 && fraction != 0:
		x = math.NaN()
	case exponent == 31:
		x = math.Inf(1)
	}
	if h>>15 != 0 {
		x = -x
	}
	return x
}

// longDouble prints the x87's 80 bits, or an IEEE 754 binary128. Both have 16 bytes as long
// double (12 on i386); the x87's has zeros above its 80 bits. A binary128 with these zeros is
// below 10^-4931, and the x87's has its highest bit of 64 set.
func (v *valuePrinter) longDouble(data []byte) {
	if len(data) < 16 && v.t.big { // a 68881's, which has not been seen in BTF
		v.bytes(data)
		return
	}
	w := v.t.bits(data, 0, uint(8*len(data)))
	if len(data) < 16 || w.hi>>16 == 0 && w.lo>>63 != 0 {
		v.extended(w.hi>>15&1 != 0, int(w.hi&0x7fff), 0, w.lo, 64)
		return
	}
	exponent := int(w.hi >> 48 & 0x7fff)
	high := w.hi & (1<<48 - 1)
	if exponent > 0 && exponent < 0x7fff {
		high |= 1 << 48
	}
	v.extended(w.hi>>63 != 0, exponent, high, w.lo, 113)
}

// extended prints a number of prec bits with an exponent of 15.
func (v *valuePrinter) extended(negative bool, exponent int, high, low uint64, prec uint) {
	sign := ""
	if negative {
		sign = "-"
	}
	if exponent == 0x7fff {
		if prec == 64 {
			low <<= 1 // the x87 writes the bit before the point
		}
		if high|low != 0 {
			v.noNumber("NaN")
		} else {
			v.noNumber(sign + "Inf")
		}
		return
	}
	x := new(big.Float).SetPrec(prec).SetUint64(high)
	x.SetMantExp(x, 64)
	x.Add(x, new(big.Float).SetPrec(prec).SetUint64(low))
	x.SetMantExp(x, max(exponent, 1)-0x3fff-int(prec)+1)
	v.w.separate()
	v.w.b = append(v.w.b, sign...)
	v.w.b = x.Append(v.w.b, 'g', -1)
}
