package indexer

import (
	"time"

	"symbolize/buildid"
	"symbolize/store"
)

// fileKind is the type of a directory entry.
type fileKind uint8

const (
	kindOther fileKind = iota
	kindFile
	kindDir
	kindLink
	kindUnknown // the file system does not report it: stat will
)

// fileStat is the part of a file's stat that a path row keeps.
type fileStat struct {
	kind     fileKind
	dev, ino uint64
	size     uint64
	mtime    int64 // ns since 1970
	ctime    int64
}

func (s *fileStat) key() inodeKey { return inodeKey{s.dev, s.ino} }

// row returns a new row for the file, as a decoder of that revision reads it.
func (s *fileStat) row(name string, producer uint32) store.PathRow {
	return store.PathRow{
		Name: name, Dev: s.dev, Inode: s.ino, Size: s.size, MtimeNs: s.mtime, CtimeNs: s.ctime,
		Producer: producer,
	}
}

// matches reports whether a row was made of this very file, by a decoder of that
// revision or a newer one, with all that this run wants of it.
func (s *fileStat) matches(r *store.PathRow, producer uint32) bool {
	now := buildid.FileProof{Dev: s.dev, Inode: s.ino, Size: s.size,
		MtimeNs: s.mtime, CtimeNs: s.ctime}
	return r.Proof().Same(now) && r.Producer >= producer &&
		(r.Producer >= Producer || r.Producer == producer || producer == bareProducer)
}

// Bounds on the content of a row; the store refuses rows that have far more.
const (
	maxRowError  = 1 << 10 // bytes of a message
	maxRowLooked = 60      // places of debug files
)

// racy is how long after its last change a file may change again without any
// difference in its times: the clocks of file systems tick that slowly.
const racy = 20 * time.Millisecond

// dirEntry is one entry of a directory.
type dirEntry struct {
	name string
	kind fileKind
}
