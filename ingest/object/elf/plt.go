package elf

import (
	"bytes"
	"cmp"
	"debug/elf"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// Bounds on PLTs. A stub is at least 8 bytes.
const (
	maxPLT         = 8 << 20 // bytes of one section of stubs; Chromium's has 100 KB
	maxRelocations = 1 << 30 // bytes of one section of relocations
)

// stub is one entry of a procedure linkage table: a jump through a slot of the global offset table,
// which the dynamic linker fills by a relocation.
type stub struct {
	addr, end uint64
	slot      uint64 // address of the slot
	// index is for lazy stubs that do not name their slot (x86 with IBT): the number of the
	// relocation that they push; -1 otherwise.
	index   int64
	section int
	name    string
	data    bool // the slot is one for data or any use of the address (GLOB_DAT)
}

// pltDecoder finds the stubs in a section of code at address a. Got is the base of the GOT, for
// stubs that address relative to it.
type pltDecoder func(f *File, code []byte, a, got uint64, section int) []stub

// PLT visits the stubs of the procedure linkage tables (.plt, .plt.sec, .plt.got, .plt.bnd,
// .iplt), in order of address, each named after its target: "foo@plt". The jump in each stub is
// decoded, and the relocation of its GOT slot gives the name, so every order and layout that
// linkers use is supported. In a file without section headers the segments of code are searched.
// Stubs of functions chosen at load time (IRELATIVE) have their
// resolver's name where it has one, else "*ABS*+0x4a0ab0@plt" as objdump prints it. For machines
// other than x86-64, i386, arm64, RISC-V and s390x it visits none, without an error.
func (f *File) PLT(visit func(Symbol) bool) error {
	stubs, err := f.stubs()
	if err != nil || len(stubs) == 0 {
		return err
	}
	if err := f.nameStubs(stubs); err != nil {
		return err
	}
	f.dropWrappers(stubs)
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

// pltDecoders are the decoders of machines' stubs.
var pltDecoders = map[elf.Machine]pltDecoder{
	elf.EM_X86_64: stubsX86, elf.EM_386: stubsX86, elf.EM_AARCH64: stubsARM64,
	elf.EM_RISCV: stubsRISCV, elf.EM_S390: stubsS390,
}

// pltRelocs returns the types of the relocations that fill slots of the GOT with addresses of
// functions.
func (f *File) pltRelocs() machine.Dynamic {
	arch := machine.Of(f.Machine)
	if arch == nil {
		return machine.Dynamic{}
	}
	types := arch.Dynamic
	if f.Machine == elf.EM_RISCV && f.Class == elf.ELFCLASS32 {
		types.GlobDat = uint32(elf.R_RISCV_32)
	}
	return types
}

// stubs decodes all stubs of the file, sorted by address.
func (f *File) stubs() ([]stub, error) {
	decode := pltDecoders[f.Machine]
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
		if !s.IsCode() || s.Type == elf.SHT_NOBITS || !f.implied && !slices.Contains(pltSections, s.Name) {
			continue
		}
		if f.implied {
			if err := f.searchStubs(&stubs, decode, i, got); err != nil {
				return nil, err
			}
			continue
		}
		code, err := f.Data(s, maxPLT)
		if err != nil {
			return nil, err
		}
		stubs = append(stubs, decode(f, code, uint64(s.Addr), got, i)...)
	}
	slices.SortFunc(stubs, func(a, b stub) int { return cmp.Compare(a.addr, b.addr) })
	return slices.CompactFunc(stubs, func(a, b stub) bool { return a.addr == b.addr }), nil
}

// pltSections are the sections of stubs.
var pltSections = []string{".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt"}

// longestStub is the length of the longest stub, and of the longest first entry.
const longestStub = 48

// searchStubs decodes what may be stubs in a segment of code, piece by piece: nothing tells where
// they are.
func (f *File) searchStubs(stubs *[]stub, decode pltDecoder, section int, got uint64) error {
	s := &f.Sections[section]
	for at := uint64(0); at < s.Size; at += maxPLT - longestStub {
		piece := *s
		piece.Offset, piece.Size = s.Offset+addr.Offset(at), min(s.Size-at, maxPLT)
		code, err := f.Data(&piece, maxPLT)
		if err != nil {
			return err
		}
		*stubs = append(*stubs, decode(f, code, uint64(s.Addr)+at, got, section)...)
	}
	return nil
}

// dropWrappers removes the names of stubs that searchStubs found and that are functions of the
// program: they jump through a slot of the GOT and do nothing else, as code of -fno-plt does. Stubs
// follow one another or the first entry, which pushes a slot, and most slots are the PLT's own. Stubs
// of machines other than x86 use registers that are theirs alone.
func (f *File) dropWrappers(stubs []stub) {
	if !f.implied || f.Machine != elf.EM_X86_64 && f.Machine != elf.EM_386 {
		return
	}
	var run []*stub
	end := func() {
		own := slices.ContainsFunc(run, func(s *stub) bool { return !s.data })
		if len(run) > 0 && (!own || len(run) == 1 && !f.behindFirst(run[0])) {
			for _, s := range run {
				s.name = ""
			}
		}
		run = run[:0]
	}
	for i := range stubs {
		if stubs[i].name == "" {
			continue
		}
		if n := len(run); n > 0 && stubs[i].addr-run[n-1].addr > retpolineLazy {
			end()
		}
		run = append(run, &stubs[i])
	}
	end()
}

// behindFirst reports whether the first entry of a PLT of x86, which pushes a slot, precedes a stub.
func (f *File) behindFirst(s *stub) bool {
	var b [longestStub]byte
	off, n, ok := f.inFile(s.addr - longestStub)
	return ok && n >= longestStub && f.readAt(b[:], off) == nil &&
		(bytes.Contains(b[:], []byte("\xff\x35")) || bytes.Contains(b[:], []byte("\xff\xb3")))
}

// reloc is an Elf_Rel or Elf_Rela.
type reloc struct {
	off    uint64
	kind   uint32
	sym    uint32
	addend uint64
	hasAdd bool // Elf_Rela
}

// nameStubs names each stub after the target of its slot's relocation.
func (f *File) nameStubs(stubs []stub) error {
	types := f.pltRelocs()
	n := newNamer(f, stubs)
	for _, i := range f.pltRelocations() {
		isPLT := isPLTRelocation(f.Sections[i].Name)
		err := f.relocations(i, func(number int64, r *reloc) bool {
			switch r.kind {
			case types.JumpSlot, types.GlobDat, types.IRelative:
				n.add(r, number, isPLT, types)
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

// pltRelocations returns the sections of run-time relocations, the PLT's first: they are
// short, and mostly name every stub.
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

// relocations visits the relocations of a section with their numbers, in blocks, the last block
// first, until visit returns false after one: linkers put the relocations of GOT slots after the
// many relative ones.
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
		switch {
		case f.Machine == elf.EM_MIPS && f.BigEndian: // of three types in a row the first
			r.kind &= 0xff
		case f.Machine == elf.EM_MIPS: // the same bytes as in the other order, but for the symbol
			r.kind, r.sym = uint32(info>>56), uint32(info)
		case f.Machine == elf.EM_SPARCV9: // above it is a second addend
			r.kind &= 0xff
		}
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
