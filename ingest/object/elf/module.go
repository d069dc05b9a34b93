package elf

import (
	"debug/elf"
	"errors"
	"strings"

	"symbolize/ingest/addr"
)

// PlacedSection is a section of code of a kernel module, at the place that the kernel's loader
// gives it.
type PlacedSection struct {
	Name  string
	Index int // into File.Sections
	// Addr counts from the load address of the module (/proc/modules, perf's map of the module);
	// InitBase and above: from where its init code was.
	Addr addr.Addr
	Size uint64 // bytes
}

// InitBase is the address of a module's init code in our layout. The kernel loads it to an address
// of its own, which no capture records, and frees it after the module's start; so InitBase is
// outside the range of addresses in captures.
const InitBase addr.Addr = 1 << 32

var errNotRelocatable = errors.New("not a relocatable file")

// ModuleLayout returns the sections of code of an ET_REL file where the kernel's loader puts them,
// in order of address. The rule is from layout_sections in kernel/module/main.c (4.5 to 6.x):
// sections with SHF_ALLOC and SHF_EXECINSTR, in the order of the section headers, each aligned to
// its sh_addralign, come before all data, so they start at the load address; those whose names
// begin with ".init" go by the same rule to a second region. `.exit.text` is in the first, as in
// any kernel that can unload modules.
//
// Known limit: sections that the kernel itself sizes at load time (.plt and .text.ftrace_trampoline
// on arm, arm64 and some others) count as they are in the file; where they come before .text, and
// the kernel made veneers, addresses in .text are off by their size.
func (f *File) ModuleLayout() ([]PlacedSection, error) {
	if f.Type != elf.ET_REL {
		return nil, errNotRelocatable
	}
	var placed []PlacedSection
	for _, region := range []struct {
		init bool
		base uint64
	}{{false, 0}, {true, uint64(InitBase)}} {
		at := region.base
		for i := range f.Sections {
			s := &f.Sections[i]
			if !s.IsCode() || strings.HasPrefix(s.Name, ".init") != region.init {
				continue
			}
			if align := s.AddrAlign; align > 1 && align&(align-1) == 0 && align <= maxAlign {
				at = (at + align - 1) &^ (align - 1)
			}
			if s.Size > maxSection || at-region.base > maxSection {
				return nil, f.fail(uint64(s.Offset),
					"module section %s of %d bytes at %#x is too large",
					s.Name, s.Size, at)
			}
			placed = append(placed, PlacedSection{s.Name, i, addr.Addr(at), s.Size})
			at += s.Size
		}
	}
	return placed, nil
}

// maxAlign bounds the alignment of a module's section.
const maxAlign = 1 << 21
