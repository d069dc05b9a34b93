//go:build !unix

package symtab

import "time"

var started = time.Now()

// cpuTime is the time since the start, where that of the process cannot be asked for.
func cpuTime() time.Duration { return time.Since(started) }
