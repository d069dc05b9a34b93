package lookupcmd

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// oneByOne reads one byte at a time.
type oneByOne struct{ r io.Reader }

func (o oneByOne) Read(b []byte) (int, error) { return o.r.Read(b[:min(1, len(b))]) }

// TestLineReader: the pieces together are the input, whatever the size of reads; lines are whole
// but for lines over the bound, which are cut after a blank if they have one.
func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 2*filterLines.Line+10)
	words := strings.Repeat(strings.Repeat("y", 99)+" ", filterLines.Line/50)
	for name, text := range map[string]string{
		"nothing": "", "a line": "a\n", "no newline": "a\nb", "binary": "\x00\xff\n\x00",
		"long": long + "\nshort\n", "words": words + "\nend", "newlines": strings.Repeat("\n",
			5000),
	} {
		readers := map[string]io.Reader{"at once": strings.NewReader(text)}
		if len(text) < 10000 {
			readers["one by one"] = oneByOne{strings.NewReader(text)}
		}
		for how, r := range readers {
			var got bytes.Buffer
			err := filterLines.Each(t.Context(), r, func(b []byte) error {
				got.Write(b)
				if b[len(b)-1] != '\n' && len(b) <= filterLines.Line && got.Len() < len(text) {
					t.Errorf("%s, %s: cut in a line of %d bytes", name, how, len(b))
				}
				if name == "words" && b[len(b)-1] == 'y' {
					t.Errorf("cut in a word at %d", got.Len())
				}
				if len(b) > filterLines.Batch+filterLines.Read+filterLines.Line {
					t.Errorf("%s: %d bytes at once", name, len(b))
				}
				clear(b) // bodies may overwrite it
				return nil
			})
			if err != nil || got.String() != text {
				t.Errorf("%s, %s: %d of %d bytes, or others: %v", name, how, got.Len(), len(text),
					err)
			}
		}
	}
	stop := errors.New("stop")
	err := filterLines.Each(t.Context(), strings.NewReader("a\nb\n"),
		func([]byte) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("error %v of body", err)
	}
}
