package elf

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"

	"symbolize/ingest/addr"
)

// Bounds on PLTs. A stub is at least 8 bytes.
const (
	maxPLT         = 64 << 20 // bytes of one section of stubs
	maxRelocations = 1 << 30  // bytes of one section of relocations
)

// stub is one entry of a procedure linkage table: a jump through a slot of the
// global offset table, which the dynamic linker fills by a relocation.
type stub struct {
	addr, end uint64
	slot      uint64 // address of the slot
	// index is for lazy stubs that do not name their slot (x86 with IBT): the number
	// of the relocation that they push; -1 otherwise.
	index   int64
	section int
	name    string
}

// pltDecoder finds the stubs in a section of code at address a. It is given the
// base of the GOT for stubs that address relative to it.
type pltDecoder func(f *File, code []byte, a, got uint64, section int) []stub

// PLT visits the stubs of the procedure linkage tables (.plt, .plt.sec, .plt.got,
// .plt.bnd, .iplt), in order of address, each named after what it calls: "foo@plt".
// The jump in each stub is decoded, and the relocation of its GOT slot gives the
// name, so every order and shape that linkers use is served. Stubs of functions
// chosen at load time (IRELATIVE) carry their resolver's name where it has one, else
// "*ABS*+0x4a0ab0@plt" as objdump prints it. Machines other than x86-64, i386 and
// arm64 have none, and no error.
func (f *File) PLT(visit func(Symbol) bool) error {
	stubs, err := f.stubs()
	if err != nil || len(stubs) == 0 {
		return err
	}
	if err := f.nameStubs(stubs); err != nil {
		return err
	}
	for i := range stubs {
		s := &stubs[i]
		if s.name == "" {
			continue
		}
		if !visit(Symbol{
			Name: s.name, Addr: addr.Addr(s.addr), Size: s.end - s.addr, End: addr.Addr(s.end),
			Type: uint8(elf.STT_FUNC), Bind: uint8(elf.STB_LOCAL), Section: s.section,
		}) {
			return nil
		}
	}
	return nil
}

// relocTypes are the relocations that fill GOT slots with addresses of functions.
type relocTypes struct{ jumpSlot, globDat, irelative uint32 }

// pltMachine tells how a machine's stubs look.
func (f *File) pltMachine() (pltDecoder, relocTypes) {
	switch f.Machine {
	case elf.EM_X86_64:
		return stubsX86, relocTypes{uint32(elf.R_X86_64_JMP_SLOT), uint32(elf.R_X86_64_GLOB_DAT),
			uint32(elf.R_X86_64_IRELATIVE)}
	case elf.EM_386:
		return stubsX86, relocTypes{uint32(elf.R_386_JMP_SLOT), uint32(elf.R_386_GLOB_DAT),
			uint32(elf.R_386_IRELATIVE)}
	case elf.EM_AARCH64:
		return stubsARM64, relocTypes{uint32(elf.R_AARCH64_JUMP_SLOT),
			uint32(elf.R_AARCH64_GLOB_DAT), uint32(elf.R_AARCH64_IRELATIVE)}
	}
	return nil, relocTypes{}
}

// stubs decodes all stubs of the file, sorted by address.
func (f *File) stubs() ([]stub, error) {
	decode, _ := f.pltMachine()
	if decode == nil || f.Type == elf.ET_REL {
		return nil, nil
	}
	got := uint64(0)
	for _, name := range []string{".got.plt", ".got"} {
		if s := f.Section(name); s != nil {
			got = uint64(s.Addr)
			break
		}
	}
	var stubs []stub
	for i := range f.Sections {
		s := &f.Sections[i]
		switch s.Name {
		case ".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt":
		default:
			continue
		}
		if !s.IsCode() || s.Type == elf.SHT_NOBITS {
			continue
		}
		code, err := f.Data(s, maxPLT)
		if err != nil {
			return nil, err
		}
		stubs = append(stubs, decode(f, code, uint64(s.Addr), got, i)...)
	}
	slices.SortFunc(stubs, func(a, b stub) int { return cmp.Compare(a.addr, b.addr) })
	return stubs, nil
}

// reloc is an Elf_Rel or Elf_Rela.
type reloc struct {
	off    uint64
	kind   uint32
	sym    uint32
	addend uint64
	hasAdd bool // Elf_Rela
}

