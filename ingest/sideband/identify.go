package sideband

import (
	"fmt"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/texts"
)

// ObjectQuery is a query for the build ID of an object recorded without one.
type ObjectQuery struct {
	Kind    ingest.ObjectKind
	File    ingest.FileRef
	Kernel  buildid.ID // build ID of the capture's kernel, zero if unknown
	Host    string     // name of the recording host
	Release string     // kernel release of the recording host, uname -r; "" if unknown
	// Symbol and Address, for the kernel, are the recorded reference symbol and its run-time
	// address, 0 if it was hidden.
	Symbol  string
	Address uint64
	// EndNanos is the wall-clock time at which the recording ended, in ns since 1970; 0 if unknown.
	// If EndKnown is false it is only the latest possible time: see WallClock.
	EndNanos int64
	EndKnown bool
	// MappedNanos is the latest possible time of the file's first mapping; EndNanos if unknown.
	// Before the first mapping another file may have had the same inode.
	MappedNanos int64
	ByPath      buildid.ID // build ID that the capture has for the path, zero if none
	Shared      bool       // the capture has several files at the path
	Foreign     bool       // ByPath may be of another file: see Identifier.foreign
	// Segments are the recorded mappings of the file, as in ingest.Object. Namesakes: the capture has
	// files of this name at several paths.
	Segments  []ingest.SegmentRef
	Namesakes bool
}

// Identifier finds build IDs for objects that were recorded without one. It uses the ID that the
// capture has for the object's path, or for another name of the same file; the answer to an
// ObjectQuery can replace or refute the ID of a path.
type Identifier struct {
	objects  *Objects
	threads  *Threads
	place    *Kernel        // of the kernel
	lists    *functionLists // by simpleperf
	listed   *listedIDs
	recorder string                 // path of the recorder's program; "" if it was not recorded
	byPath   map[string]buildid.ID  // by recorded name; zero if the name has two IDs
	byFile   map[fileKey]buildid.ID // by device, inode and generation; zero if the file has two IDs
	paths    pathFiles
	module   map[string]buildid.ID // by display name
	names    map[string]string     // the paths of files by their names; "" of a name of several
	kernel   buildid.ID            // build ID of the kernel
	query    ObjectQuery           // fields that all queries have in common
	answer   func(ObjectQuery) (buildid.ID, ingest.IDSource)
	From, To uint64 // times of the first and the last sample, 0 if unknown
	// Disowned has the names of files that did not get the build ID of their path.
	Disowned []string

	refuted []string // names of objects whose recorded build ID was removed as ambiguous
}

// listedIDs are the build IDs of files as recorders and bundles list them.
type listedIDs struct {
	entries        []perfdata.BuildIDEntry
	refutedModules int // modules with a recorded build ID that others have, too
}

// add adds a build ID of a bundle that the capture may lack.
func (l *listedIDs) add(id buildid.ID, mode perfdata.CPUMode, name string) {
	if !id.IsZero() {
		l.entries = append(l.entries, perfdata.BuildIDEntry{ID: id, PID: -1, CPUMode: mode,
			Filename: name})
	}
}

// fileKey identifies a file with several names.
type fileKey struct {
	major, minor      uint32
	inode, generation uint64
}

func keyOf(f *ingest.FileRef) (fileKey, bool) {
	return fileKey{f.Major, f.Minor, f.Inode, f.Generation}, f.Inode != 0
}

// recordedName returns the path of a file as the records have it. The suffix of a deleted file
// distinguishes it from the file that now has the path.
func recordedName(f *ingest.FileRef) string {
	if f.Deleted {
		return f.Path + ingest.DeletedSuffix
	}
	return f.Path
}

// NewIdentifier returns an Identifier of the objects in sb. If answer is not nil, it is called for
// objects without a recorded ID. query has the fields that all queries have in common.
func NewIdentifier(sb *State, query ObjectQuery, answer func(ObjectQuery) (buildid.ID,
	ingest.IDSource)) *Identifier {
	x := &Identifier{
		objects: sb.Objects, threads: &sb.Threads, place: &sb.Kernel, lists: &sb.lists, listed: &sb.buildIDs,
		recorder: sb.Records.recorder(), byPath: make(map[string]buildid.ID), byFile: make(map[fileKey]buildid.ID),
		module: make(map[string]buildid.ID), names: make(map[string]string), query: query, answer: answer, paths: pathFilesOf(sb.Objects),
	}
	x.addEntries()
	x.addObjects()
	return x
}

