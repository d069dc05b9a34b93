package table

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Style is the way in which a table is printed: for people at a terminal, or plain and whole. The
// zero value is the latter.
type Style struct {
	Width int  // columns of the terminal; 0 cuts nothing
	Color bool // escape sequences for colours
}

// Color is a colour of text.
type Color uint8

// The colours.
const (
	Plain Color = iota
	Red
	Green
	Faint
	Bold
	Blue
)

var escapes = [...]string{Plain: "", Red: "\x1b[31m", Green: "\x1b[32m", Faint: "\x1b[2m",
	Bold: "\x1b[1m", Blue: "\x1b[34m"}

// Paint returns a printable text in a colour, if the style has colours.
func (s Style) Paint(c Color, text string) string {
	if !s.Color || c == Plain {
		return text
	}
	return escapes[c] + text + "\x1b[0m"
}

// The shares of a total from which a value is hot, or worth a look.
const hotShare, warmShare = 0.05, 0.005

// Heat returns the colour for a part of a whole: red from 5 %, green from 0.5 %, as perf has
// them.
func Heat(part, all uint64) Color {
	switch share := float64(part) / float64(max(all, 1)); {
	case share >= hotShare:
		return Red
	case share >= warmShare:
		return Green
	}
	return Plain
}

// minName is how many characters of a name are left at least, however narrow the terminal.
const minName = 12

// Fit cuts a printable name in its middle if it exceeds the terminal's width after a number of used
// columns. Numbers are never cut: callers pass only names.
func (s Style) Fit(name string, taken int) string {
	n := utf8.RuneCountInString(name)
	if s.Width == 0 || taken+n <= s.Width {
		return name
	}
	return cut(name, max(s.Width-taken, minName))
}

// FitBoth is Fit for a name and a suffix with a lesser right: the name is cut only if it does not
// fit alone, and of the suffix the end stays, if there is space for it.
func (s Style) FitBoth(name, suffix string, used int) string {
	free := s.Width - used - utf8.RuneCountInString(name)
	n := utf8.RuneCountInString(suffix)
	switch {
	case s.Width == 0 || n <= free:
		return name + suffix
	case free < minSuffix:
		return s.Fit(name, used)
	}
	text := strings.TrimLeft(suffix, " ")
	lead := suffix[:len(suffix)-len(text)]
	runes := []rune(text)
	return name + lead + "…" + string(runes[len(runes)-(free-len(lead)-1):])
}

// minSuffix is how many columns the end of a suffix needs.
const minSuffix = 8

// Wrap breaks a text into lines of at most width columns, at spaces; a command in backquotes is
// one word, so that it can be copied. Lines after the first begin with the indent. Width 0 breaks
// nothing.
func Wrap(text string, width int, indent string) string {
	if width == 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	var b strings.Builder
	column := 0
	for text != "" {
		end := 0 // of the word
		for quoted := false; end < len(text) && (quoted || text[end] != ' '); end++ {
			quoted = quoted != (text[end] == '`')
		}
		n := utf8.RuneCountInString(text[:end])
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(text[:end])
		column += n
		text = text[min(end+1, len(text)):]
	}
	return b.String()
}

// cut leaves a number of characters of a name, from both ends.
func cut(name string, room int) string {
	n := utf8.RuneCountInString(name)
	if n <= room {
		return name
	}
	runes := []rune(name)
	head := (room - 1) / 2
	return string(runes[:head]) + "…" + string(runes[n-(room-1-head):])
}

// Styled is a writer to a terminal; tables are laid out for it.
type Styled struct {
	io.Writer
	Style Style
}

// StyleOf returns the style of a Styled, and for all other writers the zero Style.
func StyleOf(w io.Writer) Style {
	if s, ok := w.(*Styled); ok {
		return s.Style
	}
	return Style{}
}
