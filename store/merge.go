package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"symbolize/buildid"
	"symbolize/store/calltab"
	"symbolize/store/symtab"
	"symbolize/store/unwindtab"
)

// Bounds of one manifest. Of more, the smallest or best ones are kept, so that the choice does not
// depend on the order of contributions.
const (
	maxOtherLayouts = 8
	maxRefSyms      = 256
	maxVDSOs        = 16
	MaxSources      = 256
	maxProbable     = 16 // more than one already makes it uncertain
)

// MergeFacts joins the facts of two manifests of one object, without sources. It is
// commutative, associative and idempotent: each field is a union or a maximum.
func MergeFacts(a, b *Manifest) Manifest {
	m := Manifest{
		ID:        a.ID,
		Kind:      max(a.Kind, b.Kind),
		Machine:   max(a.Machine, b.Machine),
		Class:     max(a.Class, b.Class),
		BigEndian: a.BigEndian || b.BigEndian,
		Type:      max(a.Type, b.Type),
	}
	if b.ID.Compare(a.ID) < 0 {
		m.ID = b.ID // longer than a key and different beyond it: one object all the same
	}
	mergeLayouts(&m, a, b)
	m.RefSyms = union(a.RefSyms, b.RefSyms, maxRefSyms, func(x, y RefSymbol) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Addr, y.Addr))
	})
	m.VDSO = union(a.VDSO, b.VDSO, maxVDSOs, buildid.ID.Compare)
	m.Probable = union(a.Probable, b.Probable, maxProbable, buildid.ID.Compare)
	var more bool
	m.Variants, more = MergeVariants(a.Variants, b.Variants)
	m.MoreVariants = more || a.MoreVariants || b.MoreVariants
	return m
}

// union returns the sorted union of two lists, at most limit items of it.
func union[T any](a, b []T, limit int, compare func(x, y T) int) []T {
	u := slices.Concat(a, b)
	slices.SortFunc(u, compare)
	u = slices.CompactFunc(u, func(x, y T) bool { return compare(x, y) == 0 })
	return slices.Clip(u[:min(len(u), limit)])
}

// mergeLayouts chooses the layout with most entries, of equals the bytewise smallest, and keeps the
// others as evidence.
func mergeLayouts(m, a, b *Manifest) {
	var all [][]byte
	for _, x := range []*Manifest{a, b} {
		if e := encodeLayout(x.Layout, x.Sections); e != nil {
			all = append(all, e)
		}
		all = append(all, x.OtherLayouts...)
	}
	all = union(all, nil, maxOtherLayouts+1, compareLayouts)
	if len(all) == 0 {
		return
	}
	best := all[0]
	if len(all) > 1 {
		m.OtherLayouts = all[1:]
	}
	for _, x := range []*Manifest{a, b} {
		if bytes.Equal(encodeLayout(x.Layout, x.Sections), best) {
			m.Layout, m.Sections = slices.Clone(x.Layout), slices.Clone(x.Sections)
			return
		}
	}
	// The best one is the first of some OtherLayouts only if a manifest was put
	// together by hand; decode it rather than trust that.
	m.Layout, m.Sections, _ = decodeLayout(best)
}

// preferLayout makes the layout of one of the manifests that were merged into m its first layout.
func (m *Manifest) preferLayout(of *Manifest) {
	first := encodeLayout(of.Layout, of.Sections)
	if first == nil {
		return
	}
	all := append([][]byte{encodeLayout(m.Layout, m.Sections)}, m.OtherLayouts...)
	m.OtherLayouts = slices.DeleteFunc(all, func(e []byte) bool { return bytes.Equal(e, first) })
	if len(m.OtherLayouts) == 0 {
		m.OtherLayouts = nil
	}
	m.Layout, m.Sections = of.Layout, of.Sections
}

// compareLayouts orders encoded layouts, best first.
func compareLayouts(a, b []byte) int {
	return cmp.Or(cmp.Compare(layoutEntries(b), layoutEntries(a)), bytes.Compare(a, b))
}

// SourceChange is the change of the stored parts of one source of a contribution.
type SourceChange struct {
	Source     *NewSource
	Info       SourceInfo // as in the new manifest
	WriteTable bool
}

// MergeSources adds the sources of a contribution to those of a manifest, and returns the changes
// to be written for it, in the order of c.
func MergeSources(have []SourceInfo, c *Contribution) ([]SourceInfo, []SourceChange, error) {
	list := slices.Clone(have)
	var changes []SourceChange
	for i := range c.Sources {
		s := &c.Sources[i]
		info, err := s.Describe()
		if err != nil {
			return nil, nil, err
		}
		at := FindSource(list, &info)
		if at < 0 {
			list = append(list, info)
			changes = append(changes, SourceChange{s, info, true})
			continue
		}
		merged, table, raw := mergeInfo(list[at], info)
		if table || raw {
			changes = append(changes, SourceChange{s, merged, table})
		}
		list[at] = merged
	}
	if len(list) > MaxSources {
		return nil, nil, fmt.Errorf("object %s: %w: %d sources, at most %d", c.Manifest.ID,
			ErrTooLarge, len(list), MaxSources)
	}
	slices.SortFunc(list, CompareSources)
	return list, changes, nil
}

