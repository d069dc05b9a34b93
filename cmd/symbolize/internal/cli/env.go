package cli

import (
	"io"
)

// Env is the environment of the command line. Tests run a command line in an environment of their
// own, without another process.
type Env struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string

	StdoutTerminal bool
	StderrTerminal bool
	StdoutWidth    int // columns of the terminal; 0 if not known
	StderrWidth    int // likewise

	// Exit ends the process where an interrupted command does not; nil leaves it.
	Exit func(code int)
}
