package analyze

import (
	"context"
	"os"
	"path"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/store"
	"symbolize/store/indexer"
)

// FilesNamed returns the build IDs of the files that a name in text without build IDs may be
// of, sorted, each once: those of Options.With that are at this path or have its last element
// for a name. With Options.TrustPaths it is else the file that the store knows at an absolute
// path, or the one that is there now, which is indexed.
func (s *Session) FilesNamed(ctx context.Context, name string) ([]buildid.ID, error) {
	ids := s.overlay.Named(name)
	if len(ids) > 0 || !s.opts.TrustPaths || !path.IsAbs(name) {
		return ids, nil
	}
	if id := resolve.PathID(s.view, name); !id.IsZero() {
		return []buildid.ID{id}, nil
	}
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return nil, nil
	}
	sink := fileSink{Sink: s.overlay, file: path.Clean(name)}
	sum, err := indexer.Index(ctx, []string{name}, nil,
		func() (store.Sink, error) { return &sink, nil }, indexer.Options{
			Workers: s.opts.Workers, MaxMemory: s.opts.MaxMemory, NoUnwind: true})
	if err != nil {
		return nil, err
	}
	if sink.id.IsZero() { // what is there now is no object: nothing is lost
		for _, p := range sum.Problems {
			s.warnError(p, p.Hint, false)
		}
		return nil, nil
	}
	s.problems(sum.Problems)
	return []buildid.ID{sink.id}, nil
}

// fileSink keeps the build ID of one file, and no rows: they would take the place of those of
// other files in its directory.
type fileSink struct {
	store.Sink
	file string
	id   buildid.ID
}

// PutDir implements store.Sink.
func (f *fileSink) PutDir(dir string, rows store.DirRows) error {
	if row := rows.Find(path.Base(f.file)); row != nil && dir == path.Dir(f.file) {
		f.id = row.ID
	}
	return nil
}
