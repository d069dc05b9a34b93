package indexer

import (
	"hash/fnv"

	"symbolize/store"
	"symbolize/store/symtab"
)

// demangler returns the demangler for a table's names: the names of debug information, and symbols
// that debug information lacks (it has most constructors under another name). Objects without lines
// need none: their names are not looked up by the hundred thousand.
func (s *sources) demangler(kind store.SourceKind) *symtab.Demangler {
	by := s.w.ix.opts.Demangler
	if by == nil {
		return nil
	}
	switch kind {
	case store.DWARF:
		return by
	case store.Symtab, store.Dynsym:
		if known := s.knownNames(); known != nil {
			return &symtab.Demangler{ID: by.ID, Name: func(name string) string {
				if known[hashOf(name)] {
					return name
				}
				return by.Name(name)
			}}
		}
	}
	return nil
}

// knownNames returns the hashes of the names in the object's table of debug information, nil
// without one. Of two names with one hash, one would be demangled when it is looked up.
func (s *sources) knownNames() map[uint64]bool {
	for i := range s.c.Sources {
		src := &s.c.Sources[i]
		if src.Info.Kind != store.DWARF {
			continue
		}
		t, err := symtab.Open(src.Table.Header, src.Table)
		if err != nil {
			s.fail(err)
			return nil
		}
		known := make(map[uint64]bool, t.NumNames())
		for n := range t.NumNames() {
			name, err := t.Name(symtab.NameID(n))
			if err != nil {
				s.fail(err)
				return nil
			}
			known[hashOf(name)] = true
		}
		return known
	}
	return nil
}

func hashOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
