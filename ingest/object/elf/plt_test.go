package elf

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/machine"
)

// The addresses of the tables in these tests.
const (
	pltAddr = 0x401000
	gotAddr = 0x404000
)

// rel32 is the displacement from the end of an instruction to a place.
func rel32(to, from uint64) []byte {
	return binary.LittleEndian.AppendUint32(nil, uint32(to-from))
}

// join runs pieces of code together and pads them to n bytes.
func join(n int, pieces ...any) []byte {
	var b []byte
	for _, p := range pieces {
		switch p := p.(type) {
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	for len(b) < n {
		b = append(b, 0x90)
	}
	return b
}

const endbr64, endbr32, bnd = "\xf3\x0f\x1e\xfa", "\xf3\x0f\x1e\xfb", "\xf2"

// lazy is an entry of a lazy x86-64 .plt: jmp *slot(%rip); push $n; jmp plt0.
func lazy(a, slot uint64, n byte) []byte {
	return join(16, "\xff\x25", rel32(slot, a+6), "\x68", []byte{n, 0, 0, 0}, "\xe9",
		rel32(pltAddr, a+16))
}

// moldStub is a stub of mold: endbr64; mov $n, %r11d; jmp *slot(%rip).
func moldStub(a, slot uint64, n byte) []byte {
	return join(16, endbr64, "\x41\xbb", []byte{n, 0, 0, 0}, "\xff\x25", rel32(slot, a+16))
}

// plt0 is the first entry: push GOT+8(%rip); jmp *GOT+16(%rip).
func plt0() []byte {
	return join(16, "\xff\x35", rel32(gotAddr+8, pltAddr+6), "\xff\x25",
		rel32(gotAddr+16, pltAddr+12))
}

// pltFile declares a file of these sections of stubs, with puts, exit and malloc in .dynsym, in
// this order.
func pltFile(machine elf.Machine, sections ...elfbuild.Section) *elfbuild.File {
	f := &elfbuild.File{Machine: machine, Class: elf.ELFCLASS64}
	if machine == elf.EM_386 {
		f.Class = elf.ELFCLASS32
	}
	for _, s := range sections {
		if s.Type == 0 && s.Flags == 0 {
			s.Flags = elfbuild.Code
		}
		f.Sections = append(f.Sections, s)
	}
	for _, name := range []string{"puts", "exit", "malloc"} {
		f.Dynsyms = append(f.Dynsyms, elfbuild.Symbol{Name: name, Type: elf.STT_FUNC,
			Bind: elf.STB_GLOBAL})
	}
	return f
}

// rela declares a section of relocations.
func rela(name string, class elf.Class, relocs ...elfbuild.Reloc) elfbuild.Section {
	f := elfbuild.File{Class: class}
	if class == elf.ELFCLASS32 {
		return elfbuild.Section{Name: name, Type: elf.SHT_REL, Flags: elf.SHF_ALLOC,
			Link: ".dynsym",
			Data: f.Rela(false, relocs...)}
	}
	return elfbuild.Section{Name: name, Type: elf.SHT_RELA, Flags: elf.SHF_ALLOC, Link: ".dynsym",
		Data: f.Rela(true, relocs...)}
}

// slots are relocations of consecutive GOT slots from gotAddr+0x18, in x86-64.
func slots(kind elf.R_X86_64, syms ...uint32) []elfbuild.Reloc {
	var r []elfbuild.Reloc
	for i, s := range syms {
		r = append(r, elfbuild.Reloc{Offset: gotAddr + 0x18 + 8*uint64(i), Symbol: s,
			Type: uint32(kind)})
	}
	return r
}

func TestPLTx86(t *testing.T) {
	const c64 = elf.ELFCLASS64
	sec := func(name string, a uint64, code ...[]byte) elfbuild.Section {
		return elfbuild.Section{Name: name, Addr: a, Data: slices.Concat(code...), EntSize: 16}
	}
	lazyPLT := sec(".plt", pltAddr, plt0(), lazy(pltAddr+16, gotAddr+0x18, 0),
		lazy(pltAddr+32, gotAddr+0x20, 1), lazy(pltAddr+48, gotAddr+0x28, 2))
	ibt := func(n byte) []byte {
		return join(16, endbr64, "\x68", []byte{n, 0, 0, 0},
			bnd+"\xe9\x00\x00\x00\x00")
	}
	ibtSec := func(a, slot uint64) []byte {
		return join(16, endbr64, bnd+"\xff\x25", rel32(slot, a+11))
	}
	short := elfbuild.Section{Name: ".plt.got", Addr: pltAddr + 0x100, EntSize: 8,
		Data: join(8, "\xff\x25",
			rel32(gotAddr+0x100, pltAddr+0x106), "\x66\x90")}
	globDat := rela(".rela.dyn", c64,
		elfbuild.Reloc{Offset: gotAddr + 0x200, Type: uint32(elf.R_X86_64_RELATIVE), Addend: 77},
		elfbuild.Reloc{Offset: gotAddr + 0x100, Symbol: 3, Type: uint32(elf.R_X86_64_GLOB_DAT)},
		elfbuild.Reloc{Offset: gotAddr + 0x300, Symbol: 2, Type: uint32(elf.R_X86_64_GLOB_DAT)})
	tests := []struct {
		name     string
		sections []elfbuild.Section
		want     []string
	}{
		{name: "lazy", sections: []elfbuild.Section{lazyPLT, rela(".rela.plt", c64,
			slots(elf.R_X86_64_JMP_SLOT, 1, 2, 3)...)},
			want: []string{"puts@plt 0x401010+0x10", "exit@plt 0x401020+0x10",
				"malloc@plt 0x401030+0x10"}},
		{name: "relocations in another order", sections: []elfbuild.Section{lazyPLT,
			rela(".rela.plt", c64, slots(elf.R_X86_64_JMP_SLOT, 3, 1, 2)...)},
			want: []string{"malloc@plt 0x401010+0x10", "puts@plt 0x401020+0x10",
				"exit@plt 0x401030+0x10"}},
		{name: "-z now: no first entry", sections: []elfbuild.Section{
			sec(".plt", pltAddr, lazy(pltAddr, gotAddr+0x18, 0)),
			rela(".rela.plt", c64, slots(elf.R_X86_64_JMP_SLOT, 2)...)},
			want: []string{"exit@plt 0x401000+0x10"}},
		{name: "IBT", sections: []elfbuild.Section{
			sec(".plt", pltAddr, plt0(), ibt(0), ibt(1)),
			sec(".plt.sec", pltAddr+0x40, ibtSec(pltAddr+0x40, gotAddr+0x20),
				ibtSec(pltAddr+0x50, gotAddr+0x18)),
			rela(".rela.plt", c64, slots(elf.R_X86_64_JMP_SLOT, 1, 2)...)},
			want: []string{"puts@plt 0x401010+0x10", "exit@plt 0x401020+0x10", "exit@plt 0x401040+0x10",
				"puts@plt 0x401050+0x10"}},
		{name: ".plt.got of 8 bytes, slots in .rela.dyn",
			sections: []elfbuild.Section{short, globDat},
			want:     []string{"malloc@plt 0x401100+0x8"}},
		{name: ".plt.got with IBT", sections: []elfbuild.Section{
			sec(".plt.got", pltAddr, ibtSec(pltAddr, gotAddr+0x100)), globDat},
			want: []string{"malloc@plt 0x401000+0x10"}},
		{name: "slot without relocation", sections: []elfbuild.Section{lazyPLT,
			rela(".rela.plt", c64, slots(elf.R_X86_64_JMP_SLOT, 0, 2)...)},
			want: []string{"exit@plt 0x401020+0x10"}},
		{name: "symbol beyond .dynsym", sections: []elfbuild.Section{lazyPLT,
			rela(".rela.plt", c64, slots(elf.R_X86_64_JMP_SLOT, 99, 2)...)},
			want: []string{"exit@plt 0x401020+0x10"}},
		{name: "mold", sections: []elfbuild.Section{sec(".plt", pltAddr,
			join(32, endbr64+"\x41\x53\xff\x35", rel32(gotAddr+8, pltAddr+12), "\xff\x25",
				rel32(gotAddr+16, pltAddr+18)), moldStub(pltAddr+32, gotAddr+0x18, 0),
			moldStub(pltAddr+48, gotAddr+0x20, 1)), rela(".rela.plt", c64,
			slots(elf.R_X86_64_JMP_SLOT, 1, 2)...)},
			want: []string{"puts@plt 0x401020+0x10", "exit@plt 0x401030+0x10"}},
		{name: "retpolines of lld", sections: []elfbuild.Section{sec(".plt", pltAddr,
			join(48, "\xff\x35", rel32(gotAddr+8, pltAddr+6), "\x4c\x8b\x1d",
				rel32(gotAddr+16, pltAddr+13), "\xe8\x0e\x00\x00\x00"),
			join(32, "\x4c\x8b\x1d", rel32(gotAddr+0x18, pltAddr+48+7), "\xe8\xe4\xff\xff\xff"),
			join(32, "\x4c\x8b\x1d", rel32(gotAddr+0x20, pltAddr+80+7), "\xe8\xc4\xff\xff\xff")),
			rela(".rela.plt", c64, slots(elf.R_X86_64_JMP_SLOT, 1, 2)...)},
			want: []string{"puts@plt 0x401030+0x20", "exit@plt 0x401050+0x20"}},
		{name: "retpolines of lld, -z now", sections: []elfbuild.Section{sec(".plt", pltAddr,
			join(32, "\xe8\x0b\x00\x00\x00\xf3\x90"),
			join(16, "\x4c\x8b\x1d", rel32(gotAddr+0x18, pltAddr+32+7), "\xe9\xd4\xff\xff\xff"),
			join(16, "\x4c\x8b\x1d", rel32(gotAddr+0x20, pltAddr+48+7), "\xe9\xc4\xff\xff\xff")),
			rela(".rela.plt", c64, slots(elf.R_X86_64_JMP_SLOT, 1, 2)...)},
			want: []string{"puts@plt 0x401020+0x10", "exit@plt 0x401030+0x10"}},
		{name: "no relocations", sections: []elfbuild.Section{lazyPLT}},
		{name: "other code",
			sections: []elfbuild.Section{sec(".plt", pltAddr, make([]byte, 64)), globDat}},
		{name: "half an entry", sections: []elfbuild.Section{
			sec(".plt", pltAddr, lazy(pltAddr, gotAddr+0x18, 0), []byte("\xff\x25\x00")),
			rela(".rela.plt", c64, slots(elf.R_X86_64_JMP_SLOT, 2)...)},
			want: []string{"exit@plt 0x401000+0x10"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := open(t, pltFile(elf.EM_X86_64, tt.sections...))
			compare(t, tt.name, stubsOf(t, f), tt.want)
		})
	}
}

// TestPLTResolvers: functions chosen at load time are named after their resolver.
func TestPLTResolvers(t *testing.T) {
	plt := elfbuild.Section{Name: ".plt", Addr: pltAddr, EntSize: 16, Flags: elfbuild.Code,
		Data: slices.Concat(lazy(pltAddr, gotAddr+0x18, 0), lazy(pltAddr+16, gotAddr+0x20, 1))}
	code := elfbuild.Section{Name: ".text", Addr: 0x402000, Data: make([]byte, 64),
		Flags: elfbuild.Code}
	relocs := slots(elf.R_X86_64_IRELATIVE, 0, 0)
	relocs[0].Addend, relocs[1].Addend = 0x402000, 0x402020
	b := pltFile(elf.EM_X86_64, plt, code, rela(".rela.plt", elf.ELFCLASS64, relocs...))
	stripped := []string{"*ABS*+0x402000@plt 0x401000+0x10", "*ABS*+0x402020@plt 0x401010+0x10"}
	compare(t, "stripped", stubsOf(t, open(t, b)), stripped)

	ifunc := func(name string, bind elf.SymBind) elfbuild.Symbol {
		return elfbuild.Symbol{Name: name, Section: ".text", Value: 0x402000, Size: 16,
			Type: elf.STT_GNU_IFUNC, Bind: bind}
	}
	for range 2 { // in any order
		b.Symbols = []elfbuild.Symbol{ifunc("a_local", elf.STB_LOCAL),
			ifunc("strlen", elf.STB_GLOBAL),
			ifunc("strlen_alias", elf.STB_GLOBAL)}
		slices.Reverse(b.Symbols)
		compare(t, ".symtab", stubsOf(t, open(t, b)),
			[]string{"strlen@plt 0x401000+0x10", stripped[1]})
	}
	b.Dynsyms = append(b.Dynsyms, ifunc("zlast", elf.STB_GLOBAL))
	compare(t, ".dynsym first", stubsOf(t, open(t, b)),
		[]string{"zlast@plt 0x401000+0x10", stripped[1]})
}

func TestPLT386(t *testing.T) {
	const c32 = elf.ELFCLASS32
	le := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	got := elfbuild.Section{Name: ".got.plt", Addr: gotAddr, Flags: elfbuild.Data,
		Data: slices.Concat(make([]byte, 12), le(0), le(0), le(0x402000))}
	plt := elfbuild.Section{Name: ".plt", Addr: pltAddr, EntSize: 16, Flags: elfbuild.Code,
		Data: slices.Concat(
			join(16, "\xff\xb3\x04\x00\x00\x00\xff\xa3\x08\x00\x00\x00"), // plt0
			join(16, "\xff\xa3", le(12),
				"\x68\x00\x00\x00\x00\xe9\x00\x00\x00\x00"), // position-independent
			join(16, "\xff\x25", le(gotAddr+16), "\x68\x08\x00\x00\x00"), // absolute
			join(16, "\xff\x25", le(gotAddr+20)),                         // resolver
			join(16, endbr32,
				"\x68\x08\x00\x00\x00\xe9\x00\x00\x00\x00"), // lazy with IBT
			join(16, endbr32, "\xff\xa3",
				le(12)), // .plt.sec's form
			join(16, endbr32, "\xb9", le(8), "\xff\xa3", le(0x1014)), // mold's, from another base
			join(32, "\x50\x8b\x83", le(12), "\xe8\xe4\xff\xff\xff"), // lld's with retpolines
			join(32, "\x50\xa1", le(gotAddr+16), "\xe8\xe4\xff\xff\xff"),
		)}
	relocs := rela(".rel.plt", c32,
		elfbuild.Reloc{Offset: gotAddr + 12, Symbol: 3, Type: uint32(elf.R_386_JMP_SLOT)},
		elfbuild.Reloc{Offset: gotAddr + 16, Symbol: 1, Type: uint32(elf.R_386_JMP_SLOT)},
		elfbuild.Reloc{Offset: gotAddr + 20, Type: uint32(elf.R_386_IRELATIVE)})
	b := pltFile(elf.EM_386, plt, got, relocs)
	b.Segments = []elfbuild.Segment{{From: ".got.plt", To: ".got.plt"}}
	compare(t, "i386", stubsOf(t, open(t, b)), []string{
		"malloc@plt 0x401010+0x10", "puts@plt 0x401020+0x10", "*ABS*+0x402000@plt 0x401030+0x10",
		"puts@plt 0x401040+0x10", "malloc@plt 0x401050+0x10", "puts@plt 0x401060+0x10",
		"malloc@plt 0x401070+0x20", "puts@plt 0x401090+0x20"})
	// Without the segment the content of the resolver's slot is unknown.
	b.Segments = nil
	if got := stubsOf(t, open(t, b)); len(got) != 7 {
		t.Errorf("without segments: %q", got)
	}
}

func TestPLTarm64(t *testing.T) {
	insn := func(words ...uint32) []byte {
		var b []byte
		for _, w := range words {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return b
	}
	// As "adrp x16, 404000" at a page three pages before, and one page behind.
	const (
		forward  = 0xf0000010 // adrp x16, +3 pages: immlo 3
		backward = 0xf0fffff0 // adrp x16, -1 page
		add      = 0x91006210
		br       = 0xd61f0220
		bti      = 0xd503245f
		autia    = 0xd503219f
		nop      = 0xd503201f
	)
	ldr := func(off uint32) uint32 { return 0xf9400211 | off/8<<10 }
	plt := elfbuild.Section{Name: ".plt", Addr: pltAddr, Flags: elfbuild.Code, Data: insn(
		0xa9bf7bf0, forward, ldr(0x10), add, br, nop, nop, nop, // first entry
		forward, ldr(0x18), add, br,
		bti, forward, ldr(0x20), add, autia, br,
		forward, ldr(0x28), add, br)}
	got := elfbuild.Section{Name: ".iplt", Addr: gotAddr + 0x1000, Flags: elfbuild.Code,
		Data: insn(backward, ldr(0x30), add, br, backward)}
	b := pltFile(elf.EM_AARCH64, plt, got, rela(".rela.plt", elf.ELFCLASS64,
		elfbuild.Reloc{Offset: gotAddr + 0x18, Symbol: 3, Type: uint32(elf.R_AARCH64_JUMP_SLOT)},
		elfbuild.Reloc{Offset: gotAddr + 0x20, Symbol: 2, Type: uint32(elf.R_AARCH64_JUMP_SLOT)},
		elfbuild.Reloc{Offset: gotAddr + 0x28, Symbol: 1, Type: uint32(elf.R_AARCH64_GLOB_DAT)},
		elfbuild.Reloc{Offset: gotAddr + 0x30, Type: uint32(elf.R_AARCH64_IRELATIVE),
			Addend: 0x1230}))
	compare(t, "arm64", stubsOf(t, open(t, b)), []string{
		"malloc@plt 0x401020+0x10", "exit@plt 0x401030+0x18", "puts@plt 0x401048+0x10",
		"*ABS*+0x1230@plt 0x405000+0x14"})
}

func TestPLTriscv(t *testing.T) {
	const (
		lpad, nop = 0x17, 0x13
		jalr, jr  = 0x000e0367, 0x000e0067
	)
	for _, class := range []elf.Class{elf.ELFCLASS64, elf.ELFCLASS32} {
		load, word := uint32(0xe3e03), elf.R_RISCV_64
		if class == elf.ELFCLASS32 {
			load, word = 0xe2e03, elf.R_RISCV_32
		}
		var code []byte
		put := func(insn ...uint32) {
			for _, w := range insn {
				code = binary.LittleEndian.AppendUint32(code, w)
			}
		}
		// jump loads a slot with a jump's instructions around it.
		jump := func(slot uint64, behind ...uint32) {
			off := uint32(slot - pltAddr - uint64(len(code)))
			put((off+0x800)&^0xfff|0xe17, off<<20|load)
			put(behind...)
		}
		put(0x397, 0x41c30333, 0x80003e03|load&0x7000, 0xfd430313, 0x28293, 0x135313, nop, 0xe0067)
		jump(gotAddr+0x18, jalr, nop)
		put(lpad)
		jump(gotAddr+0x20, jalr)
		jump(gotAddr+0xf28, jr, nop) // a negative low part
		jump(pltAddr-0x1000, jalr)   // before the stubs
		plt := elfbuild.Section{Name: ".plt", Addr: pltAddr, Flags: elfbuild.Code, Data: code}
		b := pltFile(elf.EM_RISCV, plt, rela(".rela.plt", class,
			elfbuild.Reloc{Offset: gotAddr + 0x18, Symbol: 3, Type: uint32(elf.R_RISCV_JUMP_SLOT)},
			elfbuild.Reloc{Offset: gotAddr + 0x20, Symbol: 2, Type: uint32(elf.R_RISCV_JUMP_SLOT)},
			elfbuild.Reloc{Offset: gotAddr + 0xf28, Symbol: 1, Type: uint32(word)},
			elfbuild.Reloc{Offset: pltAddr - 0x1000, Symbol: 1, Type: uint32(elf.R_RISCV_JUMP_SLOT)}))
		b.Class = class
		compare(t, class.String(), stubsOf(t, open(t, b)), []string{
			"malloc@plt 0x401020+0x10", "exit@plt 0x401030+0x10", "puts@plt 0x401040+0x10",
			"puts@plt 0x401050+0xc"})
	}
}

func TestPLTs390x(t *testing.T) {
	var code []byte
	larl := func(to uint64) string {
		halfwords := int32(int64(to-pltAddr-uint64(len(code))) / 2)
		return string(binary.BigEndian.AppendUint32([]byte("\xc0\x10"), uint32(halfwords)))
	}
	const (
		load = "\xe3\x10\x10\x00\x00\x04" // lg %r1,0(%r1)
		br   = "\x07\xf1"
		rest = "\x0d\x10\xe3\x10\x10\x0c\x00\x14\xc0\xf4\xff\xff\xff\xe5\x00\x00\x00\x18"
	)
	code = append(code, "\xe3\x10\xf0\x38\x00\x24"...)
	code = append(code, larl(gotAddr)+"\xd2\x07\xf0\x30\x10\x08"+
		"\xe3\x10\x10\x10\x00\x04"+br+"\x07\x00\x07\x00\x07\x00"...)
	for _, slot := range []uint64{gotAddr + 0x18, pltAddr - 0x2000, gotAddr + 0x20} {
		code = append(code, larl(slot)+load+br+rest...)
	}
	code = append(code, larl(gotAddr+0x30)+load+"\xc0\x01\x00\x00\x00\x18"+br...) // mold's
	code = append(code, make([]byte, 12)...)
	code = append(code, larl(gotAddr+0x28)+load+br...)
	plt := elfbuild.Section{Name: ".plt", Addr: pltAddr, Flags: elfbuild.Code, Data: code}
	b := pltFile(elf.EM_S390, plt)
	b.BigEndian = true
	b.Sections = append(b.Sections, elfbuild.Section{Name: ".rela.plt", Type: elf.SHT_RELA,
		Flags: elf.SHF_ALLOC, Link: ".dynsym", Data: b.Rela(true,
			elfbuild.Reloc{Offset: gotAddr + 0x18, Symbol: 1, Type: uint32(elf.R_390_JMP_SLOT)},
			elfbuild.Reloc{Offset: pltAddr - 0x2000, Symbol: 2, Type: uint32(elf.R_390_JMP_SLOT)},
			elfbuild.Reloc{Offset: gotAddr + 0x20, Symbol: 3, Type: uint32(elf.R_390_GLOB_DAT)},
			elfbuild.Reloc{Offset: gotAddr + 0x30, Symbol: 1, Type: uint32(elf.R_390_JMP_SLOT)},
			elfbuild.Reloc{Offset: gotAddr + 0x28, Type: 61, Addend: 0x1230})})
	compare(t, "s390x", stubsOf(t, open(t, b)), []string{
		"puts@plt 0x401020+0x20", "exit@plt 0x401040+0x20", "malloc@plt 0x401060+0x20",
		"puts@plt 0x401080+0x20", "*ABS*+0x1230@plt 0x4010a0+0xe"})
}

// TestPLTNone: other machines, debug files and modules have no stubs that we read.
func TestPLTNone(t *testing.T) {
	plt := elfbuild.Section{Name: ".plt", Addr: pltAddr, EntSize: 16, Flags: elfbuild.Code,
		Data: lazy(pltAddr, gotAddr+0x18, 0)}
	b := pltFile(elf.EM_X86_64, plt, rela(".rela.plt", elf.ELFCLASS64,
		slots(elf.R_X86_64_JMP_SLOT, 1)...))
	if got := stubsOf(t, open(t, b)); len(got) != 1 {
		t.Fatalf("the file to start from has stubs %q", got)
	}
	debug := b.DebugOnly()
	debug.Dynsyms = b.Dynsyms
	module, ppc := *b, *b
	module.Type, ppc.Machine = elf.ET_REL, elf.EM_PPC64
	for _, f := range []*elfbuild.File{debug, &module, &ppc} {
		if got := stubsOf(t, open(t, f)); len(got) != 0 {
			t.Errorf("%v, %v: stubs %q", f.Machine, f.Type, got)
		}
	}
	n := 0
	if err := open(t, b).PLT(func(Symbol) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("%d visits, %v", n, err)
	}
}

// TestPLTSharedSlot: all stubs of one slot have one name, and a second relocation
// changes nothing.
func TestPLTSharedSlot(t *testing.T) {
	plt := elfbuild.Section{Name: ".plt", Addr: pltAddr, EntSize: 16, Flags: elfbuild.Code,
		Data: slices.Concat(lazy(pltAddr, gotAddr, 0), lazy(pltAddr+16, gotAddr, 0))}
	reloc := func(sym uint32) elfbuild.Reloc {
		return elfbuild.Reloc{Offset: gotAddr, Symbol: sym, Type: uint32(elf.R_X86_64_JMP_SLOT)}
	}
	b := pltFile(elf.EM_X86_64, plt, rela(".rela.dyn", elf.ELFCLASS64, reloc(2)),
		rela(".rela.plt", elf.ELFCLASS64, reloc(1), reloc(3), reloc(0)))
	compare(t, "shared", stubsOf(t, open(t, b)),
		[]string{"malloc@plt 0x401000+0x10", "malloc@plt 0x401010+0x10"})
}

func TestPLTBad(t *testing.T) {
	plt := elfbuild.Section{Name: ".plt", Addr: pltAddr, EntSize: 16, Flags: elfbuild.Code,
		Data: lazy(pltAddr, gotAddr+0x18, 0)}
	b := pltFile(elf.EM_X86_64, plt, rela(".rela.plt", elf.ELFCLASS64,
		slots(elf.R_X86_64_JMP_SLOT, 1)...))
	for _, name := range []string{".plt", ".rela.plt", ".dynsym", ".dynstr"} {
		f := open(t, b)
		f.Section(name).Size = 1 << 40
		wantError(t, f.PLT(func(Symbol) bool { return true }),
			"section "+name+" of 1099511627776 bytes is cut off")
	}
}

// TestDecoders: stubs are decoded exactly for the machines with relocations for them.
func TestDecoders(t *testing.T) {
	for _, a := range machine.All() {
		if got := pltDecoders[a.ELF] != nil; got != (a.Dynamic.JumpSlot != 0) {
			t.Errorf("%v: there is a decoder: %v", a.ELF, got)
		}
	}
}
