package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
)

// StructDiff compares the layouts of a structure or union in two files. Its JSON names are an
// interface.
type StructDiff struct {
	Name    string       `json:"name"` // "struct task_struct"
	Base    StructLayout `json:"base"`
	New     StructLayout `json:"new"`
	Members []MemberDiff `json:"members"` // by offset in New; removed ones where they were in Base
	// Event and Samples are set by AddSamples: the event, and its samples in the structure.
	Event   string  `json:"event,omitempty"`
	Samples uint64  `json:"samples,omitempty"`
	Share   float64 `json:"samples_percent,omitempty"` // of all samples of the event
}

// StructLayout is the whole of a structure.
type StructLayout struct {
	File       string `json:"file"`
	Size       uint64 `json:"size"`       // bytes
	CacheLines uint64 `json:"cachelines"` // of 64 bytes
	Members    int    `json:"members"`    // also those of unnamed structures and unions in it
	Holes      int    `json:"holes"`
	HoleBytes  uint64 `json:"hole_bytes"`
}

// MemberDiff is a member in both structures, or in one.
type MemberDiff struct {
	Name   string        `json:"name"`
	Change string        `json:"change,omitempty"` // added, removed, moved, type; "" for none; several with ", "
	Base   *MemberLayout `json:"base,omitempty"`
	New    *MemberLayout `json:"new,omitempty"`
	// Samples and Share are those of accesses to it, see StructDiff.AddSamples.
	Samples uint64  `json:"samples,omitempty"`
	Share   float64 `json:"samples_percent,omitempty"`
}

// MemberSamples are samples of accesses to a member of a structure.
type MemberSamples struct {
	Name    string // with those around it, "b_stats.b_reads"
	Offset  int64  // bytes, in the structure
	Of      int64  // bytes of the structure: which of several builds it is
	Samples uint64
	Share   float64
}

// AddSamples adds the samples of an event to the members, by their names; those in a base class by their place.
func (d *StructDiff) AddSamples(event string, list []MemberSamples) {
	d.Event = event
	byName := make(map[string]*MemberDiff, len(d.Members))
	for i := range d.Members {
		byName[d.Members[i].Name] = &d.Members[i]
	}
	for i := range list {
		x := &list[i]
		outer, _, _ := strings.Cut(x.Name, ".")
		m := byName[outer]
		if m == nil {
			m = d.memberAt(x)
		}
		if m != nil {
			m.Samples, m.Share = m.Samples+x.Samples, m.Share+x.Share
		}
	}
}

// memberAt returns the member at the place of an access, nil if none of the two structures has its size.
func (d *StructDiff) memberAt(x *MemberSamples) *MemberDiff {
	for i := range d.Members {
		m := &d.Members[i]
		l := m.New
		if x.Of != int64(d.New.Size) {
			l = m.Base
		}
		if x.Of != int64(d.New.Size) && x.Of != int64(d.Base.Size) {
			return nil
		}
		if l != nil && x.Offset >= int64(l.Offset/8) && x.Offset < int64(l.Offset/8+l.Size) {
			return m
		}
	}
	return nil
}

// MemberLayout is a member in one of the structures.
type MemberLayout struct {
	Type    string `json:"type"`
	Offset  uint64 `json:"bit_offset"`
	Size    uint64 `json:"size"`               // bytes; 0 for one without
	BitSize uint8  `json:"bit_size,omitempty"` // of bit fields
}

// StructOf is the structure or union with a name, as "task_struct" or "struct task_struct", in the BTF
// of a file, which has several in captures: the first that has it counts.
type StructOf struct {
	File  string
	Types *btf.Types
	ID    btf.ID
}

