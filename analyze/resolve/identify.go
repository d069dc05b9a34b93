package resolve

import (
	"path"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/store"
)

// IdentifyOptions are for Identify.
type IdentifyOptions struct {
	// TrustPaths takes the file that is known at the recorded path for the one that
	// was mapped, without proof.
	TrustPaths bool
	// Hostname is that of this machine, where the store's path rows were made. Only
	// captures recorded here can be proven by device and inode.
	Hostname string
}

// Identify returns what ingest asks for the build ID of a mapping whose records
// have none (DESIGN.md section 4). A file is proven the same if the store's row
// for its path has the recorded device, inode and generation and neither mtime
// nor ctime later than the recording: what changed since would have another ctime.
func Identify(v store.View, opts IdentifyOptions) func(input.ObjectQuery) (buildid.ID,
	ingest.IDSource) {
	return func(q input.ObjectQuery) (buildid.ID, ingest.IDSource) {
		if q.Kind == ingest.VDSO {
			if id := vdsoOf(v, q.Kernel); !id.IsZero() {
				return id, ingest.IDDerived
			}
			return buildid.ID{}, ingest.IDNone
		}
		if q.Kind != ingest.ELF && q.Kind != ingest.Module {
			return buildid.ID{}, ingest.IDNone
		}
		row := rowOf(v, q.File.Path)
		switch {
		case row == nil || row.ID.IsZero():
			return buildid.ID{}, ingest.IDNone
		case opts.Hostname != "" && q.Host == opts.Hostname && sameFile(row, &q):
			return row.ID, ingest.IDProven
		case opts.TrustPaths:
			return row.ID, ingest.IDTrusted
		}
		return buildid.ID{}, ingest.IDNone
	}
}

// rowOf returns the path row of a file, or nil. A store that cannot be read
// proves nothing.
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

// sameFile reports whether the file of a path row is proven to be the recorded one.
func sameFile(row *store.PathRow, q *input.ObjectQuery) bool {
	f := &q.File
	return row.Proof().Proves(buildid.RecordedFile{
		Major: f.Major, Minor: f.Minor, Inode: f.Inode, Gen: f.Generation}, q.EndNanos)
}

// vdsoOf gives the build ID of a kernel's vdso image. Of several, as x86-64 has
// for 32-bit processes, it is the one of the kernel's own class; 64 bits where
// that is not known.
func vdsoOf(v store.View, kernel buildid.ID) buildid.ID {
	if v == nil || kernel.IsZero() {
		return buildid.ID{}
	}
	found, err := v.Find(kernel)
	if err != nil || len(found) != 1 {
		return buildid.ID{}
	}
	ids := found[0].VDSO
	if len(ids) == 1 {
		return ids[0]
	}
	const class64 = 2 // ELFCLASS64
	class := found[0].Class
	if class == 0 {
		class = class64
	}
	var fit []buildid.ID
	for _, id := range ids {
		if m, err := v.Find(id); err == nil && len(m) == 1 && m[0].Class == class {
			fit = append(fit, id)
		}
	}
	if len(fit) == 1 {
		return fit[0]
	}
	return buildid.ID{}
}
