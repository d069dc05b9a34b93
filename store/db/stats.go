package db

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"

	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/store"
)

// Stats counts the contents of a store.
type Stats struct {
	Objects   int
	Kinds     map[ingest.ObjectKind]int // objects by kind
	Sources   map[store.SourceKind]SourceStats
	Quality   map[store.SourceKind]int // objects by their best source; 0 for none
	NoLayout  int                      // objects with debug files only
	Dirs      int
	PathRows  int
	Damaged   int // manifests and directories that cannot be read
	Size      int64
	RawStored int64
	Variants  int   // loads of JITed functions
	Blobs     int   // captured inputs that several variants may share
	BlobBytes int64 // bytes stored of those

	Generations []uint64 // newest first
	Disk        int64    // bytes of the whole directory, shared files once
}

// SourceStats sums up the sources of one kind.
type SourceStats struct {
	Count int
	Funcs uint64
	Named uint64 // bytes of code
	Size  int64  // bytes stored
}

// Stats counts the contents. It reads manifests and path rows, no tables.
func (d *database) Stats(ctx context.Context) (*Stats, error) {
	s := &Stats{
		Kinds:   make(map[ingest.ObjectKind]int),
		Sources: make(map[store.SourceKind]SourceStats),
		Quality: make(map[store.SourceKind]int),
	}
	for m, err := range d.Objects() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, store.ErrDamaged) {
			s.Damaged++
			continue
		}
		if err != nil {
			return nil, err
		}
		if !m.IsAlias() {
			s.object(m)
		}
	}
	for dir, err := range d.Dirs() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, store.ErrDamaged) {
			s.Damaged++
			continue
		}
		if err != nil {
			return nil, err
		}
		s.Dirs++
		s.PathRows += len(dir.Rows)
	}
	var err error
	for e, err := range d.scan(prefixBlob) {
		if err != nil {
			return nil, err
		}
		_, size, err := parseBlobRecord(e.payload)
		if err == nil {
			s.Blobs++
			s.BlobBytes += size
		}
	}
	if s.Generations, err = generations(d.path); err != nil {
		return nil, err
	}
	s.Disk, err = DiskUse(d.path)
	return s, err
}

func (s *Stats) object(m *store.Manifest) {
	s.Objects++
	s.Kinds[m.Kind]++
	s.Quality[m.Quality()]++
	s.Variants += len(m.Variants)
	if len(m.Layout)+len(m.Sections) == 0 && (m.Kind == ingest.ELF || m.Kind == ingest.VDSO) {
		s.NoLayout++
	}
	for i := range m.Sources {
		s.addSource(&m.Sources[i])
	}
}

func (s *Stats) addSource(src *store.SourceInfo) {
	k := s.Sources[src.Kind]
	k.Count++
	k.Funcs += uint64(src.Funcs)
	k.Named += min(src.Named, math.MaxUint64-k.Named) // a file's ranges may be of any size
	k.Size += src.Size
	s.Sources[src.Kind] = k
	s.Size += src.Size
	s.RawStored += int64(src.RawStored)
}

// DiskUse returns the bytes that the files below a directory use on disk, as du counts them:
// allocated blocks, each file once.
func DiskUse(dir string) (int64, error) { return diskUse(dir, make(map[files.ID]bool)) }

// diskUse is DiskUse without the files in seen, to which it adds those with several names.
func diskUse(path string, seen map[files.ID]bool) (n int64, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, skipMissing(err) // a generation that was removed meanwhile
	}
	size, id := files.Blocks(info)
	if !seen[id] {
		n = size
	}
	if files.HasNames(info) {
		seen[id] = true
	}
	if !info.IsDir() {
		return n, nil
	}
	return n, eachName(path, func(name string) error {
		below, err := diskUse(filepath.Join(path, name), seen)
		n += below
		return err
	})
}
