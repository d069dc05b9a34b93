package sideband

import (
	"fmt"
	"slices"

	"symbolize/ingest"
)

// pathFiles are the files that the records have at each path, by recorded name. perf reads
// the build ID of a path in the BUILD_ID feature when the recording ends: it is that of the
// file that was mapped there last, if every other was mapped before. No file is certain to
// have it if they were mapped by turns or are on several devices, as files of containers:
// perf looks outside of a container whose processes have ended.
type pathFiles map[string][]fileSpan

// fileSpan is when one of the files at a path was mapped first and last.
type fileSpan struct {
	key         fileKey
	first, last uint64
}

// pathFilesOf lists the recorded files by device, inode and generation.
func pathFilesOf(raw *Objects) pathFiles {
	p := make(pathFiles)
	for i := range raw.List {
		o := &raw.List[i]
		key, ok := keyOf(&o.File)
		if !ok || o.Kind != ingest.ELF {
			continue
		}
		name, span := recordedName(&o.File), raw.mappedAt(uint32(i))
		span.key = key
		at := slices.IndexFunc(p[name], func(s fileSpan) bool { return s.key == key })
		if at < 0 {
			p[name] = append(p[name], span)
			continue
		}
		known := &p[name][at]
		known.first, known.last = min(known.first, span.first), max(known.last, span.last)
	}
	return p
}

// shared reports whether several files were at the path of f.
func (p pathFiles) shared(f *ingest.FileRef) bool { return len(p[recordedName(f)]) > 1 }

// first returns the time at which f was first mapped under its path.
func (p pathFiles) first(f *ingest.FileRef) (uint64, bool) {
	key, ok := keyOf(f)
	for _, s := range p[recordedName(f)] {
		if ok && s.key == key {
			return s.first, true
		}
	}
	return 0, false
}

// last reports whether by the records f was the file at its path when the recording ended.
func (p pathFiles) last(f *ingest.FileRef) bool {
	key, ok := keyOf(f)
	if ok && !f.Deleted && slices.ContainsFunc(p[f.Path+ingest.DeletedSuffix],
		func(s fileSpan) bool { return s.key == key }) {
		return false // it was deleted while it was mapped elsewhere
	}
	spans := p[recordedName(f)]
	if len(spans) < 2 {
		return true
	}
	own := slices.IndexFunc(spans, func(s fileSpan) bool { return s.key == key })
	for i, other := range spans {
		if own < 0 || i != own && (other.last >= spans[own].first ||
			other.key.major != key.major || other.key.minor != key.minor) {
			return false
		}
	}
	return true
}

// mapped enters a mapping of an object; times are ascending.
func (r *Objects) mapped(object uint32, t uint64) {
	for len(r.spans) <= int(object) {
		r.spans = append(r.spans, fileSpan{first: NoTime})
	}
	s := &r.spans[object]
	s.first, s.last = min(s.first, t), max(s.last, t)
}

func (r *Objects) mappedAt(object uint32) fileSpan {
	if int(object) < len(r.spans) {
		return r.spans[object]
	}
	return fileSpan{} // without a record of a mapping
}

// DisownedWarning is the warning about files without a build ID of their own that were
// refused that of their path, by name.
func DisownedWarning(names []string) ingest.Warning {
	slices.Sort(names)
	names = slices.Compact(names)
	text := fmt.Sprintf("%s was replaced while it was recorded, or is of several containers: "+
		"the build ID of the path is not that of every file that ran there",
		ingest.Printable(names[0]))
	if len(names) > 1 {
		text = fmt.Sprintf("%s and %d more paths were replaced while they were recorded, or are "+
			"of several containers: the build ID of a path is not that of every file that ran there",
			ingest.Printable(names[0]), len(names)-1)
	}
	return ingest.Warning{Text: text,
		Hint: "perf record --buildid-mmap notes the build ID of each mapping"}
}
