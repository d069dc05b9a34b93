package indexer

import (
	stdelf "debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/dwarf"
	"symbolize/ingest/elf"
)

// moduleText tells where the code of a module lies when it is loaded, and how to
// change the debug sections so that their addresses are those.
func moduleText(r io.ReaderAt, f *elf.File) (
	text []addr.Range, patch func(string, []byte) error, err error) {
	placed, err := f.ModuleLayout()
	if err != nil {
		return []addr.Range{}, nil, err
	}
	m := &moduleReloc{r: r, f: f, place: make(map[uint32]uint64)}
	text = []addr.Range{}
	for _, p := range placed {
		m.place[uint32(p.Index)] = uint64(p.Addr)
		text = append(text, addr.Range{Start: p.Addr, End: p.Addr + addr.Addr(p.Size)})
	}
	return text, m.patch, nil
}

// moduleReloc relocates the debug sections of a module.
type moduleReloc struct {
	r     io.ReaderAt
	f     *elf.File
	place map[uint32]uint64 // where sections of code are, by index

	mu     sync.Mutex
	values []uint64 // of symbols
	err    error
}

// relocPiece is how much of a table of relocations is read at once: a multiple of the
// size of all forms of entries (8, 12, 16, 24 bytes).
const relocPiece = 48 << 12

// maxModuleSymbols bounds a module's symbol table, in bytes. 20 MB is a large one.
const maxModuleSymbols = 256 << 20

var errRelocsCut = errors.New("relocations are cut off")

// patch relocates one section; it is called by several goroutines.
func (m *moduleReloc) patch(name string, b []byte) error {
	f := m.f
	at := slices.IndexFunc(f.Sections, func(s elf.Section) bool {
		return s.Name == name && s.Type != stdelf.SHT_NOBITS
	})
	var first error
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != stdelf.SHT_RELA && s.Type != stdelf.SHT_REL || int(s.Info) != at {
			continue
		}
		if err := m.apply(b, s); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// apply applies one table of relocations to b.
func (m *moduleReloc) apply(b []byte, s *elf.Section) error {
	if s.Flags&stdelf.SHF_COMPRESSED != 0 {
		return fmt.Errorf("relocations %s are compressed", s.Name)
	}
	m.mu.Lock()
	values, err := m.values, m.err
	if values == nil && err == nil {
		values, err = m.symbols(s.Link) // all refer to the one table that a file can have
		m.values, m.err = values, err
	}
	m.mu.Unlock()
	if err != nil {
		return err
	}
	rl := dwarf.Relocator{
		Machine: m.f.Machine, BigEndian: m.f.BigEndian,
		Symbol: func(i uint32) (uint64, bool) {
			if uint64(i) >= uint64(len(values)) || values[i] == nowhere {
				return 0, false
			}
			return values[i], true
		},
	}
	var first error
	piece := make([]byte, min(s.Size, relocPiece))
	for off := uint64(0); off < s.Size; off += uint64(len(piece)) {
		piece = piece[:min(s.Size-off, uint64(len(piece)))]
		if n, err := m.r.ReadAt(piece, int64(s.Offset)+int64(off)); n < len(piece) {
			if errors.Is(err, io.EOF) || err == nil {
				err = errRelocsCut
			}
			return err
		}
		err := rl.ApplyAll(b, piece, m.f.Class == stdelf.ELFCLASS64, s.Type == stdelf.SHT_RELA)
		if err != nil && first == nil {
			first = err
		}
	}
	return first
}

// symbols reads the values of the symbols that relocations refer to. Symbols of
// debug sections count from their start; data is nowhere.
func (m *moduleReloc) symbols(section uint32) ([]uint64, error) {
	f := m.f
	if uint64(section) >= uint64(len(f.Sections)) || f.Sections[section].Type != stdelf.SHT_SYMTAB {
		return nil, errors.New("relocations without a symbol table")
	}
	raw, err := f.Data(&f.Sections[section], maxModuleSymbols)
	if err != nil {
		return nil, err
	}
	size := 24
	if f.Class == stdelf.ELFCLASS32 {
		size = 16
	}
	values := make([]uint64, len(raw)/size)
	r := decode.New(f.Name, raw, int64(f.Sections[section].Offset), f.BigEndian)
	for i := range values {
		values[i] = nowhere
		var value uint64
		var shndx uint16
		r.U32()
		if size == 24 {
			r.U16()
			shndx, value = r.U16(), r.U64()
			r.U64()
		} else {
			value = uint64(r.U32())
			r.U32()
			r.U16()
			shndx = r.U16()
		}
		if base, ok := m.place[uint32(shndx)]; ok {
			values[i] = base + value
		} else if m.isDebug(shndx) || stdelf.SectionIndex(shndx) == stdelf.SHN_ABS {
			values[i] = value
		}
	}
	return values, r.Err()
}

// nowhere marks symbols without a value.
const nowhere = 1<<64 - 1

func (m *moduleReloc) isDebug(shndx uint16) bool {
	return int(shndx) < len(m.f.Sections) &&
		strings.HasPrefix(m.f.Sections[shndx].Name, ".debug_")
}
