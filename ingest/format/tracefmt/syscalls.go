package tracefmt

import (
	_ "embed" // for syscallText
	"strconv"
	"strings"
	"sync"

	"symbolize/ingest/machine"
)

// syscallText has the numbers of system calls of machines, by golang.org/x/sys: for each machine a
// line "# MACHINE", and lines "NUMBER NAME". TestSyscalls -update writes it.
//
//go:embed syscalls.txt
var syscallText string

var syscalls = sync.OnceValue(func() map[string]map[int64]string {
	all := make(map[string]map[int64]string)
	var one map[int64]string
	for line := range strings.Lines(syscallText) {
		number, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number == "#" {
			one = make(map[int64]string)
			all[name] = one
			continue
		}
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && one != nil {
			one[n] = name
		}
	}
	return all
})

// Syscall returns the name of a system call of a machine, as `uname -m` names it: "read" for 0 of
// "x86_64"; "" if it is not known. The numbers of 32-bit processes on 64-bit machines are others.
func Syscall(name string, number int64) string {
	a, _ := machine.Named(name)
	if a == nil {
		return ""
	}
	return syscalls()[a.Names[0].Text][number]
}
