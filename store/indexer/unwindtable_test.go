package indexer

import (
	"bytes"
	stdelf "debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// TestSFrame reads .sframe where there is nothing else.
func TestSFrame(t *testing.T) {
	w := new(fileReader)                                       // for all files, as in a run
	section := append([]byte{0xe2, 0xde, 2, 0, 3, 0, 0xf8, 0}, // no auxiliary header
		1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, // a function, a row of 3 bytes
		0, 0xf0, 0xff, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, // it starts 0x1000 before
		0, 3, 24) // CFA = rsp+24
	code := elfbuild.Section{Name: ".text", Flags: elfbuild.Code, Addr: 0x401000, Data: make([]byte, 0x40)}
	sframe := elfbuild.Section{Name: ".sframe", Addr: 0x402000, Data: section}
	unknown := sframe
	unknown.Data = slices.Clone(section)
	unknown.Data[2] = 9
	for _, c := range []struct {
		name     string
		sections []elfbuild.Section
		sources  int
		failed   bool
	}{
		{name: "alone", sections: []elfbuild.Section{code, sframe}, sources: 1},
		{name: "none", sections: []elfbuild.Section{code}, sources: 0},
		{name: "an unknown version", sections: []elfbuild.Section{code, unknown}, sources: 0,
			failed: true},
	} {
		data := (&elfbuild.File{Sections: c.sections}).Bytes()
		f, err := elf.Open("test", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		f.Entry = 0
		s := &sources{w: w, c: &store.Contribution{}}
		s.unwindTable(f, true)
		if len(s.c.Sources) != c.sources || (s.err != nil) != c.failed {
			t.Errorf("%s: %d sources, %v", c.name, len(s.c.Sources), s.err)
		}
		if c.sources > 0 && s.c.Sources[0].Table.Named != 0x40 {
			t.Errorf("%s: %d bytes have a rule", c.name, s.c.Sources[0].Table.Named)
		}
	}
}

// TestWeakRules has code without call frame information: stubs, .init, and the entry point.
func TestWeakRules(t *testing.T) {
	init := []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3}
	file := &elfbuild.File{Sections: []elfbuild.Section{
		{Name: ".init", Flags: elfbuild.Code, Addr: 0x401000, Data: init},
		{Name: ".fini", Flags: elfbuild.Code, Addr: 0x401100, Data: []byte{0xc3}},
		{Name: ".plt", Flags: elfbuild.Code, Addr: 0x401200, Data: make([]byte, 32)},
		{Name: ".text", Flags: elfbuild.Code, Addr: 0x402000, Data: make([]byte, 0x1000)},
	}}
	data := file.Bytes()
	f, err := elf.Open("test", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	f.Entry = 0x402010
	b := cfi.NewBuilder(cfi.ArchOf(stdelf.EM_X86_64))
	b.Func(addr.Range{Start: 0x402040, End: 0x402080}) // a function with a rule, behind the entry
	b.Row(0x402040, &cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: 6, Off: 16}})
	b.NextSource()
	weakRules(b, f)
	var got []string
	b.Rows(func(at addr.Addr, n uint32) {
		r := b.Rules[n]
		text := [...]string{"none", "end", fmt.Sprintf("r%d+%d", r.CFA.Reg, r.CFA.Off)}[r.Kind]
		got = append(got, fmt.Sprintf("%x:%s", uint64(at), text))
	})
	want := "401000:r7+8 401008:r7+16 40100e:r7+8 40100f:none 401200:r7+8 401220:none " +
		"402010:end 402040:r6+16 402080:none"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}

// TestSearchForRestorers: in a file that needs no library, wherever pieces end.
func TestSearchForRestorers(t *testing.T) {
	restorer := []byte("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05")
	text := make([]byte, searched+0x1000)
	copy(text[0x40:], restorer)
	copy(text[searched-5:], restorer)
	needed := make([]byte, 32)
	needed[0] = byte(stdelf.DT_NEEDED)
	linker := slices.Clone(needed)
	linker[8] = 1
	code := elfbuild.Section{Name: ".text", Flags: elfbuild.Code, Addr: 0x401000, Data: text}
	for _, c := range []struct {
		name     string
		sections []elfbuild.Section
		want     []addr.Addr
	}{
		{name: "static", sections: []elfbuild.Section{code},
			want: []addr.Addr{0x40103f, 0x401000 + searched - 6}},
		{name: "of a library",
			sections: []elfbuild.Section{code, {Name: ".dynamic", Addr: 0x801000, Data: make([]byte, 16)}},
			want:     []addr.Addr{0x40103f, 0x401000 + searched - 6}},
		{name: "of the C library, which needs the dynamic linker",
			sections: []elfbuild.Section{code, {Name: ".dynamic", Addr: 0x801000, Data: linker},
				{Name: ".dynstr", Addr: 0x802000, Data: []byte("\x00ld-linux-x86-64.so.2\x00")}},
			want: []addr.Addr{0x40103f, 0x401000 + searched - 6}},
		{name: "with libraries",
			sections: []elfbuild.Section{code, {Name: ".dynamic", Addr: 0x801000, Data: needed}}},
	} {
		data := (&elfbuild.File{Sections: c.sections}).Bytes()
		f, err := elf.Open("test", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		b := cfi.NewBuilder(cfi.ArchOf(stdelf.EM_X86_64))
		patterns(b, f)
		var got []addr.Addr
		b.Rows(func(at addr.Addr, n uint32) {
			if b.Rules[n].Signal {
				got = append(got, at)
			}
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}
