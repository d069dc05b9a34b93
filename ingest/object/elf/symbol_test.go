package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/addr"
)

const text = elfbuild.TextAddr

// TestWhichSymbols covers perf's filter and our exceptions.
func TestWhichSymbols(t *testing.T) {
	arm, arm64, riscv := elf.EM_ARM, elf.EM_AARCH64, elf.EM_RISCV
	tests := []struct {
		name    string
		machine elf.Machine
		sym     elfbuild.Symbol
		want    string // "" for left out
	}{
		{name: "function", machine: 0,
			sym:  elfbuild.Symbol{Name: "f", Size: 8, Type: elf.STT_FUNC},
			want: "f 0x401000+0x8 end 0x401008"},
		{name: "ifunc", machine: 0,
			sym:  elfbuild.Symbol{Name: "memcpy", Size: 8, Type: elf.STT_GNU_IFUNC},
			want: "memcpy 0x401000+0x8 end 0x401008"},
		{name: "version kept", machine: 0,
			sym:  elfbuild.Symbol{Name: "f@@GLIBC_2.2.5", Size: 8, Type: elf.STT_FUNC},
			want: "f@@GLIBC_2.2.5 0x401000+0x8 end 0x401008"},
		{name: "hidden function", machine: 0,
			sym: elfbuild.Symbol{Name: "f", Size: 8, Type: elf.STT_FUNC,
				Vis: elf.STV_HIDDEN},
			want: "f 0x401000+0x8 end 0x401008"},
		{name: "label", machine: 0, sym: elfbuild.Symbol{Name: "_start"},
			want: "_start 0x401000+0x0 end 0x401100"},
		{name: "hidden label", machine: 0, sym: elfbuild.Symbol{Name: "l", Vis: elf.STV_HIDDEN}},
		{name: "internal label", machine: 0,
			sym: elfbuild.Symbol{Name: "l", Vis: elf.STV_INTERNAL}},
		{name: "protected label", machine: 0,
			sym:  elfbuild.Symbol{Name: "l", Vis: elf.STV_PROTECTED},
			want: "l 0x401000+0x0 end 0x401100"},
		{name: "assembler's label", machine: 0, sym: elfbuild.Symbol{Name: ".Ltmp3"}},
		{name: "dot function", machine: elf.EM_PPC,
			sym:  elfbuild.Symbol{Name: ".List", Size: 8, Type: elf.STT_FUNC},
			want: ".List 0x401000+0x8 end 0x401008"},
		{name: "data", machine: 0,
			sym: elfbuild.Symbol{Name: "table", Size: 8, Type: elf.STT_OBJECT}},
		{name: "section", machine: 0, sym: elfbuild.Symbol{Name: ".text", Type: elf.STT_SECTION}},
		{name: "file", machine: 0,
			sym: elfbuild.Symbol{Name: "a.c", Section: "*ABS*", Type: elf.STT_FILE}},
		{name: "thread-local", machine: 0,
			sym: elfbuild.Symbol{Name: "errno", Size: 4, Type: elf.STT_TLS}},
		{name: "without name", machine: 0, sym: elfbuild.Symbol{Size: 8, Type: elf.STT_FUNC}},
		{name: "undefined", machine: 0,
			sym: elfbuild.Symbol{Name: "puts", Section: "undefined", Type: elf.STT_FUNC}},
		{name: "absolute", machine: 0,
			sym: elfbuild.Symbol{Name: "abs", Section: "*ABS*", Type: elf.STT_FUNC}},
		{name: "function in data", machine: 0,
			sym: elfbuild.Symbol{Name: "f", Section: ".data", Size: 8,
				Type:  elf.STT_FUNC,
				Value: 0x100000}},
		{name: "before the section", machine: 0,
			sym: elfbuild.Symbol{Name: "f", Value: ^uint64(0), Size: 8,
				Type: elf.STT_FUNC}},
		{name: "end of the section", machine: 0, sym: elfbuild.Symbol{Name: "_etext", Value: 256}},
		{name: "beyond its section", machine: 0,
			sym: elfbuild.Symbol{Name: "f", Value: 250, Size: 1 << 40,
				Type: elf.STT_FUNC},
			want: "f 0x4010fa+0x10000000000 end 0x401100"},
		{name: "endless", machine: 0,
			sym:  elfbuild.Symbol{Name: "f", Value: 250, Size: ^uint64(0), Type: elf.STT_FUNC},
			want: "f 0x4010fa+0xffffffffffffffff end 0x401100"},
		{name: "Thumb bit", machine: arm,
			sym:  elfbuild.Symbol{Name: "f", Value: 9, Size: 4, Type: elf.STT_FUNC},
			want: "f 0x401008+0x4 end 0x40100c"},
		{name: "odd address elsewhere", machine: 0,
			sym: elfbuild.Symbol{Name: "f", Value: 9, Size: 4,
				Type: elf.STT_FUNC},
			want: "f 0x401009+0x4 end 0x40100d"},
		{name: "mapping symbol $a", machine: arm, sym: elfbuild.Symbol{Name: "$a"}},
		{name: "mapping symbol $d.3", machine: arm64, sym: elfbuild.Symbol{Name: "$d.3"}},
		{name: "mapping symbol $xrv64", machine: riscv, sym: elfbuild.Symbol{Name: "$xrv64i2p1"}},
		{name: "dollar on ARM", machine: arm, sym: elfbuild.Symbol{Name: "$b"},
			want: "$b 0x401000+0x0 end 0x401100"},
		{name: "dollar on x86", machine: 0, sym: elfbuild.Symbol{Name: "$d"},
			want: "$d 0x401000+0x0 end 0x401100"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := elfbuild.Lib(nil, 256)
			b.Machine = tt.machine
			s := tt.sym
			switch s.Section {
			case "":
				s.Section = ".text"
			case "undefined":
				s.Section = ""
			}
			s.Value += text
			for _, table := range []Table{Symtab, Dynsym} {
				b.Symbols, b.Dynsyms = nil, []elfbuild.Symbol{s}
				if table == Symtab {
					b.Symbols, b.Dynsyms = b.Dynsyms, nil
				}
				var want []string
				if tt.want != "" {
					want = []string{tt.want}
				}
				compare(t, tt.name, symbols(t, open(t, b), table), want)
			}
		})
	}
}

