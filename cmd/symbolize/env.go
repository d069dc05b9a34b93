package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// Env is everything that the command line takes from its surroundings, so that
// a test can run it without a process of its own.
type Env struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string

	StdoutTerminal bool
	StderrTerminal bool
}

// run is Main in the real surroundings.
func run() int {
	// Without this a write to a closed pipe kills the process: `symbolize top | head`
	// is to end in silence, with its temporary files removed.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second interrupt kills: whoever presses ^C twice does not want to wait.
	context.AfterFunc(ctx, stop)
	return Main(ctx, &Env{
		Args:           os.Args[1:],
		Stdin:          os.Stdin,
		Stdout:         os.Stdout,
		Stderr:         os.Stderr,
		Getenv:         os.Getenv,
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	})
}
