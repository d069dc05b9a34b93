//go:build unix

package symtab

import (
	"syscall"
	"time"
)

// cpuTime is the time that the process has used: other work on the machine does not
// count in it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
