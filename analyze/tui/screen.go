package tui

import (
	"runtime"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
)

// NewScreen returns the screen of the terminal, for New.
func NewScreen() (tcell.Screen, error) {
	if runtime.GOOS == "windows" {
		return tcell.NewScreen()
	}
	tty, err := tcell.NewDevTty()
	if err != nil {
		return nil, err
	}
	valid := &validTty{Tty: tty}
	screen, err := tcell.NewTerminfoScreenFromTty(valid)
	if err == nil {
		valid.charset = screen.CharacterSet // known when the screen reads
	}
	return screen, err
}

// validTty is a terminal of valid UTF-8: tcell hangs at any other byte. A question mark replaces it.
type validTty struct {
	tcell.Tty
	charset func() string
	part    []byte // the beginning of a character
}

// Read implements io.Reader. It may return no bytes without an error.
func (t *validTty) Read(b []byte) (int, error) {
	n := copy(b, t.part)
	more, err := t.Tty.Read(b[n:])
	n += more
	t.part = t.part[:0]
	if t.charset() != "UTF-8" {
		return n, err
	}
	for i := 0; i < n; {
		r, size := utf8.DecodeRune(b[i:n])
		switch {
		case r != utf8.RuneError || size > 1:
		case !utf8.FullRune(b[i:n]):
			t.part = append(t.part, b[i:n]...)
			return i, err
		default:
			b[i] = '?'
		}
		i += size
	}
	return n, err
}
