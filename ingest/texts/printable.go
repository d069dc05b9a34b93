// Package texts makes text safe to print: names and paths that come from captures and debug files
// (Printable, ShellWord), JSON of them (WriteJSON), and errors with the command that helps
// (WithHint).
package texts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns s fit for a terminal, a line of text and a protobuf string: control and format
// characters (escape sequences, line breaks, bidirectional overrides) and invalid UTF-8 become '?'.
// Names come from captures and debug files and are not trusted.
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

// ShellWord quotes a path for the shell. Paths come from captures: pasting a hint must not run
// their text.
func ShellWord(path string) string {
	path = Printable(path)
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("/._-+,:@%=", c) >= 0 {
			continue
		}
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
