package calls

import (
	"cmp"
	stdelf "debug/elf"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/elf"
)

// maxDynamic bounds each section of dynamic linking. The largest of a /usr/lib has 30 MB.
const maxDynamic = 256 << 20

// Types of sections and relocations that debug/elf lacks or names differently.
const (
	shtRELR    = 19
	versionVDX = 0x7fff // of a versym entry: the version; above it, hidden
)

// dynamic is what the dynamic linker is told of an object.
type dynamic struct {
	f       *elf.File
	symbols []dynSymbol
	slots   map[addr.Addr]Target // pointers that it sets, and nobody changes
	taken   []addr.Addr          // addresses in pointers
	imports map[uint32]addr.Addr // by symbol: the number in Table.Imports
	soname  string
}

type dynSymbol struct {
	Symbol
	value         addr.Addr
	kind          stdelf.SymType
	bind          stdelf.SymBind
	defined       bool
	hidden        bool
	neverExported bool // by its visibility
}

// readDynamic reads the symbols, versions and relocations of an object.
func readDynamic(f *elf.File, t *Table) (*dynamic, error) {
	d := &dynamic{f: f, slots: make(map[addr.Addr]Target), imports: make(map[uint32]addr.Addr)}
	if err := d.readSymbols(); err != nil {
		return nil, err
	}
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Flags&stdelf.SHF_ALLOC == 0 {
			continue
		}
		var err error
		switch s.Type {
		case stdelf.SHT_RELA:
			err = d.relocations(s, t)
		case shtRELR:
			err = d.relative(s)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// sectionOf returns the contents of the first section of a type, with those of its strings; nil if
// there is none.
func (d *dynamic) sectionOf(kind stdelf.SectionType) (b []byte, text string, err error) {
	for i := range d.f.Sections {
		s := &d.f.Sections[i]
		if s.Type != kind {
			continue
		}
		if b, err = d.f.Data(s, maxDynamic); err != nil {
			return nil, "", err
		}
		if int(s.Link) < len(d.f.Sections) && kind != stdelf.SHT_GNU_VERSYM {
			strs, err := d.f.Data(&d.f.Sections[s.Link], maxDynamic)
			return b, string(strs), err
		}
		return b, "", nil
	}
	return nil, "", nil
}

func nameAt(text string, off uint32) string {
	if uint64(off) >= uint64(len(text)) {
		return ""
	}
	text = text[off:]
	if i := strings.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	return text
}

const symSize = 24 // of an Elf64_Sym

// readSymbols reads .dynsym with its versions.
func (d *dynamic) readSymbols() error {
	b, text, err := d.sectionOf(stdelf.SHT_DYNSYM)
	if err != nil || b == nil {
		return err
	}
	versym, _, err := d.sectionOf(stdelf.SHT_GNU_VERSYM)
	if err != nil {
		return err
	}
	names, err := d.versions()
	if err != nil {
		return err
	}
	d.symbols = make([]dynSymbol, len(b)/symSize)
	for i := range d.symbols {
		e := b[i*symSize : (i+1)*symSize]
		s := &d.symbols[i]
		s.Name = nameAt(text, decode.U32(e, false))
		s.kind, s.bind = stdelf.SymType(e[4]&15), stdelf.SymBind(e[4]>>4)
		s.neverExported = e[5]&3 == uint8(stdelf.STV_HIDDEN) || e[5]&3 == uint8(stdelf.STV_INTERNAL)
		s.defined = decode.U16(e[6:], false) != 0
		s.value = addr.Addr(decode.U64(e[8:], false))
		if 2*i+2 <= len(versym) {
			v := decode.U16(versym[2*i:], false)
			s.Version, s.hidden = names[v&versionVDX], v&^versionVDX != 0
		}
	}
	return nil
}

// versions returns the names of versions by their numbers.
func (d *dynamic) versions() (map[uint16]string, error) {
	names := make(map[uint16]string)
	b, text, err := d.sectionOf(stdelf.SHT_GNU_VERDEF)
	if err != nil {
		return nil, err
	}
	for at, left := uint64(0), len(b); left > 0 && at+20 <= uint64(len(b)); left-- {
		e := b[at:]
		aux := at + uint64(decode.U32(e[12:], false))
		name := ""
		if aux+8 <= uint64(len(b)) {
			name = nameAt(text, decode.U32(b[aux:], false))
		}
		if decode.U16(e[2:], false)&1 != 0 { // VER_FLG_BASE: the object's own name
			d.soname = name
		} else {
			names[decode.U16(e[4:], false)&versionVDX] = name
		}
		next := uint64(decode.U32(e[16:], false))
		if next == 0 {
			break
		}
		at += next
	}
	if b, text, err = d.sectionOf(stdelf.SHT_GNU_VERNEED); err != nil {
		return nil, err
	}
	for at, left := uint64(0), len(b); left > 0 && at+16 <= uint64(len(b)); left-- {
		e := b[at:]
		aux := at + uint64(decode.U32(e[8:], false))
		for n := decode.U16(e[2:], false); n > 0 && aux+16 <= uint64(len(b)); n-- {
			x := b[aux:]
			names[decode.U16(x[6:], false)&versionVDX] = nameAt(text, decode.U32(x[8:], false))
			step := uint64(decode.U32(x[12:], false))
			if step == 0 {
				break
			}
			aux += step
		}
		next := uint64(decode.U32(e[12:], false))
		if next == 0 {
			break
		}
		at += next
	}
	return names, nil
}

const relaSize = 24 // of an Elf64_Rela

// relocations notes the pointers that a section of relocations sets.
func (d *dynamic) relocations(s *elf.Section, t *Table) error {
	b, err := d.f.Data(s, maxDynamic)
	if err != nil {
		return err
	}
	kinds := machine.Of(d.f.Machine).Dynamic
	for ; len(b) >= relaSize; b = b[relaSize:] {
		at := addr.Addr(decode.U64(b, false))
		info, add := decode.U64(b[8:], false), addr.Addr(decode.U64(b[16:], false))
		sym := uint32(info >> 32)
		switch uint32(info) {
		case kinds.JumpSlot, kinds.GlobDat:
			if n, ok := d.importOf(sym, t); ok {
				d.slots[at] = Target{Imported, n}
			}
		case kinds.Absolute:
			if uint64(sym) < uint64(len(d.symbols)) && d.symbols[sym].defined {
				d.taken = append(d.taken, d.symbols[sym].value+add)
			}
		case kinds.Relative:
			d.taken = append(d.taken, add)
		case kinds.IRelative:
			d.slots[at] = Target{Resolved, add}
			d.taken = append(d.taken, add)
		}
	}
	return nil
}

// importOf returns the number of an imported symbol.
func (d *dynamic) importOf(sym uint32, t *Table) (addr.Addr, bool) {
	if n, ok := d.imports[sym]; ok {
		return n, true
	}
	if uint64(sym) >= uint64(len(d.symbols)) || d.symbols[sym].Name == "" {
		return 0, false
	}
	n := addr.Addr(len(t.Imports))
	t.Imports = append(t.Imports, d.symbols[sym].Symbol)
	d.imports[sym] = n
	return n, true
}

// relative notes the pointers of a section of packed relative relocations (SHT_RELR of the gABI).
func (d *dynamic) relative(s *elf.Section) error {
	b, err := d.f.Data(s, maxDynamic)
	if err != nil {
		return err
	}
	at := addr.Addr(0)
	for ; len(b) >= 8; b = b[8:] {
		word := decode.U64(b, false)
		if word&1 == 0 {
			d.pointer(addr.Addr(word))
			at = addr.Addr(word) + 8
			continue
		}
		for i := range 63 {
			if word>>(i+1)&1 != 0 {
				d.pointer(at + addr.Addr(8*i))
			}
		}
		at += 63 * 8
	}
	return nil
}

// pointer notes the address that is in memory at an address.
func (d *dynamic) pointer(at addr.Addr) {
	if v, ok := word(d.f, at); ok {
		d.taken = append(d.taken, v)
	}
}

// word reads eight bytes of an object's memory.
func word(f *elf.File, at addr.Addr) (addr.Addr, bool) {
	off, n, ok := f.Mapped(at)
	var b [8]byte
	if !ok || n < 8 || f.ReadBytes(off, b[:]) != nil {
		return 0, false
	}
	return addr.Addr(decode.U64(b[:], false)), true
}

// exports returns the exported functions. Their addresses are taken.
func (d *dynamic) exports() (list []Export) {
	for i := range d.symbols {
		s := &d.symbols[i]
		switch {
		case !s.defined || s.Name == "" || s.bind == stdelf.STB_LOCAL || s.neverExported:
			continue
		case s.kind == stdelf.STT_FUNC || s.kind == stdelf.STT_GNU_IFUNC || s.kind == stdelf.STT_NOTYPE:
			list = append(list, Export{Symbol: s.Symbol, Hidden: s.hidden,
				Resolver: s.kind == stdelf.STT_GNU_IFUNC, At: s.value})
		}
	}
	slices.SortFunc(list, func(a, b Export) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version),
			cmp.Compare(a.At, b.At))
	})
	return list
}
