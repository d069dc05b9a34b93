package sideband

import (
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
)

// ObjectQuery asks for the build ID of an object whose records have none.
type ObjectQuery struct {
	Kind   ingest.ObjectKind
	File   ingest.FileRef
	Kernel buildid.ID // of the capture's kernel, zero if not known
	Host   string     // of the recording
	// Release is that of the recording host's kernel, as of uname -r; "" if not known. Of a
	// query for the kernel, Symbol and Address are the reference symbol that was recorded and
	// its run-time address, 0 if it was hidden.
	Release string
	Symbol  string
	Address uint64
	// EndNanos is the wall clock of the recording's end, in ns since 1970: by CLOCK_DATA,
	// else the file's time of modification, which perf sets at the end and a copy later. 0
	// if not known.
	EndNanos int64
	// MappedNanos is the latest possible time of the file's first mapping; EndNanos if that is
	// not known. Until then another file may have had its inode.
	MappedNanos int64
	ByPath      buildid.ID // that the capture has for the file's path, zero if none
	Shared      bool       // the capture has other files at the same path
}

// Identifier finds the build IDs of objects whose records have none, in the order of DESIGN.md
// section 4.
type Identifier struct {
	sb       *State
	byPath   map[string]buildid.ID  // by recorded name; the zero ID if two differ
	byFile   map[fileKey]buildid.ID // by device, inode and generation; the same
	paths    pathFiles
	module   map[string]buildid.ID // by display name
	kernel   buildid.ID            // of the kernel, from the BUILD_ID feature
	query    ObjectQuery           // common part of all queries
	ask      func(ObjectQuery) (buildid.ID, ingest.IDSource)
	From, To uint64 // times of the first and the last sample, 0 if they are not known
	// Disowned are the names of files that may not have the build ID of their path.
	Disowned []string

	refuted []string // names of those whose recorded build ID proves nothing
}

// fileKey identifies a file with several names.
type fileKey struct {
	major, minor      uint32
	inode, generation uint64
}

func keyOf(f *ingest.FileRef) (fileKey, bool) {
	return fileKey{f.Major, f.Minor, f.Inode, f.Generation}, f.Inode != 0
}

// recordedName is the path as the records have it. A deleted file is another one than the
// file at its path.
func recordedName(f *ingest.FileRef) string {
	if f.Deleted {
		return f.Path + ingest.DeletedSuffix
	}
	return f.Path
}