// FindStruct finds a structure or union by name. A typedef's name is its structure's.
func FindStruct(path string, blobs []BTF, name string) (s StructOf, ok bool) {
	kinds := []btf.Kind{btf.KindStruct, btf.KindUnion, btf.KindTypedef}
	if rest, found := strings.CutPrefix(name, "struct "); found {
		kinds, name = kinds[:1], rest
	} else if rest, found := strings.CutPrefix(name, "union "); found {
		kinds, name = kinds[1:2], rest
	}
	for _, b := range blobs {
		for _, k := range kinds {
			id, ok := b.Types.ByName(k, name)
			if !ok {
				continue
			}
			id = b.Types.Strip(id)
			if k := b.Types.Kind(id); k == btf.KindStruct || k == btf.KindUnion {
				return StructOf{path, b.Types, id}, true
			}
		}
	}
	return StructOf{}, false
}

// DiffStructs compares two structures.
func DiffStructs(base, now StructOf) *StructDiff {
	d := &StructDiff{Name: texts.Printable(now.Types.TypeName(now.ID))}
	var old, cur []namedMember
	d.Base, old = layoutOf(base)
	d.New, cur = layoutOf(now)
	byName := make(map[string]int, len(old))
	for i, m := range old {
		byName[m.name] = i
	}
	used := make([]bool, len(old))
	for _, m := range cur {
		x := MemberDiff{Name: m.name, New: &m.MemberLayout, Change: "added"}
		if i, ok := byName[m.name]; ok && !used[i] {
			used[i] = true
			x.Base = &old[i].MemberLayout
			x.Change = changes(x.Base, x.New)
		}
		d.Members = append(d.Members, x)
	}
	for i := range old {
		if !used[i] {
			d.Members = append(d.Members, MemberDiff{Name: old[i].name, Change: "removed", Base: &old[i].MemberLayout})
		}
	}
	slices.SortStableFunc(d.Members, func(a, b MemberDiff) int { return cmp.Compare(a.place(), b.place()) })
	return d
}

// place is where a member is listed.
func (m *MemberDiff) place() uint64 {
	if m.New != nil {
		return m.New.Offset
	}
	return m.Base.Offset
}

// changes describes how a member of both differs.
func changes(a, b *MemberLayout) string {
	var list []string
	if a.Offset != b.Offset {
		list = append(list, "moved")
	}
	if a.Size != b.Size || a.BitSize != b.BitSize {
		list = append(list, "size")
	}
	if a.Type != b.Type {
		list = append(list, "type")
	}
	return strings.Join(list, ", ")
}

// namedMember is a member with its name, of unnamed structures behind a number: "#1.next".
type namedMember struct {
	name string
	MemberLayout
}

// Bounds of the members of a structure with those of unnamed ones in it.
const (
	maxFlat      = 1 << 16
	maxFlatDepth = 32
)

// layoutOf returns the whole and the members of a structure, by offset.
func layoutOf(s StructOf) (StructLayout, []namedMember) {
	size, _ := s.Types.Size(s.ID)
	l := StructLayout{File: s.File, Size: size, CacheLines: (size + 63) / 64}
	list := flatten(nil, s.Types, s.ID, 0, 0)
	slices.SortStableFunc(list, func(a, b namedMember) int { return cmp.Compare(a.Offset, b.Offset) })
	l.Members = len(list)
	end := uint64(0) // of what is occupied so far, bits
	for _, m := range list {
		if m.Offset > end {
			l.hole(m.Offset - end)
		}
		width := uint64(m.BitSize)
		if width == 0 {
			width = 8 * m.Size
		}
		end = max(end, m.Offset+width)
	}
	if s.Types.Kind(s.ID) == btf.KindStruct && 8*size > end {
		l.hole(8*size - end)
	}
	return l, list
}

// hole counts a hole of whole bytes.
func (l *StructLayout) hole(bits uint64) {
	if bits >= 8 {
		l.Holes, l.HoleBytes = l.Holes+1, l.HoleBytes+bits/8
	}
}