// addEntries adds the listed build IDs.
func (x *Identifier) addEntries() {
	for i := range x.listed.entries {
		x.entry(&x.listed.entries[i])
	}
	for i := range x.listed.entries {
		x.userModule(&x.listed.entries[i])
	}
}

// addObjects adds the recorded build IDs of objects, and the names of files.
func (x *Identifier) addObjects() {
	for i := range x.objects.List {
		o := &x.objects.List[i]
		if o.Kind == ingest.ELF {
			x.noteName(o.File.Path)
		}
		switch {
		case o.ID.IsZero():
		case o.Kind == ingest.ELF, o.Kind == ingest.VDSO:
			claim(x.byPath, recordedName(&o.File), o.ID)
		case o.Kind == ingest.Module:
			claim(x.module, o.File.Path, o.ID)
		case o.Kind == ingest.Kernel && x.kernel.IsZero():
			x.kernel = o.ID
		}
	}
	for i := range x.objects.List {
		o := &x.objects.List[i]
		if o.Kind != ingest.ELF || !x.paths.last(&o.File) {
			continue
		}
		if key, ok := keyOf(&o.File); ok {
			if id := x.byPath[recordedName(&o.File)]; !id.IsZero() {
				claim(x.byFile, key, id)
			}
		}
	}
}

// noteName adds the path of a file to those of its name.
func (x *Identifier) noteName(path string) {
	name := ingest.BaseName(path)
	if first, ok := x.names[name]; !ok {
		x.names[name] = path
	} else if first != path {
		x.names[name] = ""
	}
}

// claim sets the ID of a key. A key with two IDs, such as the path of a file that was upgraded, is
// ambiguous and gets the zero ID.
func claim[K comparable](m map[K]buildid.ID, key K, id buildid.ID) {
	old, ok := m[key]
	switch {
	case !ok:
		m[key] = id
	case old.Matches(id):
		if !old.Exact() {
			m[key] = id
		}
	default:
		m[key] = buildid.ID{}
	}
}

// entry adds an entry of the BUILD_ID feature.
func (x *Identifier) entry(e *perfdata.BuildIDEntry) {
	switch {
	case e.ID.IsZero(), e.PID > 0, e.CPUMode == perfdata.CPUModeGuestKernel,
		e.CPUMode == perfdata.CPUModeGuestUser: // guest code is one object without an ID
	case e.CPUMode != perfdata.CPUModeKernel:
		claim(x.byPath, e.Filename, e.ID)
	case strings.HasPrefix(e.Filename, ingest.KernelMapName), ingest.IsVmlinux(e.Filename),
		e.Filename == "[kernel]":
		x.kernel = e.ID
	case strings.HasPrefix(e.Filename, "[vdso"):
		claim(x.byPath, e.Filename, e.ID)
	case strings.HasPrefix(e.Filename, "[") || strings.Contains(e.Filename, ".ko"):
		claim(x.module, moduleName(e.Filename), e.ID)
	default:
		x.kernel = e.ID // a kernel image with another name
	}
}

// userModule adds a kernel module that the BUILD_ID feature lists with user mode, as perf 4.4 does
// for kvm.ko, if no other entry is for the module.
func (x *Identifier) userModule(e *perfdata.BuildIDEntry) {
	base := ingest.BaseName(e.Filename)
	if e.ID.IsZero() || e.PID > 0 || e.CPUMode != perfdata.CPUModeUser ||
		!strings.Contains(base, ".ko") {
		return
	}
	if _, known := x.module[moduleName(base)]; !known {
		x.module[moduleName(base)] = e.ID
	}
}

// Identify sets the build ID of o, or the reason why it lacks one.
func (x *Identifier) Identify(o *ingest.Object) {
	if o.ID.IsZero() {
		o.ID, o.IDSource = x.find(o)
	}
	if o.ID.IsZero() && o.Kind == ingest.ELF && !o.File.Deleted && !x.paths.shared(&o.File) {
		if id := x.lists.ids[o.File.Path]; !id.IsZero() {
			o.ID, o.IDSource = id, ingest.IDDerived
		}
	}
	if o.Kind == ingest.Kernel && x.kernel.IsZero() {
		x.kernel = o.ID // found by an answer; modules and the vdso are asked for by it
	}
	switch {
	case !NeedsID(o.Kind):
		return
	case !o.ID.IsZero():
		if o.Reason == ingest.Ambiguous { // the recorded ID was; the ID found instead is not
			o.Reason = ingest.ReasonNone
		}
		return
	case o.Reason == ingest.ReasonNone:
		o.Reason = ingest.NoBuildID
	case o.Reason == ingest.Ambiguous:
		x.refuted = append(x.refuted, o.File.Path)
	}
	if name := recordedName(&o.File); o.Kind == ingest.ELF && !x.byPath[name].IsZero() {
		x.Disowned = append(x.Disowned, name)
	}
}