// MergeStored joins two whole manifests of one object, sources included. As MergeFacts it is
// commutative, associative and idempotent.
func MergeStored(a, b *Manifest) Manifest {
	m := MergeFacts(a, b)
	m.Sources = slices.Clone(a.Sources)
	for _, s := range b.Sources {
		if at := FindSource(m.Sources, &s); at >= 0 {
			m.Sources[at], _, _ = mergeInfo(m.Sources[at], s)
		} else {
			m.Sources = append(m.Sources, s)
		}
	}
	slices.SortFunc(m.Sources, CompareSources)
	m.Sources = m.Sources[:min(len(m.Sources), MaxSources)]
	return m
}

// Describe returns the info of a source as the manifest lists it.
func (s *NewSource) Describe() (SourceInfo, error) {
	info := s.Info
	if info.Kind == 0 || info.Kind >= endOfKinds {
		return info, fmt.Errorf("source of %s: unknown kind", info.Kind)
	}
	if len(info.Path) > MaxPath {
		return info, fmt.Errorf("path of a source: %w: %d bytes, at most %d", ErrTooLarge,
			len(info.Path), MaxPath)
	}
	if s.Table == nil {
		return info, fmt.Errorf("%s source %s: no table", info.Kind, info.Path)
	}
	info.Digest = s.Table.Digest
	newest := uint32(symtab.Version)
	switch info.Kind {
	case Unwind:
		newest = unwindtab.Version
	case Calls:
		newest = calltab.Version
	}
	if info.TableVersion == 0 { // else it is an imported table's
		info.TableVersion = cmp.Or(s.Table.Version, newest)
	}
	if info.TableVersion > newest {
		return info, fmt.Errorf("%s source %s: table version %d: %w", info.Kind, info.Path,
			info.TableVersion, ErrVersion)
	}
	info.Funcs, info.Named = uint32(s.Table.Funcs), s.Table.Named
	info.Size = s.Table.Size()
	info.Chunks, info.Strings = uint32(len(s.Table.Chunks)), uint32(len(s.Table.Strings))
	info.RawSize, info.RawDigest = uint64(len(s.Raw)), [32]byte{}
	if len(s.Raw) > 0 {
		info.RawDigest = sha256.Sum256(s.Raw)
	} else {
		info.RawPieces, info.RawStored, info.RawInput = 0, 0, [32]byte{}
	}
	return info, nil
}

// mergeInfo joins two infos of one source. table and raw report whether the table and the captured
// input of b replace a's.
func mergeInfo(a, b SourceInfo) (m SourceInfo, table, raw bool) {
	m = a
	m.Producer = max(a.Producer, b.Producer)
	// Both counted one table. Older programs counted ranges without a name too in a table that
	// came out of an archive.
	m.Named = min(a.Named, b.Named)
	if a.Path == "" || b.Path != "" && b.Path < a.Path {
		m.Path = b.Path
	}
	switch n := cmp.Or(cmp.Compare(b.TableVersion, a.TableVersion), cmp.Compare(a.Size, b.Size),
		cmp.Compare(a.Chunks, b.Chunks), cmp.Compare(a.Strings, b.Strings)); {
	case n > 0:
		m.TableVersion, m.Size, m.Chunks, m.Strings = b.TableVersion, b.Size, b.Chunks, b.Strings
		m.Input, table = b.Input, true
	case n == 0:
		m.Input = smallest(a.Input, b.Input)
	}
	switch n := cmp.Or(cmp.Compare(b.RawSize, a.RawSize),
		bytes.Compare(a.RawDigest[:], b.RawDigest[:])); {
	case n > 0:
		m.RawSize, m.RawDigest = b.RawSize, b.RawDigest
		m.RawPieces, m.RawStored, m.RawInput = b.RawPieces, b.RawStored, b.RawInput
		raw = true
	case n == 0 && a.RawInput != smallest(a.RawInput, b.RawInput):
		m.RawPieces, m.RawStored, m.RawInput = b.RawPieces, b.RawStored, b.RawInput
	}
	return m, table, raw
}

// smallest returns the smaller of two digests of equal content, or the one that is set.
func smallest(a, b [32]byte) [32]byte {
	if a == ([32]byte{}) || b != ([32]byte{}) && bytes.Compare(b[:], a[:]) < 0 {
		return b
	}
	return a
}
