package report

import (
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
)

// Hint is the command that would get the missing names of an object for
// a reason, "" where none would.
func Hint(o *ingest.Object, why ingest.Reason) string {
	switch why {
	case ingest.NotIndexed:
		return hintNotIndexed(o)
	case ingest.Stripped:
		return hintStripped(o)
	case ingest.LayoutUnknown:
		if o.Kind == ingest.Kernel {
			return "symbolize index --kernel"
		}
		return hintRuntime(o)
	case ingest.Mismatch:
		return fetch("executable", o)
	case ingest.NoBuildID:
		if o.Kind == ingest.VDSO || o.Kind == ingest.Kernel {
			return "symbolize index --kernel"
		}
		switch {
		case o.Unseen && o.File.Deleted:
			return "gcc -Wl,--build-id"
		case o.Unseen && strings.HasPrefix(o.File.Path, "/"):
			return "symbolize index " + ingest.ShellWord(o.File.Path) + " && symbolize resolve --trust-paths"
		case o.Unseen:
			return "symbolize resolve --trust-paths"
		}
		return "perf record --buildid-mmap"
	case ingest.Ambiguous:
		return "symbolize store ls | grep " + o.ID.Hex()
	case ingest.AnonymousMemory:
		return "perf record -k mono && perf inject --jit"
	case ingest.ImageNotCaptured:
		if o.Symbol != "" {
			return "symbolize capture -o capture.data -- perf record -a -g"
		}
		return "sysctl net.core.bpf_jit_kallsyms=1"
	case ingest.KernelHidden:
		return "echo 0 > /proc/sys/kernel/kptr_restrict"
	case ingest.StackNotUnwound:
		return "perf record --call-graph fp"
	case ingest.StackTruncated:
		return "perf record --call-graph dwarf,65528"
	case ingest.OtherStack:
		return "perf record --call-graph fp"
	case ingest.NoUnwindTable:
		return hintNoTable(o)
	case ingest.OutsideMapping, ingest.OutsideObject:
		if o.Domain() == ingest.KernelDomain {
			return "" // code that came and went without a record
		}
		return "gcc -fno-omit-frame-pointer"
	case ingest.GuestCode:
		return "perf kvm --guest record"
	case ingest.MapsNotSaved:
		if o.Domain() == ingest.KernelDomain {
			return "symbolize resolve --kallsyms /proc/kallsyms"
		}
		return "symbolize resolve --maps PID=/proc/PID/maps"
	case ingest.ProcessGone: // whose records have the mappings of all processes
		return "perf record --buildid-mmap -a -g"
	case ingest.AddressReused:
		if o.Domain() == ingest.KernelDomain {
			return "symbolize capture --stacks"
		}
		return "perf record --buildid-mmap -a -g"
	case ingest.StackLost:
		return "symbolize capture --stacks"
	case ingest.TableDamaged:
		return "symbolize store gc && " + hintNotIndexed(o)
	}
	return ""
}

// hintNoTable is how to get the unwind table of the object that a stack ended in.
func hintNoTable(o *ingest.Object) string {
	path, _ := ingest.NoTableFile(o.File.Path)
	if strings.HasPrefix(path, "/") {
		return "symbolize index " + ingest.ShellWord(path)
	}
	return "symbolize index --kernel" // the vdso's
}

func hintNotIndexed(o *ingest.Object) string {
	switch o.Kind {
	case ingest.Kernel, ingest.VDSO, ingest.Module:
		return "symbolize index --kernel"
	case ingest.JIT:
		return "sysctl net.core.bpf_jit_kallsyms=1"
	}
	return hintRuntime(o)
}

// hintRuntime is how to get the program file itself.
func hintRuntime(o *ingest.Object) string {
	if o.File.Deleted || !strings.HasPrefix(o.File.Path, "/") {
		return fetch("executable", o)
	}
	return "symbolize index " + ingest.ShellWord(o.File.Path)
}

// hintStripped is how to get symbols for a file that has none: from the
// distribution, or from whoever built it.
func hintStripped(o *ingest.Object) string {
	switch {
	case o.Kind == ingest.Kernel || o.Kind == ingest.Module:
		return "symbolize index --kernel"
	case o.Kind == ingest.VDSO:
		return "symbolize index /usr/lib/debug"
	}
	return fetch("debuginfo", o)
}

// fetch is how to get a file by its build ID.
func fetch(kind string, o *ingest.Object) string {
	if o.ID.IsZero() || o.ID.Space() != buildid.GNU {
		if strings.HasPrefix(o.File.Path, "/") {
			return "symbolize index " + ingest.ShellWord(o.File.Path)
		}
		return ""
	}
	return "symbolize index $(debuginfod-find " + kind + " " + o.ID.Hex() + ")"
}