// NeedsID reports whether symbols for objects of a kind are found by build ID.
func NeedsID(k ingest.ObjectKind) bool { return k <= ingest.Module }

func (x *Identifier) find(o *ingest.Object) (id buildid.ID, source ingest.IDSource) {
	if !NeedsID(o.Kind) || o.File.Path == ingest.VsyscallPath {
		return id, ingest.IDNone
	}
	doubtful := true
	switch o.Kind {
	case ingest.ELF:
		id, source = x.file(&o.File)
		doubtful = source != ingest.IDSibling
	case ingest.VDSO:
		id = x.byPath[o.File.Path]
	case ingest.Kernel:
		id = x.kernel
	case ingest.Module:
		id = x.module[o.File.Path]
	}
	if !id.IsZero() && o.Kind != ingest.ELF {
		source, doubtful = ingest.IDByPath, false
	}
	foreign := source == ingest.IDByPath && o.Kind == ingest.ELF && x.foreign(&o.File)
	switch {
	case x.answer == nil && foreign:
		return buildid.ID{}, ingest.IDNone
	case x.answer == nil, !doubtful:
		return id, source
	}
	q := x.query
	q.Kind, q.File, q.Kernel = o.Kind, o.File, x.kernel
	if o.Kind == ingest.Kernel && x.place.Mapped {
		q.Symbol, q.Address = x.place.symbol, x.place.address
	}
	q.MappedNanos = x.mapped(&o.File)
	q.ByPath, q.Shared = id, o.Kind == ingest.ELF && x.paths.shared(&o.File)
	q.Foreign = foreign
	q.Segments, q.Namesakes = o.Segments, o.Kind == ingest.ELF && x.names[ingest.BaseName(o.File.Path)] == ""
	switch found, why := x.answer(q); {
	case found.IsZero():
		return found, ingest.IDNone
	case found != id:
		return found, why
	}
	return id, source
}

// mapped returns the wall-clock time of a file's first mapping, or EndNanos if it is unknown. A
// mapping made before the recording has time 0; the time of the first sample replaces it, because a
// mapped file keeps its inode.
func (x *Identifier) mapped(f *ingest.FileRef) int64 {
	first, ok := x.paths.first(f)
	first = max(first, x.From)
	if !ok || x.query.EndNanos == 0 || first >= x.To {
		return x.query.EndNanos
	}
	return x.query.EndNanos - int64(x.To-first)
}

// file returns the capture's ID for a file: by its path, or by another name of the file.
func (x *Identifier) file(f *ingest.FileRef) (buildid.ID, ingest.IDSource) {
	id := x.byPath[recordedName(f)]
	if !x.paths.last(f) {
		id = buildid.ID{}
	}
	if key, ok := keyOf(f); ok {
		switch sibling, named := x.byFile[key]; {
		case named && sibling.IsZero():
			return sibling, ingest.IDNone // the names of the file have different IDs
		case id.IsZero() && named:
			return sibling, ingest.IDSibling
		}
	}
	if id.IsZero() {
		return id, ingest.IDNone
	}
	return id, ingest.IDByPath
}

// pathFiles has the recorded files at each path, by recorded name. When the recording ends, perf
// reads the build ID of each path for the BUILD_ID feature. The ID belongs to the file that was
// mapped last, if all mappings of other files at the path were made before its first mapping. It is
// uncertain if mappings of the files alternate or if the files are on several devices, as files of
// containers are: perf does not read files of a container after the container's processes ended.
type pathFiles map[string][]fileSpan

// fileSpan has the times of the first and the last mapping of a file at a path, and the process of
// the first one.
type fileSpan struct {
	key         fileKey
	first, last uint64
	pid         int32
}

// pathFilesOf returns the recorded files at each path, by device, inode and generation.
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
		if span.first < known.first {
			known.pid = span.pid
		}
		known.first, known.last = min(known.first, span.first), max(known.last, span.last)
	}
	return p
}

// shared reports whether several files were recorded at the path of f.
func (p pathFiles) shared(f *ingest.FileRef) bool { return len(p[recordedName(f)]) > 1 }

