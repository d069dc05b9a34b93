package elf

import (
	"bytes"
	"debug/elf"
	"maps"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// TestMapped finds bytes by their addresses, by sections and without.
func TestMapped(t *testing.T) {
	for _, fm := range forms {
		for _, headless := range []bool{false, true} {
			b := lib(fm)
			b.NoHeaders = headless
			f := open(t, b)
			for _, c := range []struct {
				at addr.Addr
				n  uint64
				ok bool
			}{
				{at: elfbuild.TextAddr, n: 256, ok: true},
				{at: elfbuild.TextAddr + 255, n: 1, ok: true},
				{at: elfbuild.TextAddr + 256, n: 0},
				{at: elfbuild.TextAddr - 1, n: 0},
				{at: elfbuild.TextAddr + 0x100010, n: 48, ok: true}, // .data
				{at: elfbuild.TextAddr + 0x100040, n: 0},            // .bss
				{at: ^addr.Addr(0), n: 0},
			} {
				off, n, ok := f.Mapped(c.at)
				if ok != c.ok || n != c.n {
					t.Errorf("%v headless %v: %#x is %d bytes, %v", fm, headless, c.at, n, ok)
				}
				if ok && c.at < elfbuild.TextAddr+256 {
					var got [1]byte
					if err := f.ReadBytes(off, got[:]); err != nil || got[0] != 0x90 {
						t.Errorf("%#x at %#x: %x, %v", c.at, off, got, err)
					}
				}
			}
		}
	}
	// A debug file's program headers are not valid.
	f := open(t, lib(forms[0]).DebugOnly())
	if _, _, ok := f.Mapped(elfbuild.TextAddr); ok {
		t.Error("a debug file has code")
	}
}

// TestOpenCore: segments of core files count where they are asked for.
func TestOpenCore(t *testing.T) {
	b := lib(forms[0])
	b.Type, b.NoHeaders = elf.ET_CORE, true
	data := b.Bytes()
	for _, core := range []bool{false, true} {
		read := Open
		if core {
			read = OpenCore
		}
		f, err := read("kcore", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if _, n, ok := f.Mapped(elfbuild.TextAddr); ok != core || core && n != 256 {
			t.Errorf("core %v: %d bytes, %v", core, n, ok)
		}
	}
	for n := range len(data) { // each prefix is read or refused
		f, err := OpenCore("kcore", bytes.NewReader(data[:n]), int64(n))
		if err == nil {
			f.Mapped(elfbuild.TextAddr)
		}
	}
}

// TestMappedCut has a section that the file does not hold to its end.
func TestMappedCut(t *testing.T) {
	f := open(t, lib(forms[0]))
	s := f.Section(".text")
	f.size = int64(s.Offset) + 10
	if _, n, ok := f.Mapped(s.Addr + 4); !ok || n != 6 {
		t.Errorf("%d bytes, %v", n, ok)
	}
	if _, _, ok := f.Mapped(s.Addr + 10); ok {
		t.Error("bytes after the end of the file")
	}
	s.Offset = ^addr.Offset(0) - 3
	if _, _, ok := f.Mapped(s.Addr + 8); ok {
		t.Error("bytes at an offset that wraps around")
	}
}

func TestRelative(t *testing.T) {
	for _, m := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64, elf.EM_PPC64, elf.EM_S390,
		elf.EM_RISCV, elf.EM_LOONGARCH, elf.EM_MIPS} {
		b := lib(forms[0])
		b.Machine = m
		kind := uint32(0)
		if arch := machine.Of(m); arch != nil {
			kind = arch.Dynamic.Relative
		}
		rels := b.Rela(true,
			elfbuild.Reloc{Offset: 0x10, Type: kind, Addend: 0x1000},
			elfbuild.Reloc{Offset: 0x18, Type: 0x77, Addend: 0x2000},
			elfbuild.Reloc{Offset: 0x20, Type: kind, Addend: 0x3000})
		f := open(t, b.With(
			elfbuild.Section{Name: ".rela.dyn", Type: elf.SHT_RELA, Flags: elf.SHF_ALLOC,
				Data: rels},
			elfbuild.Section{Name: ".rela.debug_info", Type: elf.SHT_RELA, Data: rels}))
		got := map[addr.Addr]addr.Addr{}
		err := f.Relative(func(at, v addr.Addr) bool { got[at] += v; return true })
		want := map[addr.Addr]addr.Addr{0x10: 0x1000, 0x20: 0x3000}
		if m == elf.EM_MIPS {
			clear(want)
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%v: %v, %v", m, got, err)
		}
		n := 0
		if f.Relative(func(_, _ addr.Addr) bool { n++; return false }); n != min(len(want), 1) {
			t.Errorf("%v: %d visited after the end", m, n)
		}
	}
}

func TestValues(t *testing.T) {
	b := lib(forms[0], elfbuild.Func{Name: "one"}, elfbuild.Func{Name: "one", Offset: 16})
	b.Symbols = append(b.Symbols, elfbuild.Symbol{Name: "object", Section: ".data", Value: 77,
		Type: elf.STT_OBJECT}, elfbuild.Symbol{Name: "extern"})
	f := open(t, b)
	got, err := f.Values("object", "one", "on", "extern", "none")
	want := map[string]addr.Addr{"object": 77, "one": elfbuild.TextAddr}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := open(t, b.Stripped()).Values("one"); len(got) != 0 || err != nil {
		t.Errorf("%v of a stripped file, %v", got, err)
	}
}
