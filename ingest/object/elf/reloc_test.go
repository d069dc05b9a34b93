package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// Numbers of the symbols of relocatable.
const (
	symNone = iota
	symText
	symInit
	symData
	symString
	symAbs
	symUndefined
)

// relocatable declares an object with a section to be relocated, which is filled with
// 0x10 (REL) or 0xee (RELA), and its relocations.
func relocatable(fm form, m elf.Machine, rela bool, rels ...elfbuild.Reloc) *elfbuild.File {
	f := &elfbuild.File{
		Class: fm.class, BigEndian: fm.big, Machine: m, Type: elf.ET_REL,
		Sections: []elfbuild.Section{
			{Name: ".text", Flags: elfbuild.Code, Data: make([]byte, 64), Align: 16},
			{Name: ".init.text", Flags: elfbuild.Code, Data: make([]byte, 64), Align: 16},
			{Name: ".data", Flags: elfbuild.Data, Data: make([]byte, 64)},
			{Name: ".debug_str", Data: make([]byte, 64)},
			{Name: ".debug_info", Data: slices.Repeat([]byte{0xee}, 64)},
			{Name: ".debug_ranges", Data: slices.Repeat([]byte{0xee}, 64)},
			{Name: ".eh_frame", Flags: elf.SHF_ALLOC, Data: slices.Repeat([]byte{0xee}, 64)},
		},
		Symbols: []elfbuild.Symbol{
			{Name: "text", Section: ".text", Value: 0x10},
			{Name: "init", Section: ".init.text", Value: 0x20},
			{Name: "data", Section: ".data", Value: 0x30},
			{Section: ".debug_str", Value: 0, Type: elf.STT_SECTION},
			{Name: "abs", Section: "*ABS*", Value: 0x1234},
			{Name: "undefined"},
		},
	}
	for _, target := range []uint32{5, 6, 7} {
		s := elfbuild.Section{Name: ".rela" + f.Sections[target-1].Name, Type: elf.SHT_RELA,
			Link: ".symtab", Info: target, Data: f.Rela(rela, rels...)}
		if !rela {
			s.Name, s.Type = ".rel"+f.Sections[target-1].Name, elf.SHT_REL
		}
		f.Sections = append(f.Sections, s)
	}
	return f
}

// layoutOf places code by ModuleLayout, at a base, and .eh_frame at 0x9000.
func layoutOf(t testing.TB, f *File, base addr.Addr) func(int) (addr.Addr, bool) {
	t.Helper()
	placed, err := f.ModuleLayout()
	if err != nil {
		t.Fatal(err)
	}
	return func(section int) (addr.Addr, bool) {
		for _, p := range placed {
			if p.Index == section {
				return p.Addr + base, true
			}
		}
		return 0x9000, f.Sections[section].Name == ".eh_frame"
	}
}

// patched returns the contents of a section after its relocations.
func patched(t testing.TB, f *File, name string, fill byte) ([]byte, error) {
	t.Helper()
	r, err := f.Relocator(layoutOf(t, f, 0x5000))
	if err != nil {
		t.Fatal(err)
	}
	b := slices.Repeat([]byte{fill}, 64)
	return b, patchSection(r, name, b)
}

