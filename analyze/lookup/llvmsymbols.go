package lookup

import (
	"cmp"
	debugelf "debug/elf"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
)

// llvmSymbol is a symbol that llvm-symbolizer prints.
type llvmSymbol struct {
	Start, Size uint64
	Name        string
	File        string // of the STT_FILE symbol before a local one, "" for global ones
	section     int
}

// llvmSymbols chooses symbols as llvm-symbolizer does, for output equal to its own: of those
// at one address the last one by size, whatever its binding. The store's symbol tables lack
// these aliases: they have the aliases that perf prints. Two kinds of label that it prints name no code:
// mapping symbols of RISC-V, and data without a size.
type llvmSymbols struct {
	symbols  []llvmSymbol // by number: in the order of Start, one at each
	sections []elf.Section
}

// readLLVMSymbols reads the symbols of a file: .symtab, else .dynsym. The symbols before an
// error are returned with it.
func readLLVMSymbols(f *elf.File) (*llvmSymbols, error) {
	p := &llvmSymbols{sections: f.Sections}
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
		s := llvmSymbol{Start: e.Value, Size: e.Size, Name: e.Name, section: e.Section}
		if e.CodeSection > 0 {
			s.Start, s.section = uint64(e.Code), e.CodeSection
		}
		if s.section <= 0 || !f.Sections[s.section].IsCode() || !isLLVMType(e.Type) ||
			elf.IsMappingSymbol(f.Machine, e.Name) ||
			e.Type == debugelf.STT_OBJECT && e.Size == 0 { // as _PROCEDURE_LINKAGE_TABLE_
			return true
		}
		if e.Bind == debugelf.STB_LOCAL {
			s.File = file
		}
		p.symbols = append(p.symbols, s)
		return true
	})
	p.symbols = lastOfEach(p.symbols)
	return p, err
}

// lastOfEach sorts symbols by address and keeps the one at each that comes last by size
// and then by its place in the table.
func lastOfEach(symbols []llvmSymbol) []llvmSymbol {
	order := make([]uint32, len(symbols))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		x, y := &symbols[a], &symbols[b]
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Size, y.Size), cmp.Compare(a, b))
	})
	kept := make([]llvmSymbol, 0, len(symbols))
	for i, n := range order {
		if i+1 == len(order) || symbols[order[i+1]].Start != symbols[n].Start {
			kept = append(kept, symbols[n])
		}
	}
	return kept
}

func isLLVMType(t debugelf.SymType) bool {
	return t == debugelf.STT_NOTYPE || t == debugelf.STT_FUNC || t == debugelf.STT_OBJECT ||
		t == debugelf.STT_GNU_IFUNC
}

// join sets found[i] to the number of the symbol for addrs[i]+base, −1 for none.
// The addresses must be sorted. A symbol without a size reaches to the next one. Unlike
// llvm-symbolizer's it does not reach beyond its section: an address in no section has no name.
func (p *llvmSymbols) join(addrs []addr.Addr, base addr.Addr, found []int32) {
	next := 0
	for i, a := range addrs {
		at := uint64(a + base)
		if i > 0 && at < uint64(addrs[i-1]+base) { // over the end of the address space
			next = 0
		}
		for next < len(p.symbols) && p.symbols[next].Start <= at {
			next++
		}
		found[i] = int32(p.covering(next-1, at))
	}
}

// covering returns i, the last symbol that does not begin after a, if it covers it.
func (p *llvmSymbols) covering(i int, a uint64) int {
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