// TestUnsizedEnds checks where symbols without a size end.
func TestUnsizedEnds(t *testing.T) {
	b := elfbuild.Lib(nil, 256).With(elfbuild.Section{
		Name: ".fini", Flags: elfbuild.Code, Addr: text + 256, Data: make([]byte,
			16), Congruent: true})
	fn := func(name string, at, size uint64, kind elf.SymType) elfbuild.Symbol {
		return elfbuild.Symbol{Name: name, Section: ".text", Value: text + at, Size: size,
			Type: kind}
	}
	b.Symbols = []elfbuild.Symbol{ // in no order
		fn("last", 0xf0, 0, elf.STT_FUNC),
		fn("a", 0x10, 0, elf.STT_FUNC),
		fn("a_alias", 0x10, 0, elf.STT_NOTYPE),
		fn("a_sized", 0x10, 4, elf.STT_FUNC),
		fn(".Linner", 0x14, 0, elf.STT_NOTYPE), // ends nothing
		fn("", 0x16, 0, elf.STT_SECTION),
		fn("b", 0x20, 0, elf.STT_FUNC),
		fn("table", 0x28, 8, elf.STT_OBJECT), // ends b
		fn("c", 0x40, 0x20, elf.STT_FUNC),
		fn("d", 0x30, 0, elf.STT_FUNC), // ended by c
		{Name: "_fini", Section: ".fini", Value: text + 256, Type: elf.STT_FUNC},
	}
	compare(t, "ends", symbols(t, open(t, b), Symtab), []string{
		"last 0x4010f0+0x0 end 0x401100",
		"a 0x401010+0x0 end 0x401020",
		"a_alias 0x401010+0x0 end 0x401020",
		"a_sized 0x401010+0x4 end 0x401014",
		"b 0x401020+0x0 end 0x401028",
		"c 0x401040+0x20 end 0x401060",
		"d 0x401030+0x0 end 0x401040",
		"_fini 0x401100+0x0 end 0x401110",
	})
}

