package analyze

import (
	"context"

	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/indexer"
)

// addRecordedSymbols adds the names of functions that simpleperf wrote into a recording, for
// files that neither the store nor this host has. Recordings only have the path of such a file:
// names are used where one object of the recording has the path. Functions of the kernel are named
// when the records are read (ingest/sideband/listedfiles.go).
func (s *Session) addRecordedSymbols(ctx context.Context, c *input.Capture, p *ingest.Profile) error {
	files, err := c.FileSymbols()
	if err != nil {
		s.warnError(err, "", true)
	}
	if len(files) == 0 {
		return nil
	}
	objects := make(map[string][]*ingest.Object)
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Kind == ingest.ELF && !o.Undecided {
			objects[o.File.Path] = append(objects[o.File.Path], o)
		}
	}
	for i := range files {
		f := &files[i]
		list := objects[f.Path]
		if len(list) != 1 || list[0].ID.IsZero() || list[0].File.Deleted {
			continue
		}
		m, why, err := store.FindCode(s.view, list[0].ID)
		if err != nil || m != nil || why != ingest.NotIndexed {
			continue // the join reports it
		}
		ids := list[0].ID.AsExact() // the last one has least zeros
		if err := indexer.AddFileSymbols(ctx, s.overlay, ids[len(ids)-1], c.Path(), f, list[0].Segments); err != nil {
			return err
		}
	}
	return nil
}
