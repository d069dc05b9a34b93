package resolve

import (
	"cmp"
	stdelf "debug/elf"
	"errors"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// flagExec is PF_X of a program header's flags, flagWrite PF_W.
const (
	flagExec  = 1
	flagWrite = 2
)

// Addresses converts the Offsets of one object to addresses in its tables: the only place
// that has this rule.
type Addresses struct {
	segments []elf.Segment // PT_LOAD, of ELF files and vdsos, executable ones first; else empty
	shift    addr.Addr     // kernel: table address of the reference symbol
	// pieces are the recorded mappings of an object with mappings that fit no one layout.
	pieces []piece
	linked bool // Offsets are addresses of the ELF file
	// rivals are further layouts that all recorded mappings fit.
	rivals [][]elf.Segment
}

// piece is a recorded mapping and the layout that it fits; nil for none.
type piece struct {
	ingest.SegmentRef
	layout []elf.Segment
}

// NewAddresses returns the conversion for an object with the manifest m. An ELF file can have
// several layouts with one build ID: patchelf moves the segments of an executable. The recorded
// mappings of code (Object.Segments) show which one ran. Mappings that fit none have no addresses;
// without mappings, as in stack maps, the first layout is used. The reason is LayoutUnknown without
// segments, or without a kernel's reference symbol; otherwise ReasonNone.
func NewAddresses(o *ingest.Object, m *store.Manifest) (Addresses, ingest.Reason) {
	layouts := [][]elf.Segment{m.Layout}
	if o.Kind == ingest.ELF {
		layouts = append(layouts, m.OtherSegments()...)
	}
	return newAddresses(o, m, layouts)
}

// NewFileAddresses is NewAddresses for one runtime file of the object, with these PT_LOAD segments.
func NewFileAddresses(o *ingest.Object, m *store.Manifest, segments []elf.Segment) (
	Addresses, ingest.Reason) {
	return newAddresses(o, m, [][]elf.Segment{segments})
}

func newAddresses(o *ingest.Object, m *store.Manifest, layouts [][]elf.Segment) (
	Addresses, ingest.Reason) {
	switch o.Kind {
	case ingest.ELF, ingest.VDSO:
		if o.RefSymbol == ingest.LinkedAddresses {
			return Addresses{segments: codeFirst(layouts[0]), linked: true}, ingest.ReasonNone
		}
		if len(layouts[0]) == 0 {
			return Addresses{}, ingest.LayoutUnknown
		}
		a, page := Addresses{}, pageSize(o.Segments, m.Machine)
		for i := range layouts {
			layouts[i] = codeFirst(layouts[i])
			switch {
			case o.Kind == ingest.ELF && !fitsAll(o.Segments, layouts[i], page):
			case a.segments == nil:
				a.segments = layouts[i]
			default:
				a.rivals = append(a.rivals, layouts[i])
			}
		}
		if a.segments == nil {
			a.segments = layouts[0]
			a.pieces = piecesOf(o.Segments, layouts, page)
		}
		return a, ingest.ReasonNone
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

// codeFirst returns segments with the executable ones first. Sampled addresses are code: where
// segments share bytes of the file, as data after code on one page does, the executable one is
// meant.
func codeFirst(segments []elf.Segment) []elf.Segment {
	byUse := slices.Clone(segments)
	slices.SortStableFunc(byUse, func(a, b elf.Segment) int {
		return int(b.Flags&flagExec) - int(a.Flags&flagExec)
	})
	return byUse
}

// Fits reports whether all recorded mappings of an object fit one of several layouts of files for a
// machine.
func Fits(o *ingest.Object, machine uint16, layouts ...[]elf.Segment) bool {
	page := pageSize(o.Segments, machine)
	return slices.ContainsFunc(layouts, func(l []elf.Segment) bool { return fitsAll(o.Segments, l, page) })
}

// FitsExactly reports whether a layout is that of recorded mappings, where nothing else identifies the
// file: all fit it, and one is a whole executable segment.
func FitsExactly(mapped []ingest.SegmentRef, machine uint16, layout []elf.Segment) bool {
	page := pageSize(mapped, machine)
	return fitsAll(mapped, layout, page) && slices.ContainsFunc(mapped, func(s ingest.SegmentRef) bool {
		return slices.ContainsFunc(layout, func(x elf.Segment) bool {
			begin := uint64(x.Offset) &^ (page - 1)
			end := (uint64(x.Offset) + x.FileSize + page - 1) &^ (page - 1)
			return x.Flags&flagExec != 0 && uint64(s.Offset) == begin && uint64(s.Offset)+s.Len == end
		})
	})
}

func fitsAll(mapped []ingest.SegmentRef, layout []elf.Segment, page uint64) bool {
	return !slices.ContainsFunc(mapped, func(s ingest.SegmentRef) bool { return !fits(s, layout, page) })
}

// piecesOf returns each mapping with the first layout that it fits.
func piecesOf(mapped []ingest.SegmentRef, layouts [][]elf.Segment, page uint64) (list []piece) {
	for _, s := range mapped {
		p := piece{SegmentRef: s}
		at := slices.IndexFunc(layouts, func(l []elf.Segment) bool { return fits(s, l, page) })
		if at >= 0 {
			p.layout = layouts[at]
		}
		list = append(list, p)
	}
	return list
}

// Page sizes of kernels: mappings begin and end at their multiples.
const minPage, maxPage = 4 << 10, 64 << 10

// pageSize returns the page size of the kernel that recorded mappings: the largest possible one,
// where the machine, by its number in ELF files, has several.
func pageSize(mapped []ingest.SegmentRef, number uint16) uint64 {
	page := uint64(maxPage)
	if arch := machine.Of(stdelf.Machine(number)); arch != nil && arch.PageSize != 0 {
		return arch.PageSize
	}
	for _, s := range mapped {
		for page > minPage && (uint64(s.Offset)|s.Len)&(page-1) != 0 {
			page /= 2
		}
	}
	return page
}

// fits reports whether a mapping of code can be one of a file with a layout: it is inside of an
// executable segment, as a part of one is; or it begins with one, as the loader maps the whole file
// by its first segment, before it maps the others over it; or it includes one, as the mappings that
// other profilers join do.
func fits(s ingest.SegmentRef, layout []elf.Segment, page uint64) bool {
	from, to := uint64(s.Offset), uint64(s.Offset)+s.Len
	if to < from {
		return false
	}
	for i := range layout {
		x := &layout[i]
		if x.Flags&flagExec == 0 || x.FileSize == 0 {
			continue
		}
		begin := uint64(x.Offset) &^ (page - 1)
		end := (uint64(x.Offset) + x.FileSize + page - 1) &^ (page - 1)
		// A smaller page than the assumed one divides both.
		small := uint64(x.Offset) &^ (minPage - 1)
		if from >= begin && to <= end || from == begin || from == small ||
			from <= small && to >= uint64(x.Offset)+x.FileSize {
			return true
		}
	}
	return false
}

// Of returns the table address of an offset; false if it is in no segment. A kernel's may
// wrap: offsets of code before the reference symbol are negative.
func (a *Addresses) Of(off addr.Offset) (addr.Addr, bool) {
	if a.linked {
		return addr.Addr(off), len(a.segments) == 0 || inCode(a.segments, addr.Addr(off))
	}
	if len(a.pieces) == 0 {
		if at, ok := inSegments(a.segments, off); ok {
			return at, true
		}
		return addr.Addr(off) + a.shift, len(a.segments) == 0
	}
	var found addr.Addr
	known := false
	for i := range a.pieces {
		p := &a.pieces[i]
		if off < p.Offset || uint64(off-p.Offset) >= p.Len {
			continue
		}
		at, ok := inSegments(p.layout, off)
		if !ok || known && at != found {
			return 0, false
		}
		found, known = at, true
	}
	return found, known
}

// Data is Of for data: where segments share bytes of the file, one that is not executable is meant, and the memory
// behind the file's bytes of a segment belongs to it.
func (a *Addresses) Data(off addr.Offset) (addr.Addr, bool) {
	if a.linked || len(a.segments) == 0 {
		return a.Of(off)
	}
	for _, s := range slices.Backward(a.segments) {
		if off >= s.Offset && uint64(off-s.Offset) < s.FileSize {
			return s.Addr + addr.Addr(off-s.Offset), true
		}
	}
	for _, s := range slices.Backward(a.segments) {
		if s.Flags&flagWrite != 0 && off >= s.Offset && uint64(off-s.Offset) < s.MemSize {
			return s.Addr + addr.Addr(off-s.Offset), true
		}
	}
	return 0, false
}

// Offset is the inverse of Of for code of an object with mappings that fit one layout; false for
// others.
func (a *Addresses) Offset(at addr.Addr) (addr.Offset, bool) {
	if a.linked {
		return addr.Offset(at), true
	}
	if len(a.pieces) > 0 {
		return 0, false
	}
	for i := range a.segments {
		s := &a.segments[i]
		if at >= s.Addr && uint64(at-s.Addr) < s.FileSize {
			return s.Offset + addr.Offset(at-s.Addr), true
		}
	}
	return 0, false
}

// Reason returns why an offset has no table address.
func (a *Addresses) Reason() ingest.Reason {
	if len(a.pieces) > 0 {
		return ingest.OtherLayout
	}
	return ingest.OutsideObject
}

// inCode reports whether an address is in an executable segment.
func inCode(segments []elf.Segment, at addr.Addr) bool {
	return slices.ContainsFunc(segments, func(s elf.Segment) bool {
		return s.Flags&flagExec != 0 && at >= s.Addr && uint64(at-s.Addr) < s.MemSize
	})
}

func inSegments(segments []elf.Segment, off addr.Offset) (addr.Addr, bool) {
	for i := range segments {
		s := &segments[i]
		if off >= s.Offset && uint64(off-s.Offset) < s.FileSize {
			return s.Addr + addr.Addr(off-s.Offset), true
		}
	}
	return 0, false
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
			return executable(&p.Objects[id], manifests[id])
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

func executable(o *ingest.Object, m *store.Manifest) []pprof.Segment {
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
	a, _ := NewAddresses(o, m)
	if len(a.pieces) > 0 {
		return nil // the recorded mappings are written
	}
	for _, s := range slices.SortedFunc(slices.Values(a.segments), func(x, y elf.Segment) int {
		return cmp.Compare(x.Offset, y.Offset)
	}) {
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
		if text, ok := elf.TextSymbol(refs); ok {
			return text, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, texts.WithHint(errors.New("the store does not know where this kernel was linked to"),
		"name its vmlinux with -e, or look up --offsets from _text")
}
