package btf

import (
	"fmt"
	"strconv"
	"unicode/utf16"
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
// no JSON reader accepts as a character. Characters that are not printable are escaped: some change
// a terminal's direction of writing.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = fmt.Appendf(dst, `\\x%02x`, s[0])
		case r == '"' || r == '\\':
			dst = append(dst, '\\', s[0])
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case !strconv.IsPrint(r):
			for _, unit := range utf16.AppendRune(nil, r) {
				dst = fmt.Appendf(dst, `\u%04x`, unit)
			}
		default:
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return append(dst, '"')
}