// TestUnsizedAtRandom compares the ends with the ends that a sort gives.
func TestUnsizedAtRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		const size = 1 << 14
		b := elfbuild.Lib(nil, size)
		starts := []uint64{text + size}
		for i := range 4000 { // more than one block of a table
			s := elfbuild.Symbol{Name: fmt.Sprint("f", i), Section: ".text", Type: elf.STT_FUNC,
				Value: text + rnd.Uint64N(size), Size: rnd.Uint64N(3)}
			b.Symbols = append(b.Symbols, s)
			starts = append(starts, s.Value)
		}
		slices.Sort(starts)
		i := 0
		err := open(t, b).Symbols(Symtab, func(s Symbol) bool {
			in := b.Symbols[i]
			i++
			want := min(in.Value+in.Size, text+size)
			if in.Size == 0 {
				at, _ := slices.BinarySearch(starts, in.Value+1)
				want = starts[at]
			}
			if uint64(s.End) != want {
				t.Errorf("%+v ends at %#x, want %#x", in, s.End, want)
			}
			return true
		})
		if err != nil || i != len(b.Symbols) {
			t.Fatalf("%d symbols, %v", i, err)
		}
	}
}

func TestStopVisit(t *testing.T) {
	b := elfbuild.Lib(nil, 64, elfbuild.Func{Name: "a", Size: 1}, elfbuild.Func{Name: "b", Size: 1})
	n := 0
	if err := open(t, b).Symbols(Symtab, func(Symbol) bool { n++; return false }); err != nil ||
		n != 1 {
		t.Errorf("%d visits, %v", n, err)
	}
}

// TestDebugFileSymbols: sections without contents still hold functions.
func TestDebugFileSymbols(t *testing.T) {
	b := elfbuild.Lib(testID, 64, elfbuild.Func{Name: "f", Offset: 4, Size: 8}).DebugOnly()
	compare(t, "debug file", symbols(t, open(t, b), Symtab),
		[]string{"f 0x401004+0x8 end 0x40100c"})
}

// TestDescriptorsOfModules: before they are loaded, relocations say what descriptors point to.
func TestDescriptorsOfModules(t *testing.T) {
	b := elfbuild.Module(nil, 0x100)
	b.Machine, b.BigEndian = elf.EM_PPC64, true
	b.Symbols = []elfbuild.Symbol{{Section: ".text", Type: elf.STT_SECTION},
		{Section: ".init.text", Type: elf.STT_SECTION}}
	reloc := func(off uint64, sym uint32, kind elf.R_PPC64, addend int64) elfbuild.Reloc {
		return elfbuild.Reloc{Offset: off, Symbol: sym, Type: uint32(kind), Addend: uint64(addend)}
	}
	b = b.With(elfbuild.Section{Name: ".opd", Flags: elfbuild.Data, Data: make([]byte, 96)})
	b = b.With(elfbuild.Section{Name: ".rela.opd", Type: elf.SHT_RELA, Link: ".symtab",
		Info: uint32(len(b.Sections)), Data: b.Rela(true,
			reloc(0, 1, elf.R_PPC64_ADDR64, 0), reloc(8, 0, elf.R_PPC64_TOC, 0),
			reloc(24, 1, elf.R_PPC64_ADDR64, 0x40), reloc(48, 2, elf.R_PPC64_ADDR64, 0),
			reloc(72, 1, elf.R_PPC64_ADDR64, 0x5000))})
	at := func(name string, off uint64) elfbuild.Symbol {
		return elfbuild.Symbol{Name: name, Section: ".opd", Value: off, Size: 8, Type: elf.STT_FUNC}
	}
	b.Symbols = append(b.Symbols, at("first", 0), at("second", 24), at("init", 48),
		at("outside", 72), at("far", 0x1000))
	f := open(t, b)
	placed, err := f.ModuleLayout()
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]addr.Addr{}
	for _, s := range placed {
		where[f.Sections[s.Index].Name] = s.Addr
	}
	line := func(name string, a addr.Addr) string {
		return fmt.Sprintf("%s %#x+0x8 end %#x", name, a, a+8)
	}
	compare(t, "module", symbols(t, f, Symtab), []string{line("first", where[".text"]),
		line("second", where[".text"]+0x40), line("init", where[".init.text"])})
}

