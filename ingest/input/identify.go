package input

import (
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/perfdata"
)

// identifier finds the build IDs of objects whose records have none, in the order
// of DESIGN.md section 4.
type identifier struct {
	sb     *sideband
	byPath map[string]buildid.ID  // by recorded name; the zero ID if two differ
	byFile map[fileKey]buildid.ID // by device, inode and generation
	module map[string]buildid.ID  // by display name
	kernel buildid.ID             // of the kernel, from the BUILD_ID feature
	query  ObjectQuery            // what all queries have in common
	ask    func(ObjectQuery) (buildid.ID, ingest.IDSource)
}

// fileKey is what tells that two names are of one file.
type fileKey struct {
	major, minor      uint32
	inode, generation uint64
}

func keyOf(f *ingest.FileRef) (fileKey, bool) {
	return fileKey{f.Major, f.Minor, f.Inode, f.Generation}, f.Inode != 0
}

// recordedName is the path as the records have it. A deleted file is not the one
// that lies at its path now.
func recordedName(f *ingest.FileRef) string {
	if f.Deleted {
		return f.Path + ingest.DeletedSuffix
	}
	return f.Path
}

func newIdentifier(sb *sideband, query ObjectQuery, ask func(ObjectQuery) (buildid.ID,
	ingest.IDSource)) *identifier {
	x := &identifier{
		sb: sb, byPath: make(map[string]buildid.ID), byFile: make(map[fileKey]buildid.ID),
		module: make(map[string]buildid.ID), query: query, ask: ask,
	}
	for i := range sb.file.Features.BuildIDs {
		x.entry(&sb.file.Features.BuildIDs[i])
	}
	for i := range sb.lent {
		x.entry(&sb.lent[i])
	}
	for i := range sb.raw.list {
		o := &sb.raw.list[i]
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
	for i := range sb.raw.list {
		o := &sb.raw.list[i]
		if o.Kind != ingest.ELF {
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

// claim enters an ID under a name. One name with two IDs (a file that was
// upgraded) is ambiguous, and tells nothing.
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

// entry takes in an entry of the BUILD_ID feature.
func (x *identifier) entry(e *perfdata.BuildIDEntry) {
	switch {
	case e.ID.IsZero(), e.PID > 0, e.CPUMode == perfdata.CPUModeGuestKernel,
		e.CPUMode == perfdata.CPUModeGuestUser: // a virtual machine's, whose code is one place
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
		x.kernel = e.ID // a kernel image by a name of its own
	}
}

// identify gives o its build ID, if one can be had, or the reason.
func (x *identifier) identify(o *ingest.Object) {
	if o.ID.IsZero() {
		o.ID, o.IDSource = x.find(o)
	}
	if o.ID.IsZero() && o.Reason == ingest.ReasonNone && needsID(o.Kind) {
		o.Reason = ingest.NoBuildID
	}
}

// needsID reports whether objects of a kind are named by build ID.
func needsID(k ingest.ObjectKind) bool { return k <= ingest.Module }

func (x *identifier) find(o *ingest.Object) (buildid.ID, ingest.IDSource) {
	switch o.Kind {
	case ingest.ELF:
		if o.File.Path == ingest.VsyscallPath {
			return buildid.ID{}, ingest.IDNone
		}
		id := x.byPath[recordedName(&o.File)]
		if key, ok := keyOf(&o.File); ok && id.IsZero() {
			if sibling := x.byFile[key]; !sibling.IsZero() {
				return sibling, ingest.IDSibling
			}
		}
		if !id.IsZero() {
			return id, ingest.IDByPath
		}
	case ingest.VDSO:
		if id := x.byPath[o.File.Path]; !id.IsZero() {
			return id, ingest.IDByPath
		}
	case ingest.Kernel:
		if !x.kernel.IsZero() {
			return x.kernel, ingest.IDByPath
		}
	case ingest.Module:
		if id := x.module[o.File.Path]; !id.IsZero() {
			return id, ingest.IDByPath
		}
	}
	if x.ask == nil || !needsID(o.Kind) {
		return buildid.ID{}, ingest.IDNone
	}
	q := x.query
	q.Kind, q.File, q.Kernel = o.Kind, o.File, x.kernel
	id, source := x.ask(q)
	if id.IsZero() {
		return id, ingest.IDNone
	}
	return id, source
}

// identity is what makes two objects one: the build ID, else all that is
// recorded.
type identity struct {
	kind      ingest.ObjectKind
	key       buildid.Key
	length    int // of an ID shorter than a key: such IDs match only at equal lengths
	refSymbol string
	reason    ingest.Reason
	file      ingest.FileRef // and the rest only without an ID
	symbol    string
	codeLen   uint64
	pid       int32
	capture   string
}

// identities numbers the objects of a list by identity. An inexact ID joins the
// exact one it matches; if it matches two of different lengths it stays alone and
// is ambiguous.
func identities(objects []ingest.Object) []identity {
	exact := make(map[identity][]int) // lengths by identity of length 0
	ids := make([]identity, len(objects))
	for i := range objects {
		o := &objects[i]
		id := identity{kind: o.Kind, refSymbol: o.RefSymbol}
		if o.ID.IsZero() {
			id.file, id.symbol, id.codeLen, id.pid = o.File, o.Symbol, o.Length, o.PID
			id.capture, id.reason = o.Capture, o.Reason
			ids[i] = id
			continue
		}
		if o.Reason == ingest.KernelHidden {
			id.reason = o.Reason
		}
		id.key = o.ID.Key()
		if n := min(o.ID.Len(), buildid.KeyLen); o.ID.Exact() && !slices.Contains(exact[id], n) {
			exact[id] = append(exact[id], n)
		}
		ids[i] = id
	}
	for i := range objects {
		o := &objects[i]
		if o.ID.IsZero() {
			continue
		}
		switch lengths := exact[ids[i]]; {
		case o.ID.Exact():
			ids[i].length = min(o.ID.Len(), buildid.KeyLen)
		case len(lengths) == 1:
			ids[i].length = lengths[0]
		case len(lengths) > 1:
			ids[i].length = -1
			o.Reason = ingest.Ambiguous
		}
	}
	return ids
}

// joinObjects makes one object of each identity, sorted by CompareObjects, and
// says which one each of the given became. Objects for which used is false are
// left out (NoObject).
func joinObjects(objects []ingest.Object, used []bool) (joined []ingest.Object,
	number []ingest.ObjectID) {
	ids := identities(objects)
	index := make(map[identity]int)
	group := make([]int, len(objects))
	for i := range objects {
		group[i] = -1
		if !used[i] {
			continue
		}
		at, ok := index[ids[i]]
		if !ok {
			at = len(joined)
			index[ids[i]] = at
			o := objects[i]
			o.Segments = slices.Clone(o.Segments)
			joined = append(joined, o)
		} else {
			joinObject(&joined[at], &objects[i])
		}
		group[i] = at
	}
	order := make([]int, len(joined))
	for i := range order {
		order[i] = i
		slices.SortFunc(joined[i].Segments, ingest.CompareSegments)
		joined[i].Segments = slices.Compact(joined[i].Segments)
	}
	slices.SortFunc(order, func(a, b int) int {
		return ingest.CompareObjects(&joined[a], &joined[b])
	})
	rank := make([]ingest.ObjectID, len(joined))
	sorted := make([]ingest.Object, len(joined))
	for to, from := range order {
		rank[from], sorted[to] = ingest.ObjectID(to), joined[from]
	}
	number = make([]ingest.ObjectID, len(objects))
	for i, g := range group {
		number[i] = ingest.NoObject
		if g >= 0 {
			number[i] = rank[g]
		}
	}
	return sorted, number
}

// joinObject adds what another record knows of the same object. The smallest path
// is displayed, whatever the order of the records; stack maps know none.
func joinObject(o, other *ingest.Object) {
	if o.File.Path == "" || other.File.Path != "" && ingest.CompareFiles(&other.File, &o.File) < 0 {
		o.File = other.File
	}
	if other.ID.Exact() && !o.ID.Exact() {
		o.ID = other.ID
	}
	if other.IDSource != ingest.IDNone &&
		(o.IDSource == ingest.IDNone || other.IDSource < o.IDSource) {
		o.IDSource = other.IDSource
	}
	if o.Symbol == "" || other.Symbol != "" && other.Symbol < o.Symbol {
		o.Symbol = other.Symbol
	}
	o.Length = max(o.Length, other.Length)
	o.NoImage = o.NoImage && other.NoImage
	switch {
	case !o.NoImage:
		o.WhyNoImage = ""
	case o.WhyNoImage == "" || other.WhyNoImage != "" && other.WhyNoImage < o.WhyNoImage:
		o.WhyNoImage = other.WhyNoImage
	}
	o.Segments = append(o.Segments, other.Segments...)
}
