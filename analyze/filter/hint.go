package filter

import (
	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
)

// Hint is what would name what was left, "" where nothing would.
func (l *Left) Hint() string {
	_, _, isBPF := bpf.SplitSymbol(l.Object)
	switch l.Reason {
	case ingest.NotIndexed:
		if l.Module != "" {
			return "`symbolize index /lib/modules/VERSION` of that kernel takes in its modules"
		}
		return "`symbolize index $(debuginfod-find executable " + l.Object + ")`, or name its " +
			"file with --with"
	case ingest.LayoutUnknown:
		return "index the file that runs, too: a debug file does not tell file offsets"
	case ingest.Stripped:
		if isBPF {
			return "it was loaded without lines: `symbolize index FILE.bpf.o` takes in what it " +
				"was compiled to"
		}
		return "index its debug file: `symbolize index /usr/lib/debug`"
	case ingest.NoBuildID:
		return "--kernel ID names the kernel; of modules CONFIG_STACKTRACE_BUILD_ID tells it"
	case ingest.Ambiguous:
		return "several have this name or build ID: `symbolize store ls` lists them"
	case ingest.ImageNotCaptured:
		return "`symbolize capture -o capture.data` records BPF programs, and `symbolize index " +
			"FILE.bpf.o` takes in what they were compiled to"
	}
	return ""
}
