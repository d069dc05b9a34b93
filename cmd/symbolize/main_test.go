package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/store/db"
)

// inProcess returns an Env without a terminal that collects the output.
func inProcess(args ...string) (env *cli.Env, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
		Getenv: hermetic,
	}, stdout, stderr
}

// localEnv switches the search on this host off.
const localEnv = "SYMBOLIZE_LOCAL"

// hermetic is the environment of tests: objects come from no file of the machine.
func hermetic(name string) string {
	if name == localEnv {
		return "0"
	}
	return ""
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
	if got := Main(t.Context(), env); got != cli.OK || stderr.Len() != 0 {
		t.Errorf("exit status %d, stderr %q", got, stderr)
	}
	env.Stdout = &failingWriter{err: syscall.EIO}
	if got := Main(t.Context(), env); got != cli.Failed {
		t.Errorf("with an input/output error: exit status %d", got)
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
	if got := <-status; got != cli.Interrupted || stdout.Len() != 0 {
		t.Errorf("exit status %d, stdout %q", got, stdout)
	}
	if got := stderr.String(); got != "symbolize: error: interrupted\n" {
		t.Errorf("stderr %q", got)
	}
}
