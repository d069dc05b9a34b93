package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"symbolize/buildid"
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

// MergeStored joins two whole manifests of one object, sources included. As MergeFacts it is
// commutative, associative and idempotent. Sources beyond MaxSources are left out.
func MergeStored(a, b *Manifest) Manifest {
	m := MergeFacts(a, b)
	m.Sources = slices.Clone(a.Sources)
	for _, s := range b.Sources {
		if at := FindSource(m.Sources, &s); at >= 0 {
			m.Sources[at] = mergeInfo(m.Sources[at], s)
		} else {
			m.Sources = append(m.Sources, s)
		}
	}
	slices.SortFunc(m.Sources, CompareSources)
	m.Sources = m.Sources[:min(len(m.Sources), MaxSources)]
	return m
}

// CheckSources refuses sources that an object has no more place for: MergeStored would leave some out.
func CheckSources(old, m *Manifest) error {
	n := len(old.Sources)
	for i := range m.Sources {
		if FindSource(old.Sources, &m.Sources[i]) < 0 {
			n++
		}
	}
	if n > MaxSources {
		return fmt.Errorf("%w: %d sources, at most %d", ErrTooLarge, n, MaxSources)
	}
	return nil
}

// Describe returns the info of a source as the manifest lists it.
func (s *NewSource) Describe() (SourceInfo, error) {
	info := s.Info
	if s.Table == nil {
		return info, fmt.Errorf("%s source %s: no table", info.Kind, info.Path)
	}
	info.Digest = s.Table.Digest
	if info.TableVersion == 0 { // else it is a table of before
		info.TableVersion = cmp.Or(s.Table.Version, tableVersions[info.Kind.Format()].newest)
	}
	if err := info.Check(); err != nil {
		return info, err
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

// Check refuses a source of an unknown kind, of a table of a newer version (ErrVersion), and with a
// path that is too long.
func (info *SourceInfo) Check() error {
	switch {
	case info.Kind == 0 || info.Kind >= endOfKinds:
		return fmt.Errorf("source of %s: unknown kind", info.Kind)
	case len(info.Path) > MaxPath:
		return fmt.Errorf("path of a source: %w: %d bytes, at most %d", ErrTooLarge, len(info.Path), MaxPath)
	case info.TableVersion > tableVersions[info.Kind.Format()].newest:
		return fmt.Errorf("%s source %s: table version %d: %w", info.Kind, info.Path, info.TableVersion,
			ErrVersion)
	}
	return nil
}

// Outdated reports whether this program no longer reads the version of the table: its file has to be
// indexed again.
func (info *SourceInfo) Outdated() bool {
	return info.TableVersion < tableVersions[info.Kind.Format()].oldest
}

// Describe returns the manifest of a contribution with its sources.
func (c *Contribution) Describe() (*Manifest, error) {
	m := c.Manifest
	for i := range c.Sources {
		info, err := c.Sources[i].Describe()
		if err != nil {
			return nil, err
		}
		m.Sources = append(m.Sources, info)
	}
	return &m, nil
}

// mergeInfo joins two infos of one source.
func mergeInfo(a, b SourceInfo) SourceInfo {
	m := a
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
		m.Input = b.Input
	case n == 0:
		m.Input = smallest(a.Input, b.Input)
	}
	switch n := cmp.Or(cmp.Compare(b.RawSize, a.RawSize),
		bytes.Compare(a.RawDigest[:], b.RawDigest[:])); {
	case n > 0:
		m.RawSize, m.RawDigest = b.RawSize, b.RawDigest
		m.RawPieces, m.RawStored, m.RawInput = b.RawPieces, b.RawStored, b.RawInput
	case n == 0 && a.RawInput != smallest(a.RawInput, b.RawInput):
		m.RawPieces, m.RawStored, m.RawInput = b.RawPieces, b.RawStored, b.RawInput
	}
	return m
}

// smallest returns the smaller of two digests of equal content, or the one that is set.
func smallest(a, b [32]byte) [32]byte {
	if a == ([32]byte{}) || b != ([32]byte{}) && bytes.Compare(b[:], a[:]) < 0 {
		return b
	}
	return a
}
