package resolve

import (
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
)

// findJIT finds the table of an object that the capture itself has the name of. It adds files and
// lines to the name, and nothing more: the name is the capture's.
//
// An object whose image was not captured is only known by name, tag and length. The lines of a
// function from another capture are used if it is the only one with these three: the same
// instructions may come from a changed source file, so the lines are probable, not certain.
func (j *join) findJIT(o *object, src *ingest.Object) {
	o.noImage = src.NoImage
	if src.Kind != ingest.JIT {
		return
	}
	if src.ID.Space() != buildid.JIT {
		j.declare(o, src, nil)
		return
	}
	m := j.findOne(o, src, src.ID)
	if m == nil {
		if len(o.warnings) == 0 {
			j.declare(o, src, nil)
		}
		return
	}
	if hasTable(m) {
		o.manifest = m
		o.noImage = src.NoImage && !slices.ContainsFunc(m.Variants, func(v store.Variant) bool {
			return !v.Image.IsZero()
		})
		if len(m.Probable) > 0 && !j.hasLines(m) {
			j.declare(o, src, m.Probable)
		}
		return
	}
	if len(m.Probable) == 1 {
		if m := j.findOne(o, src, m.Probable[0]); m != nil && hasTable(m) {
			o.manifest, o.probable = m, m.ID
			return
		}
	}
	j.declare(o, src, nil)
}

// findOne returns the manifest of an ID, nil if there is none.
func (j *join) findOne(o *object, src *ingest.Object, id buildid.ID) *store.Manifest {
	m, _, err := store.FindOne(j.view, id)
	if err != nil {
		o.warn("%s: build ID %s: %v", ingest.ShortName(src), id, err)
	}
	return m
}

// hasLines reports whether a table of a JITed function has lines. One that cannot be read
// is reported where it is used.
func (j *join) hasLines(m *store.Manifest) bool {
	for i := range m.Sources {
		if m.Sources[i].Kind != store.JIT {
			continue
		}
		t, err := j.view.Open(m, i)
		if err != nil {
			return true
		}
		if lined, _ := t.HasDebug(); lined > 0 {
			return true
		}
	}
	return false
}

func hasTable(m *store.Manifest) bool {
	return slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind == store.JIT
	})
}

// nameOne gives a location that the table has nothing for the name of its object.
func (w *worker) nameOne(j *join, s *shard, t todo) {
	j.depth[t.loc], j.first[t.loc] = 1, uint32(len(s.frames))
	j.symOff[t.loc] = uint64(t.addr)
	s.frames = append(s.frames, w.frame(&Frame{}, 0, false))
	if s.object.noImage {
		j.reasons[t.loc] = ingest.ImageNotCaptured
	}
}
