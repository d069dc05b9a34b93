package elf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/machine"
)

// ErrUnsupported marks relocations of an unsupported machine or type. All others have been
// applied.
var ErrUnsupported = errors.New("unsupported relocations")

// Relocator applies the relocations of a relocatable file's sections to their contents, so that
// its debug information (and .eh_frame) has final addresses. Its methods may be called by several
// goroutines.
type Relocator struct {
	f      *File
	tables map[int][]int // relocation sections by the section they are for
	values []symbolValue // by symbol number
	place  func(section int) (addr.Addr, bool)
}

// symbolValue is the address of a symbol, in the placed sections.
type symbolValue struct {
	value uint64
	known bool
}

// Relocator reads the symbols of an ET_REL file for Apply. Place returns the address of a section
// that is part of the process, for example by ModuleLayout; false if the section has no address
// there. All other sections are at 0.
//
// It is an error for other files: relocations that a linker with --emit-relocs keeps in ET_EXEC
// and ET_DYN files have been applied.
func (f *File) Relocator(place func(section int) (addr.Addr, bool)) (*Relocator, error) {
	if f.Type != elf.ET_REL {
		return nil, errNotRelocatable
	}
	r := &Relocator{f: f, place: place, tables: make(map[int][]int)}
	symtab := f.symbolSection(Symtab)
	total := uint64(0)
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != elf.SHT_RELA && s.Type != elf.SHT_REL {
			continue
		}
		if total += s.Size; s.Size > uint64(f.size) || total > uint64(f.size) {
			return nil, f.fail(uint64(s.Offset), "relocation sections are longer than the file")
		}
		if int(s.Link) != symtab {
			return nil, f.fail(uint64(s.Offset), "section %s: its symbols are not in .symtab",
				s.Name)
		}
		r.tables[int(s.Info)] = append(r.tables[int(s.Info)], i)
	}
	if len(r.tables) == 0 || symtab < 0 {
		return r, nil
	}
	return r, r.readSymbols(symtab)
}

// readSymbols computes the values of all symbols.
func (r *Relocator) readSymbols(symtab int) error {
	f, s := r.f, &r.f.Sections[symtab]
	if err := f.check(s, maxSymbolTable); err != nil {
		return err
	}
	wide, err := f.sectionIndices(symtab)
	if err != nil {
		return err
	}
	size := uint64(sym64)
	if f.Class == elf.ELFCLASS32 {
		size = sym32
	}
	r.values = make([]symbolValue, s.Size/size)
	reader := &symbolReader{f: f, s: s, wide: wide, size: size, buf: blocks.Get().(*[]byte)}
	defer reader.close()
	var places placeCache
	return reader.visit(func(i int, sym *rawSymbol) bool {
		r.values[i] = r.valueOf(sym, &places)
		return true
	})
}

// placeCache keeps the last answer of Relocator.place: symbols come in runs.
type placeCache struct {
	section int
	at      addr.Addr
	ok      bool
}

// valueOf places a symbol. Symbols that are defined elsewhere have no value.
func (r *Relocator) valueOf(s *rawSymbol, c *placeCache) symbolValue {
	section := uint64(s.shndx)
	if section == uint64(elf.SHN_UNDEF) || section >= uint64(len(r.f.Sections)) {
		return symbolValue{}
	}
	if c.section != int(section) {
		c.section = int(section)
		c.at, c.ok = r.sectionAddr(int(section))
	}
	v := uint64(c.at) + s.value
	// InitBase is out of the reach of 32-bit debug information: cut to its size it
	// would be another function's address.
	return symbolValue{v, c.ok && (r.f.Class == elf.ELFCLASS64 || v <= maxUint32)}
}

const maxUint32 = 1<<32 - 1

// sectionAddr returns the address of a section.
func (r *Relocator) sectionAddr(section int) (addr.Addr, bool) {
	if section >= len(r.f.Sections) || r.f.Sections[section].Flags&elf.SHF_ALLOC == 0 {
		return 0, true
	}
	return r.place(section)
}

