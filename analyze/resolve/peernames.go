package resolve

import (
	"cmp"
	debugelf "debug/elf"
	"slices"

	"symbolize/ingest/elf"
)

// PeerSymbol is a symbol as llvm-symbolizer chooses it.
type PeerSymbol struct {
	Start, Size uint64
	Name        string
	File        string // of the STT_FILE symbol before a local one, "" for global ones
	section     int
}

// PeerSymbols chooses symbols as llvm-symbolizer does, for output that is to be
// equal to its own: of those at one address the last one by size, whatever its
// binding. The aliases that it shows are not in symbol tables of a store, which
// have those that perf shows.
type PeerSymbols struct {
	symbols  []PeerSymbol // by Start, one at each
	sections []elf.Section
}

// NewPeerSymbols reads the symbols of a file: .symtab, else .dynsym. What was read
// before an error counts.
func NewPeerSymbols(f *elf.File) (*PeerSymbols, error) {
	p := &PeerSymbols{sections: f.Sections}
	table := elf.Symtab
	if !f.HasSymbols(table) {
		table = elf.Dynsym
	}
	file := ""
	err := f.Entries(table, func(e elf.Entry) bool {
		if e.Type == debugelf.STT_FILE {
			file = e.Name
			return true
		}
		if e.Section <= 0 || !f.Sections[e.Section].IsCode() || !isPeerType(e.Type) {
			return true
		}
		s := PeerSymbol{Start: e.Value, Size: e.Size, Name: e.Name, section: e.Section}
		if e.Bind == debugelf.STB_LOCAL {
			s.File = file
		}
		p.symbols = append(p.symbols, s)
		return true
	})
	slices.SortStableFunc(p.symbols, func(a, b PeerSymbol) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Size, b.Size))
	})
	kept := p.symbols[:0]
	for i, s := range p.symbols {
		if i+1 == len(p.symbols) || p.symbols[i+1].Start != s.Start {
			kept = append(kept, s)
		}
	}
	p.symbols = kept
	return p, err
}

func isPeerType(t debugelf.SymType) bool {
	return t == debugelf.STT_NOTYPE || t == debugelf.STT_FUNC || t == debugelf.STT_OBJECT ||
		t == debugelf.STT_GNU_IFUNC
}

// Len returns how many symbols there are; numbers are below it.
func (p *PeerSymbols) Len() int { return len(p.symbols) }

// Symbol returns a symbol by its number.
func (p *PeerSymbols) Symbol(i int) *PeerSymbol { return &p.symbols[i] }

// Find returns the number of the symbol for an address of code, −1 if there is none. A symbol
// without a size reaches to the next one. Unlike llvm-symbolizer's it does not reach
// beyond its section: an address in no section has no name.
func (p *PeerSymbols) Find(a uint64) int {
	i, found := slices.BinarySearchFunc(p.symbols, a, func(s PeerSymbol, a uint64) int {
		return cmp.Compare(s.Start, a)
	})
	if !found {
		i--
	}
	if i < 0 {
		return -1
	}
	s := &p.symbols[i]
	sec := &p.sections[s.section]
	if s.Size != 0 && a-s.Start >= s.Size || a-uint64(sec.Addr) >= sec.Size {
		return -1
	}
	return i
}