// patchSection applies the relocations for the first section of that name.
func patchSection(r *Relocator, name string, b []byte) error {
	i := slices.IndexFunc(r.f.Sections, func(s Section) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return r.Apply(i, b)
}

func TestRelocate(t *testing.T) {
	type rel = elfbuild.Reloc
	x := func(k elf.R_X86_64) uint32 { return uint32(k) }
	a := func(k elf.R_AARCH64) uint32 { return uint32(k) }
	i := func(k elf.R_386) uint32 { return uint32(k) }
	const x86, arm, x32 = elf.EM_X86_64, elf.EM_AARCH64, elf.EM_386
	init := uint64(InitBase) + 0x5000
	for _, c := range []struct {
		name    string
		machine elf.Machine
		r       rel
		size    int
		want    uint64
	}{
		{name: "x86 64", machine: x86,
			r: rel{Symbol: symText, Type: x(elf.R_X86_64_64), Addend: 3}, size: 8, want: 0x5013},
		{name: "x86 init", machine: x86, r: rel{Symbol: symInit, Type: x(elf.R_X86_64_64)},
			size: 8, want: init + 0x20},
		{name: "x86 negative", machine: x86, r: rel{Symbol: symText, Type: x(elf.R_X86_64_64),
			Addend: ^uint64(0)}, size: 8, want: 0x500f},
		{name: "x86 32", machine: x86,
			r: rel{Symbol: symString, Type: x(elf.R_X86_64_32), Addend: 7}, size: 4, want: 7},
		{name: "x86 32S", machine: x86, r: rel{Symbol: symText, Type: x(elf.R_X86_64_32S)},
			size: 4, want: 0x5010},
		{name: "x86 PC32", machine: x86,
			r: rel{Offset: 8, Symbol: symText, Type: x(elf.R_X86_64_PC32)}, size: 4,
			want: 0x5010 - 8},
		{name: "x86 PC64", machine: x86,
			r: rel{Offset: 8, Symbol: symText, Type: x(elf.R_X86_64_PC64)}, size: 8,
			want: 0x5010 - 8},
		{name: "x86 none", machine: x86, r: rel{Symbol: symText}, size: 4, want: 0xeeeeeeee},
		{name: "x86 no symbol", machine: x86, r: rel{Type: x(elf.R_X86_64_64), Addend: 9},
			size: 8, want: 9},
		{name: "x86 data", machine: x86,
			r: rel{Symbol: symData, Type: x(elf.R_X86_64_64), Addend: 9}, size: 8,
			want: ^uint64(0)},
		{name: "x86 undefined", machine: x86,
			r: rel{Symbol: symUndefined, Type: x(elf.R_X86_64_32)}, size: 4,
			want: 0xffffffff},
		{name: "x86 last", machine: x86,
			r: rel{Offset: 56, Symbol: symText, Type: x(elf.R_X86_64_64)}, size: 8,
			want: 0x5010},
		{name: "arm64 ABS64", machine: arm,
			r:    rel{Symbol: symText, Type: a(elf.R_AARCH64_ABS64), Addend: 1},
			size: 8, want: 0x5011},
		{name: "arm64 ABS32", machine: arm, r: rel{Symbol: symText, Type: a(elf.R_AARCH64_ABS32)},
			size: 4, want: 0x5010},
		{name: "arm64 PREL32", machine: arm, r: rel{Offset: 4, Symbol: symText,
			Type: a(elf.R_AARCH64_PREL32)}, size: 4, want: 0x500c},
		{name: "arm64 PREL64", machine: arm, r: rel{Offset: 8, Symbol: symText,
			Type: a(elf.R_AARCH64_PREL64)}, size: 8, want: 0x5008},
		{name: "i386 32", machine: x32, r: rel{Symbol: symText, Type: i(elf.R_386_32), Addend: 3},
			size: 4, want: 0x5013},
		{name: "i386 init", machine: x32, r: rel{Symbol: symInit, Type: i(elf.R_386_32)}, size: 4,
			want: 0xffffffff},
		{name: "i386 PC32", machine: x32,
			r: rel{Offset: 4, Symbol: symText, Type: i(elf.R_386_PC32)}, size: 4, want: 0x500c},
		{name: "arm ABS32", machine: elf.EM_ARM,
			r:    rel{Symbol: symText, Type: uint32(elf.R_ARM_ABS32), Addend: 3},
			size: 4, want: 0x5013},
		{name: "arm REL32", machine: elf.EM_ARM,
			r:    rel{Offset: 4, Symbol: symText, Type: uint32(elf.R_ARM_REL32)},
			size: 4, want: 0x500c},
		{name: "arm none", machine: elf.EM_ARM, r: rel{Symbol: symText}, size: 4,
			want: 0xeeeeeeee},
		{name: "ppc64 ADDR64", machine: elf.EM_PPC64,
			r: rel{Symbol: symText, Type: uint32(elf.R_PPC64_ADDR64),
				Addend: 3}, size: 8, want: 0x5013},
		{name: "ppc64 ADDR32", machine: elf.EM_PPC64,
			r:    rel{Symbol: symText, Type: uint32(elf.R_PPC64_ADDR32)},
			size: 4, want: 0x5010},
		{name: "ppc64 REL32", machine: elf.EM_PPC64, r: rel{Offset: 4, Symbol: symText,
			Type: uint32(elf.R_PPC64_REL32)}, size: 4, want: 0x500c},
		{name: "ppc64 REL64", machine: elf.EM_PPC64, r: rel{Offset: 8, Symbol: symText,
			Type: uint32(elf.R_PPC64_REL64)}, size: 8, want: 0x5008},
		{name: "s390 64", machine: elf.EM_S390,
			r: rel{Symbol: symText, Type: uint32(elf.R_390_64), Addend: 3}, size: 8,
			want: 0x5013},
		{name: "s390 32", machine: elf.EM_S390,
			r: rel{Symbol: symText, Type: uint32(elf.R_390_32)}, size: 4, want: 0x5010},
		{name: "s390 PC32", machine: elf.EM_S390, r: rel{Offset: 4, Symbol: symText,
			Type: uint32(elf.R_390_PC32)}, size: 4, want: 0x500c},
		{name: "s390 PC64", machine: elf.EM_S390, r: rel{Offset: 8, Symbol: symText,
			Type: uint32(elf.R_390_PC64)}, size: 8, want: 0x5008},
		{name: "ia64 DIR64LSB", machine: elf.EM_IA_64,
			r: rel{Symbol: symText, Type: 0x27, Addend: 3}, size: 8, want: 0x5013},
		{name: "ia64 SECREL32LSB", machine: elf.EM_IA_64,
			r: rel{Symbol: symString, Type: 0x65, Addend: 3}, size: 4, want: 3},
		{name: "ia64 PCREL32MSB", machine: elf.EM_IA_64,
			r: rel{Offset: 4, Symbol: symText, Type: 0x4c}, size: 4, want: 0x500c},
		{name: "alpha REFQUAD", machine: elf.EM_ALPHA, r: rel{Symbol: symText, Type: 2}, size: 8,
			want: 0x5010},
		{name: "alpha SREL32", machine: elf.EM_ALPHA,
			r: rel{Offset: 4, Symbol: symText, Type: 10}, size: 4, want: 0x500c},
		{name: "hppa64 DIR64", machine: elf.EM_PARISC, r: rel{Symbol: symText, Type: 80}, size: 8,
			want: 0x5010},
		{name: "sh DIR32", machine: elf.EM_SH, r: rel{Symbol: symText, Type: 1}, size: 4,
			want: 0x5010},
		{name: "ppc REL32", machine: elf.EM_PPC,
			r: rel{Offset: 4, Symbol: symText, Type: 26}, size: 4, want: 0x500c},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, fm := range forms {
				narrow := c.machine == x32 || c.machine == elf.EM_ARM || c.machine == elf.EM_SH ||
					c.machine == elf.EM_PPC
				if (fm.class == elf.ELFCLASS32) != narrow {
					continue
				}
				f := open(t, relocatable(fm, c.machine, true, c.r))
				b, err := patched(t, f, ".debug_info", 0xee)
				if err != nil {
					t.Fatal(err)
				}
				got := f.u64(b[min(c.r.Offset, 56):])
				if c.size == 4 {
					got = uint64(f.u32(b[c.r.Offset:]))
				}
				if got != c.want {
					t.Errorf("%v: %#x, want %#x", fm, got, c.want)
				}
				after := b[int(c.r.Offset)+c.size:]
				if bytes.Count(after, []byte{0xee}) != len(after) {
					t.Errorf("%v: more than %d bytes changed", fm, c.size)
				}
			}
		})
	}
}

