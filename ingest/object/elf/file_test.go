package elf

import (
	"bytes"
	"debug/elf"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
)

func TestOpenForms(t *testing.T) {
	for _, fm := range forms {
		for _, many := range []bool{false, true} {
			b := lib(fm, elfbuild.Func{Name: "one", Offset: 16, Size: 32})
			b.ManySections, b.ManySegments = many, many
			b.Machine, b.Type, b.Flags = elf.EM_PPC, elf.ET_EXEC, 0x1234
			f := open(t, b)
			if f.Class != fm.class || f.BigEndian != fm.big || f.Machine != elf.EM_PPC ||
				f.Type != elf.ET_EXEC || f.Flags != 0x1234 {
				t.Errorf("%v: header %+v", fm, f)
			}
			if string(f.ID.Bytes()) != string(testID) {
				t.Errorf("%v: build ID %v", fm, f.ID)
			}
			text := f.Section(".text")
			if text == nil || text.Addr != elfbuild.TextAddr || text.Size != 256 || !text.IsCode() {
				t.Fatalf("%v: .text is %+v", fm, text)
			}
			want := Segment{Offset: text.Offset, Addr: text.Addr, FileSize: 256, MemSize: 256,
				Flags: uint32(elf.PF_R | elf.PF_X), Align: 4096}
			if len(f.Segments) != 2 || f.Segments[0] != want {
				t.Errorf("%v: segments %+v", fm, f.Segments)
			}
			if d := f.Segments[1]; d.FileSize != 64 || d.MemSize != 128 {
				t.Errorf("%v: segment of data %+v", fm, d)
			}
			compare(t, fm.String(), symbols(t, f, Symtab),
				[]string{"one 0x401010+0x20 end 0x401030"})
		}
	}
}

// TestBuildIDPlaces puts the note where linkers put it.
func TestBuildIDPlaces(t *testing.T) {
	other := []byte("another build ID    ")
	note := elfbuild.File{}
	golang := elfbuild.Lib(testID, 64) // Go's linker: in a section, in no PT_NOTE
	golang.Segments = golang.Segments[:2]
	sstripped := elfbuild.Lib(testID, 64)
	sstripped.NoHeaders = true
	both := elfbuild.Lib(testID, 64) // the segment wins in a runtime file
	both.Sections = slices.Insert(both.Sections, 0, elfbuild.Section{
		Name: ".note.old", Type: elf.SHT_NOTE, Data: note.BuildIDNote(other)})
	debug := elfbuild.Lib(testID, 64).DebugOnly() // the section wins in a debug file
	debug = debug.With(elfbuild.Section{Name: ".debug_info", Data: note.BuildIDNote(other)})
	debug.Segments = []elfbuild.Segment{{Type: elf.PT_NOTE, From: ".debug_info", To: ".debug_info"}}
	none := elfbuild.Lib(nil, 64)
	core := elfbuild.Lib(testID, 64)
	core.Type = elf.ET_CORE
	annobin := elfbuild.Lib(testID, 64)
	annobin.Segments = nil
	annobin.Sections = slices.Insert(annobin.Sections, 0, elfbuild.Section{
		Name: ".gnu.build.attributes", Type: elf.SHT_NOTE, Data: note.BuildIDNote(other)})
	beyond := elfbuild.Lib(testID, 64) // a PT_NOTE outside the file is passed over
	beyond.Segments = append([]elfbuild.Segment{
		{Type: elf.PT_NOTE, Offset: 1 << 40, FileSize: 1 << 40}}, beyond.Segments...)
	tests := []struct {
		name string
		file *elfbuild.File
		want string
	}{
		{name: "segment and section", file: elfbuild.Lib(testID, 64), want: string(testID)},
		{name: "section only", file: golang, want: string(testID)},
		{name: "segment only", file: sstripped, want: string(testID)},
		{name: "segment before section", file: both, want: string(testID)},
		{name: "debug file", file: debug, want: string(testID)},
		{name: "module", file: elfbuild.Module(testID, 64), want: string(testID)},
		{name: "none", file: none},
		{name: "core", file: core},
		{name: "annobin's notes", file: annobin, want: string(testID)},
		{name: "note outside the file", file: beyond, want: string(testID)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if f := open(t, tt.file); string(f.ID.Bytes()) != tt.want {
				t.Errorf("build ID %q, want %q", f.ID.Bytes(), tt.want)
			}
		})
	}
}

// TestNoteTables has the build ID in the last section of notes that is read, and in the next.
func TestNoteTables(t *testing.T) {
	for _, before := range []int{maxNoteTables - 1, maxNoteTables} {
		b := elfbuild.Lib(testID, 64)
		b.Segments = b.Segments[:2] // no PT_NOTE
		empty := elfbuild.Section{Name: ".note.empty", Type: elf.SHT_NOTE, Data: make([]byte, 4)}
		b.Sections = slices.Insert(b.Sections, 0, slices.Repeat([]elfbuild.Section{empty}, before)...)
		if f := open(t, b); f.ID.IsZero() != (before == maxNoteTables) {
			t.Errorf("behind %d other sections: build ID %v", before, f.ID)
		}
	}
}

