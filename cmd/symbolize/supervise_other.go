//go:build !linux

package main

import "os"

// supervise is of Linux, where a child ends with its parent.
func supervise() (code int, done bool) { return 0, false }

// stderr returns where messages go.
func stderr() *os.File { return os.Stderr }

// memoryLimits returns the limits of memory that are known, in words: none.
func memoryLimits() string { return "" }
