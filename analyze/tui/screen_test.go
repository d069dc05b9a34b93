package tui

import (
	"cmp"
	"io"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"
)

// typed is a terminal of which each read returns one text.
type typed struct {
	tcell.Tty
	texts []string
}

func (t *typed) Read(b []byte) (int, error) {
	if len(t.texts) == 0 {
		return 0, io.EOF
	}
	n := copy(b, t.texts[0])
	t.texts = t.texts[1:]
	return n, nil
}

func TestValidTty(t *testing.T) {
	for _, tt := range []struct {
		name    string
		charset string // "" for UTF-8
		texts   []string
		want    string
	}{
		{name: "ASCII", texts: []string{"q", "\x03"}, want: "q|\x03|"},
		{name: "UTF-8", texts: []string{"aß€", "😀"}, want: "aß€|😀|"},
		{name: "a character in two reads", texts: []string{"a\xe2\x82", "\xacb"}, want: "a|€b|"},
		{name: "in four", texts: []string{"\xf0", "\x9f", "\x98", "\x80"}, want: "|||😀|"},
		{name: "Latin-1", texts: []string{"a\xfcb", "\x03"}, want: "a?b|\x03|"},
		{name: "half a character", texts: []string{"\xe2\x82", "q"}, want: "|??q|"},
		{name: "the replacement character", texts: []string{"\ufffd"}, want: "\ufffd|"},
		{name: "terminal of Latin-1", charset: "ISO8859-1", texts: []string{"a\xfcb"}, want: "a\xfcb|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := &validTty{Tty: &typed{texts: tt.texts}, charset: func() string { return cmp.Or(tt.charset, "UTF-8") }}
			var got strings.Builder
			for b := make([]byte, 128); ; {
				n, err := in.Read(b)
				if err != nil {
					break
				}
				got.WriteString(string(b[:n]) + "|")
			}
			if got.String() != tt.want {
				t.Errorf("%q, want %q", got.String(), tt.want)
			}
		})
	}
}