// first returns the time at which f was first mapped under its path.
func (p pathFiles) first(f *ingest.FileRef) (uint64, bool) {
	s, ok := p.span(f)
	return s.first, ok
}

func (p pathFiles) span(f *ingest.FileRef) (fileSpan, bool) {
	key, ok := keyOf(f)
	for _, s := range p[recordedName(f)] {
		if ok && s.key == key {
			return s, true
		}
	}
	return fileSpan{}, false
}

// last reports whether, by the records, f was at its path when the recording ended.
func (p pathFiles) last(f *ingest.FileRef) bool {
	key, ok := keyOf(f)
	if ok && !f.Deleted && slices.ContainsFunc(p[f.Path+ingest.DeletedSuffix],
		func(s fileSpan) bool { return s.key == key }) {
		return false // the file was also recorded as deleted
	}
	spans := p[recordedName(f)]
	if len(spans) < 2 {
		return true
	}
	self := slices.IndexFunc(spans, func(s fileSpan) bool { return s.key == key })
	for i, other := range spans {
		if self < 0 || i != self && (other.last >= spans[self].first ||
			other.key.major != key.major || other.key.minor != key.minor) {
			return false
		}
	}
	return true
}

// mapped records the time and the process of a mapping of an object.
func (r *Objects) mapped(object uint32, t uint64, pid int32) {
	for len(r.spans) <= int(object) {
		r.spans = append(r.spans, fileSpan{first: NoTime})
	}
	s := &r.spans[object]
	if t < s.first {
		s.pid = pid
	}
	s.first, s.last = min(s.first, t), max(s.last, t)
}

func (r *Objects) mappedAt(object uint32) fileSpan {
	if int(object) < len(r.spans) {
		return r.spans[object]
	}
	return fileSpan{} // never mapped
}

// DisownedWarning returns the warning about files that have no recorded build ID and do not get the
// build ID of their path. names has their names.
func DisownedWarning(names []string) ingest.Warning {
	slices.Sort(names)
	names = slices.Compact(names)
	paths := texts.Printable(names[0]) + " was"
	if len(names) > 1 {
		paths = fmt.Sprintf("%s and %d more paths were", texts.Printable(names[0]), len(names)-1)
	}
	text := paths + " replaced during the recording, or processes in containers saw other files " +
		"there: not all files that ran there have the build ID of the path"
	return ingest.Warning{Text: text,
		Hint: "perf record --buildid-mmap notes the build ID of each mapping"}
}

// refuteModules removes recorded build IDs that several modules share, or a module and the
// kernel. perf from 5.12 until March 2026 gives every module that was loaded before the recording
// the ID of the first module, because perf_event__synthesize_modules writes all of them from one
// buffer. It also lists these IDs in the BUILD_ID feature. refuteModules is called before bundles
// add IDs.
func (l *listedIDs) refuteModules(objects *Objects) {
	owner := make(map[buildid.Key]string) // name of the module with the ID; "" for several
	claimed := func(id buildid.ID, name string) {
		if known, ok := owner[id.Key()]; ok && known != name {
			name = ""
		}
		owner[id.Key()] = name
	}
	for i := range objects.List {
		if o := &objects.List[i]; !o.ID.IsZero() &&
			(o.Kind == ingest.Kernel || o.Kind == ingest.Module) {
			claimed(o.ID, o.File.Path)
		}
	}
	for i := range l.entries {
		if e := &l.entries[i]; listedModule(e) != "" && !e.ID.IsZero() {
			claimed(e.ID, listedModule(e))
		}
	}
	shared := func(id buildid.ID) bool {
		name, ok := owner[id.Key()]
		return ok && name == ""
	}
	listed := make(map[string]bool)
	l.entries = slices.DeleteFunc(slices.Clone(l.entries), func(e perfdata.BuildIDEntry) bool {
		name := listedModule(&e)
		refuted := name != "" && shared(e.ID)
		listed[name] = listed[name] || refuted
		return refuted
	})
	for i := range objects.List {
		if o := &objects.List[i]; o.Kind == ingest.Module &&
			(shared(o.ID) || o.ID.IsZero() && listed[o.File.Path]) {
			o.ID, o.IDSource, o.Reason = buildid.ID{}, ingest.IDNone, ingest.Ambiguous
			l.refutedModules++
		}
	}
}

