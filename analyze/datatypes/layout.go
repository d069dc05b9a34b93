package datatypes

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/analyze/annotate"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
)

// layoutKey identifies a type in a profile.
type layoutKey struct {
	object *Object
	id     btf.ID
}

// Layouts returns the types that samples of an event access, heaviest first, at most limit (0: all). With
// count shares are of samples, else of weights.
func (f *Finder) Layouts(p *ingest.Profile, event int, count bool, limit int) []annotate.TypeLayout {
	sums := make(map[ingest.LocationID][2]uint64)
	var total [2]uint64
	for i := range p.Samples {
		s := &p.Samples[i]
		if int(s.Event) != event {
			continue
		}
		total[0], total[1] = total[0]+s.Count, total[1]+s.Weight
		if s.Stack != 0 {
			x := sums[p.Leaves[s.Stack]]
			sums[p.Leaves[s.Stack]] = [2]uint64{x[0] + s.Count, x[1] + s.Weight}
		}
	}
	pages := make(map[layoutKey]*annotate.TypeLayout)
	var list []*annotate.TypeLayout
	f.EachLeaf(p, func(l ingest.LocationID, a *Access) {
		sum, ok := sums[l]
		if !ok || a.Object == nil || !isGroup(a.Object.Types.Kind(a.Object.Types.Strip(a.Access.Type))) {
			return
		}
		k := layoutKey{a.Object, a.Object.Types.Strip(a.Access.Type)}
		page := pages[k]
		if page == nil {
			page = newLayout(a, p.Objects[p.Locations[l].Object].File.Path)
			pages[k] = page
			list = append(list, page)
		}
		addSamples(page, a, sum)
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

// Load finds what the leaves of a profile's samples access, so that Texts of their functions reads no files again.
func (f *Finder) Load(p *ingest.Profile) { f.EachLeaf(p, func(ingest.LocationID, *Access) {}) }

// EachLeaf calls visit for the locations that are leaves of samples, in order, with what their instructions
// access.
func (f *Finder) EachLeaf(p *ingest.Profile, visit func(ingest.LocationID, *Access)) {
	f.use(p)
	leaf := make([]bool, len(p.Locations))
	for i := range p.Samples {
		if s := p.Samples[i].Stack; s != 0 {
			leaf[p.Leaves[s]] = true
		}
	}
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
			visit(ids[i], &a)
		}
	}
}

func isGroup(k btf.Kind) bool { return k == btf.KindStruct || k == btf.KindUnion }

func newLayout(a *Access, object string) *annotate.TypeLayout {
	size, _ := a.Object.Types.Size(a.Access.Type)
	l := &annotate.TypeLayout{Name: a.Type(), Object: texts.Printable(object), Size: int64(size)}
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

// addSamples adds samples to the members of an access.
func addSamples(l *annotate.TypeLayout, a *Access, sum [2]uint64) {
	l.Samples, l.Weight = l.Samples+sum[0], l.Weight+sum[1]
	for _, path := range a.Members() {
		name, _, _ := strings.Cut(texts.Printable(path), "[]")
		for i := range l.Members {
			if m := &l.Members[i]; m.Name == name {
				m.Samples, m.Weight = m.Samples+sum[0], m.Weight+sum[1]
			}
		}
	}
}