func TestKinds(t *testing.T) {
	data := &elfbuild.File{Sections: []elfbuild.Section{
		{Name: ".rodata", Flags: elf.SHF_ALLOC, Data: []byte("icu"), Addr: 0x1000},
		{Name: ".bss", Type: elf.SHT_NOBITS, Flags: elfbuild.Data, Size: 64, Addr: 0x3000},
	}}
	ppc := elfbuild.Lib(nil, 64).With(elfbuild.Section{Name: ".plt", Type: elf.SHT_NOBITS,
		Flags: elfbuild.Code | elf.SHF_WRITE, Size: 64, Addr: 0x600000})
	sstripped := elfbuild.Lib(nil, 64)
	sstripped.NoHeaders = true
	kernel := elfbuild.Lib(testID, 64).With(
		elfbuild.Section{Name: ".init.text", Flags: elfbuild.Code, Data: []byte{0x90},
			Addr: 0x600000},
		elfbuild.Section{Name: "__ksymtab", Flags: elf.SHF_ALLOC, Data: []byte("x")},
		elfbuild.Section{Name: "__param", Flags: elf.SHF_ALLOC, Data: []byte("x")})
	kernel.Type = elf.ET_EXEC
	plugin := elfbuild.Lib(testID, 64).With(
		elfbuild.Section{Name: ".init.text", Flags: elfbuild.Code, Data: []byte{0x90},
			Addr: 0x600000})
	dwz := &elfbuild.File{Sections: []elfbuild.Section{{Name: ".debug_info",
		Data: []byte("dwarf")}}}
	tests := []struct {
		name                        string
		file                        *elfbuild.File
		code, debug, module, kernel bool
	}{
		{name: "library", file: elfbuild.Lib(testID, 64), code: true},
		{name: "stripped", file: elfbuild.Lib(testID, 64).Stripped(), code: true},
		{name: "debug file", file: elfbuild.Lib(testID, 64).DebugOnly(), debug: true},
		{name: "only data", file: data},
		{name: "debug file of only data", file: data.DebugOnly(), debug: true},
		{name: "PLT without contents", file: ppc, code: true},
		{name: "no section headers", file: sstripped, code: true},
		{name: "module", file: elfbuild.Module(testID, 64), code: true, module: true},
		{name: "debug file of a module", file: elfbuild.Module(testID, 64).DebugOnly(),
			debug: true, module: true},
		{name: "kernel", file: kernel, code: true, kernel: true},
		{name: "debug file of a kernel", file: kernel.DebugOnly(), debug: true, kernel: true},
		{name: "one odd section makes no kernel", file: plugin, code: true},
		{name: "supplementary file of dwz", file: dwz},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := open(t, tt.file)
			if f.HasCode() != tt.code || f.IsDebugOnly() != tt.debug || f.IsModule() != tt.module ||
				f.IsKernelImage() != tt.kernel {
				t.Errorf("code %v, debug %v, module %v, kernel %v",
					f.HasCode(), f.IsDebugOnly(), f.IsModule(), f.IsKernelImage())
			}
		})
	}
}

func TestRefSymbols(t *testing.T) {
	b := elfbuild.Lib(testID, 64)
	b.Symbols = []elfbuild.Symbol{
		{Name: "_text"},
		{Name: "_stext", Section: ".text", Value: elfbuild.TextAddr + 16, Bind: elf.STB_GLOBAL},
		{Name: "_text", Section: ".text", Value: elfbuild.TextAddr, Bind: elf.STB_GLOBAL},
	}
	refs, err := open(t, b).RefSymbols()
	want := []RefSymbol{{"_text", elfbuild.TextAddr}, {"_stext", elfbuild.TextAddr + 16}}
	if err != nil || !slices.Equal(refs, want) {
		t.Errorf("got %v, %v", refs, err)
	}
	if refs, err := open(t, b.Stripped()).RefSymbols(); err != nil || len(refs) != 0 {
		t.Errorf("without symbols: %v, %v", refs, err)
	}
}

func TestLinks(t *testing.T) {
	for _, fm := range forms {
		b := lib(fm)
		f := open(t, b.With(b.DebugLink("test.so.debug", 0xdeadbeef),
			b.AltLink("../.dwz/common.debug", testID)))
		name, crc, ok := f.DebugLink()
		if name != "test.so.debug" || crc != 0xdeadbeef || !ok {
			t.Errorf("%v: debug link %q, %#x, %v", fm, name, crc, ok)
		}
		name, id, ok := f.AltLink()
		if name != "../.dwz/common.debug" || string(id.Bytes()) != string(testID) || !ok {
			t.Errorf("%v: alt link %q, %v, %v", fm, name, id, ok)
		}
	}
	for _, bad := range []string{"", "\x00\x00\x00\x00crc.", "no NUL", "name\x00",
		"name\x00\x00\x00\x00crc"} {
		f := open(t, elfbuild.Lib(nil, 64).With(
			elfbuild.Section{Name: ".gnu_debuglink", Data: []byte(bad)},
			elfbuild.Section{Name: ".gnu_debugaltlink", Data: []byte(bad[:min(5, len(bad))])}))
		if name, crc, ok := f.DebugLink(); ok {
			t.Errorf("debug link %q gives %q, %#x", bad, name, crc)
		}
		if name, id, ok := f.AltLink(); ok {
			t.Errorf("alt link %q gives %q, %v", bad, name, id)
		}
	}
	if _, _, ok := open(t, elfbuild.Lib(nil, 64)).DebugLink(); ok {
		t.Error("a debug link out of nothing")
	}
}

