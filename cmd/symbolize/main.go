// Command symbolize gives names to the addresses in profiles, offline and by build ID: `index` puts
// the symbols of a machine into a store, `resolve` joins a capture from any host with that store.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/cmd/symbolize/internal/resolvecmd"
)

func main() {
	code := run()
	process.NoteEnd()
	os.Exit(code)
}

// run is Main in the real surroundings.
func run() int {
	if err := process.CheckOpenFiles(); err != nil {
		fmt.Fprintf(os.Stderr, "symbolize: error: %v\n", err)
		return cli.Failed
	}
	log.SetOutput(process.WithoutHTTP(os.Stderr))
	os.Args = resolvecmd.CommandLine(os.Args)
	env := &cli.Env{
		Args:           os.Args[1:],
		Stdin:          os.Stdin,
		Stdout:         os.Stdout,
		Getenv:         os.Getenv,
		Exit:           os.Exit,
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StdoutWidth:    terminalColumns(os.Stdout),
	}
	p := newProgram(env)
	if code, done := process.Supervise(p.writesStore); done {
		return code
	}
	messages := process.Stderr()
	env.Stderr, env.StderrTerminal = messages, term.IsTerminal(int(messages.Fd()))
	env.StderrWidth = terminalColumns(messages)
	// Without this a write to a closed pipe kills the process: `symbolize top | head`
	// is to end in silence, with its temporary files removed.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second interrupt kills the process without waiting.
	context.AfterFunc(ctx, stop)
	return p.main(ctx)
}

// terminalColumns returns the width of a terminal, 0 of any other file.
func terminalColumns(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
