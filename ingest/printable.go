package ingest

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/texts"
)

// BaseName returns the last element of a path; "" if it ends in a slash.
func BaseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// ShortName is the name of an object in unresolved frames: the last element of its path without
// brackets, or a substitute.
func ShortName(o *Object) string {
	name := o.File.Path
	if file, ok := NoTableFile(name); ok && o.Kind == NoStack {
		name = "[no unwind table: " + path.Base(file) + "]"
	} else if file, ok := RemappedFile(name); ok {
		name = RemappedPath(BaseName(file))
	} else if i := strings.LastIndexByte(name, '/'); i >= 0 && i+1 < len(name) {
		name = name[i+1:]
	}
	if name, _ = Unbracket(name); name != "" {
		return texts.Printable(name)
	}
	if !o.ID.IsZero() {
		return "buildid:" + o.ID.Hex()
	}
	switch o.Kind {
	case Anonymous:
		return "anon"
	case Unmapped:
		return "unmapped"
	case Guest:
		return "guest"
	case Hypervisor:
		return "hypervisor"
	case NoStack:
		return "no stack"
	}
	return "unknown"
}

// RemappedPath returns the path of an object of anonymous memory in the place of a file's code.
func RemappedPath(file string) string { return "[anon:" + file + "]" }

// RemappedFile is the inverse of RemappedPath; ok is false for other paths.
func RemappedFile(path string) (file string, ok bool) {
	file, ok = strings.CutPrefix(path, "[anon:")
	if !ok || !strings.HasPrefix(file, "/") {
		return "", false
	}
	return strings.CutSuffix(file, "]")
}

// Collapsed reports whether all addresses of such objects are one location with Offset 0.
func (k ObjectKind) Collapsed() bool { return k >= Anonymous }

// AppendUnresolved appends the text of an unresolved frame to b: "[libc.so.6+0x27220]",
// or "[anon]" for a kind that is Collapsed.
func AppendUnresolved(b []byte, o *Object, off addr.Offset) []byte {
	b = append(b, '[')
	b = append(b, ShortName(o)...)
	if !o.Kind.Collapsed() {
		b = append(b, "+0x"...)
		b = strconv.AppendUint(b, uint64(off), 16)
	}
	return append(b, ']')
}

// Names of perf and the kernel for mappings without a file, or of deleted files.
const (
	// KernelMapName is the name of the kernel's mapping without its suffix, the name of the
	// reference symbol.
	KernelMapName = "[kernel.kallsyms]"
	DeletedSuffix = " (deleted)"
	// LinkedAddresses is the reference symbol of addresses as the linker made them: of a kernel that
	// runs where it was linked, if the recorder did not know its symbols, and of ELF files in
	// profiles of programs that convert addresses. It is the address 0.
	LinkedAddresses = "0"
)

// LoadText is Object.RefSymbol of a function of one load of a BPF program, by the program's ID.
func LoadText(id uint32) string { return "load " + strconv.FormatUint(uint64(id), 10) }

// GuestComm is the comm of all threads of a virtual machine, by its process on the host.
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

// Interpreter returns the type of the frames of an object that interpreters have in place of files:
// "cpython". Their Offsets are no addresses.
func (o *Object) Interpreter() (frameType string, ok bool) {
	switch o.File.Path {
	case UnmappedPath, UnmappedKernelPath, AmbiguousPath, AmbiguousJITPath, AmbiguousKernelPath:
		return "", false
	}
	frameType, ok = Unbracket(o.File.Path)
	return frameType, ok && o.Kind == Unmapped
}

// IsAnonymousName reports whether a name of perf or /proc/PID/maps is for memory without a file.
func IsAnonymousName(file string) bool {
	if file == "" || file == "[heap]" || file == "[anon]" {
		return true
	}
	return slices.ContainsFunc([]string{"//anon", "[stack", "[anon:", "/SYSV", "/dev/zero",
		"/anon_hugepage", "/memfd:"}, func(p string) bool { return strings.HasPrefix(file, p) })
}

// IsSignalReturn reports whether a symbol is of code that signal handlers return to, which only
// makes the system call: in C libraries (restorers), vdsos and Go, and names made of its address
// (SignalPrefix).
func IsSignalReturn(function string) bool {
	switch function {
	case "__restore_rt", "__restore", "__default_sa_restorer", "__default_rt_sa_restorer":
		return true
	}
	return strings.HasPrefix(function, "__kernel_") && strings.HasSuffix(function, "sigreturn") ||
		strings.HasPrefix(function, "runtime.sigreturn") ||
		strings.HasPrefix(function, SignalPrefix)
}

var objectKindText = [...]string{
	ELF: "elf", VDSO: "vdso", Kernel: "kernel", Module: "module", JIT: "jit",
	PerfMap: "perf map", JITDump: "jitdump", Anonymous: "anonymous", Unmapped: "unmapped", Guest: "guest",
	Hypervisor: "hypervisor", NoStack: "no stack",
}

// String returns the kind in lower case, as reports print it.
func (k ObjectKind) String() string {
	if int(k) < len(objectKindText) {
		return objectKindText[k]
	}
	return "unknown"
}

var idSourceText = [...]string{
	IDNone:     "none",
	IDRecorded: "recorded",
	IDSibling:  "recorded for the same file",
	IDByPath:   "listed for the path",
	IDProven:   "file proven the same",
	IDTrusted:  "path trusted",
	IDDerived:  "derived",
	IDNamed:    "named with --with",
}

// String returns the source in words, as reports print it.
func (s IDSource) String() string {
	if int(s) < len(idSourceText) {
		return idSourceText[s]
	}
	return "unknown"
}
