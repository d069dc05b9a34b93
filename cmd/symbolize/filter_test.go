package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/exit"
)

const fixedFrame = "25d5bede07880a4717e27339b881f99c414460ba 0x114e"

// TestFilterFollows: a line is written when it has come, before the next one is there,
// as `dmesg -w | symbolize filter` needs it; an interrupt ends it.
func TestFilterFollows(t *testing.T) {
	env, _, stderr := inProcess("filter", "--with", fixedObject)
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	env.Stdin, env.Stdout = in, out
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, env)
		out.Close()
	}()
	for _, c := range []struct{ in, want string }{
		{in: "plain\n", want: "plain\n"},
		{in: fixedFrame + "\n", want: "collatz+0x18 (/srv/app/src/fixed.c:14)\n"},
		{in: "two\nlines\n", want: "two\nlines\n"},
	} {
		if _, err := io.WriteString(feed, c.in); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(c.want))
		if _, err := io.ReadFull(answers, got); err != nil || string(got) != c.want {
			t.Fatalf("%q becomes %q, %v; stderr %s", c.in, got, err, stderr)
		}
	}
	cancel()
	if status := <-done; status != exit.Interrupted {
		t.Errorf("status %d after an interrupt", status)
	}
	if !strings.Contains(stderr.String(), "1 of 1 place named") {
		t.Errorf("no summary after an interrupt: %s", stderr)
	}
}

// TestFilterReadError: the text before an error of standard input is written.
func TestFilterReadError(t *testing.T) {
	env, stdout, stderr := inProcess("filter", "--with", fixedObject)
	env.Stdin = io.MultiReader(strings.NewReader(fixedFrame+"\nhalf a li"), failingReader{})
	if status := Main(t.Context(), env); status != exit.Failed {
		t.Errorf("status %d", status)
	}
	if want := "collatz+0x18 (/srv/app/src/fixed.c:14)\nhalf a li"; stdout.String() != want {
		t.Errorf("wrote %q, not %q", stdout, want)
	}
	if !strings.Contains(stderr.String(), "error: standard input: ") {
		t.Errorf("stderr %s", stderr)
	}
}

// oneByOne reads one byte at a time.
type oneByOne struct{ r io.Reader }

func (o oneByOne) Read(b []byte) (int, error) { return o.r.Read(b[:min(1, len(b))]) }

// TestLineReader: the pieces together are the input, however it comes; lines are whole but
// for those that are too long, which are cut behind a blank if they have one.
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
