package ingest

import "strings"

// What perf and the kernel call things that are no files, or files no more.
const (
	// KernelMapName begins the name of the kernel's mapping; that of its reference symbol
	// follows.
	KernelMapName = "[kernel.kallsyms]"
	DeletedSuffix = " (deleted)"
)

// Unbracket returns what stands in a name in brackets, and whether it is one.
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

// IsAnonymousName knows the names that perf and /proc/PID/maps give to memory
// without a file.
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