// listedModule returns the display name of the module that an entry of the BUILD_ID feature is for;
// "" if the entry is not for a module.
func listedModule(e *perfdata.BuildIDEntry) string {
	base := ingest.BaseName(e.Filename)
	_, bracketed := ingest.Unbracket(base)
	switch {
	case e.PID > 0, strings.HasPrefix(base, ingest.KernelMapName), base == "[kernel]",
		strings.HasPrefix(base, "[vdso"), strings.HasPrefix(base, "[guest."):
		return ""
	case strings.Contains(base, ".ko"), bracketed && e.CPUMode == perfdata.CPUModeKernel:
		return moduleName(base)
	}
	return ""
}

// refuteFiles removes build IDs that files with different content share. Mappings of one file's
// code always begin at the same offsets, so two files without a common code segment have different
// content. refuteFiles needs the times of mappings.
// identifier has the build IDs.
func (l *listedIDs) refuteFiles(identifier *Identifier) {
	objects := identifier.objects
	contents := make(map[buildid.Key][]content)
	ids := make([]buildid.ID, len(objects.List))
	for i := range objects.List {
		o := &objects.List[i]
		if o.Kind != ingest.ELF || len(o.Segments) == 0 {
			continue
		}
		if ids[i] = o.ID; ids[i].IsZero() {
			ids[i], _ = identifier.file(&o.File)
		}
		if !ids[i].IsZero() {
			key := ids[i].Key()
			contents[key] = addContent(contents[key], objects.contentOf(uint32(i)))
		}
	}
	refuted := func(id buildid.ID) bool { return len(contents[id.Key()]) > 1 }
	for i := range objects.List {
		if o := &objects.List[i]; refuted(ids[i]) {
			o.ID, o.IDSource, o.Reason = buildid.ID{}, ingest.IDNone, ingest.Ambiguous
		}
	}
	l.entries = slices.DeleteFunc(slices.Clone(l.entries), func(e perfdata.BuildIDEntry) bool {
		return e.CPUMode != perfdata.CPUModeKernel && refuted(e.ID)
	})
}

// comparedSegments limits the segments of a file that are compared. Files usually have one or two.
const comparedSegments = 16

// content is the mapped code of a file. Mappings that existed when the recording started are listed
// with the length of a segment. Mappings made later are noted as they are made; in old files their
// length extends to the end of all segments. So the lengths of the two kinds can differ.
type content struct {
	segments      []ingest.SegmentRef
	listed, noted bool
}

func (r *Objects) contentOf(object uint32) content {
	span := r.mappedAt(object)
	list := r.List[object].Segments
	return content{segments: slices.Clone(list[:min(len(list), comparedSegments)]),
		listed: span.first == 0, noted: span.last > 0}
}

// same reports whether two contents have a segment in common, and so can belong to one file.
func (c *content) same(o *content) bool {
	alike := c.listed == o.listed && c.noted == o.noted
	return slices.ContainsFunc(c.segments, func(s ingest.SegmentRef) bool {
		return slices.ContainsFunc(o.segments, func(t ingest.SegmentRef) bool {
			return s.Offset == t.Offset && (!alike || s.Len == t.Len)
		})
	})
}

// addContent merges c into the content in list that it can belong to, or appends it.
func addContent(list []content, c content) []content {
	for i := range list {
		if !list[i].same(&c) {
			continue
		}
		known := &list[i]
		for _, s := range c.segments {
			if len(known.segments) < comparedSegments && !slices.Contains(known.segments, s) {
				known.segments = append(known.segments, s)
			}
		}
		known.listed, known.noted = known.listed || c.listed, known.noted || c.noted
		return list
	}
	if len(list) > 1 {
		return list // two contents are enough to refute an ID
	}
	return append(list, c)
}

// RefutedWarning returns the warning about sampled modules and files that were recorded with an
// ambiguous build ID and have no other; ok is false without such objects.
func (x *Identifier) RefutedWarning() (w ingest.Warning, ok bool) {
	slices.Sort(x.refuted)
	names := slices.Compact(x.refuted)
	switch n := x.listed.refutedModules; {
	case len(names) == 0:
		return w, false
	case n > 0:
		w.Text = fmt.Sprintf("%d kernel modules share a recorded build ID with another module, which "+
			"proves nothing; %d modules and files with samples have no other build ID", n, len(names))
	default:
		w.Text = fmt.Sprintf("%d files with samples, among them %s, share a recorded build ID with a "+
			"file of other content, which proves nothing", len(names), texts.Printable(names[0]))
	}
	return w, true
}
