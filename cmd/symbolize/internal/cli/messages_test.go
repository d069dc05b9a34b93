package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"symbolize/ingest"
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
			err:    ingest.WithHint(errors.New("locked"), "wait a %s", "bit"),
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
