package advice

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/texts"
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

// runtime returns the step that gets the program file, not its debug file.
func (c *Case) runtime() string {
	if path := c.path(); path != "" && !c.Searched {
		return "symbolize index " + path
	}
	return c.fetch()
}

// fetch returns the step that gets the files of an object by its build ID: for all objects of the
// captures at once.
func (c *Case) fetch() string {
	id := c.Object.ID
	if id.Space().Alias() && !strings.HasPrefix(c.Object.File.Path, "/") {
		return "symbolize index DIRECTORY, of " + texts.Printable(c.Object.File.Path) + " or a copy with " +
			map[buildid.Space]string{buildid.HTL: "this htlhash", buildid.Go: "this build ID of Go"}[id.Space()]
	}
	if id.IsZero() || id.Space() != buildid.GNU {
		if path := c.path(); path != "" {
			return "symbolize index " + path
		}
		return ""
	}
	if len(c.Captures) == 0 || slices.Contains(c.Captures, "-") {
		return "symbolize fetch --build-id " + id.Hex()
	}
	return "symbolize fetch" + c.captures()
}

// stripped returns the step for code of an indexed object for which no source has a symbol, usually
// to index its debug file.
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
	return c.fetch()
}

// Package returns the command that installs the debug information of a stripped object of a
// distribution, where its path shows which; "" otherwise.
func (c *Case) Package() string {
	file := c.Object.File.Path
	switch name, _, _ := strings.Cut(path.Base(file), "."); {
	case c.Reason != ingest.Stripped || !slices.Contains(glibcFiles, name):
		return ""
	case strings.Contains(path.Dir(file), "-linux-gnu"): // of Debian
		return "apt install libc6-dbg"
	case path.Base(path.Dir(file)) == "lib64":
		return "dnf debuginfo-install glibc"
	}
	return ""
}

// glibcFiles are the libraries of glibc that are frequent in stacks, without their versions.
var glibcFiles = []string{"libc", "ld-linux-x86-64", "ld-linux-aarch64", "libm", "libpthread"}

func tableDamaged(c *Case) string { return "symbolize store gc && " + notIndexed(c) }

func layoutUnknown(c *Case) string {
	if c.Object.Kind == ingest.Kernel {
		return "symbolize index --kernel"
	}
	return c.runtime()
}

// otherLayout returns the step for a file that was changed while it kept its build ID.
func otherLayout(c *Case) string {
	if path := c.path(); path != "" {
		return "symbolize index " + path
	}
	return "index the file that ran: patchelf moved its segments and kept its build ID"
}

// textRemapped returns the step for code that a program moved.
func textRemapped(c *Case) string {
	file, _ := ingest.RemappedFile(c.Object.File.Path)
	return "code of " + texts.Printable(ingest.BaseName(file)) + " was there: record without moving it to huge pages " +
		"(node --use-largepages=off, no iodlr)"
}

func noBuildID(c *Case) string {
	o := c.Object
	trust := "symbolize resolve --trust-paths" + c.captures()
	switch {
	case o.Kind == ingest.VDSO:
		return "symbolize index --kernel"
	case o.File.Path == ingest.VsyscallPath:
		return "nothing is missing: the vsyscall page of the kernel is not in a file"
	case isCompiled(o.File.Path):
		return anonymousMemory(c)
	case !o.Unseen && !c.BuildIDs:
		return "perf record --buildid-mmap"
	case o.File.Deleted:
		return "gcc -Wl,--build-id"
	case c.path() != "":
		return "symbolize index " + c.path() + " && " + trust
	}
	return trust
}

// isCompiled reports whether a file without a build ID is one that a run-time compiler wrote: an
// image of .NET, or shared memory.
func isCompiled(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".dll" || ext == ".exe" || strings.HasPrefix(path, "/dev/shm/")
}

// noUnwindTable returns the step that gets the unwind table of the object in which a stack ends.
func noUnwindTable(c *Case) string {
	if path, _ := ingest.NoTableFile(c.Object.File.Path); strings.HasPrefix(path, "/") {
		return "symbolize index " + texts.ShellWord(path)
	}
	return "symbolize index --kernel" // for the unwind table of the vdso
}

// mostCopied is a threshold: if a recording requested as many stack bytes, a larger request does
// not help. perf record requests at most 65,528 bytes, because a record has at most 64 KiB.
const mostCopied = 65000

// stackTruncated returns the step that records the rest of a stack. The stacks of C++ compilers are
// known to need more than 32 KiB.
func stackTruncated(c *Case) string {
	if c.Copied >= mostCopied {
		// The kernel follows at most 127 frame pointers by default.
		return c.inGo("gcc -fno-omit-frame-pointer; as root: echo 1024 > " +
			"/proc/sys/kernel/perf_event_max_stack && " + framePointers)
	}
	return c.inGo("perf record --call-graph dwarf,65528")
}