func TestChecksums(t *testing.T) {
	b := elfbuild.Lib(nil, 200_000).Bytes()
	f := openBytes(t, b)
	if sum, err := f.CRC32(); err != nil || sum != crc32.ChecksumIEEE(b) {
		t.Errorf("CRC %#x, %v", sum, err)
	}
	if _, err := crc32Of(bytes.NewReader(b), int64(len(b))+1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("CRC of a file that ends early: %v", err)
	}
	one, err := f.ContentID()
	if err != nil || one.IsZero() {
		t.Fatalf("content ID %v, %v", one, err)
	}
	b[len(b)/2] ^= 1
	if two, err := openBytes(t, b).ContentID(); err != nil || two == one {
		t.Errorf("content ID does not change with the content: %v, %v", two, err)
	}
}

// patch changes bytes of a good file.
func patch(b []byte, at int, with ...byte) []byte {
	c := slices.Clone(b)
	copy(c[at:], with)
	return c
}

func TestOpenBad(t *testing.T) {
	good := elfbuild.Lib(testID, 64).Bytes()
	shoff := int(uint64(good[40]) | uint64(good[41])<<8)
	ff8 := bytes.Repeat([]byte{0xff}, 8)
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{name: "empty", want: "not an ELF file"},
		{name: "text", file: []byte("#!/bin/sh\nexec true\n"), want: "not an ELF file"},
		{name: "magic only", file: good[:4], want: "ends in the ELF header"},
		{name: "half a header", file: good[:60], want: "wanted"},
		{name: "class", file: patch(good, 4, 3), want: "offset 0x4: unknown class 3"},
		{name: "byte order", file: patch(good, 5, 0), want: "offset 0x5: unknown byte order 0"},
		{name: "version", file: patch(good, 6, 2), want: "offset 0x6: unknown ELF version"},
		{name: "header size", file: patch(good, 52, 8), want: "ELF header size 8 is under 64"},
		{name: "section header size", file: patch(good, 58, 8),
			want: "section header size 8 is under 64"},
		{name: "sections outside the file", file: patch(good, 40, ff8...),
			want: "section headers: test.so"},
		{name: "too many sections",
			file: patch(patch(good, 60, 0, 0), shoff+32, 0xff, 0xff, 0xff, 0x7f),
			want: "2147483647 section headers, at most 262144"},
		{name: "sections overrun", file: patch(good, 60, 0xf0, 0x0f),
			want: "wanted, the file ends at"},
		{name: "program header size", file: patch(good, 54, 8),
			want: "program header size 8 is under 56"},
		{name: "program headers outside the file", file: patch(good, 32, ff8...),
			want: "program headers: test.so"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Open("test.so", bytes.NewReader(tt.file), int64(len(tt.file)))
			if f != nil {
				t.Error("an error and a file")
			}
			wantError(t, err, tt.want)
		})
	}
}

// failing is a file on a broken disk.
type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestReadErrors(t *testing.T) {
	_, err := Open("test.so", failing{io.ErrClosedPipe}, 100)
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
	// The file shrank after its size was read.
	good := elfbuild.Lib(testID, 64).Bytes()
	_, err = Open("test.so", bytes.NewReader(good[:len(good)-100]), int64(len(good)))
	wantError(t, err, "the file ends early")
}

func TestData(t *testing.T) {
	b := elfbuild.Lib(nil, 64).With(elfbuild.Section{Name: ".note", Data: []byte("some bytes")})
	f := open(t, b)
	if got, err := f.Data(f.Section(".note"), 0); err != nil || string(got) != "some bytes" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := f.Data(f.Section(".note"), 5)
	wantError(t, err, "section .note has 10 bytes, at most 5 are read")
	_, err = f.Data(f.Section(".bss"), 0)
	wantError(t, err, "no contents in this file")
	f.Section(".note").Size = 1 << 50
	_, err = f.Data(f.Section(".note"), 0)
	wantError(t, err, "is cut off")
	if f.Section(".nothing") != nil {
		t.Error("found a section that is not there")
	}
}

func TestNamesOfSections(t *testing.T) {
	long := "." + strings.Repeat("n", maxName+10)
	f := open(t, elfbuild.Lib(nil, 64).With(elfbuild.Section{Name: long, Data: []byte("x")}))
	if got := f.Sections[4].Name; got != long[:maxName] {
		t.Errorf("a name of %d bytes is cut to %d", len(long), len(got))
	}
}
