package table

import (
	"io"
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
)

var escapes = [...]string{Plain: "", Red: "\x1b[31m", Green: "\x1b[32m", Faint: "\x1b[2m",
	Bold: "\x1b[1m"}

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
