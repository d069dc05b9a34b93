package sideband

import (
	"symbolize/ingest"
)

// mountNamespace is the index of the mount namespace in perfdata.Namespaces.Links.
const mountNamespace = 5

// foreign reports whether a file may be another one than the recorder saw at its path. perf reads
// the build IDs of paths when it ends, in the mount namespace of the process that mapped the file
// first. If that process has ended, perf reads the file at the path in its own namespace, and the
// process may have been in another: the records of its namespaces say so, or the file is on a device
// without a disk (overlayfs, tmpfs, btrfs) that does not have the recorder's program, where that is
// recorded. Without either nothing speaks against the path.
func (x *Identifier) foreign(f *ingest.FileRef) bool {
	s, ok := x.paths.span(f)
	if !ok || !x.threads.ended[s.pid] {
		return false
	}
	recorder, ok := x.recorderFile()
	if !ok {
		return false
	}
	own, other := x.threads.Namespace(recorder.pid, recorder.first, mountNamespace), x.threads.Namespace(s.pid, s.first, mountNamespace)
	if own != 0 && other != 0 {
		return own != other
	}
	return f.Major == 0 && (recorder.key.major != 0 || recorder.key.minor != f.Minor)
}

// recorderFile returns the mapping of the recorder's program, if it is recorded as one file.
func (x *Identifier) recorderFile() (fileSpan, bool) {
	spans := x.paths[x.recorder]
	if x.recorder == "" || len(spans) != 1 {
		return fileSpan{}, false
	}
	return spans[0], true
}

// recorder returns the path of the recorder's program; "" if it was not recorded.
func (x *Records) recorder() string {
	if x.File == nil || len(x.File.Features.CmdLine) == 0 {
		return ""
	}
	return x.File.Features.CmdLine[0]
}
