package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// watched collects output, and closes seen when it has a text.
type watched struct {
	all  bytes.Buffer
	text string
	seen chan struct{}
	had  bool
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.all.Write(b)
	if !w.had && strings.Contains(w.all.String(), w.text) {
		w.had = true
		close(w.seen)
	}
	return n, err
}

// cmdInterrupt is `interrupt TEXT symbolize ARG…`: runs the command with a line "hello" on a
// standard input that does not end, waits until it prints TEXT, interrupts it as ^C does, and
// prints what it had printed. It must end with status 130.
func cmdInterrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: interrupt TEXT symbolize [ARG…]")
	}
	var program string
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, args[1])); err == nil && program == "" {
			program = filepath.Join(dir, args[1])
		}
	}
	cmd := exec.Command(program, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TERM", "SYMBOLIZE_STORE", localEnv} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out := &watched{text: args[0], seen: make(chan struct{})}
	stdin, err := cmd.StdinPipe()
	ts.Check(err)
	cmd.Stdout, cmd.Stderr = out, out // one writer: it is not written to at once
	ts.Check(cmd.Start())
	_, err = io.WriteString(stdin, "hello\n")
	ts.Check(err)
	select {
	case <-out.seen:
	case <-time.After(time.Minute):
		ts.Logf("%s never came", args[0])
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	err = cmd.Wait()
	ts.Logf("%s", out.all.String())
	if cmd.ProcessState.ExitCode() != 130 {
		ts.Fatalf("%v: %v, want exit status 130", args[1:], err)
	}
	_, err = ts.Stdout().Write(out.all.Bytes())
	ts.Check(err)
}
