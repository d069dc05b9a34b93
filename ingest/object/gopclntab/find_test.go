package gopclntab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/addr"
	ingestelf "symbolize/ingest/object/elf"
)

func openAny(b []byte) *ingestelf.File {
	f, err := ingestelf.Open("test", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil
	}
	return f
}

const moduleAddr = 0x800000

// moduleOf returns the words of moduledata for a built table.
func moduleOf(b built) []uint64 {
	words := make([]uint64, moduleWords)
	words[0] = tableAddr
	words[1] = tableAddr + binary.LittleEndian.Uint64(b.data[8+3*8:])
	words[moduleText] = textAddr
	words[moduleGofunc120] = treeAddr
	return words
}

// program declares a Go program with only the table, the trees and moduledata.
func program() *elfbuild.File {
	b := build(latest, targets[0], sample()...)
	var module []byte
	for _, w := range moduleOf(b) {
		module = binary.LittleEndian.AppendUint64(module, w)
	}
	return &elfbuild.File{
		Type: elf.ET_EXEC,
		Sections: []elfbuild.Section{
			{Name: ".text", Flags: elfbuild.Code, Addr: textAddr, Data: make([]byte, 0x98)},
			{Name: ".gopclntab", Flags: elf.SHF_ALLOC, Addr: tableAddr, Data: b.data, Align: 8},
			{Name: ".rodata", Flags: elf.SHF_ALLOC, Addr: treeAddr, Data: b.trees, Align: 8},
			{Name: ".noptrdata", Flags: elfbuild.Data, Addr: moduleAddr, Data: module, Align: 8},
			{Name: ".go.buildinfo", Flags: elfbuild.Data, Addr: moduleAddr + 0x1000,
				Data: make([]byte, 16), Align: 8},
		},
		Segments: []elfbuild.Segment{
			{Flags: elf.PF_R | elf.PF_X, From: ".text", To: ".text"},
			{Flags: elf.PF_R, From: ".gopclntab", To: ".gopclntab"},
			{Flags: elf.PF_R, From: ".rodata", To: ".rodata"},
			{Flags: elf.PF_R | elf.PF_W, From: ".noptrdata", To: ".noptrdata"},
		},
	}
}

// behindFakes hides the table in the middle of other constants, behind headers that have
// no functions.
func behindFakes(f *elfbuild.File, n int) {
	fake := []byte("\xf1\xff\xff\xff\x00\x00\x01\x08")
	for _, w := range []uint64{0, 0, 0, 72, 72, 72, 72, 72} {
		fake = binary.LittleEndian.AppendUint64(fake, w)
	}
	fakes := bytes.Repeat(fake, n)
	f.Segments = nil
	f.Sections[1].Name = ".data.rel.ro"
	f.Sections[1].Flags = elfbuild.Data
	f.Sections[1].Addr -= uint64(len(fakes))
	f.Sections[1].Data = append(fakes, f.Sections[1].Data...)
}

// TestFindGivesUp has more headers than are tried.
func TestFindGivesUp(t *testing.T) {
	f := program()
	behindFakes(f, maxTried)
	if tab, err := Find(openELF(t, "test", f.Bytes())); tab != nil || err != nil {
		t.Errorf("table %v, error %v", tab, err)
	}
}

// TestFindShapes has the layouts of different linkers.
func TestFindShapes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *elfbuild.File)
	}{
		{name: "plain", change: func(*elfbuild.File) {}},
		{name: "by magic", change: func(f *elfbuild.File) {
			behindFakes(f, 1)
		}},
		{name: "the last that is tried",
			change: func(f *elfbuild.File) { behindFakes(f, maxTried-1) }},
		{name: "no sections", change: func(f *elfbuild.File) { f.NoHeaders = true }},
		{name: "relocated", change: func(f *elfbuild.File) {
			f.Type, f.Segments = elf.ET_DYN, nil
			f.Sections[1].Name = ".data.rel.ro.gopclntab"
			var rels []elfbuild.Reloc
			data := f.Sections[3].Data
			for i := range len(data) / 8 {
				if w := binary.LittleEndian.Uint64(data[8*i:]); w != 0 {
					rels = append(rels, elfbuild.Reloc{Offset: moduleAddr + uint64(8*i),
						Type: uint32(elf.R_X86_64_RELATIVE), Addend: w})
				}
			}
			f.Sections[3].Data = make([]byte, len(data))
			f.Sections = append(f.Sections, elfbuild.Section{Name: ".rela.dyn", Type: elf.SHT_RELA,
				Flags: elf.SHF_ALLOC, Data: f.Rela(true, rels...), Align: 8})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := program()
			c.change(f)
			if got := show(t, find(t, "test", f.Bytes())); got != wantSample {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// TestFindPointers has a position-independent program of Go 1.16, with a table full of pointers
// that the loader fills in.
func TestFindPointers(t *testing.T) {
	r := releases[4]
	b := build(r, targets[0], sample()...)
	f := program()
	f.Type = elf.ET_DYN
	var rels []elfbuild.Reloc
	for i := 0; i+8 <= len(b.data); i += 8 {
		w := binary.LittleEndian.Uint64(b.data[i:])
		if w>>12 == textAddr>>12 || w>>12 == treeAddr>>12 {
			rels = append(rels, elfbuild.Reloc{Offset: tableAddr + uint64(i),
				Type: uint32(elf.R_X86_64_RELATIVE), Addend: w})
			clear(b.data[i : i+8])
		}
	}
	f.Sections[1].Data, f.Sections[2].Data = b.data, b.trees
	f.Sections[3].Data = make([]byte, 8)
	f.Sections = append(f.Sections, elfbuild.Section{Name: ".rela.dyn", Type: elf.SHT_RELA,
		Flags: elf.SHF_ALLOC, Data: f.Rela(true, rels...), Align: 8})
	if got := show(t, find(t, "test", f.Bytes())); got != wantOf(r) {
		t.Errorf("%d pointers, got\n%s", len(rels), got)
	}
}

// TestText checks where the text starts, and the trees are, without moduledata.
func TestText(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *elfbuild.File)
		want   addr.Addr
	}{
		{name: "section", change: func(*elfbuild.File) {}, want: textAddr},
		{name: "header", change: func(f *elfbuild.File) {
			binary.LittleEndian.PutUint64(f.Sections[1].Data[24:], textAddr+16)
		}, want: textAddr + 16},
		{name: "symbol", change: func(f *elfbuild.File) {
			f.Symbols = []elfbuild.Symbol{{Name: "runtime.text", Section: ".text",
				Value: textAddr + 32}, {Name: "go:func.*", Section: ".rodata", Value: treeAddr}}
		}, want: textAddr + 32},
	} {
		f := program()
		clear(f.Sections[3].Data)
		c.change(f)
		if tab := find(t, "test", f.Bytes()); tab.in.Text != c.want {
			t.Errorf("%s: text at %x, want %x", c.name, tab.in.Text, c.want)
		} else if (tab.trees.base != nil) != (c.name == "symbol") {
			t.Errorf("%s: inline trees %v", c.name, tab.trees.base != nil)
		}
	}
}

func BenchmarkFunctions(b *testing.B) {
	tab := find(b, "self", self(b))
	b.SetBytes(int64(len(tab.in.Data)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = 0
		if _, err := tab.Functions(func(*Function) bool { n++; return true }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/function")
}

func BenchmarkFind(b *testing.B) {
	data := self(b)
	f := openELF(b, "self", data)
	b.SetBytes(Bytes(f))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Find(f); err != nil {
			b.Fatal(err)
		}
	}
}