// TestDescriptors: on 64-bit PowerPC (ELFv1) symbols point to descriptors.
func TestDescriptors(t *testing.T) {
	b := elfbuild.Lib(nil, 256)
	b.Machine, b.BigEndian = elf.EM_PPC64, true
	opd := binary.BigEndian.AppendUint64(nil, text+0x20)
	opd = append(opd, make([]byte, 16)...)
	opd = binary.BigEndian.AppendUint64(opd, 0x1234) // points nowhere
	b = b.With(elfbuild.Section{Name: ".opd", Flags: elfbuild.Data, Addr: 0x700000, Data: opd},
		elfbuild.Section{Name: ".init", Flags: elfbuild.Code, Addr: 0x100, Data: make([]byte, 16)})
	at := func(name string, off uint64) elfbuild.Symbol {
		return elfbuild.Symbol{Name: name, Section: ".opd", Value: 0x700000 + off, Size: 8,
			Type: elf.STT_FUNC}
	}
	b.Symbols = []elfbuild.Symbol{at("main", 0), at("lost", 24), at("outside", 32),
		at("far", 1<<40)}
	compare(t, ".opd", symbols(t, open(t, b), Symtab), []string{"main 0x401020+0x8 end 0x401028"})
	// A debug file has no descriptors to follow.
	if got := symbols(t, open(t, b.DebugOnly()), Symtab); len(got) != 0 {
		t.Errorf("debug file: %q", got)
	}
}

func TestBadSymbolTables(t *testing.T) {
	good := elfbuild.Lib(nil, 64, elfbuild.Func{Name: "f", Size: 8})
	tests := []struct {
		name   string
		change func(f *File, symtab, strtab *Section)
		want   string // "" for no error
		left   int    // symbols
	}{
		{name: "entry size", change: func(_ *File, s, _ *Section) { s.EntSize = 20 },
			want: "symbol size 20, not 24", left: 0},
		{name: "entry size not said", change: func(_ *File, s, _ *Section) { s.EntSize = 0 },
			left: 1},
		{name: "cut off", change: func(_ *File, s, _ *Section) { s.Size = 1 << 40 },
			want: "section .symtab of", left: 0},
		{name: "half an entry", change: func(_ *File, s, _ *Section) { s.Size -= 10 }, left: 0},
		{name: "no names", change: func(_ *File, s, _ *Section) { s.Link = 0 },
			want: "names of .symtab: test.so", left: 0},
		{name: "names in no section", change: func(_ *File, s, _ *Section) { s.Link = 99 },
			want: "section 99", left: 0},
		{name: "names cut off", change: func(_ *File, _, n *Section) { n.Offset = 1 << 40 },
			want: "section .strtab of", left: 0},
		{name: "names without contents",
			change: func(_ *File, _, n *Section) { n.Type = elf.SHT_NOBITS },
			want:   "no contents", left: 0},
		{name: "names too short", change: func(_ *File, _, n *Section) { n.Size = 1 }, left: 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := open(t, good)
			tt.change(f, f.Section(".symtab"), f.Section(".strtab"))
			n := 0
			err := f.Symbols(Symtab, func(Symbol) bool { n++; return true })
			if n != tt.left {
				t.Errorf("%d symbols, want %d", n, tt.left)
			}
			if tt.want == "" && err != nil {
				t.Error(err)
			} else if tt.want != "" {
				wantError(t, err, tt.want)
			}
		})
	}
	f := open(t, good.Stripped())
	if err := f.Symbols(Symtab,
		func(Symbol) bool { t.Error("a symbol"); return true }); err != nil {
		t.Error(err)
	}
	if f.HasSymbols(Symtab) || f.SymbolBytes(Symtab) != 0 ||
		open(t, good).SymbolBytes(Symtab) != 2*24+3 {
		t.Error("HasSymbols or SymbolBytes is wrong")
	}
}

