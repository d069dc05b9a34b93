package cli

import (
	"io"
)

// Env is everything that the command line takes from its surroundings, so that a test can run it
// without a process of its own.
type Env struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string

	StdoutTerminal bool
	StderrTerminal bool
	StdoutWidth    int // columns of the terminal; 0 if not known

	// Exit ends the process where an interrupted command does not; nil leaves it.
	Exit func(code int)
}
