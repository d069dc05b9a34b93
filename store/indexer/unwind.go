package indexer

import (
	"cmp"
	"slices"
	"sort"
	"strconv"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/ehframe"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/symtab"
)

// ehFrame adds the functions that only the unwind table knows, under names made of
// their addresses: the last resort for stripped programs.
func (s *sources) ehFrame(f *elf.File) {
	table, err := ehframe.Find(f)
	if err != nil {
		s.fail(&incompleteError{err.Error()})
	}
	if table == nil {
		return
	}
	covered, err := s.covered()
	if err != nil {
		s.fail(err)
		return
	}
	s.add(store.EhFrame, func(b *symtab.Builder) error {
		lost, err := table.Frames(func(r ehframe.Frame) bool {
			if !overlaps(covered, r.Range) && inCode(f, r.Range) {
				prefix := ingest.MadePrefix
				if r.Signal {
					prefix = ingest.SignalPrefix
				}
				b.Add(symtab.Func{
					Start: r.Start, Size: uint64(r.End - r.Start),
					Name: string(strconv.AppendUint([]byte(prefix), uint64(r.Start), 16)),
				})
			}
			return true
		})
		return lostEntries(lost, err)
	})
}

// covered lists the addresses that the tables so far have names for. Symbols without a
// size do not count: where they end is a guess.
func (s *sources) covered() ([]addr.Range, error) {
	all := s.passed
	for _, src := range s.c.Sources {
		table, err := symtab.Open(src.Table.Header, src.Table)
		if err != nil {
			return nil, err
		}
		for p, err := range table.Pieces() {
			if err != nil {
				return nil, err
			}
			if p.Func.Flags&symtab.Unsized == 0 {
				all = append(all, p.Range)
			}
		}
	}
	slices.SortFunc(all, func(a, b addr.Range) int { return cmp.Compare(a.Start, b.Start) })
	return united(all), nil
}

// united joins ranges, sorted by start, that touch or overlap.
func united(all []addr.Range) []addr.Range {
	out := all[:0]
	for _, r := range all {
		if n := len(out); n > 0 && r.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, r.End)
			continue
		}
		out = append(out, r)
	}
	return out
}

// overlaps reports whether r shares an address with one of sorted, disjoint ranges.
func overlaps(ranges []addr.Range, r addr.Range) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].End > r.Start })
	return i < len(ranges) && ranges[i].Start < r.End
}

// inCode reports whether a range is within a code section. In a file without section headers every
// range is.
func inCode(f *elf.File, r addr.Range) bool {
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.IsCode() && r.Start >= s.Addr && uint64(r.End-s.Addr) <= s.Size {
			return true
		}
	}
	return len(f.Sections) <= 1
}
