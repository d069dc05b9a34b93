//go:build !linux

package process

import "os"

// Supervise is of Linux, where a child ends with its parent.
func Supervise(func(args []string) bool) (code int, done bool) { return 0, false }

// Stderr returns where messages go.
func Stderr() *os.File { return os.Stderr }

// NoteEnd is of Linux.
func NoteEnd() {}
