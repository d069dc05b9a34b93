package datatypes

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/analyze/annotate"
	"symbolize/analyze/memory"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
)

// layoutKey identifies a type in a profile: an object can have several tables.
type layoutKey struct {
	object ingest.ObjectID
	name   string
	size   int64
}

// Layouts returns the types that samples of an event access, heaviest first, at most limit (0: all). With
// count shares are of samples, else of weights.
func (f *Finder) Layouts(p *ingest.Profile, event int, count bool, limit int) []annotate.TypeLayout {
	var total [2]uint64
	pages := make(map[layoutKey]*annotate.TypeLayout)
	var list []*annotate.TypeLayout
	f.EachSample(p, func(s *ingest.Sample, a *Access) {
		if int(s.Event) != event {
			return
		}
		total[0], total[1] = total[0]+s.Count, total[1]+s.Weight
		if a.Object == nil || !isGroup(a.Object.Types.Kind(a.Object.Types.Strip(a.Access.Type))) {
			return
		}
		k := layoutKey{p.Locations[p.Leaves[s.Stack]].Object, a.name() + a.mark(), a.typeSize()}
		page := pages[k]
		if page == nil {
			page = newLayout(a, p.Objects[k.object].File.Path)
			pages[k] = page
			list = append(list, page)
		}
		addSamples(page, a, p, s)
	})
	of := 1
	if count {
		of = 0
	}
	out := make([]annotate.TypeLayout, 0, len(list))
	for _, page := range list {
		page.SetShares(total[of], of)
		out = append(out, *page)
	}
	slices.SortStableFunc(out, func(a, b annotate.TypeLayout) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Object, b.Object))
	})
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	return out
}

// leaves returns what the instructions of the locations access that are leaves of samples.
func (f *Finder) leaves(p *ingest.Profile) map[ingest.LocationID]Access {
	f.use(p)
	leaf := make([]bool, len(p.Locations))
	for i := range p.Samples {
		if s := p.Samples[i].Stack; s != 0 {
			leaf[p.Leaves[s]] = true
		}
	}
	list := make(map[ingest.LocationID]Access)
	for from := 0; from < len(p.Locations); {
		object := p.Locations[from].Object
		var ids []ingest.LocationID
		var offsets []addr.Offset
		for ; from < len(p.Locations) && p.Locations[from].Object == object; from++ {
			if leaf[from] {
				ids = append(ids, ingest.LocationID(from))
				offsets = append(offsets, p.Locations[from].Offset)
			}
		}
		for i, a := range f.Find(&p.Objects[object], offsets) {
			list[ids[i]] = a
		}
	}
	return list
}

// typeSize returns the bytes of a known type.
func (a *Access) typeSize() int64 {
	size, _ := a.Object.Types.Size(a.Access.Type)
	return int64(size)
}

func isGroup(k btf.Kind) bool { return k == btf.KindStruct || k == btf.KindUnion }

func newLayout(a *Access, object string) *annotate.TypeLayout {
	l := &annotate.TypeLayout{Name: a.Type(), Object: texts.Printable(object), Size: a.typeSize()}
	w := layoutWriter{types: a.Object.Types, out: l}
	w.members(a.Object.Types.Strip(a.Access.Type), 0, "", 0)
	addHoles(l)
	return l
}

// Bounds of a layout.
const (
	maxMembers = 1 << 12
	maxNesting = 8
)

// layoutWriter lists the members of a type.
type layoutWriter struct {
	types *btf.Types
	out   *annotate.TypeLayout
}

// members adds the members of a structure at an offset; those of structures within take their places.
func (w *layoutWriter) members(id btf.ID, at int64, outer string, depth int) {
	for _, m := range w.types.Members(id) {
		if len(w.out.Members) >= maxMembers {
			return
		}
		off := at + int64(m.BitOffset/8)
		name := outer
		if m.Name != "" {
			name = strings.TrimPrefix(outer+"."+m.Name, ".")
		}
		own := w.types.Strip(m.Type)
		if m.BitSize == 0 && isGroup(w.types.Kind(own)) && depth < maxNesting {
			w.members(own, off, name, depth+1)
			continue
		}
		size, _ := w.types.Size(m.Type)
		x := annotate.TypeMember{Name: texts.Printable(name), Type: texts.Printable(w.types.TypeName(m.Type)), Offset: off,
			Size: int64(size), Bits: int(m.BitSize)}
		if m.BitSize > 0 {
			x.Size = (int64(m.BitOffset%8) + int64(m.BitSize) + 7) / 8
		}
		w.out.Members = append(w.out.Members, x)
	}
}

// addHoles adds the holes between members, and at the end.
func addHoles(l *annotate.TypeLayout) {
	slices.SortStableFunc(l.Members, func(a, b annotate.TypeMember) int { return cmp.Compare(a.Offset, b.Offset) })
	var list []annotate.TypeMember
	end := int64(0)
	for _, m := range l.Members {
		if m.Offset > end {
			list = append(list, annotate.TypeMember{Offset: end, Size: m.Offset - end})
		}
		list = append(list, m)
		end = max(end, m.Offset+m.Size)
	}
	if end < l.Size {
		list = append(list, annotate.TypeMember{Offset: end, Size: l.Size - end})
	}
	l.Members = list
}

// addAccess adds what was recorded of an access; nil for nothing.
func addAccess(m *memory.Sums, p *ingest.Profile, s *ingest.Sample) *memory.Sums {
	if m == nil {
		m = new(memory.Sums)
	}
	if m.Add(p, s); m.Empty() {
		return nil
	}
	return m
}

// addSamples adds samples to the members of an access.
func addSamples(l *annotate.TypeLayout, a *Access, p *ingest.Profile, s *ingest.Sample) {
	l.Samples, l.Weight = l.Samples+s.Count, l.Weight+s.Weight
	l.Memory = addAccess(l.Memory, p, s)
	for _, path := range a.Members() {
		name, _, _ := strings.Cut(texts.Printable(path), "[]")
		for i := range l.Members {
			if m := &l.Members[i]; m.Name == name {
				m.Samples, m.Weight = m.Samples+s.Count, m.Weight+s.Weight
				m.Memory = addAccess(m.Memory, p, s)
			}
		}
	}
}
