package filter

import (
	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
)

// Hint is the command that would name the rest, "" where there is none.
func (l *Left) Hint() string {
	if _, name, isBPF := bpf.SplitSymbol(l.Object); isBPF {
		return l.hintBPF(bpf.NameOf(name))
	}
	switch l.Reason {
	case ingest.NotIndexed:
		if l.Module != "" {
			return "`symbolize index /lib/modules/VERSION` of that kernel takes in its modules"
		}
		return "`symbolize index $(debuginfod-find executable " + l.Object + ")`, or name its " +
			"file with --with"
	case ingest.LayoutUnknown:
		return "index the file that runs, too: a debug file has no file offsets"
	case ingest.Stripped:
		return "index its debug file: `symbolize index /usr/lib/debug`"
	case ingest.NoBuildID:
		return "--kernel ID names the kernel; of modules CONFIG_STACKTRACE_BUILD_ID tells it"
	case ingest.Ambiguous:
		return "several have this name or build ID: `symbolize store ls` lists them"
	}
	return ""
}

// hintBPF is Hint for a BPF function. To index its object file is no advice for one that has
// no name, unless its tag depends on that file alone.
func (l *Left) hintBPF(name string) string {
	const alone = "without a name (it was loaded without BTF) its tag alone tells it: object " +
		"files tell that of programs without CO-RE, and of subprograms without calls of helpers " +
		"and divisions, which kernels rewrite"
	switch {
	case l.Reason == ingest.Ambiguous:
		return "functions of different sources have this tag or name: `symbolize store ls` lists " +
			"them"
	case l.OtherTag:
		return "the program of this name that is indexed has another tag: index the FILE.bpf.o " +
			"that was loaded"
	case l.Reason == ingest.Stripped && name == "":
		return "it was loaded without lines; " + alone
	case l.Reason == ingest.Stripped:
		return "it was loaded without lines: `symbolize index FILE.bpf.o` takes in what it " +
			"was compiled to"
	case l.Reason == ingest.ImageNotCaptured && name == "":
		return "`symbolize capture -o capture.data` records BPF programs; " + alone
	case l.Reason == ingest.ImageNotCaptured:
		return "`symbolize capture -o capture.data` records BPF programs, and `symbolize index " +
			"FILE.bpf.o` takes in what they were compiled to"
	}
	return ""
}
