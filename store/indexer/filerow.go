package indexer

import (
	stdelf "debug/elf"
	"path/filepath"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// FileRow returns the path row of a file, with the ID under which Index files its object, or the
// zero ID if the file is not an object. It follows links and reads no symbols. With content, a
// program without build ID is read once, for the hash of its content; otherwise it has no ID.
// Producer is 0: nothing is indexed.
func FileRow(path string, content bool) (store.PathRow, error) {
	st, err := statFile(path)
	if err != nil {
		return store.PathRow{}, pathReason(err)
	}
	row := rowOf(&st, filepath.Base(path), 0)
	f, err := files.Open(path)
	if err != nil {
		return row, pathReason(err)
	}
	defer f.Close()
	row.Gen = generation(f)
	ef, err := elf.Open(path, f, int64(st.size))
	if err != nil {
		return row, err
	}
	if row.ID = ef.ID; !row.ID.IsZero() || !content || ef.Type == stdelf.ET_CORE {
		return row, nil // the hash of /proc/kcore would have no end
	}
	row.ID, err = (&fileTask{}).objectID(ef)
	return row, err
}

// rowOf returns a new row for the file, as a decoder of that revision reads it.
func rowOf(s *fileStat, name string, producer uint32) store.PathRow {
	return store.PathRow{
		Name: name, Dev: s.dev, Inode: s.ino, Size: s.size, MtimeNs: s.mtime, CtimeNs: s.ctime,
		Producer: producer,
	}
}

// matches reports whether a row was made of this very file, by a decoder of that
// revision or a newer one, with everything that this run needs.
func matches(s *fileStat, r *store.PathRow, producer uint32) bool {
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

// racy is how long after its last change a file may change again without any difference in its
// times: the clocks of file systems tick that slowly.
const racy = 20 * time.Millisecond
