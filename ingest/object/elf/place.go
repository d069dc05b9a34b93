package elf

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// placer computes addresses from the values of symbols: unchanged in a linked file, by the
// loader's layout in a module, through the function descriptors in .opd on 64-bit PowerPC.
type placer struct {
	f      *File
	flags  uint64         // bits of a function symbol's value
	module map[int]uint64 // address of each placed section; nil for linked files

	opd      []byte // contents of .opd, nil without
	opdIndex int
	opdAddr  uint64
	code     []placedCode // by address, for the targets of .opd
}

// placedCode is a section of code at an address.
type placedCode struct {
	start, end uint64
	section    int
}

func (f *File) placer() (*placer, error) {
	p := &placer{f: f, opdIndex: -1}
	if arch := machine.Of(f.Machine); arch != nil {
		p.flags = arch.SymbolFlags
	}
	if f.Type == elf.ET_REL {
		placed, err := f.ModuleLayout()
		if err != nil {
			return nil, err
		}
		p.module = make(map[int]uint64, len(placed))
		for _, s := range placed {
			p.module[s.Index] = uint64(s.Addr)
		}
	}
	if f.Machine == elf.EM_PPC64 {
		if err := p.readDescriptors(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// readDescriptors reads .opd, the table of function descriptors of PowerPC's ELFv1 ABI: a
// function's symbol points to its descriptor, whose first word points to the code, in modules by a
// relocation. A debug file has no contents there; its symbols cannot be placed.
func (p *placer) readDescriptors() error {
	i := slices.IndexFunc(p.f.Sections, func(s Section) bool { return s.Name == ".opd" })
	if i < 0 || p.f.Sections[i].Type == elf.SHT_NOBITS {
		return nil
	}
	b, err := p.f.Data(&p.f.Sections[i], maxDescriptors)
	if err != nil {
		return err
	}
	if p.module != nil {
		rl, err := p.f.Relocator(func(section int) (addr.Addr, bool) {
			a, ok := p.module[section]
			return addr.Addr(a), ok
		})
		if err != nil {
			return err
		}
		if err := rl.Apply(i, b); err != nil {
			return err
		}
	}
	p.opd, p.opdIndex, p.opdAddr = b, i, uint64(p.f.Sections[i].Addr)
	for i := range p.f.Sections {
		if start, ok := p.start(i); ok && p.f.Sections[i].IsCode() {
			p.code = append(p.code, placedCode{start, p.end(i), i})
		}
	}
	slices.SortFunc(p.code, func(a, b placedCode) int { return cmp.Compare(a.start, b.start) })
	return nil
}

// maxDescriptors bounds .opd: 24 bytes for each function.
const maxDescriptors = 256 << 20

// place returns the address of a symbol and the index of its section. Ok is false
// unless that is code and contains the address.
func (p *placer) place(s *rawSymbol) (a uint64, section int, ok bool) {
	section = int(s.shndx)
	if uint64(s.shndx) >= uint64(len(p.f.Sections)) {
		return 0, 0, false
	}
	a = s.value
	if section == p.opdIndex {
		off := a - p.opdAddr
		if off > uint64(len(p.opd)) || uint64(len(p.opd))-off < 8 {
			return 0, 0, false
		}
		a = p.f.u64(p.opd[off:])
		section, ok = p.sectionAt(a)
		return a, section, ok
	}
	sec := &p.f.Sections[section]
	if !sec.IsCode() {
		return 0, 0, false
	}
	if s.kind() != elf.STT_NOTYPE {
		a &^= p.flags
	}
	base, placed := p.start(section)
	if p.module != nil {
		return base + a, section, placed && a < sec.Size
	}
	return a, section, sec.contains(a)
}

// start returns the address of a section; ok is false if a module does not have it in memory.
func (p *placer) start(section int) (a uint64, ok bool) {
	if p.module != nil {
		a, ok = p.module[section]
		return a, ok
	}
	return uint64(p.f.Sections[section].Addr), true
}

// sectionAt finds the section of code that contains an address.
func (p *placer) sectionAt(a uint64) (int, bool) {
	i := sort.Search(len(p.code), func(i int) bool { return p.code[i].start > a })
	if i == 0 || a >= p.code[i-1].end {
		return 0, false
	}
	return p.code[i-1].section, true
}

// end returns where a section ends.
func (p *placer) end(section int) uint64 {
	start, _ := p.start(section)
	return start + min(p.f.Sections[section].Size, ^uint64(0)-start)
}
