package btf

import (
	"strconv"
	"unicode/utf8"
)

// layout writes brackets, names and values as bpftool's JSON writer lays them out: a name begins
// a line, values of an array do not.
type layout struct {
	b       []byte
	compact bool // on one line
	depth   int
	sep     byte // printed before the next value: ',' or none (0)
}

func (w *layout) separate() {
	if w.sep != 0 {
		w.b = append(w.b, w.sep)
	}
	w.sep = ','
}

func (w *layout) line() {
	if w.compact {
		return
	}
	w.b = append(w.b, '\n')
	for range w.depth {
		w.b = append(w.b, "    "...)
	}
}

func (w *layout) open(bracket byte) {
	w.separate()
	w.b = append(w.b, bracket)
	w.depth++
	w.sep = 0
}

func (w *layout) close(bracket byte) {
	w.depth--
	if w.sep != 0 {
		w.line()
	}
	w.b = append(w.b, bracket)
	w.sep = ','
}

func (w *layout) name(s string) {
	w.separate()
	w.line()
	w.b = append(appendQuoted(w.b, s), ':')
	if !w.compact {
		w.b = append(w.b, ' ')
	}
	w.sep = 0
}

// word appends a value without changes.
func (w *layout) word(s string) {
	w.separate()
	w.b = append(w.b, s...)
}

func (w *layout) quoted(s string) {
	w.separate()
	w.b = appendQuoted(w.b, s)
}

func (w *layout) unsigned(n uint64) {
	w.separate()
	w.b = strconv.AppendUint(w.b, n, 10)
}

func (w *layout) signed(n int64) {
	w.separate()
	w.b = strconv.AppendInt(w.b, n, 10)
}

// appendQuoted appends a JSON string. Invalid UTF-8 becomes \xNN with an escaped backslash, which
// no JSON reader accepts as a character.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch c := s[0]; {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, '\\', '\\', 'x', hex[c>>4], hex[c&15])
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case r >= 0x80 && !strconv.IsPrint(r):
			dst = appendEscapedRune(dst, r)
		default:
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return append(dst, '"')
}

// appendEscapedRune appends \uNNNN, as a pair of surrogates above 16 bits: characters that change
// a terminal's direction of writing must not reach it.
func appendEscapedRune(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	unit := func(u rune) {
		dst = append(dst, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	if r < 0x10000 {
		unit(r)
		return dst
	}
	r -= 0x10000
	unit(0xd800 + r>>10)
	unit(0xdc00 + r&0x3ff)
	return dst
}
