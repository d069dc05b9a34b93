package lookup

import (
	"bytes"
	debugelf "debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
)

// llvmFile is a file with aliases, local symbols and odd ones. llvm-symbolizer 14 gave the answers
// of TestLLVMSymbols for this file, but that it names data too.
func llvmFile(dynamic bool) *elfbuild.File {
	const local, global = debugelf.STB_LOCAL, debugelf.STB_GLOBAL
	const fn = debugelf.STT_FUNC
	syms := []elfbuild.Symbol{
		{Name: "one.c", Section: "*ABS*", Type: debugelf.STT_FILE},
		{Name: "static_one", Section: ".text", Value: 0x1000, Size: 0x10, Type: fn, Bind: local},
		{Name: "two.S", Section: "*ABS*", Type: debugelf.STT_FILE},
		{Name: "label", Section: ".text", Value: 0x1030, Bind: local},
		{Name: "section", Section: ".text", Value: 0x1038, Type: debugelf.STT_SECTION},
		{Name: "object", Section: ".text", Value: 0x1040, Size: 8, Type: debugelf.STT_OBJECT},
		{Name: "first", Section: ".text", Value: 0x1010, Size: 0x10, Type: fn, Bind: global},
		{Name: "last", Section: ".text", Value: 0x1010, Size: 0x10, Type: fn,
			Bind: debugelf.STB_WEAK},
		{Name: "short", Section: ".text", Value: 0x1010, Size: 8, Type: fn, Bind: global},
		{Name: "data", Section: ".data", Value: 0x2000, Type: debugelf.STT_OBJECT, Bind: global},
		{Name: "imported", Type: fn, Bind: global},
	}
	f := &elfbuild.File{Sections: []elfbuild.Section{
		{Name: ".text", Flags: debugelf.SHF_ALLOC | debugelf.SHF_EXECINSTR, Addr: 0x1000,
			Data: make([]byte, 0x100)},
		{Name: ".data", Flags: debugelf.SHF_ALLOC | debugelf.SHF_WRITE, Addr: 0x2000,
			Data: make([]byte, 0x100)},
	}}
	if dynamic {
		f.Dynsyms = syms
	} else {
		f.Symbols = syms
	}
	return f
}

func TestLLVMSymbols(t *testing.T) {
	for _, dynamic := range []bool{false, true} {
		b := llvmFile(dynamic).Bytes()
		f, err := elf.Open("x", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := readLLVMSymbols(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			at         uint64
			name, file string
		}{
			{at: 0xfff}, {at: 0x1000, name: "static_one", file: "one.c"}, {at: 0x100f,
				name: "static_one", file: "one.c"},
			{at: 0x1010, name: "last"}, {at: 0x101f, name: "last"}, {at: 0x1020}, {at: 0x1030,
				name: "label", file: "two.S"},
			{at: 0x103f, name: "label", file: "two.S"}, {at: 0x1047, name: "object",
				file: "two.S"}, {at: 0x1048},
			{at: 0x2000}, {at: 0}, {at: 1<<64 - 1},
		} {
			got, file := "", ""
			if i := p.find(tt.at); i >= 0 {
				if i >= len(p.symbols) {
					t.Fatalf("symbol %d of %d", i, len(p.symbols))
				}
				got, file = p.symbols[i].Name, p.symbols[i].File
			}
			if got != tt.name || file != tt.file {
				t.Errorf("%#x: %q of %q, want %q of %q", tt.at, got, file, tt.name, tt.file)
			}
		}
	}
}

// Mapping symbols, and objects without a size, as the start of RISC-V's .plt, name no code.
func TestLLVMSymbolsLabels(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine debugelf.Machine
		symbol  elfbuild.Symbol
		want    string
	}{
		{"RISC-V", debugelf.EM_RISCV, elfbuild.Symbol{Name: "$xrv64i2p1_m2p0"}, "static_one"},
		{"AArch64", debugelf.EM_AARCH64, elfbuild.Symbol{Name: "$d.1"}, "static_one"},
		{"dollar elsewhere", debugelf.EM_X86_64, elfbuild.Symbol{Name: "$x"}, "$x"},
		{"object", debugelf.EM_RISCV, elfbuild.Symbol{Name: "_PROCEDURE_LINKAGE_TABLE_",
			Type: debugelf.STT_OBJECT}, "static_one"},
		{"object with a size", debugelf.EM_RISCV, elfbuild.Symbol{Name: "o", Size: 8,
			Type: debugelf.STT_OBJECT}, "o"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := llvmFile(false)
			file.Machine = c.machine
			c.symbol.Section, c.symbol.Value = ".text", 0x1004
			file.Symbols = append(file.Symbols[:2:2], c.symbol)
			b := file.Bytes()
			f, err := elf.Open("x", bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			p, err := readLLVMSymbols(f)
			if err != nil {
				t.Fatal(err)
			}
			if i := p.find(0x1006); i < 0 || p.symbols[i].Name != c.want {
				t.Errorf("symbol %d of %v, want %s", i, p.symbols, c.want)
			}
		})
	}
}

