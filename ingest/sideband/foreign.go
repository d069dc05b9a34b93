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
func (sb *State) foreign(f *ingest.FileRef, paths pathFiles) bool {
	s, ok := paths.span(f)
	if !ok || !sb.Threads.ended[s.pid] {
		return false
	}
	recorder, ok := sb.recorder(paths)
	if !ok {
		return false
	}
	own, other := sb.Threads.Namespace(recorder.pid, recorder.first, mountNamespace), sb.Threads.Namespace(s.pid, s.first, mountNamespace)
	if own != 0 && other != 0 {
		return own != other
	}
	return f.Major == 0 && (recorder.key.major != 0 || recorder.key.minor != f.Minor)
}

// recorder returns the mapping of the recorder's program, if it is recorded as one file.
func (sb *State) recorder(paths pathFiles) (fileSpan, bool) {
	if sb.Records.File == nil || len(sb.Records.File.Features.CmdLine) == 0 {
		return fileSpan{}, false
	}
	spans := paths[sb.Records.File.Features.CmdLine[0]]
	if len(spans) != 1 {
		return fileSpan{}, false
	}
	return spans[0], true
}