// nameStubs gives each stub the name of what its slot's relocation refers to.
func (f *File) nameStubs(stubs []stub) error {
	_, types := f.pltMachine()
	n := newNamer(f, stubs)
	for _, i := range f.pltRelocations() {
		isPLT := isPLTRelocation(f.Sections[i].Name)
		err := f.relocations(i, func(number int64, r *reloc) bool {
			switch r.kind {
			case types.jumpSlot, types.globDat, types.irelative:
				n.add(r, number, isPLT, r.kind == types.irelative)
			}
			return n.left > 0
		})
		if err != nil {
			return err
		}
		if n.left == 0 {
			break
		}
	}
	return n.resolve()
}

func isPLTRelocation(name string) bool {
	switch name {
	case ".rela.plt", ".rel.plt", ".rela.iplt", ".rel.iplt":
		return true
	}
	return false
}

// pltRelocations returns the sections of run-time relocations, those of the PLT
// first: they are short, and mostly name every stub.
func (f *File) pltRelocations() []int {
	var first, rest []int
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != elf.SHT_RELA && s.Type != elf.SHT_REL || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		if isPLTRelocation(s.Name) {
			first = append(first, i)
		} else {
			rest = append(rest, i)
		}
	}
	return append(first, rest...)
}

// relocations visits the relocations of a section with their numbers, in blocks,
// the last first, until visit returns false after one. Linkers put what fills GOT
// slots behind the many relative ones.
func (f *File) relocations(section int, visit func(number int64, r *reloc) bool) error {
	s := &f.Sections[section]
	if err := f.check(s, maxRelocations); err != nil {
		return err
	}
	word := f.wordSize()
	size := 2 * word
	if s.Type == elf.SHT_RELA {
		size += word
	}
	buf := blocks.Get().(*[]byte)
	defer blocks.Put(buf)
	var r reloc
	for end := s.Size / size; end > 0; {
		start := end - min(blockSize/size, end)
		b := (*buf)[:(end-start)*size]
		if err := f.readAt(b, uint64(s.Offset)+start*size); err != nil {
			return err
		}
		for at := end; at > start; at-- {
			r = f.decodeReloc(b[(at-1-start)*size:][:size])
			if !visit(int64(at-1), &r) {
				return nil
			}
		}
		end = start
	}
	return nil
}

func (f *File) decodeReloc(b []byte) reloc {
	if f.Class == elf.ELFCLASS64 {
		info := f.u64(b[8:])
		r := reloc{off: f.u64(b), kind: uint32(info), sym: uint32(info >> 32)}
		if len(b) >= 24 {
			r.addend, r.hasAdd = f.u64(b[16:]), true
		}
		return r
	}
	info := f.u32(b[4:])
	r := reloc{off: uint64(f.u32(b)), kind: info & 0xff, sym: info >> 8}
	if len(b) >= 12 {
		r.addend, r.hasAdd = uint64(f.u32(b[8:])), true
	}
	return r
}

// namer matches relocations with stubs, and then symbols with both.
type namer struct {
	f      *File
	stubs  []stub
	bySlot []int // stubs with a slot, by slot
	byPush []int // stubs with an index, by index
	left   int   // stubs without a relocation

	bySymbol   []target // stubs to be named after a symbol of .dynsym
	byResolver []target // stubs to be named after the function at an address
}

// target is what a stub is named after: a symbol's number, or an address.
type target struct {
	key  uint64
	stub int
}

func newNamer(f *File, stubs []stub) *namer {
	n := &namer{f: f, stubs: stubs, left: len(stubs)}
	for i := range stubs {
		if stubs[i].index >= 0 {
			n.byPush = append(n.byPush, i)
		} else {
			n.bySlot = append(n.bySlot, i)
		}
	}
	slices.SortStableFunc(n.bySlot, func(i, j int) int {
		return cmp.Compare(stubs[i].slot, stubs[j].slot)
	})
	slices.SortStableFunc(n.byPush, func(i, j int) int {
		return cmp.Compare(stubs[i].index, stubs[j].index)
	})
	return n
}

