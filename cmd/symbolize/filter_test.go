package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
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
	if status := <-done; status != cli.Interrupted {
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
	if status := Main(t.Context(), env); status != cli.Failed {
		t.Errorf("status %d", status)
	}
	if want := "collatz+0x18 (/srv/app/src/fixed.c:14)\nhalf a li"; stdout.String() != want {
		t.Errorf("wrote %q, not %q", stdout, want)
	}
	if !strings.Contains(stderr.String(), "error: standard input: ") {
		t.Errorf("stderr %s", stderr)
	}
}
