package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"symbolize/ingest/texts"
)

func TestFinishStatus(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		err     error
		partial bool
		want    int
		stderr  string
	}{
		{name: "done", ctx: t.Context(), want: OK},
		{name: "partial", ctx: t.Context(), partial: true, want: Partial},
		{name: "failed", ctx: t.Context(), err: errors.New("no way"), want: Failed,
			stderr: "symbolize: error: no way\n"},
		{name: "failed wins over partial", ctx: t.Context(), err: errors.New("no way"),
			partial: true, want: Failed,
			stderr: "symbolize: error: no way\n"},
		{name: "usage", ctx: t.Context(), err: Usagef("bad flag"), want: Usage,
			stderr: "symbolize: error: bad flag\n"},
		{name: "said already", ctx: t.Context(), err: &ExitError{Code: Usage},
			want: Usage},
		{name: "closed pipe", ctx: t.Context(), err: errors.Join(errBrokenPipe), want: OK},
		{name: "interrupted", ctx: canceled, err: context.Canceled, want: Interrupted,
			stderr: "symbolize: error: interrupted\n"},
		{name: "canceled by itself", ctx: t.Context(), err: context.Canceled, want: Failed,
			stderr: "symbolize: error: context canceled\n"},
		{name: "hint", ctx: t.Context(),
			err:    texts.WithHint(errors.New("locked"), "wait a %s", "bit"),
			want:   Failed,
			stderr: "symbolize: error: locked\nsymbolize: hint: wait a bit\n"},
		{name: "full disk", ctx: t.Context(),
			err: &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, want: Failed,
			stderr: "symbolize: error: write x: no space left on device\n" +
				"symbolize: hint: free some space, or point --store or -o at another disk\n"},
		{name: "hostile name", ctx: t.Context(), err: errors.New("\x1b[2J a\nb"),
			want:   Failed,
			stderr: "symbolize: error: ?[2J a; b\n"},
	} {
		env, stdout, stderr := inProcess()
		a := &App{Env: env, Partial: c.partial}
		if got := a.finish(c.ctx, c.err); got != c.want {
			t.Errorf("%s: exit status %d, want %d", c.name, got, c.want)
		}
		if stderr.String() != c.stderr || stdout.Len() != 0 {
			t.Errorf("%s: stderr %q, want %q; stdout %q", c.name, stderr, c.stderr, stdout)
		}
	}
}

// TestHeldWarnings: a report prints one warning, the heaviest, and one hint.
func TestHeldWarnings(t *testing.T) {
	advice := message{adviceRank, "half without a name", "look"}
	for _, c := range []struct {
		name    string
		held    []message
		verbose bool
		stderr  string
	}{
		{name: "none"},
		{name: "one", held: []message{advice},
			stderr: "symbolize: warning: half without a name\nsymbolize: hint: look\n"},
		{name: "of the recording only", held: []message{{lastRank, "5 lost", ""}}},
		{name: "of the recording besides", held: []message{{lastRank, "5 lost", ""}, advice},
			stderr: "symbolize: warning: half without a name\nsymbolize: hint: look\n"},
		{name: "damage first", held: []message{advice, {flagRank, "no x", "use y"}, {damageRank, "cut off", ""}},
			stderr: "symbolize: warning: cut off\nsymbolize: hint: -v prints 2 more warnings\n"},
		{name: "a hint and more", held: []message{advice, {adviceRank, "fewer", ""}},
			stderr: "symbolize: warning: half without a name\nsymbolize: hint: look; -v prints 1 more warning\n"},
		{name: "a note", held: []message{{lastRank, "5 lost", ""}, {asideRank, "2 local files", ""}},
			stderr: "symbolize: note: 2 local files\n"},
		{name: "a note and a warning", held: []message{{asideRank, "2 local files", ""}, advice},
			stderr: "symbolize: warning: half without a name\nsymbolize: hint: look\n"},
		{name: "equal texts", held: []message{advice, advice},
			stderr: "symbolize: warning: half without a name\nsymbolize: hint: look\n"},
		{name: "verbose", verbose: true, held: []message{{lastRank, "5 lost", ""}, advice},
			stderr: "symbolize: warning: 5 lost\nsymbolize: warning: half without a name\nsymbolize: hint: look\n"},
	} {
		env, _, stderr := inProcess()
		a := &App{Env: env, holds: !c.verbose}
		for _, m := range c.held {
			a.warn(m)
		}
		if a.finish(t.Context(), nil); stderr.String() != c.stderr {
			t.Errorf("%s: %q, want %q", c.name, stderr, c.stderr)
		}
	}
}

// TestWarnAlike: of warnings of many inputs that differ in numbers and names there is one.
func TestWarnAlike(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		env, _, stderr := inProcess()
		a := &App{Env: env, Verbose: verbose}
		for i, input := range []string{"night/1.data", "night/2.data", "other.data"} {
			a.WarnAlike(input, input+": "+string(rune('1'+i))+" records were lost", "")
		}
		a.WarnAlike("x.data", "another", "")
		a.finish(t.Context(), nil)
		want := "symbolize: warning: night/1.data: 1 records were lost\nsymbolize: warning: x.data: another\n" +
			"symbolize: note: 2 more warnings like these: -v prints them\n"
		if verbose {
			want = "symbolize: warning: night/1.data: 1 records were lost\nsymbolize: warning: night/2.data: 2 records were lost\n" +
				"symbolize: warning: other.data: 3 records were lost\nsymbolize: warning: x.data: another\n"
		}
		if stderr.String() != want {
			t.Errorf("verbose %v: %q, want %q", verbose, stderr, want)
		}
	}
}

// TestProgress: bars are drawn on terminals alone.
func TestProgress(t *testing.T) {
	env, _, _ := inProcess()
	a := &App{Env: env}
	if a.progressWriter() != nil {
		t.Error("a bar without a terminal")
	}
	env.StderrTerminal = true
	env.Getenv = func(string) string { return "dumb" }
	if a.progressWriter() != nil {
		t.Error("a bar on a dumb terminal")
	}
	env.Getenv = func(string) string { return "xterm" }
	a.Quiet = true
	if a.progressWriter() != nil {
		t.Error("a bar with --quiet")
	}
	a.Quiet = false
	if a.progressWriter() == nil {
		t.Error("no bar on a terminal")
	}
}
