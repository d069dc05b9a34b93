package indexer

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/elf"
)

// moduleBase is added to the addresses of modules while their debug information is read:
// at address 0 an empty range would look like the end of its list (DWARF 4, 2.17.3).
const moduleBase addr.Addr = 1 << 20

// patchFunc is LoadOptions.Patch of debug information.
type patchFunc = func(dwarf.RawSection, []byte) error

// moduleText returns the ranges of a module's code when loaded, moved up by moduleBase, and how to
// relocate the debug sections to these addresses.
func moduleText(f *elf.File) (text []addr.Range, patch patchFunc, err error) {
	placed, err := f.ModuleLayout()
	if err != nil {
		return nil, nil, err
	}
	places := make(map[int]addr.Addr, len(placed))
	text = []addr.Range{} // not nil: no code is something else than unknown code
	for _, p := range placed {
		at := p.Addr + moduleBase
		places[p.Index] = at
		text = append(text, addr.Range{Start: at, End: at + addr.Addr(p.Size)})
	}
	rl, err := f.Relocator(func(section int) (addr.Addr, bool) {
		a, ok := places[section]
		return a, ok
	})
	if err != nil {
		return nil, nil, err
	}
	return text, func(s dwarf.RawSection, b []byte) error { return rl.Apply(s.Index, b) }, nil
}
