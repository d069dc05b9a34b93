package resolve

import (
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/pprof"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// flagExec is PF_X of a program header's flags.
const flagExec = 1

// layout maps file offsets to ELF virtual addresses by a runtime file's PT_LOAD
// segments.
type layout struct{ segments []elf.Segment }

// newLayout prepares the segments of a manifest; nil if it has none.
func newLayout(segments []elf.Segment) *layout {
	if len(segments) == 0 {
		return nil
	}
	l := &layout{segments: slices.Clone(segments)}
	// Sampled addresses are code: where segments share bytes of the file, as data
	// after code on one page does, the executable one is meant.
	slices.SortStableFunc(l.segments, func(a, b elf.Segment) int {
		return int(b.Flags&flagExec) - int(a.Flags&flagExec)
	})
	return l
}

// addr gives the ELF virtual address of a file offset; false if no segment holds
// it.
func (l *layout) addr(off addr.Offset) (addr.Addr, bool) {
	for i := range l.segments {
		s := &l.segments[i]
		if off >= s.Offset && uint64(off-s.Offset) < s.FileSize {
			return s.Addr + addr.Addr(off-s.Offset), true
		}
	}
	return 0, false
}

// FileOffsets returns the way from file offsets to ELF virtual addresses by the
// segments of a runtime file; nil where there are none.
func FileOffsets(segments []elf.Segment) func(addr.Offset) (addr.Addr, bool) {
	l := newLayout(segments)
	if l == nil {
		return nil
	}
	return l.addr
}

// Layout gives the part of pprof.WriteOptions that the store knows: executable
// segments by object, and where a kernel's reference symbol lies. Objects that
// v does not know have none.
func Layout(v store.View, p *ingest.Profile) pprof.WriteOptions {
	manifests := make([]*store.Manifest, len(p.Objects))
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.ID.IsZero() || o.Kind.Collapsed() {
			continue
		}
		if found, err := v.Find(o.ID); err == nil && len(found) == 1 {
			manifests[i] = found[0]
		}
	}
	return pprof.WriteOptions{
		Layout: func(id ingest.ObjectID) []pprof.Segment {
			return executable(manifests[id])
		},
		RefShift: func(id ingest.ObjectID) (addr.Offset, bool) {
			if m := manifests[id]; m != nil {
				at, ok := m.RefSymbol(p.Objects[id].RefSymbol)
				return addr.Offset(at), ok
			}
			return 0, false
		},
	}
}

func executable(m *store.Manifest) []pprof.Segment {
	if m == nil {
		return nil
	}
	var segs []pprof.Segment
	if m.Kind == ingest.Module {
		for _, s := range m.Sections {
			if s.Addr >= elf.InitBase {
				continue // freed after the module's start, at a place that no capture tells
			}
			segs = append(segs, pprof.Segment{Offset: addr.Offset(s.Addr), Size: s.Size})
		}
		return segs
	}
	for _, s := range m.Layout {
		if s.Flags&flagExec != 0 {
			segs = append(segs, pprof.Segment{Offset: s.Offset, Size: s.MemSize})
		}
	}
	return segs
}
