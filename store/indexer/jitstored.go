package indexer

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/object/perfmap"
	"symbolize/store"
	"symbolize/store/symtab"
)

// StoredJITFile returns the perf map or jitdump file that an object was made of. Of several
// readings of a file that grew it has the longest. The file is read as it is needed.
func StoredJITFile(m *store.Manifest, blob func(store.BlobID) ([]byte, error)) (*JITFile, error) {
	s := &jitPieces{blob: blob, at: -1}
	f := &JITFile{R: s}
	pieces := slices.Clone(m.Variants)
	slices.SortFunc(pieces, func(a, b store.Variant) int {
		return cmp.Or(cmp.Compare(a.Func, b.Func), cmp.Compare(b.Size, a.Size), store.CompareVariants(a, b))
	})
	for i := range pieces {
		v := &pieces[i]
		f.Written = max(f.Written, int64(v.Load))
		switch at := int64(v.Func) * jitUnit; {
		case at < f.Size: // a shorter reading of the piece before
		case at > f.Size:
			return nil, fmt.Errorf("object %s: %w: bytes from %#x on", m.ID, store.ErrNotFound, f.Size)
		default:
			s.pieces = append(s.pieces, *v)
			f.Size += int64(v.Size)
		}
	}
	if len(pieces) > 0 {
		f.PID, f.Host = int32(pieces[0].Program), pieces[0].BootID
	}
	if len(m.Sources) > 0 {
		f.Path = m.Sources[0].Path
	}
	return f, nil
}

// jitPieces reads a kept file. It holds one piece at a time.
type jitPieces struct {
	blob   func(store.BlobID) ([]byte, error)
	pieces []store.Variant // one after another, all but the last of the same size

	mu   sync.Mutex
	at   int // piece that is held, -1 for none
	held []byte
}

// ReadAt implements io.ReaderAt.
func (s *jitPieces) ReadAt(b []byte, off int64) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(b) {
		i := int((off + int64(n)) / jitPiece)
		if i >= len(s.pieces) {
			return n, io.EOF
		}
		if i != s.at {
			if s.held, err = s.blob(s.pieces[i].Entry); err != nil {
				return n, err
			}
			s.at = i
		}
		rest := off + int64(n) - int64(i)*jitPiece
		if rest >= int64(len(s.held)) {
			return n, io.EOF
		}
		n += copy(b[n:], s.held[rest:])
	}
	return n, nil
}

// RebuildJITFile makes the table of a kept perf map or jitdump file anew, for
// db.RebuildOptions.
func RebuildJITFile(m *store.Manifest, blob func(store.BlobID) ([]byte, error)) (
	*symtab.Encoded, error) {
	f, err := StoredJITFile(m, blob)
	if err != nil {
		return nil, err
	}
	if m.Kind == ingest.JITDump {
		d, err := jitdump.Open(f.Path, f.R, f.Size)
		if d == nil {
			return nil, err
		}
		table, _, _, err := jitDumpTable(d) // damaged parts were left out before, too
		return table, err
	}
	p, err := perfmap.Read(f.Path, io.NewSectionReader(f.R, 0, f.Size))
	if err != nil && len(p.Symbols) == 0 {
		return nil, err
	}
	return perfMapTable(p)
}
