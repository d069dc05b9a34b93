//go:build unix

package process

import (
	"runtime"
	"syscall"
	"time"
)

func usage() (cpu time.Duration, memory uint64) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) != nil {
			continue
		}
		cpu += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		memory = max(memory, uint64(r.Maxrss))
	}
	if runtime.GOOS != "darwin" { // which counts in bytes, others in KiB
		memory <<= 10
	}
	return cpu, memory
}
