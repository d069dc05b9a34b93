//go:build !unix

package symtab

import "time"

var started = time.Now()

// cpuTime is the time since the start, where the process's own cannot be read.
func cpuTime() time.Duration { return time.Since(started) }
