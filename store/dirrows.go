package store

import (
	"cmp"
	"slices"

	"symbolize/buildid"
)

// PathRow is the state of one file at the last index run: as long as it stays the same, the file
// needs no more than a stat.
type PathRow struct {
	Name     string // in its directory
	Dev      uint64
	Inode    uint64
	Gen      uint64 // inode generation; 0 where the file system has none
	Size     uint64 // bytes
	MtimeNs  int64  // ns since 1970
	CtimeNs  int64
	Producer uint32     // revision of the decoders that read it
	ID       buildid.ID // zero: no object
	// Looked are the places where a debug file was looked for and not found; a file
	// that has come there since makes the row stale.
	Looked []string
	Error  string // why a file that looked like an object is none, or was not read whole
}

// DirRows are the path rows of one directory, sorted by Name, without duplicates.
type DirRows []PathRow

// Sort puts the rows into order; of rows with one name the first stays.
func (d DirRows) Sort() DirRows {
	slices.SortStableFunc(d, func(a, b PathRow) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(d, func(a, b PathRow) bool { return a.Name == b.Name })
}

// Find returns the row of a name, or nil. The rows must be sorted.
func (d DirRows) Find(name string) *PathRow {
	i, ok := slices.BinarySearchFunc(d, name, func(r PathRow, n string) int {
		return cmp.Compare(r.Name, n)
	})
	if !ok {
		return nil
	}
	return &d[i]
}

// Proof returns the identity of the file when the row was made.
func (r *PathRow) Proof() buildid.FileProof {
	return buildid.FileProof{Dev: r.Dev, Inode: r.Inode, Gen: r.Gen, Size: r.Size,
		MtimeNs: r.MtimeNs, CtimeNs: r.CtimeNs}
}