// TestLLVMSymbolsUnsizedLast: a label reaches to the end of its section, not beyond.
func TestLLVMSymbolsUnsizedLast(t *testing.T) {
	file := llvmFile(false)
	file.Symbols = file.Symbols[3:4]
	b := file.Bytes()
	f, err := elf.Open("x", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := readLLVMSymbols(f)
	if err != nil {
		t.Fatal(err)
	}
	if p.find(0x10ff) != 0 || p.find(0x1100) != -1 || p.find(0x2000) != -1 {
		t.Errorf("%d %d %d", p.find(0x10ff), p.find(0x1100), p.find(0x2000))
	}
}

// TestLLVMSymbolsDamaged: every file cut off gives symbols or an error, and the part that was read
// answers.
func TestLLVMSymbolsDamaged(t *testing.T) {
	file := llvmFile(false)
	file.HeadersFirst = true
	whole := file.Bytes()
	for n := range whole {
		f, err := elf.Open("x", bytes.NewReader(whole[:n]), int64(n))
		if err != nil {
			continue
		}
		p, err := readLLVMSymbols(f)
		if p == nil {
			t.Fatalf("%d bytes: nothing, %v", n, err)
		}
		for a := uint64(0xff0); a < 0x1110; a += 8 {
			if i := p.find(a); i >= len(p.symbols) {
				t.Fatalf("%d bytes: symbol %d of %d", n, i, len(p.symbols))
			}
		}
	}
}

// TestLLVMSymbolsJoin: a batch finds the same as single look-ups, also where addresses of a
// kernel count from a base and wrap.
func TestLLVMSymbolsJoin(t *testing.T) {
	b := llvmFile(false).Bytes()
	f, err := elf.Open("x", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := readLLVMSymbols(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range []addr.Addr{0, 0x800, 0x1030} {
		var addrs []addr.Addr
		for a := range addr.Addr(0x1200) {
			addrs = append(addrs, a)
		}
		addrs = append(addrs, 0xffff_ffff_ffff_f000, 0xffff_ffff_ffff_fff0)
		found := make([]int32, len(addrs))
		p.join(addrs, base, found)
		named := 0
		for i, a := range addrs {
			if want := p.find(uint64(a + base)); int(found[i]) != want {
				t.Fatalf("base %#x, %#x: symbol %d, alone %d", base, a, found[i], want)
			}
			if found[i] >= 0 {
				named++
			}
		}
		if named < 20 {
			t.Errorf("base %#x: %d named", base, named)
		}
	}
}

// find returns the number of the symbol for an address of code, −1 if there is none: a binary
// search, against which join is compared.
func (p *llvmSymbols) find(a uint64) int {
	i, _ := slices.BinarySearchFunc(p.symbols, a, func(s llvmSymbol, a uint64) int {
		if s.Start <= a {
			return -1
		}
		return 1
	})
	return p.covering(i-1, a)
}

// TestLLVMSymbolsOfMachines: function descriptors of 64-bit PowerPC are followed, the Thumb bit of
// ARM is no part of an address, and symbols that mark code and data name nothing.
func TestLLVMSymbolsOfMachines(t *testing.T) {
	code := elfbuild.Section{Name: ".text", Flags: elfbuild.Code, Addr: 0x1000, Data: make([]byte, 0x100)}
	const fn, local = debugelf.STT_FUNC, debugelf.STB_LOCAL
	opd := binary.BigEndian.AppendUint64(nil, 0x1020)
	for _, c := range []struct {
		name string
		file elfbuild.File
		want []llvmSymbol
	}{
		{name: "ppc64",
			file: elfbuild.File{Class: debugelf.ELFCLASS64, BigEndian: true, Machine: debugelf.EM_PPC64,
				Sections: []elfbuild.Section{code, {Name: ".opd", Flags: elfbuild.Data, Addr: 0x7000,
					Data: append(opd, make([]byte, 16)...)}},
				Symbols: []elfbuild.Symbol{
					{Name: "0000.plt_call.x", Section: ".text", Value: 0x1000, Type: fn, Bind: local},
					{Name: "work", Section: ".opd", Value: 0x7000, Size: 8, Type: fn}}},
			want: []llvmSymbol{{Start: 0x1000, Name: "0000.plt_call.x"}, {Start: 0x1020, Size: 8, Name: "work"}}},
		{name: "thumb", file: elfbuild.File{Class: debugelf.ELFCLASS32, Machine: debugelf.EM_ARM,
			Sections: []elfbuild.Section{code},
			Symbols: []elfbuild.Symbol{
				{Name: "$t", Section: ".text", Value: 0x1010, Bind: local},
				{Name: "$d.7", Section: ".text", Value: 0x1018, Bind: local},
				{Name: "work", Section: ".text", Value: 0x1011, Size: 8, Type: fn}}},
			want: []llvmSymbol{{Start: 0x1010, Size: 8, Name: "work"}}},
	} {
		b := c.file.Bytes()
		f, err := elf.Open("x", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := readLLVMSymbols(f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.symbols {
			p.symbols[i].section = 0
		}
		if !slices.Equal(p.symbols, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, p.symbols, c.want)
		}
	}
}
