package btf

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// word128 is an integer of up to 128 bits.
type word128 struct{ hi, lo uint64 }

// bits returns n bits of data from a bit on, at most 128. Little-endian blobs count bits
// from the lowest of the first byte, others from its highest.
func (t *Types) bits(data []byte, from, n uint) word128 {
	n = min(n, 128)
	if from == 0 && n <= 64 && n%8 == 0 {
		return word128{lo: t.whole(data[:n/8])}
	}
	var w word128
	for i := range n {
		at := from + i
		shift := 7 - at%8
		if !t.big {
			at = from + n - 1 - i
			shift = at % 8
		}
		w.hi = w.hi<<1 | w.lo>>63
		w.lo = w.lo<<1 | uint64(data[at/8]>>shift&1)
	}
	return w
}

// whole returns an integer of up to 8 bytes.
func (t *Types) whole(b []byte) (n uint64) {
	for i := range b {
		if t.big {
			n = n<<8 | uint64(b[i])
		} else {
			n |= uint64(b[i]) << (8 * i)
		}
	}
	return n
}

// extend sign-extends a value of at most 64 bits.
func (w word128) extend(size uint) word128 {
	if size > 0 && size < 64 {
		w.lo = uint64(int64(w.lo<<(64-size)) >> (64 - size))
	}
	return w
}

// integer prints an INT of at most 16 bytes. One with fewer bits than its size is an old form of
// bit fields.
func (v *valuePrinter) integer(id ID, data []byte) {
	n := v.t.Int(id)
	v.number(n, uint(n.Bits), v.t.bits(data, uint(n.Offset), uint(n.Bits)))
}

// number prints a value of some bits. More than 64 are hexadecimal as in bpftool, a
// string in JSON, because readers cannot hold them.
func (v *valuePrinter) number(n Int, size uint, w word128) {
	switch {
	case n.Bool:
		v.w.word(strconv.FormatBool(w.lo|w.hi != 0))
	case n.Char && size == 8:
		v.char(byte(w.lo))
	case n.Signed && size <= 64:
		v.w.signed(int64(w.extend(size).lo))
	case size <= 64:
		v.w.unsigned(w.lo)
	case v.opts.JSON:
		v.w.quoted(w.hex())
	default:
		v.w.word(w.hex())
	}
}

func (w word128) hex() string {
	if w.hi == 0 {
		return "0x" + strconv.FormatUint(w.lo, 16)
	}
	low := strconv.FormatUint(w.lo, 16)
	for len(low) < 16 {
		low = "0" + low
	}
	return "0x" + strconv.FormatUint(w.hi, 16) + low
}

// char prints a single character (few compilers mark an INT as one): in JSON always as a string.
func (v *valuePrinter) char(c byte) {
	if c >= 0x80 || !v.opts.JSON && (c < ' ' || c == 0x7f) {
		code := "0x" + strconv.FormatUint(uint64(c), 16)
		if v.opts.JSON {
			v.w.quoted(code)
		} else {
			v.w.word(code)
		}
		return
	}
	v.w.quoted(string(rune(c)))
}

// enum prints the first name of a value, else the number.
func (v *valuePrinter) enum(id ID, size uint, w word128) {
	table := v.t.enumTable(id)
	if table.cut {
		if name := table.whole(w.lo); name != "" && size == 64 {
			v.w.quoted(name)
		} else {
			v.number(Int{Signed: table.signed}, size, w)
		}
		return
	}
	signed, extend := table.negative(), func(v uint64) uint64 { return v }
	if signed {
		w = w.extend(size)
		if !table.wide {
			extend = func(v uint64) uint64 { return uint64(int64(int32(v))) }
		}
	}
	for i := range table.n {
		if e := table.at(i); extend(e.Value) == w.lo {
			v.w.quoted(e.Name)
			return
		}
	}
	v.number(Int{Signed: signed}, size, w)
}

// whole returns the name of a value of 64 bits among names of which only the low halves of values are
// known: the only one with that half, if the value fits in 32 bits. Another name could have that half
// and another upper one, but then the value would have no name.
func (e *enumTable) whole(value uint64) (name string) {
	if low := uint32(value); value != uint64(low) && value != uint64(int64(int32(low))) {
		return ""
	}
	for i := range e.n {
		if x := e.at(i); uint32(x.Value) == uint32(value) {
			if name != "" {
				return ""
			}
			name = x.Name
		}
	}
	return name
}

// negative reports whether values have a sign. Compilers before the sign flag stored −1 as 2^32 −
// 1, and no other value has the upper bit: bpftool prints those as negative.
func (e *enumTable) negative() bool {
	if e.signed || e.wide {
		return e.signed
	}
	for i := range e.n {
		if int32(e.at(i).Value) < 0 {
			return true
		}
	}
	return false
}

// pointer prints an address, or the caller's name for its target.
func (v *valuePrinter) pointer(id ID, value uint64) {
	if v.opts.Pointer != nil {
		if name := v.opts.Pointer(id, value); name != "" {
			v.w.quoted(name)
			return
		}
	}
	switch {
	case v.opts.JSON:
		v.w.unsigned(value)
	case value == 0:
		v.w.word("(nil)")
	default:
		v.w.word("0x" + strconv.FormatUint(value, 16))
	}
}

// bytes prints data without a sized type, up to the limit.
func (v *valuePrinter) bytes(data []byte) {
	if left := max(v.limit-len(v.w.b), 0) / 2; len(data) > left {
		v.fail(ErrLongValue)
		data = data[:left]
	}
	v.w.quoted("0x" + hex.EncodeToString(data))
}

// text returns an array of n chars as text, if it is: up to the first zero, as C reads it, if
// that is printable UTF-8 or only zeros follow. Others, bytes with the type char, are printed as
// a list, so that none of them is hidden.
func (v *valuePrinter) text(elem ID, data []byte, n uint64) (string, bool) {
	id := v.t.Strip(elem)
	i := v.t.Int(id)
	letters := i.Size == 1 && i.Bits == 8 && !i.Bool && (i.Char || v.t.Name(id) == "char")
	if !letters || n == 0 || n > uint64(len(data)) || n > uint64(max(v.limit-len(v.w.b), 0)) {
		return "", false
	}
	data = data[:n]
	s, rest, _ := bytes.Cut(data, []byte{0})
	hidden := len(bytes.Trim(rest, "\x00")) > 0
	if hidden && (len(s) == 0 || !printable(s)) {
		return "", false
	}
	return string(s), true
}

// printable reports whether bytes are UTF-8 of printable characters and white space.
func printable(s []byte) bool {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return false
		}
		s = s[n:]
	}
	return true
}
