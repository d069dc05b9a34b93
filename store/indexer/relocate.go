package indexer

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/elf"
)

// moduleText tells where the code of a module lies when it is loaded, and how to
// change the debug sections so that their addresses are those.
func moduleText(f *elf.File) (text []addr.Range, patch func(string, []byte) error, err error) {
	placed, err := f.ModuleLayout()
	if err != nil {
		return nil, nil, err
	}
	places := make(map[int]addr.Addr, len(placed))
	text = []addr.Range{} // not nil: no code is something else than unknown code
	for _, p := range placed {
		places[p.Index] = p.Addr
		text = append(text, addr.Range{Start: p.Addr, End: p.Addr + addr.Addr(p.Size)})
	}
	rl, err := f.Relocator(func(section int) (addr.Addr, bool) {
		a, ok := places[section]
		return a, ok
	})
	if err != nil {
		return nil, nil, err
	}
	return text, rl.Patch, nil
}
