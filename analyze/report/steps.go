package report

import (
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
)

func notIndexed(c *Case) string {
	switch c.Object.Kind {
	case ingest.Kernel, ingest.VDSO, ingest.Module:
		if c.Searched {
			return "on the host that recorded: symbolize capture -o capture.data -- true"
		}
		return "symbolize index --kernel"
	case ingest.JIT:
		return recordPrograms
	}
	return c.runtime()
}

// runtime is how to get the program file itself.
func (c *Case) runtime() string {
	if path := c.path(); path != "" && !c.Searched {
		return "symbolize index " + path
	}
	return c.fetch("executable")
}

// fetch is how to get a file by its build ID.
func (c *Case) fetch(kind string) string {
	id := c.Object.ID
	if id.IsZero() || id.Space() != buildid.GNU {
		if path := c.path(); path != "" {
			return "symbolize index " + path
		}
		return ""
	}
	return "symbolize index $(debuginfod-find " + kind + " " + id.Hex() + ")"
}

// stripped is the step to get symbols for a file without any: from the distribution or its builder.
func stripped(c *Case) string {
	switch {
	case c.Object.Kind == ingest.PerfMap || c.Object.Kind == ingest.JITDump:
		return "nothing is known to fix it: the list of its process's code has no function there"
	case c.SignalReturn:
		return "nothing is missing: signal handlers return to this code, which has no function"
	case c.Object.Kind == ingest.Kernel || c.Object.Kind == ingest.Module:
		return "symbolize index --kernel"
	case c.Object.Kind == ingest.VDSO:
		return "symbolize index /usr/lib/debug"
	}
	return c.fetch("debuginfo")
}

func tableDamaged(c *Case) string { return "symbolize store gc && " + notIndexed(c) }

func layoutUnknown(c *Case) string {
	if c.Object.Kind == ingest.Kernel {
		return "symbolize index --kernel"
	}
	return c.runtime()
}

func noBuildID(c *Case) string {
	o := c.Object
	trust := "symbolize resolve --trust-paths" + c.captures()
	switch {
	case o.Kind == ingest.VDSO:
		return "symbolize index --kernel"
	case o.File.Path == ingest.VsyscallPath:
		return "nothing is missing: the vsyscall page of the kernel is no file"
	case !o.Unseen && !c.BuildIDs:
		return "perf record --buildid-mmap"
	case o.File.Deleted:
		return "gcc -Wl,--build-id"
	case c.path() != "":
		return "symbolize index " + c.path() + " && " + trust
	}
	return trust
}

// noUnwindTable is how to get the unwind table of the object that a stack ended in.
func noUnwindTable(c *Case) string {
	if path, _ := ingest.NoTableFile(c.Object.File.Path); strings.HasPrefix(path, "/") {
		return "symbolize index " + ingest.ShellWord(path)
	}
	return "symbolize index --kernel" // the vdso's
}

// mostCopied is the maximum number of stack bytes that perf record copies: it requests 65,528, and
// a record of 64 KiB holds that many.
const mostCopied = 65000

// stackTruncated is the step to record the rest of a stack. C++ compilers are known to
// need more than 32 KiB.
func stackTruncated(c *Case) string {
	if c.Copied >= mostCopied {
		// Chains of frame pointers have 127 frames, unless more are allowed.
		return c.inGo("gcc -fno-omit-frame-pointer; as root: echo 1024 > " +
			"/proc/sys/kernel/perf_event_max_stack && " + framePointers)
	}
	return c.inGo("perf record --call-graph dwarf,65528")
}

// inGo returns the step for programs in Go, if stacks end in them: they keep frame pointers, large
// stacks, and change stacks in the runtime. others is the step for others, "" for none.
func (c *Case) inGo(others string) string {
	switch {
	case len(c.GoPrograms) == 0:
		return others
	case !c.OtherCode:
		return framePointers
	}
	names := ingest.Printable(strings.Join(c.GoPrograms, ", ")) + ", written in Go: " + framePointers
	if others == "" {
		return "of " + names
	}
	return others + "; of " + names
}

// ambiguous is the step to choose one of several objects: a padded build ID has zeros after their
// common digits. A build ID recorded for several objects was removed.
func ambiguous(c *Case) string {
	switch {
	case c.Object.Kind == ingest.Module:
		return recordPrograms // the recorder reads the build ID of each module
	case c.Object.ID.IsZero():
		return noBuildID(c)
	}
	const least = 8 // digits
	digits := c.Object.ID.Hex()
	shared := strings.TrimRight(digits, "0")
	if len(shared) < least && len(digits) >= least {
		shared = digits[:least]
	}
	return "`symbolize store ls " + shared + "` lists them; --with FILE names the one that ran"
}

// recordPrograms keeps the code of BPF programs, with the times at which it was at an address.
const recordPrograms = "symbolize capture -o capture.data -- perf record -a -g"

// kernelHidden is how the recorder gets to read the kernel's addresses.
func kernelHidden(c *Case) string {
	return "as root: echo 0 > /proc/sys/kernel/kptr_restrict && " + recordAll(c)
}