// inGo returns the step for stacks that end in Go programs: to record with frame pointers, which Go
// code has. Stacks of Go programs are large, and the runtime switches between stacks. others is the
// step for other programs, "" for none.
func (c *Case) inGo(others string) string {
	switch {
	case len(c.GoPrograms) == 0:
		return others
	case !c.OtherCode:
		return framePointers
	}
	names := texts.Printable(strings.Join(c.GoPrograms, ", ")) + ", written in Go: " + framePointers
	if others == "" {
		return "of " + names
	}
	return others + "; of " + names
}

// ambiguous returns the step that chooses one of several objects with the same build ID. A recorded
// ID that was padded with zeros matches every object with an ID that begins with the digits before
// the zeros. If one ID was recorded for several objects, it was removed and is zero.
func ambiguous(c *Case) string {
	switch {
	case c.Object.Kind == ingest.Module:
		return recordPrograms // symbolize capture reads the build ID of each module
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

// recordPrograms records the code of BPF programs, and the times at which it was at each address.
const recordPrograms = "symbolize capture -o capture.data -- perf record -a -g"

// kernelHidden returns the step that lets perf record read the kernel's addresses.
func kernelHidden(c *Case) string {
	return "as root: echo 0 > /proc/sys/kernel/kptr_restrict && " + recordAll(c)
}

const framePointers = "perf record --call-graph fp"

// stackLost returns the step for stacks that did not fit into a BPF stack map.
func stackLost(c *Case) string {
	switch c.Object.File.Path {
	case ingest.WaitedBeforePath, ingest.NotYetRunPath, ingest.NotSampledPath:
		return "" // no recording has it
	}
	if c.Counted {
		return recordAll(c) // writes each sample with its stack
	}
	return "symbolize capture -o stacks.data --stacks"
}

// outside returns the step for addresses outside every mapping or object. In code without frame
// pointers, unwinding by frame pointers ends at such an address.
func outside(c *Case) string {
	if c.inKernel() {
		return "" // the code was loaded and unloaded without a record
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
	if c.Object.File.Path == ingest.AmbiguousJITPath { // perf.data and jitdump need one clock
		return strings.Replace(recordAll(c), "record", "record -k mono", 1)
	}
	if c.inKernel() {
		return recordPrograms
	}
	return recordAll(c)
}

// Text describes an address in a line of text that has no name. The text identifies the object of
// the address by build ID, or only by file name.
type Text struct {
	Reason ingest.Reason
	Object string // build ID, or file name if File is set
	Module string // kernel module; "" if the text names none
	File   bool   // Object is a file name, and the text has no build ID
	// LateMaps is set if the text lists mappings of the process only after its first addresses.
	LateMaps bool
}

// Step returns the step that gets the name, "" if there is none, like Case.Step.
func (t *Text) Step() string {
	switch t.Reason {
	case ingest.NotIndexed:
		if t.Module != "" {
			return "`symbolize index /lib/modules/VERSION` of that kernel takes in its modules"
		}
		return "`symbolize fetch --build-id " + t.Object + "` downloads it, or name its file with --with"
	case ingest.LayoutUnknown:
		return "index the file that runs, too: a debug file has no file offsets"
	case ingest.Stripped:
		return "index its debug file: `symbolize index /usr/lib/debug`"
	case ingest.OtherLayout:
		return "index the file that ran: its segments were moved, and its build ID was kept"
	case ingest.Mismatch:
		return "what is indexed is another build, of another symbol length or identifier: name the build " +
			"that ran with --with"
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
		return "the text does not tell which kernel it is of: give its build ID with --kernel ID " +
			"(`perf buildid-list -k` on that host prints it, `symbolize store ls` lists those of the " +
			"store); with CONFIG_STACKTRACE_BUILD_ID a kernel prints those of its modules"
	case ingest.Ambiguous:
		if t.File {
			return "several files of --with have this name: name the one that ran"
		}
		return "several have this name or build ID: `symbolize store ls` lists them"
	}
	return ""
}

// Program describes a BPF program in a line of text.
type Program struct {
	Reason   ingest.Reason
	Name     string // "" if the program was loaded without BTF
	OtherTag bool   // the indexed program of this name has another tag
	Lineless bool   // the program is indexed, from a file or capture without line numbers
}

// Step returns the step that gets the name or the lines, "" if there is none, like Case.Step.
// Indexing the object file helps a program without a name only if the program's tag depends on
// nothing but that file.
func (p *Program) Step() string {
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