// TestRelocateInPlace reads addends from the section.
func TestRelocateInPlace(t *testing.T) {
	rels := []elfbuild.Reloc{
		{Offset: 0, Symbol: symText, Type: uint32(elf.R_386_32)},
		{Offset: 8, Symbol: symText, Type: uint32(elf.R_386_PC32)},
	}
	for _, fm := range forms[2:] {
		f := open(t, relocatable(fm, elf.EM_386, false, rels...))
		b, err := patched(t, f, ".debug_info", 0x10)
		if got := f.u32(b); got != 0x10101010+0x5010 || err != nil {
			t.Errorf("%v: %#x, %v", fm, got, err)
		}
		if got := f.u32(b[8:]); got != 0x10101010+0x5010-8 {
			t.Errorf("%v: %#x relative", fm, got)
		}
	}
	rels = []elfbuild.Reloc{{Symbol: symText, Type: uint32(elf.R_X86_64_64)}}
	f := open(t, relocatable(forms[0], elf.EM_X86_64, false, rels...))
	b, err := patched(t, f, ".debug_info", 0x10)
	if got := f.u64(b); got != 0x1010101010101010+0x5010 || err != nil {
		t.Errorf("%#x, %v", got, err)
	}
}

// TestRelocateGone checks the tombstones of code without an address: in range lists, -1 would
// begin an entry of another kind.
func TestRelocateGone(t *testing.T) {
	f := open(t, relocatable(forms[0], elf.EM_X86_64, true,
		elfbuild.Reloc{Symbol: symData, Type: uint32(elf.R_X86_64_64), Addend: 5}))
	b, err := patched(t, f, ".debug_ranges", 0xee)
	if got := f.u64(b); got != ^uint64(0)-1 || err != nil {
		t.Errorf("%#x, %v", got, err)
	}
}