// NewIdentifier returns an Identifier of the objects in sb. ask is asked for those whose ID no
// record has, as query describes them; nil asks nobody.
func NewIdentifier(sb *State, query ObjectQuery, ask func(ObjectQuery) (buildid.ID,
	ingest.IDSource)) *Identifier {
	x := &Identifier{
		sb: sb, byPath: make(map[string]buildid.ID), byFile: make(map[fileKey]buildid.ID),
		module: make(map[string]buildid.ID), query: query, ask: ask, paths: pathFilesOf(sb.Objects),
	}
	for i := range sb.buildIDs {
		x.entry(&sb.buildIDs[i])
	}
	for i := range sb.buildIDs {
		x.userModule(&sb.buildIDs[i])
	}
	for i := range sb.Objects.List {
		o := &sb.Objects.List[i]
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
	for i := range sb.Objects.List {
		o := &sb.Objects.List[i]
		if o.Kind != ingest.ELF || !x.paths.last(&o.File) {
			continue
		}
		if key, ok := keyOf(&o.File); ok {
			if id := x.byPath[recordedName(&o.File)]; !id.IsZero() {
				claim(x.byFile, key, id)
			}
		}
	}
	return x
}

// claim enters an ID under a name. A name with two IDs, as of an upgraded file, is ambiguous
// and gets the zero ID.
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

// entry enters an entry of the BUILD_ID feature.
func (x *Identifier) entry(e *perfdata.BuildIDEntry) {
	switch {
	case e.ID.IsZero(), e.PID > 0, e.CPUMode == perfdata.CPUModeGuestKernel,
		e.CPUMode == perfdata.CPUModeGuestUser: // of a virtual machine, whose code is one object
	case e.CPUMode != perfdata.CPUModeKernel:
		claim(x.byPath, e.Filename, e.ID)
	case strings.HasPrefix(e.Filename,
		ingest.KernelMapName), ingest.IsVmlinux(e.Filename), e.Filename == "[kernel]":
		x.kernel = e.ID
	case strings.HasPrefix(e.Filename, "[vdso"):
		claim(x.byPath, e.Filename, e.ID)
	case strings.HasPrefix(e.Filename, "[") || strings.Contains(e.Filename, ".ko"):
		claim(x.module, moduleName(e.Filename), e.ID)
	default:
		x.kernel = e.ID // a kernel image with another name
	}
}

// userModule enters the file of a module that is listed as one of user mode, as perf 4.4 does
// (kvm.ko), where no other entry has the module.
func (x *Identifier) userModule(e *perfdata.BuildIDEntry) {
	base := e.Filename[strings.LastIndexByte(e.Filename, '/')+1:]
	if e.ID.IsZero() || e.PID > 0 || e.CPUMode != perfdata.CPUModeUser ||
		!strings.Contains(base, ".ko") {
		return
	}
	if _, known := x.module[moduleName(base)]; !known {
		x.module[moduleName(base)] = e.ID
	}
}

// Identify sets the build ID of o, or the reason why it has none.
func (x *Identifier) Identify(o *ingest.Object) {
	if o.ID.IsZero() {
		o.ID, o.IDSource = x.find(o)
	}
	if o.ID.IsZero() && o.Kind == ingest.ELF && !o.File.Deleted && !x.paths.shared(&o.File) {
		if id := x.sb.listed[o.File.Path]; !id.IsZero() {
			o.ID, o.IDSource = id, ingest.IDDerived
		}
	}
	switch {
	case !NeedsID(o.Kind):
		return
	case !o.ID.IsZero():
		if o.Reason == ingest.Ambiguous { // the recorded ID was, this one is not
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

// NeedsID reports whether objects of a kind get their names by build ID.
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
	if x.ask == nil || !doubtful {
		return id, source
	}
	q := x.query
	q.Kind, q.File, q.Kernel = o.Kind, o.File, x.kernel
	if o.Kind == ingest.Kernel && x.sb.Kernel.Mapped {
		q.Symbol, q.Address = x.sb.Kernel.symbol, x.sb.Kernel.address
	}
	q.MappedNanos = x.mapped(&o.File)
	q.ByPath, q.Shared = id, o.Kind == ingest.ELF && x.paths.shared(&o.File)
	switch answer, why := x.ask(q); {
	case answer.IsZero():
		return answer, ingest.IDNone
	case answer != id:
		return answer, why
	}
	return id, source
}

// mapped returns the wall clock of the first mapping of a file. Mappings from before the
// recording have time 0, and a mapped file keeps its inode.
func (x *Identifier) mapped(f *ingest.FileRef) int64 {
	first, ok := x.paths.first(f)
	first = max(first, x.From)
	if !ok || x.query.EndNanos == 0 || first >= x.To {
		return x.query.EndNanos
	}
	return x.query.EndNanos - int64(x.To-first)
}

// file returns the ID that the capture has for a file: that of its path, or of another name
// of the file.
func (x *Identifier) file(f *ingest.FileRef) (buildid.ID, ingest.IDSource) {
	id := x.byPath[recordedName(f)]
	if !x.paths.last(f) {
		id = buildid.ID{}
	}
	if key, ok := keyOf(f); ok {
		switch sibling, named := x.byFile[key]; {
		case named && sibling.IsZero():
			return sibling, ingest.IDNone // its names have IDs that differ
		case id.IsZero() && named:
			return sibling, ingest.IDSibling
		}
	}
	if id.IsZero() {
		return id, ingest.IDNone
	}
	return id, ingest.IDByPath
}
