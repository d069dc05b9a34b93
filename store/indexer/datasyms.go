package indexer

import (
	"cmp"
	stdelf "debug/elf"
	"slices"
	"sort"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
)

// DataSymbols are the symbols of data of a file.
type DataSymbols struct {
	list []dataSymbol // by address, each with another one
}

type dataSymbol struct {
	name string
	at   addr.Addr // of tables
	size uint64
	// Of several at an address the first by these counts.
	bind stdelf.SymBind
}

// FileDataSymbols reads the symbols of data in the symbol table of a file, of one without it those for the dynamic
// linker. Files of relocations have none: their symbols have no addresses.
func FileDataSymbols(path string) (*DataSymbols, error) {
	data, f, err := openELF(path)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	base, err := tableBase(f)
	if err != nil || f.Type == stdelf.ET_REL {
		return &DataSymbols{}, err
	}
	d := &DataSymbols{}
	for _, table := range []elf.Table{elf.Symtab, elf.Dynsym} {
		err := f.Entries(table, func(e elf.Entry) bool {
			at := addr.Addr(e.Value)
			if e.Type == stdelf.STT_OBJECT && e.Name != "" && e.Section > 0 && e.Size > 0 && at >= base {
				name, _, _ := strings.Cut(e.Name, "@")
				d.list = append(d.list, dataSymbol{name, at - base, e.Size, e.Bind})
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		if len(d.list) > 0 {
			break
		}
	}
	d.sort()
	return d, nil
}

// sort sorts the symbols. Of several at an address one that other files see counts, then one that is not weak.
func (d *DataSymbols) sort() {
	rank := func(b stdelf.SymBind) int {
		return slices.Index([]stdelf.SymBind{stdelf.STB_GLOBAL, stdelf.STB_WEAK, stdelf.STB_LOCAL}, b)
	}
	slices.SortFunc(d.list, func(a, b dataSymbol) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(rank(a.bind), rank(b.bind)), cmp.Compare(b.size, a.size),
			cmp.Compare(a.name, b.name))
	})
	d.list = slices.CompactFunc(d.list, func(a, b dataSymbol) bool { return a.at == b.at })
}

// At returns the symbol that has an address, and the distance from its start.
func (d *DataSymbols) At(a addr.Addr) (name string, distance uint64, ok bool) {
	i := sort.Search(len(d.list), func(i int) bool { return d.list[i].at > a }) - 1
	if i < 0 || uint64(a-d.list[i].at) >= d.list[i].size {
		return "", 0, false
	}
	return d.list[i].name, uint64(a - d.list[i].at), true
}