// TestRelocatePlaced relocates a section that has an address itself.
func TestRelocatePlaced(t *testing.T) {
	f := open(t, relocatable(forms[0], elf.EM_X86_64, true,
		elfbuild.Reloc{Offset: 8, Symbol: symText, Type: uint32(elf.R_X86_64_PC32)}))
	b, err := patched(t, f, ".eh_frame", 0xee)
	if got := int32(f.u32(b[8:])); got != 0x5010-0x9008 || err != nil {
		t.Errorf("%#x, %v", got, err)
	}
}

// TestRelocateErrors applies the supported relocations and reports the others.
func TestRelocateErrors(t *testing.T) {
	good := elfbuild.Reloc{Offset: 8, Symbol: symText, Type: uint32(elf.R_X86_64_64)}
	for _, c := range []struct {
		name string
		bad  elfbuild.Reloc
		want string
	}{
		{name: "type", bad: elfbuild.Reloc{Symbol: symText, Type: 99},
			want: "unsupported relocations"},
		{name: "offset",
			bad:  elfbuild.Reloc{Offset: 57, Symbol: symText, Type: uint32(elf.R_X86_64_64)},
			want: "outside its section"},
		{name: "far offset",
			bad:  elfbuild.Reloc{Offset: ^uint64(0) - 3, Type: uint32(elf.R_X86_64_64)},
			want: "outside its section"},
		{name: "symbol", bad: elfbuild.Reloc{Symbol: 100, Type: uint32(elf.R_X86_64_64)},
			want: "symbol 100"},
	} {
		f := open(t, relocatable(forms[0], elf.EM_X86_64, true, c.bad, good))
		b, err := patched(t, f, ".debug_info", 0xee)
		var de *decode.Error
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!errors.Is(err, ErrUnsupported) && !errors.As(err, &de) ||
			errors.Is(err, ErrUnsupported) != (c.name == "type") {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := f.u64(b[8:]); got != 0x5010 {
			t.Errorf("%s: the good one gave %#x", c.name, got)
		}
	}
	for _, m := range []elf.Machine{elf.EM_LOONGARCH, elf.EM_RISCV, elf.EM_ARM, elf.EM_PPC64,
		elf.EM_S390} {
		good.Type = 200 // of none of them
		f := open(t, relocatable(forms[0], m, true, good))
		if _, err := patched(t, f, ".debug_info", 0xee); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// TestRelocatorLinked refuses linked files, even with relocations in them.
func TestRelocatorLinked(t *testing.T) {
	for _, kind := range []elf.Type{elf.ET_EXEC, elf.ET_DYN} {
		b := relocatable(forms[0], elf.EM_X86_64, true)
		b.Type = kind
		f := open(t, b)
		if r, err := f.Relocator(nil); r != nil || !errors.Is(err, errNotRelocatable) {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// TestRelocatorOverlap refuses headers by which one part of the file holds the
// relocations of many sections.
func TestRelocatorOverlap(t *testing.T) {
	b := relocatable(forms[0], elf.EM_X86_64, true, make([]elfbuild.Reloc, 100)...)
	f := open(t, b)
	last := f.Sections[8]
	for range 20 {
		f.Sections = append(f.Sections, last)
	}
	if _, err := f.Relocator(nil); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("error %v", err)
	}
}

// relocateAll applies the relocations of every section of a file.
func relocateAll(t testing.TB, b []byte) {
	t.Helper()
	f, err := Open("test.so", bytes.NewReader(b), int64(len(b)))
	if err != nil || f.Type != elf.ET_REL {
		return
	}
	r, err := f.Relocator(func(s int) (addr.Addr, bool) { return addr.Addr(s), s%2 == 0 })
	var de *decode.Error
	if err != nil {
		if !errors.As(err, &de) {
			t.Errorf("error %v is no decode.Error", err)
		}
		return
	}
	for i := range f.Sections {
		buf := make([]byte, min(f.Sections[i].Size, 100))
		if err := r.Apply(i, buf); err != nil && !errors.As(err, &de) &&
			!errors.Is(err, ErrUnsupported) {
			t.Errorf("error %v is no decode.Error", err)
		}
	}
}

func relocSeeds() [][]byte {
	var seeds [][]byte
	rels := []elfbuild.Reloc{{Offset: 8, Symbol: symText, Type: 1}, {Symbol: symData, Type: 2}}
	for i, m := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64, elf.EM_386} {
		fm := forms[i%2]
		if m == elf.EM_386 {
			fm = forms[2]
		}
		seeds = append(seeds, relocatable(fm, m, i != 2, rels...).Bytes())
	}
	return seeds
}

// TestRelocateDamaged cuts files everywhere and flips bits of each byte.
func TestRelocateDamaged(t *testing.T) {
	for _, b := range relocSeeds() {
		for i := range b {
			relocateAll(t, b[:i])
			for _, bit := range []byte{1, 0x80, 0xff} {
				b[i] ^= bit
				relocateAll(t, b)
				b[i] ^= bit
			}
		}
	}
}

func FuzzRelocate(f *testing.F) {
	for _, b := range relocSeeds() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { relocateAll(t, b) })
}

func BenchmarkRelocate(b *testing.B) {
	rels := make([]elfbuild.Reloc, 100000)
	for i := range rels {
		rels[i] = elfbuild.Reloc{Offset: uint64(i * 8), Symbol: symText,
			Type: uint32(elf.R_X86_64_64), Addend: uint64(i)}
	}
	file := relocatable(forms[0], elf.EM_X86_64, true, rels...)
	f := open(b, file)
	r, err := f.Relocator(func(int) (addr.Addr, bool) { return 0x1000, true })
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 8*len(rels))
	b.SetBytes(int64(24 * len(rels)))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Apply(5, buf); err != nil {
			b.Fatal(err)
		}
	}
	if binary.LittleEndian.Uint64(buf[8:]) != 0x1011 {
		b.Error("not relocated")
	}
}