// TestManySections: SHT_SYMTAB_SHNDX holds an index over 65,279.
func TestManySections(t *testing.T) {
	b := &elfbuild.File{ManySections: true}
	const n = 0xff10
	for i := range n {
		b.Sections = append(b.Sections, elfbuild.Section{Name: fmt.Sprint(".text.", i),
			Flags: elfbuild.Code, Addr: uint64(i) * 16, Data: make([]byte, 16)})
	}
	b.Symbols = []elfbuild.Symbol{{Name: "low", Section: ".text.5", Value: 0x50, Size: 4,
		Type: elf.STT_FUNC},
		{Name: "high", Section: ".text.5", Value: (n - 1) * 16, Size: 4, Type: elf.STT_FUNC}}
	wide := binary.LittleEndian.AppendUint32(make([]byte, 8), n) // of the symbol "high"
	b.Sections = append(b.Sections, elfbuild.Section{Name: ".symtab_shndx",
		Type: elf.SHT_SYMTAB_SHNDX,
		Data: wide, Link: ".symtab"})
	raw := b.Bytes()
	// The builder cannot write SHN_XINDEX: make the second symbol's index one.
	f := openBytes(t, raw)
	copy(raw[uint64(f.Section(".symtab").Offset)+2*24+6:], "\xff\xff")
	compare(t, "many sections", symbols(t, openBytes(t, raw), Symtab),
		[]string{"low 0x50+0x4 end 0x54", "high 0xff0f0+0x4 end 0xff0f4"})
}

func TestLongName(t *testing.T) {
	name := strings.Repeat("x", maxName+5)
	b := elfbuild.Lib(nil, 64, elfbuild.Func{Name: name, Size: 8},
		elfbuild.Func{Name: "f", Size: 8})
	var got []string
	if err := open(t, b).Symbols(Symtab, func(s Symbol) bool {
		got = append(got,
			s.Name)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	compare(t, "names", got, []string{name[:maxName], "f"})
}

func BenchmarkOpen(b *testing.B) {
	raw := elfbuild.Lib(testID, 1<<16).Bytes()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open("bench", bytes.NewReader(raw), int64(len(raw))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSymbols visits 100,000 symbols, of which every tenth has no size.
func BenchmarkSymbols(b *testing.B) {
	const n = 100_000
	file := elfbuild.Lib(nil, n*16)
	for i := range n {
		file.Symbols = append(file.Symbols, elfbuild.Symbol{
			Name: fmt.Sprintf("_ZN4room%dfunctionEv", i), Section: ".text", Type: elf.STT_FUNC,
			Value: text + uint64(i*7919%n)*16, Size: uint64(min(i%10, 1)) * 16})
	}
	raw := file.Bytes()
	b.SetBytes(openBytes(b, raw).SymbolBytes(Symtab))
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open("bench", bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			b.Fatal(err)
		}
		count := 0
		if err := f.Symbols(Symtab, func(Symbol) bool { count++; return true }); err != nil ||
			count != n {
			b.Fatal(count, err)
		}
	}
}
