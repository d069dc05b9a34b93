package ingest

import (
	"strconv"
	"strings"
)

// Names that perf and the kernel have for mappings without a file, or of deleted files.
const (
	// KernelMapName is the name of the kernel's mapping without its suffix, the name of the
	// reference symbol.
	KernelMapName = "[kernel.kallsyms]"
	DeletedSuffix = " (deleted)"
	// LinkedAddresses is the reference symbol of a kernel that runs where it was linked and
	// whose symbols the recorder did not know: the address 0.
	LinkedAddresses = "0"
)

// GuestComm is the name of all threads of a virtual machine, by the process that it is.
func GuestComm(machine int32) string { return "guest " + strconv.Itoa(int(machine)) }

// Unbracket returns a name without its brackets, and whether it has any.
func Unbracket(s string) (inner string, ok bool) {
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		return s[1 : len(s)-1], true
	}
	return s, false
}

// IsVmlinux reports whether the last element of a path names a kernel image.
func IsVmlinux(base string) bool {
	return base == "vmlinux" || strings.HasPrefix(base, "vmlinux-")
}

// IsAnonymousName reports whether a name is one of perf or /proc/PID/maps for memory without
// a file.
func IsAnonymousName(file string) bool {
	if file == "" || file == "[heap]" || file == "[anon]" {
		return true
	}
	for _, p := range []string{"//anon", "[stack", "[anon:", "/SYSV", "/dev/zero", "/anon_hugepage",
		"/memfd:"} {
		if strings.HasPrefix(file, p) {
			return true
		}
	}
	return false
}

// IsSignalReturn knows the symbols of code that signal handlers return to, which does nothing but
// the system call: of C libraries (restorers), of vdsos and of Go, and the names that are made of
// addresses for it (SignalPrefix).
func IsSignalReturn(function string) bool {
	switch function {
	case "__restore_rt", "__restore", "__default_sa_restorer", "__default_rt_sa_restorer":
		return true
	}
	return strings.HasPrefix(function, "__kernel_") && strings.HasSuffix(function, "sigreturn") ||
		strings.HasPrefix(function, "runtime.sigreturn") ||
		strings.HasPrefix(function, SignalPrefix)
}
