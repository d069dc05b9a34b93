package ingest

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"symbolize/ingest/addr"
)

// Printable returns s fit for a terminal, a line of text and a protobuf string: control and format
// characters (escape sequences, line breaks, bidirectional overrides) and bytes that are no UTF-8
// become '?'. Names come from captures and debug files and are not trusted. Plain ASCII is returned
// as it is.
func Printable(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return printableSlow(s)
		}
	}
	return s
}

// OneLine returns s fit for one line of a terminal.
func OneLine(s string) string {
	return Printable(strings.ReplaceAll(strings.TrimSpace(s), "\n", "; "))
}

func printableSlow(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if n == 1 && r == utf8.RuneError || !fitRune(r) {
			b.WriteByte('?')
		} else {
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// fitRune reports whether a character may reach a terminal or a line of text.
func fitRune(r rune) bool {
	return !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != '\u2028' && r != '\u2029'
}

// BaseName returns the last element of a path; "" if it ends in a slash.
func BaseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// ShortName is the name of an object in the text of an unresolved frame: the last element of its
// path without brackets, or a substitute.
func ShortName(o *Object) string {
	name := o.File.Path
	if file, ok := NoTableFile(name); ok && o.Kind == NoStack {
		name = "[no unwind table: " + path.Base(file) + "]"
	} else if i := strings.LastIndexByte(name, '/'); i >= 0 && i+1 < len(name) {
		name = name[i+1:]
	}
	if n := len(name); n > 2 && name[0] == '[' && name[n-1] == ']' {
		name = name[1 : n-1]
	}
	if name != "" {
		return Printable(name)
	}
	if !o.ID.IsZero() {
		return "buildid:" + o.ID.Hex()
	}
	switch o.Kind {
	case Anonymous:
		return "anon"
	case Unmapped:
		return "unmapped"
	case Guest:
		return "guest"
	case Hypervisor:
		return "hypervisor"
	case NoStack:
		return "no stack"
	}
	return "unknown"
}

// Collapsed reports whether all addresses of such objects are one location, whose Offset is
// 0.
func (k ObjectKind) Collapsed() bool { return k >= Anonymous }

// AppendUnresolved appends the text of an unresolved frame to b: "[libc.so.6+0x27220]",
// or "[anon]" for a kind that is Collapsed.
func AppendUnresolved(b []byte, o *Object, off addr.Offset) []byte {
	b = append(b, '[')
	b = append(b, ShortName(o)...)
	if !o.Kind.Collapsed() {
		b = append(b, "+0x"...)
		b = strconv.AppendUint(b, uint64(off), 16)
	}
	return append(b, ']')
}