const framePointers = "perf record --call-graph fp"

// stackLost is for stacks that did not fit into a map.
func stackLost(c *Case) string {
	if c.Counted {
		return recordAll(c) // writes each sample with its stack
	}
	return "symbolize capture -o stacks.data --stacks"
}

// outside is for addresses where nothing is: chains of frame pointers end so in code that
// keeps none.
func outside(c *Case) string {
	if c.inKernel() {
		return "" // code that came and went without a record
	}
	build := "code without frame pointers: gcc -fno-omit-frame-pointer"
	if c.Copied > 0 {
		return build
	}
	return build + ", or perf record --call-graph dwarf"
}

func mapsNotSaved(c *Case) string {
	if c.inKernel() {
		return "symbolize resolve --kallsyms /proc/kallsyms" + c.captures()
	}
	return "symbolize resolve --maps PID=/proc/PID/maps" + c.captures()
}

func recordAll(c *Case) string {
	if c.BuildIDs {
		return "perf record -a -g"
	}
	return "perf record --buildid-mmap -a -g"
}

func addressReused(c *Case) string {
	if c.Object.File.Path == ingest.AmbiguousJITPath { // its records and those of a jitdump file have times
		return strings.Replace(recordAll(c), "record", "record -k mono", 1)
	}
	if c.inKernel() {
		return recordPrograms
	}
	return recordAll(c)
}

// Text is an unnamed place in a line of text with a build ID or only a name.
type Text struct {
	Reason ingest.Reason
	Object string // the build ID
	Module string // "" if the text names none
	File   bool   // Object is a file name, and the text has no build ID
	// LateMaps: the text has mappings, after its first addresses.
	LateMaps bool
}

// For is Case.For.
func (t *Text) For() string {
	switch t.Reason {
	case ingest.NotIndexed:
		if t.Module != "" {
			return "`symbolize index /lib/modules/VERSION` of that kernel takes in its modules"
		}
		return "`symbolize index $(debuginfod-find executable " + t.Object + ")`, or name its " +
			"file with --with"
	case ingest.LayoutUnknown:
		return "index the file that runs, too: a debug file has no file offsets"
	case ingest.Stripped:
		return "index its debug file: `symbolize index /usr/lib/debug`"
	case ingest.Mismatch:
		return "the symbol has another length in what is indexed: name the build that ran with --with"
	case ingest.MapsNotSaved:
		if t.LateMaps {
			return "the text has mappings behind the addresses, where it is not known which process they " +
				"are of: put them before the addresses"
		}
		return "it is an address of the process: put its mappings before the text (/proc/PID/maps, or " +
			"gdb's `info proc mappings`); --with names a program that is linked to fixed addresses"
	case ingest.NoBuildID:
		if t.File && strings.HasPrefix(t.Object, "vmlinux-") {
			return "--kernel ID names the kernel, or --with its file, " + t.Object
		}
		if t.File {
			return "the text has no build ID: name the file that ran with --with"
		}
		return "--kernel ID names the kernel; CONFIG_STACKTRACE_BUILD_ID prints those of modules"
	case ingest.Ambiguous:
		if t.File {
			return "several files of --with have this name: name the one that ran"
		}
		return "several have this name or build ID: `symbolize store ls` lists them"
	}
	return ""
}

// Program is a BPF program in a line of text.
type Program struct {
	Reason   ingest.Reason
	Name     string // "" for one that was loaded without BTF
	OtherTag bool   // one of this name is indexed, and has another tag
	Lineless bool   // it is indexed, from a file or a capture without lines
}

// For is Case.For. To index its object file is no advice for a program that has no name, unless its
// tag depends on that file alone.
func (p *Program) For() string {
	const (
		alone = "without a name (it was loaded without BTF) its tag alone identifies it: object " +
			"files have that of programs without CO-RE, and of subprograms without calls of " +
			"helpers and divisions, which kernels rewrite"
		index = "`symbolize index FILE.bpf.o` takes in what it was compiled to"
	)
	record := "`symbolize capture -o capture.data` records BPF programs"
	switch {
	case p.Reason == ingest.Ambiguous:
		return "functions of different sources have this tag or name: `symbolize store ls` lists " +
			"them"
	case p.OtherTag:
		return "the program of this name that is indexed has another tag: index the FILE.bpf.o " +
			"that was loaded"
	case p.Reason == ingest.Stripped && p.Lineless:
		return "it is indexed, and has no lines: compile FILE.bpf.o with -g, and index that"
	case p.Reason == ingest.Stripped && p.Name == "":
		return "it was loaded without lines; " + alone
	case p.Reason == ingest.Stripped:
		return "it was loaded without lines: " + index
	case p.Reason == ingest.ImageNotCaptured && p.Name == "":
		return record + "; " + alone
	case p.Reason == ingest.ImageNotCaptured:
		return strings.Join([]string{record, index}, ", and ")
	}
	return ""
}