// flatten adds the members of a structure that begins at an offset. Those of unnamed structures and
// unions are its own, as in C.
func flatten(list []namedMember, t *btf.Types, id btf.ID, at uint64, depth int) []namedMember {
	unnamed := 0
	for _, m := range t.Members(id) {
		if len(list) >= maxFlat {
			break
		}
		off := at + uint64(m.BitOffset)
		name := m.Name
		if inner := t.Strip(m.Type); name == "" && depth < maxFlatDepth {
			if k := t.Kind(inner); (k == btf.KindStruct || k == btf.KindUnion) && t.Name(inner) == "" {
				list = flatten(list, t, inner, off, depth+1)
				continue
			}
		}
		if name == "" {
			unnamed++
			name = "#" + strconv.Itoa(unnamed)
			if base := t.Name(t.Strip(m.Type)); base != "" {
				name = base // a base class
			}
		}
		size, _ := t.Size(m.Type)
		list = append(list, namedMember{texts.Printable(name), MemberLayout{
			Type: texts.Printable(t.TypeName(m.Type)), Offset: off, Size: size, BitSize: m.BitSize}})
	}
	return list
}

// Changed counts the members that differ.
func (d *StructDiff) Changed() (n int) {
	for i := range d.Members {
		if d.Members[i].Change != "" {
			n++
		}
	}
	return n
}

// WriteText prints the layouts side by side: offsets and sizes in bytes, of bit fields byte:bit and
// bits.
func (d *StructDiff) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  base %s\n  new  %s\n\n", d.Name, texts.Printable(d.Base.File), texts.Printable(d.New.File))
	for _, row := range []struct {
		name      string
		base, now uint64
	}{{"size", d.Base.Size, d.New.Size}, {"cachelines", d.Base.CacheLines, d.New.CacheLines},
		{"members", uint64(d.Base.Members), uint64(d.New.Members)},
		{"holes", uint64(d.Base.Holes), uint64(d.New.Holes)}, {"bytes in holes", d.Base.HoleBytes, d.New.HoleBytes}} {
		change := ""
		if delta := int64(row.now - row.base); delta != 0 {
			change = fmt.Sprintf("  %+d", delta)
		}
		fmt.Fprintf(&b, "  %-14s %6d %6d%s\n", row.name, row.base, row.now, change)
	}
	if d.Event != "" {
		fmt.Fprintf(&b, "  %-14s %.2f%% of event %s\n", "samples", d.Share, texts.Printable(d.Event))
	}
	width := 0
	for i := range d.Members {
		width = max(width, utf8.RuneCountInString(d.Members[i].Change))
	}
	samples := func(text string) string {
		if d.Event == "" {
			return ""
		}
		return fmt.Sprintf("%8s", text)
	}
	fmt.Fprintf(&b, "\n%s  %8s %6s %8s %6s  %-*s  member\n", samples("samples"), "base", "size", "new", "size", width, "")
	for i := range d.Members {
		m := &d.Members[i]
		share := ""
		if m.Samples > 0 {
			share = fmt.Sprintf("%.2f%%", m.Share)
		}
		fmt.Fprintf(&b, "%s  %8s %6s %8s %6s  %-*s  %s\n", samples(share), m.Base.at(), m.Base.width(), m.New.at(),
			m.New.width(), width, m.Change, m.declared())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// at prints an offset.
func (m *MemberLayout) at() string {
	switch {
	case m == nil:
		return "–"
	case m.BitSize > 0:
		return fmt.Sprintf("%d:%d", m.Offset/8, m.Offset%8)
	}
	return strconv.FormatUint(m.Offset/8, 10)
}

// width prints a size.
func (m *MemberLayout) width() string {
	switch {
	case m == nil:
		return "–"
	case m.BitSize > 0:
		return fmt.Sprintf("%d bits", m.BitSize)
	}
	return strconv.FormatUint(m.Size, 10)
}

// declared prints type and name; both types where they differ.
func (m *MemberDiff) declared() string {
	switch {
	case m.New == nil:
		return m.Base.Type + " " + m.Name
	case m.Base == nil || m.Base.Type == m.New.Type:
		return m.New.Type + " " + m.Name
	}
	return m.Base.Type + " → " + m.New.Type + " " + m.Name
}
