package ingest

import (
	"cmp"
	"fmt"
	"strings"
)

// Display names of objects without a file.
const (
	UnmappedPath       = "[unmapped]"        // user addresses outside every mapping
	UnmappedKernelPath = "[unmapped kernel]" // kernel addresses outside every mapping

	AmbiguousPath       = "[ambiguous]"        // user addresses that were in several objects
	AmbiguousJITPath    = "[ambiguous JIT]"    // those where a run-time compiler had several functions
	AmbiguousKernelPath = "[ambiguous kernel]" // kernel addresses likewise
	GuestPath           = "[guest]"
	HypervisorPath      = "[hypervisor]"
	NoStackPath         = "[no stack]"
	AnonymousPath       = "//anon" // as the kernel names memory without a file
	VsyscallPath        = "[vsyscall]"
	VDSO32Path          = "[vdso32]" // of a process of 32 bits under a kernel of 64, as perf names it
)

// PerfMapPath is the display name of code that is named by a process's perf map: the path that
// profilers look for.
func PerfMapPath(pid int32) string { return fmt.Sprintf("/tmp/perf-%d.map", pid) }

// NoTablePath is the display name of the frame that stacks end with where the object of a path
// has no unwind table.
func NoTablePath(path string) string { return noTablePrefix + path + "]" }

const noTablePrefix = "[no unwind table: "

// NoTableFile is the inverse of NoTablePath; ok is false for another name.
func NoTableFile(name string) (path string, ok bool) {
	path, ok = strings.CutPrefix(name, noTablePrefix)
	path, closed := strings.CutSuffix(path, "]")
	return path, ok && closed
}

// IsStackEnd reports whether a display name is that of a frame that unwinding put into a copied
// stack: the last of one that was not unwound to its end, or one where callers are uncertain.
func IsStackEnd(name string) bool {
	if _, ok := NoTableFile(name); ok {
		return true
	}
	for r := StackTruncated; r <= CallersUncertain; r++ {
		if name == "["+r.String()+"]" {
			return true
		}
	}
	return false
}

// CompareObjects is the order in which the objects of a profile are numbered: by kind, path and
// build ID, then by their other fields. It is 0 only for equal objects.
func CompareObjects(a, b *Object) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		strings.Compare(a.File.Path, b.File.Path),
		a.ID.Compare(b.ID),
		strings.Compare(a.RefSymbol, b.RefSymbol),
		strings.Compare(a.Symbol, b.Symbol),
		cmp.Compare(a.Length, b.Length),
		cmp.Compare(a.PID, b.PID),
		strings.Compare(a.Capture, b.Capture),
		CompareFiles(&a.File, &b.File),
		cmp.Compare(a.Reason, b.Reason),
		compareBools(a.Undecided, b.Undecided),
	)
}

// compareBools sorts false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Domain returns the division of coverage that the object's frames count in.
func (o *Object) Domain() Domain {
	switch o.Kind {
	case Kernel, Module, Hypervisor:
		return KernelDomain
	case JIT:
		if strings.HasPrefix(o.File.Path, "bpf_") {
			return BPFDomain
		}
		return KernelDomain
	case PerfMap, JITDump, Anonymous:
		return JITDomain
	case Unmapped:
		if o.File.Path == UnmappedKernelPath || o.File.Path == AmbiguousKernelPath {
			return KernelDomain
		}
	}
	return UserDomain
}
