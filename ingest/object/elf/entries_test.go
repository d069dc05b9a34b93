package elf

import (
	"bytes"
	"debug/elf"
	"slices"
	"testing"

	"symbolize/fixtures/elfbuild"
)

// TestEntries: all entries are visited in the table's order, also entries that name no code.
func TestEntries(t *testing.T) {
	syms := []elfbuild.Symbol{
		{Name: "x.c", Section: "*ABS*", Type: elf.STT_FILE},
		{Name: "local", Section: ".text", Value: 0x1000, Size: 4, Type: elf.STT_FUNC},
		{Name: "data", Section: ".data", Value: 0x2000, Size: 8, Type: elf.STT_OBJECT,
			Bind: elf.STB_WEAK},
		{Name: "missing", Type: elf.STT_FUNC, Bind: elf.STB_GLOBAL},
	}
	b := (&elfbuild.File{Symbols: syms, Sections: []elfbuild.Section{
		{Name: ".text", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: 0x1000, Data: make([]byte, 8)},
		{Name: ".data", Flags: elf.SHF_ALLOC | elf.SHF_WRITE, Addr: 0x2000, Data: make([]byte, 8)},
	}}).Bytes()
	f, err := Open("x", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var got []Entry
	if err := f.Entries(Symtab, func(e Entry) bool {
		got = append(got, e)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{Name: "x.c", Type: elf.STT_FILE, Section: -1},
		{Name: "local", Value: 0x1000, Size: 4, Type: elf.STT_FUNC, Section: 1, Code: 0x1000, CodeSection: 1},
		{Name: "data", Value: 0x2000, Size: 8, Type: elf.STT_OBJECT, Bind: elf.STB_WEAK, Section: 2},
		{Name: "missing", Type: elf.STT_FUNC, Bind: elf.STB_GLOBAL},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	n := 0
	if err := f.Entries(Symtab, func(Entry) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("stopped after %d, %v", n, err)
	}
	if err := f.Entries(Dynsym, func(Entry) bool { n++; return true }); err != nil || n != 1 {
		t.Errorf("no .dynsym: %d, %v", n, err)
	}
}
