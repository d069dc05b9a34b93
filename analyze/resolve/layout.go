package resolve

import (
	"cmp"
	"errors"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/pprof"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// flagExec is PF_X of a program header's flags.
const flagExec = 1

// Addresses converts the Offsets of one object to addresses in its tables: the only place
// that has this rule.
type Addresses struct {
	segments []elf.Segment // PT_LOAD, of ELF files and vdsos, executable ones first; else empty
	shift    addr.Addr     // kernel: table address of the reference symbol
}

// NewAddresses returns the conversion for an object with the manifest m. For ELF files and vdsos,
// segments are the segments of a runtime file, or m.Layout without a file. The reason is
// LayoutUnknown without segments, or without a kernel's reference symbol; otherwise ReasonNone.
func NewAddresses(o *ingest.Object, m *store.Manifest, segments []elf.Segment) (
	Addresses, ingest.Reason) {
	switch o.Kind {
	case ingest.ELF, ingest.VDSO:
		if len(segments) == 0 {
			return Addresses{}, ingest.LayoutUnknown
		}
		// Sampled addresses are code: where segments share bytes of the file, as data after code on
		// one page does, the executable one is meant.
		byUse := slices.Clone(segments)
		slices.SortStableFunc(byUse, func(a, b elf.Segment) int {
			return int(b.Flags&flagExec) - int(a.Flags&flagExec)
		})
		return Addresses{segments: byUse}, ingest.ReasonNone
	case ingest.Kernel:
		name := cmp.Or(o.RefSymbol, "_text") // pprof files may lack it
		ref, ok := m.RefSymbol(name)
		if !ok {
			return Addresses{}, ingest.LayoutUnknown
		}
		return Addresses{shift: ref}, ingest.ReasonNone
	}
	return Addresses{}, ingest.ReasonNone
}

// Of returns the table address of an offset; false if it is in no segment. A kernel's may
// wrap: offsets of code before the reference symbol are negative.
func (a *Addresses) Of(off addr.Offset) (addr.Addr, bool) {
	for i := range a.segments {
		s := &a.segments[i]
		if off >= s.Offset && uint64(off-s.Offset) < s.FileSize {
			return s.Addr + addr.Addr(off-s.Offset), true
		}
	}
	return addr.Addr(off) + a.shift, len(a.segments) == 0
}

// Layout returns the part of pprof.WriteOptions that the store knows: executable segments by
// object, and the addresses of kernel reference symbols. Objects that v does not know are left out.
func Layout(v store.View, p *ingest.Profile) pprof.WriteOptions {
	manifests := make([]*store.Manifest, len(p.Objects))
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.ID.IsZero() || o.Kind.Collapsed() {
			continue
		}
		manifests[i], _, _ = store.FindOne(v, o.ID) // one that cannot be read has no layout
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
				continue // freed after the module's start, at a place that no capture has
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

// LinkedText returns the ELF virtual address of _text in a kernel's vmlinux: tables of kernels
// count from there. f may be nil; then and where f lacks the symbol there is an error.
func LinkedText(f *elf.File) (addr.Addr, error) {
	if f != nil {
		refs, err := f.RefSymbols()
		for _, r := range refs {
			if r.Name == "_text" {
				return r.Addr, nil
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, ingest.WithHint(errors.New("the store does not know where this kernel was linked to"),
		"name its vmlinux with -e, or look up --offsets from _text")
}
