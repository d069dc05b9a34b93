package resolve

import (
	"cmp"
	"path"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
	"symbolize/store"
)

// IdentifyOptions are for Identify.
type IdentifyOptions struct {
	// TrustPaths assumes that the known file at the recorded path was mapped,
	// without proof.
	TrustPaths bool
	// Hostname is the name of this machine, where the path rows of the store were made. Device and
	// inode are proof only for captures recorded here.
	Hostname string
	// Rewritten is called for a file that has the build ID of the path, and the content of which
	// was changed between its first mapping and the end of the recording; nil for nothing.
	Rewritten func(path string)
	// Newer is called for a file that TrustPaths uses although it changed after the recording had
	// ended; nil for nothing.
	Newer func(path string)
}

// Identify returns ingest's source of the build ID of a mapping without one in its records. A file
// is proven the same if the store's row for its path has the recorded device, inode and generation
// and neither mtime nor ctime later than when it was mapped: a later change would have set another
// ctime. Both need the time at which the recording ended; the modification time of a copy proves
// nothing.
//
// An ID that the capture has only by path is refuted if the file that the store knows at the
// path has it, was there when the recording ended, and is another inode: the recorder read the ID
// of a file that replaced the recorded one, or of a file outside the container. A file with the ID
// that came to the path later is another copy of the same build. (Devices do not help: in overlayfs
// kernels differ in the device that a record has, and older rows have stat's.) A proof that the file is another one
// overrides the ID.
func Identify(v store.View, opts IdentifyOptions) func(sideband.ObjectQuery) (buildid.ID,
	ingest.IDSource) {
	return func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		if q.Kind == ingest.VDSO {
			if id := vdsoOf(v, q.Kernel, q.File.Path == ingest.VDSO32Path); !id.IsZero() {
				return id, ingest.IDDerived
			}
			return buildid.ID{}, ingest.IDNone
		}
		if q.Kind != ingest.ELF && q.Kind != ingest.Module {
			return buildid.ID{}, ingest.IDNone
		}
		var row *store.PathRow
		if opts.here(&q) || opts.TrustPaths { // rows prove nothing about the files of other hosts
			row = rowOf(v, q.File.Path)
		}
		return fileID(row, &q, opts)
	}
}

// here reports whether a file is one of this host.
func (o *IdentifyOptions) here(q *sideband.ObjectQuery) bool {
	return o.Hostname != "" && q.Host == o.Hostname
}

// fileID returns the build ID of a file by the row of its path; row is nil if the path has none.
func fileID(row *store.PathRow, q *sideband.ObjectQuery, opts IdentifyOptions) (buildid.ID,
	ingest.IDSource) {
	here := opts.here(q)
	known := row != nil && !row.ID.IsZero()
	switch {
	case known && here && !row.ID.Matches(q.ByPath) && sameFile(row, q):
		return row.ID, ingest.IDProven
	case known && here && row.ID.Matches(q.ByPath) && otherFile(row, q):
		return buildid.ID{}, ingest.IDNone
	case q.Foreign && !opts.TrustPaths && !(known && here && row.ID.Matches(q.ByPath) &&
		q.File.Inode != 0 && row.Inode == q.File.Inode):
		return buildid.ID{}, ingest.IDNone
	case !q.ByPath.IsZero():
		if known && here && opts.Rewritten != nil && row.ID.Matches(q.ByPath) && rewritten(row, q) {
			opts.Rewritten(q.File.Path)
		}
		return q.ByPath, ingest.IDByPath
	case known && opts.TrustPaths && !q.Shared:
		if opts.Newer != nil && q.EndNanos != 0 && row.MtimeNs > q.EndNanos {
			opts.Newer(q.File.Path)
		}
		return row.ID, ingest.IDTrusted
	}
	return buildid.ID{}, ingest.IDNone
}

// otherFile reports whether the file of a path row was at its path when the recording
// ended, and is not the recorded one.
func otherFile(row *store.PathRow, q *sideband.ObjectQuery) bool {
	return q.File.Inode != 0 && row.Inode != 0 && row.Inode != q.File.Inode &&
		there(row, q)
}

// recorderLag is the longest time after the end of a recording, ns, in which the recorder still
// changes the state of files: perf makes links to them below ~/.debug.
const recorderLag = int64(10e9)

// there reports whether the file of a path row was at its path when the recording ended.
func there(row *store.PathRow, q *sideband.ObjectQuery) bool {
	return q.EndKnown && q.EndNanos != 0 && row.MtimeNs <= q.EndNanos &&
		row.CtimeNs <= q.EndNanos+recorderLag
}

// rewritten reports whether the file of a path row is the recorded one, and was written to after it
// was mapped, while the recording went on: part of the samples may be of its content before.
func rewritten(row *store.PathRow, q *sideband.ObjectQuery) bool {
	return q.File.Inode != 0 && row.Inode == q.File.Inode && there(row, q) &&
		row.MtimeNs > cmp.Or(q.MappedNanos, q.EndNanos)
}

// PathID returns the build ID of the file that a view knows at an absolute path, without
// proof that it is still that file; zero if it knows none.
func PathID(v store.View, file string) buildid.ID {
	if row := rowOf(v, file); row != nil {
		return row.ID
	}
	return buildid.ID{}
}

// rowOf returns the path row of a file, or nil. A store that cannot be read proves nothing.
func rowOf(v store.View, file string) *store.PathRow {
	if v == nil || !path.IsAbs(file) {
		return nil
	}
	file = path.Clean(file)
	rows, ok, err := v.Dir(path.Dir(file))
	if err != nil || !ok {
		return nil
	}
	return rows.Find(path.Base(file))
}

// sameFile reports whether the file of a path row is proven to be the recorded one: that it
// has not changed since it was mapped. By the recording's end it may be another file that
// got the inode of a deleted one.
func sameFile(row *store.PathRow, q *sideband.ObjectQuery) bool {
	f := &q.File
	return q.EndKnown && row.Proof().Proves(buildid.RecordedFile{
		Major: f.Major, Minor: f.Minor, Inode: f.Inode, Gen: f.Generation}, cmp.Or(q.MappedNanos, q.EndNanos))
}

// vdsoOf returns the build ID of a kernel's vdso image. Of several, as x86-64 has for 32-bit
// processes, it is the one of the kernel's own class, or of32 bits; 64 bits where that is not
// known.
func vdsoOf(v store.View, kernel buildid.ID, of32 bool) buildid.ID {
	if v == nil || kernel.IsZero() {
		return buildid.ID{}
	}
	k, _, _ := store.FindOne(v, kernel)
	if k == nil {
		return buildid.ID{}
	}
	ids := k.VDSO
	if len(ids) == 1 && !of32 {
		return ids[0]
	}
	const class32, class64 = 1, 2 // ELFCLASS32, ELFCLASS64
	class := k.Class
	switch {
	case of32:
		class = class32
	case class == 0:
		class = class64
	}
	var fit []buildid.ID
	for _, id := range ids {
		if m, _, _ := store.FindOne(v, id); m != nil && m.Class == class {
			fit = append(fit, id)
		}
	}
	if len(fit) == 1 {
		return fit[0]
	}
	return buildid.ID{}
}
