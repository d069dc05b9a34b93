package elf

import (
	"debug/elf"
	"slices"

	"symbolize/ingest/addr"
)

// placer computes addresses from the values of symbols: unchanged in a linked file, by the
// loader's layout in a module, through the function descriptors in .opd on 64-bit PowerPC.
type placer struct {
	f      *File
	module map[int]uint64 // address of each placed section; nil for linked files

	opd      []byte // contents of .opd, nil without
	opdIndex int
	opdAddr  uint64
	byAddr   []int // sections of code by address, for the targets of .opd
}

func (f *File) placer() (*placer, error) {
	p := &placer{f: f, opdIndex: -1}
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
// function's symbol points to its descriptor, whose first word points to the code. A debug file has
// no contents there; its symbols cannot be placed.
func (p *placer) readDescriptors() error {
	i := slices.IndexFunc(p.f.Sections, func(s Section) bool { return s.Name == ".opd" })
	if i < 0 || p.f.Sections[i].Type == elf.SHT_NOBITS {
		return nil
	}
	b, err := p.f.Data(&p.f.Sections[i], maxDescriptors)
	if err != nil {
		return err
	}
	p.opd, p.opdIndex, p.opdAddr = b, i, uint64(p.f.Sections[i].Addr)
	for i := range p.f.Sections {
		if p.f.Sections[i].IsCode() {
			p.byAddr = append(p.byAddr, i)
		}
	}
	slices.SortFunc(p.byAddr, func(i, j int) int {
		return int(min(1, max(-1, int64(p.f.Sections[i].Addr)-int64(p.f.Sections[j].Addr))))
	})
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
		if section, ok = p.sectionAt(a); !ok {
			return 0, 0, false
		}
	}
	sec := &p.f.Sections[section]
	if !sec.IsCode() {
		return 0, 0, false
	}
	if p.f.Machine == elf.EM_ARM && s.kind() != elf.STT_NOTYPE {
		a &^= 1 // Thumb
	}
	if p.module != nil {
		base, placed := p.module[section]
		if !placed || a >= sec.Size {
			return 0, 0, false
		}
		return base + a, section, true
	}
	return a, section, sec.contains(a)
}

// sectionAt finds the section of code that contains an address.
func (p *placer) sectionAt(a uint64) (int, bool) {
	i, found := slices.BinarySearchFunc(p.byAddr, addr.Addr(a), func(i int, a addr.Addr) int {
		switch at := p.f.Sections[i].Addr; {
		case at < a:
			return -1
		case at > a:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 || !p.f.Sections[p.byAddr[i]].contains(a) {
		return 0, false
	}
	return p.byAddr[i], true
}

// end returns where a section ends.
func (p *placer) end(section int) uint64 {
	s := &p.f.Sections[section]
	start := uint64(s.Addr)
	if p.module != nil {
		start = p.module[section]
	}
	if s.Size > ^uint64(0)-start {
		return ^uint64(0)
	}
	return start + s.Size
}
