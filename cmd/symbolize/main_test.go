package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/exit"
	"symbolize/ingest"
	"symbolize/store/db"
)

// inProcess returns an Env without a terminal that collects the output.
func inProcess(args ...string) (env *Env, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
		Getenv: hermetic,
	}, stdout, stderr
}

// hermetic is the environment of tests: objects come from no file of the machine.
func hermetic(name string) string {
	if name == localEnv {
		return "0"
	}
	return ""
}

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
		{name: "done", ctx: t.Context(), want: exit.OK},
		{name: "partial", ctx: t.Context(), partial: true, want: exit.Partial},
		{name: "failed", ctx: t.Context(), err: errors.New("no way"), want: exit.Failed,
			stderr: "symbolize: error: no way\n"},
		{name: "failed wins over partial", ctx: t.Context(), err: errors.New("no way"),
			partial: true, want: exit.Failed,
			stderr: "symbolize: error: no way\n"},
		{name: "usage", ctx: t.Context(), err: exit.Usagef("bad flag"), want: exit.Usage,
			stderr: "symbolize: error: bad flag\n"},
		{name: "said already", ctx: t.Context(), err: &exit.Error{Code: exit.Usage},
			want: exit.Usage},
		{name: "closed pipe", ctx: t.Context(), err: errors.Join(errBrokenPipe), want: exit.OK},
		{name: "interrupted", ctx: canceled, err: context.Canceled, want: exit.Interrupted,
			stderr: "symbolize: error: interrupted\n"},
		{name: "canceled by itself", ctx: t.Context(), err: context.Canceled, want: exit.Failed,
			stderr: "symbolize: error: context canceled\n"},
		{name: "hint", ctx: t.Context(),
			err:    ingest.WithHint(errors.New("locked"), "wait a %s", "bit"),
			want:   exit.Failed,
			stderr: "symbolize: error: locked\nsymbolize: hint: wait a bit\n"},
		{name: "full disk", ctx: t.Context(),
			err: &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, want: exit.Failed,
			stderr: "symbolize: error: write x: no space left on device\n" +
				"symbolize: hint: free some space, or point --store or -o at another disk\n"},
		{name: "hostile name", ctx: t.Context(), err: errors.New("\x1b[2J a\nb"),
			want:   exit.Failed,
			stderr: "symbolize: error: ?[2J a; b\n"},
	} {
		env, stdout, stderr := inProcess()
		a := &app{env: env, partial: c.partial}
		if got := a.finish(c.ctx, c.err); got != c.want {
			t.Errorf("%s: exit status %d, want %d", c.name, got, c.want)
		}
		if stderr.String() != c.stderr || stdout.Len() != 0 {
			t.Errorf("%s: stderr %q, want %q; stdout %q", c.name, stderr, c.stderr, stdout)
		}
	}
}

// failingWriter fails with an error after some bytes.
type failingWriter struct {
	left int
	err  error
}

func (f *failingWriter) Write(b []byte) (int, error) {
	if len(b) <= f.left {
		f.left -= len(b)
		return len(b), nil
	}
	return f.left, f.err
}

func TestClosedPipeIsNoFailure(t *testing.T) {
	env, _, stderr := inProcess("version")
	env.Stdout = &failingWriter{err: &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}}
	if got := Main(t.Context(), env); got != exit.OK || stderr.Len() != 0 {
		t.Errorf("exit status %d, stderr %q", got, stderr)
	}
	env.Stdout = &failingWriter{err: syscall.EIO}
	if got := Main(t.Context(), env); got != exit.Failed {
		t.Errorf("with an input/output error: exit status %d", got)
	}
}

func TestRefusesTerminal(t *testing.T) {
	env, stdout, _ := inProcess()
	env.StdoutTerminal = true
	a := &app{env: env}
	write := func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err }
	for _, path := range []string{"", "-"} {
		err := a.writeOutput(path, true, write)
		var coded *exit.Error
		if !errors.As(err, &coded) || coded.Code != exit.Usage || exit.Hint(err) == "" {
			t.Errorf("binary to %q: %v", path, err)
		}
	}
	if err := a.writeOutput("", false, write); err != nil || stdout.String() != "x" {
		t.Errorf("text: %v, %q", err, stdout)
	}
}

func TestOutputFileIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	env, _, _ := inProcess()
	a := &app{env: env}
	path := filepath.Join(dir, "out.txt")
	good := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	bad := errors.New("half-way")
	fail := func(w io.Writer) error { io.WriteString(w, "half"); return bad }

	if err := a.writeOutput(path, false, fail); !errors.Is(err, bad) {
		t.Fatal(err)
	}
	wantDir(t, dir)
	if err := a.writeOutput(path, false, good("one")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.writeOutput(path, false, fail); !errors.Is(err, bad) {
		t.Fatal(err)
	}
	wantFile(t, path, "one")
	if err := a.writeOutput(path, false, good("two")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "two")
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("permissions changed: %v %v", fi.Mode(), err)
	}
	wantDir(t, dir, "out.txt")

	link := filepath.Join(dir, "link")
	if err := os.Symlink("out.txt", link); err != nil {
		t.Fatal(err)
	}
	if err := a.writeOutput(link, false, good("three")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "three")
	wantDir(t, dir, "link", "out.txt")

	if err := a.writeOutput(dir, false, good("x")); err == nil {
		t.Error("a directory was written to")
	}
	err := a.writeOutput(filepath.Join(dir, "no", "x"), false, good("x"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	if err := a.writeOutput(os.DevNull, false, good("x")); err != nil {
		t.Errorf("a device: %v", err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", path, b, err, want)
	}
}

// wantDir checks the names in a directory: nothing temporary is left.
func wantDir(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// TestInterrupted cancels a run that waits for the store's lock.
func TestInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	w, err := db.OpenWriter(t.Context(), path, db.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	env, stdout, stderr := inProcess("index", "--quiet", "--store", path, "../../fixtures/objects")
	status := make(chan int)
	go func() { status <- Main(ctx, env) }()
	select {
	case got := <-status:
		t.Fatalf("did not wait for the lock: exit status %d, %s", got, stderr)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	if got := <-status; got != exit.Interrupted || stdout.Len() != 0 {
		t.Errorf("exit status %d, stdout %q", got, stdout)
	}
	if got := stderr.String(); got != "symbolize: error: interrupted\n" {
		t.Errorf("stderr %q", got)
	}
}

// TestProgress: bars are drawn on terminals alone.
func TestProgress(t *testing.T) {
	env, _, _ := inProcess()
	a := &app{env: env}
	if a.progressWriter() != nil {
		t.Error("a bar without a terminal")
	}
	env.StderrTerminal = true
	env.Getenv = func(string) string { return "dumb" }
	if a.progressWriter() != nil {
		t.Error("a bar on a dumb terminal")
	}
	env.Getenv = func(string) string { return "xterm" }
	a.quiet = true
	if a.progressWriter() != nil {
		t.Error("a bar with --quiet")
	}
	a.quiet = false
	if a.progressWriter() == nil {
		t.Error("no bar on a terminal")
	}
}
