package indexer

import (
	stdelf "debug/elf"
	"path/filepath"

	"symbolize/ingest/object/elf"
	"symbolize/ingest/regular"
	"symbolize/store"
)

// FileRow returns the path row of a file, with the ID under which Index files its object, or the
// zero ID if it is none. It follows links and reads no symbols. With content a program without
// build ID is read once, for the hash of its content; else it has no ID. Producer is 0: nothing is
// indexed.
func FileRow(path string, content bool) (store.PathRow, error) {
	st, err := statFile(path)
	if err != nil {
		return store.PathRow{}, pathReason(err)
	}
	row := st.row(filepath.Base(path), 0)
	f, err := regular.Open(path)
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
