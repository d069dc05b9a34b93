package indexer

import (
	"io"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// aliases enters the object of a runtime file under the other IDs that profiles have for the file:
// its htlhash, and the build ID of Go's linker. A file that became its stripped copy has another
// htlhash, and the object then has both.
func (ix *index) aliases(data io.ReaderAt, f *elf.File, m *store.Manifest) error {
	if !isRuntime(f) || m.Kind != ingest.ELF && m.Kind != ingest.VDSO || ix.opts.UnwindOnly {
		return nil
	}
	ids := []buildid.ID{buildid.FromGo(f.GoBuildID())}
	if id, err := buildid.HTLHash(data, f.Size()); err == nil { // else it changes, and is read again
		ids = append(ids, id)
	}
	for _, id := range ids {
		if id.IsZero() {
			continue
		}
		if err := ix.write(store.Alias(id, m.ID, m.Kind)); err != nil {
			return err
		}
	}
	return nil
}

// lacksAliases reports whether the aliases of a file's object are still to be made: an older program
// indexed it.
func lacksAliases(row *store.PathRow) bool {
	space := row.ID.Space()
	return !row.Aliased && row.Error == "" && !row.ID.IsZero() &&
		(space == buildid.GNU || space == buildid.Content)
}

// addAliases makes the aliases of an unchanged file, and renews its row.
func (w *fileReader) addAliases(ds *dirState, path string, row store.PathRow) {
	defer ds.release()
	done := false
	if f, err := files.Open(path); err == nil {
		defer f.Close()
		var reads files.Reads
		data := reads.Of(f)
		row.Aliased = true
		// What cannot be opened as ELF has none: a packed module, a list of symbols.
		if ef, err := elf.Open(path, data, int64(row.Size)); err == nil {
			m := store.Manifest{ID: row.ID, Kind: kindOfObject(path, ef)}
			row.Aliased = w.ix.aliases(data, ef, &m) == nil
		}
		row.Aliased = row.Aliased && reads.Err() == nil
		done = row.Aliased
	}
	ds.put(row, done)
}