// add notes which stubs a relocation names. Several stubs can share a slot.
func (n *namer) add(r *reloc, number int64, isPLT, irelative bool) {
	i, _ := slices.BinarySearchFunc(n.bySlot, r.off, func(i int, slot uint64) int {
		return cmp.Compare(n.stubs[i].slot, slot)
	})
	for ; i < len(n.bySlot) && n.stubs[n.bySlot[i]].slot == r.off; i++ {
		n.assign(n.bySlot[i], r, irelative)
	}
	if !isPLT {
		return
	}
	i, _ = slices.BinarySearchFunc(n.byPush, number, func(i int, number int64) int {
		return cmp.Compare(n.stubs[i].index, number)
	})
	for ; i < len(n.byPush) && n.stubs[n.byPush[i]].index == number; i++ {
		n.assign(n.byPush[i], r, irelative)
	}
}

// taken marks a stub that a relocation has been found for, until resolve names it.
const taken = "?"

func (n *namer) assign(i int, r *reloc, irelative bool) {
	if n.stubs[i].name != "" {
		return // the first relocation met counts
	}
	if !irelative {
		if r.sym == 0 {
			return
		}
		n.bySymbol = append(n.bySymbol, target{uint64(r.sym), i})
	} else {
		resolver := r.addend
		if !r.hasAdd { // Elf_Rel keeps the addend in the slot
			var ok bool
			if resolver, ok = n.f.wordAt(r.off); !ok {
				return
			}
		}
		n.byResolver = append(n.byResolver, target{resolver, i})
	}
	n.stubs[i].name = taken
	n.left--
}

// resolve replaces the marks by names.
func (n *namer) resolve() error {
	for i := range n.stubs {
		if n.stubs[i].name == taken {
			n.stubs[i].name = ""
		}
	}
	for _, t := range n.byResolver {
		n.stubs[t.stub].name = fmt.Sprintf("*ABS*+%#x@plt", t.key)
	}
	byKey := func(a, b target) int { return cmp.Compare(a.key, b.key) }
	slices.SortStableFunc(n.bySymbol, byKey)
	slices.SortStableFunc(n.byResolver, byKey)
	if len(n.bySymbol) > 0 {
		if err := n.nameBySymbol(); err != nil {
			return err
		}
	}
	if len(n.byResolver) > 0 {
		return n.nameByResolver()
	}
	return nil
}

// nameBySymbol walks through .dynsym beside the sorted symbol numbers.
func (n *namer) nameBySymbol() error {
	left := n.bySymbol
	return n.f.rawSymbols(Dynsym, func(i int, s *rawSymbol) bool {
		for len(left) > 0 && left[0].key <= uint64(i) {
			if left[0].key == uint64(i) && n.f.table.has(s.name) {
				n.stubs[left[0].stub].name = n.f.table.name(s.name) + "@plt"
			}
			left = left[1:]
		}
		return len(left) > 0
	})
}

// nameByResolver looks for the functions at the addresses of resolvers. Of several
// names the first of .dynsym wins, else that of .symtab which is bytewise smallest
// among those that are not local, else among the local ones.
func (n *namer) nameByResolver() error {
	type choice struct {
		name string
		rank int
	}
	best := make(map[uint64]choice, len(n.byResolver))
	for _, t := range n.byResolver {
		best[t.key] = choice{rank: 3}
	}
	for _, table := range []Table{Dynsym, Symtab} {
		err := n.f.rawSymbols(table, func(_ int, s *rawSymbol) bool {
			if k := s.kind(); k != elf.STT_GNU_IFUNC && k != elf.STT_FUNC || !n.f.table.has(s.name) {
				return true
			}
			old, ok := best[s.value]
			if !ok {
				return true
			}
			rank := 0
			switch {
			case s.info>>4 == uint8(elf.STB_LOCAL):
				rank = 2
			case table == Symtab:
				rank = 1
			}
			name := n.f.table.name(s.name)
			if rank < old.rank || rank == old.rank && name < old.name {
				best[s.value] = choice{name, rank}
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	for _, t := range n.byResolver {
		if b := best[t.key]; b.name != "" {
			n.stubs[t.stub].name = b.name + "@plt"
		}
	}
	return nil
}

// wordAt reads a word of the file by its virtual address.
func (f *File) wordAt(a uint64) (uint64, bool) {
	n := f.wordSize()
	for _, s := range f.Segments {
		off := a - uint64(s.Addr)
		if a < uint64(s.Addr) || off >= s.FileSize || s.FileSize-off < n {
			continue
		}
		var b [8]byte
		if f.readAt(b[:n], uint64(s.Offset)+off) != nil {
			return 0, false
		}
		if n == 4 {
			return uint64(f.u32(b[:])), true
		}
		return f.u64(b[:]), true
	}
	return 0, false
}