// Apply applies the relocations for a section to b, its contents (uncompressed). It continues
// after errors and returns the first: a *decode.Error, or one that wraps ErrUnsupported. Time is
// linear in the relocations.
func (r *Relocator) Apply(section int, b []byte) error {
	var first error
	fail := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, table := range r.tables[section] {
		s := &r.f.Sections[table]
		pc, _ := r.sectionAddr(section)
		p := patcher{
			arch: machine.Of(r.f.Machine),
			r:    r, b: b, rela: s.Type == elf.SHT_RELA, pc: uint64(pc),
			gone: tombstone(r.f.Sections[section].Name), order: decode.OrderOf(r.f.BigEndian),
		}
		err := r.f.relocations(table, func(n int64, rel *reloc) bool {
			if err := p.apply(rel); err != nil {
				fail(fmt.Errorf("%s: section %s: relocation %d: %w", r.f.Name, s.Name, n, err))
			}
			return true
		})
		if err != nil {
			fail(err)
		}
	}
	return first
}

// patcher is a section being relocated.
type patcher struct {
	r     *Relocator
	arch  *machine.Arch
	b     []byte
	rela  bool   // addends are in the relocations, else in place
	pc    uint64 // address of b
	gone  uint64
	order binary.ByteOrder

	// second is the second relocation of a pair, which comes before the first, as tables are read
	// from their ends; its value is subtracted.
	second struct {
		op    machine.Op // machine.Store for none
		off   uint64
		value uint64
	}
}

func (p *patcher) apply(rel *reloc) error {
	field, ok := p.arch.Field(rel.kind)
	if !ok {
		return fmt.Errorf("%w: %v type %d", ErrUnsupported, p.r.f.Machine, rel.kind)
	}
	if field.None {
		return nil
	}
	w := relField{field}
	if rel.off > uint64(len(p.b)) || uint64(len(p.b))-rel.off < uint64(w.Size) {
		return p.r.f.fail(rel.off, "outside its section of %d bytes", len(p.b))
	}
	if uint64(rel.sym) >= uint64(len(p.r.values)) {
		return p.r.f.fail(rel.off, "symbol %d of %d", rel.sym, len(p.r.values))
	}
	at := p.b[rel.off:]
	if w.Op != machine.Store {
		return p.change(rel, at, w)
	}
	v := p.gone
	sym := p.r.values[rel.sym]
	if rel.sym == 0 {
		sym.known = true // a number without a symbol
	}
	if sym.known {
		v = sym.value + p.addend(rel, at, w)
		if w.Relative {
			v -= p.pc + rel.off
		}
	}
	w.put(p.order, at, v)
	return nil
}

// change applies a relocation that changes the value in place. Differences to addresses that are
// not loaded stay as they are.
func (p *patcher) change(rel *reloc, at []byte, w relField) error {
	sym := p.r.values[rel.sym]
	if !sym.known && rel.sym != 0 {
		return nil
	}
	v := sym.value + p.addend(rel, at, w)
	second := p.second
	p.second.op = machine.Store
	if w.Op.First() != machine.Store && p.r.f.Machine == elf.EM_RISCV {
		p.second.op, p.second.off, p.second.value = w.Op, rel.off, v
		return nil
	}
	if second.op.First() == w.Op && second.op != machine.Store && second.off == rel.off {
		v -= second.value
	}
	if !w.change(p.order, at, v) {
		return p.r.f.fail(rel.off, "no ULEB128")
	}
	return nil
}

// addend returns the addend of a relocation, from the relocation or the field it writes.
func (p *patcher) addend(rel *reloc, at []byte, w relField) uint64 {
	switch {
	case p.rela && p.r.f.Class == elf.ELFCLASS64:
		return rel.addend
	case p.rela:
		return uint64(int64(int32(rel.addend)))
	case w.Size == 4:
		return uint64(int64(int32(p.order.Uint32(at))))
	}
	return w.get(p.order, at)
}
