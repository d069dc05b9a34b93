package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/files"
)

// chdr packs a section in the SHF_COMPRESSED format.
func chdr(t testing.TB, b *elfbuild.File, kind elf.CompressionType, how files.Packing, size uint64,
	data []byte) []byte {
	t.Helper()
	o := binary.AppendByteOrder(binary.LittleEndian)
	if b.BigEndian {
		o = binary.BigEndian
	}
	out := o.AppendUint32(nil, uint32(kind))
	if b.Class == elf.ELFCLASS32 {
		out = o.AppendUint32(out, uint32(size))
		out = o.AppendUint32(out, 1)
	} else {
		out = o.AppendUint32(out, 0)
		out = o.AppendUint64(out, size)
		out = o.AppendUint64(out, 1)
	}
	return append(out, elfbuild.Pack(string(how), data)...)
}

func TestCompressedSections(t *testing.T) {
	data := bytes.Repeat([]byte("debug information "), 500)
	n := uint64(len(data))
	for _, fm := range forms {
		b := lib(fm, elfbuild.Func{Name: "f", Size: 8})
		add := func(name string, kind elf.CompressionType, how files.Packing, size uint64) {
			b = b.With(elfbuild.Section{Name: name, Flags: elf.SHF_COMPRESSED,
				Data: chdr(t, b, kind, how, size, data)})
		}
		add("zlib", elf.COMPRESS_ZLIB, files.Zlib, n)
		add("zstd", elf.COMPRESS_ZSTD, files.Zstd, n)
		add("long", elf.COMPRESS_ZLIB, files.Zlib, n-1)
		add("short", elf.COMPRESS_ZSTD, files.Zstd, n+1)
		add("unknown", 9, files.Zlib, n)
		add("huge", elf.COMPRESS_ZLIB, files.Zlib, maxSection+1)
		b = b.With(elfbuild.Section{Name: "head", Flags: elf.SHF_COMPRESSED, Data: make([]byte, 7)},
			elfbuild.Section{Name: "rubbish", Flags: elf.SHF_COMPRESSED,
				Data: append(chdr(t, b, elf.COMPRESS_ZLIB, files.Zlib, n, nil)[:ehdrLen(fm)],
					"rubbish"...)})
		f := open(t, b)
		for _, name := range []string{"zlib", "zstd"} {
			if got, err := f.Data(f.Section(name), 0); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%v: %s: %d bytes, %v", fm, name, len(got), err)
			}
		}
		for name, want := range map[string]string{
			"long": "does not inflate", "short": "does not inflate",
			"unknown": "unknown compression 9",
			"huge":    "inflates to 1073741825 bytes", "head": "wanted", "rubbish": "does not inflate",
		} {
			_, err := f.Data(f.Section(name), 0)
			wantError(t, err, want)
		}
	}
}

// ehdrLen is the size of an Elf32_Chdr or Elf64_Chdr.
func ehdrLen(fm form) int {
	if fm.class == elf.ELFCLASS32 {
		return 12
	}
	return 24
}

// TestCompressedStrings: even a string table may be compressed.
func TestCompressedStrings(t *testing.T) {
	b := elfbuild.Lib(nil, 64).With(elfbuild.Section{Name: ".names", Type: elf.SHT_STRTAB,
		Flags: elf.SHF_COMPRESSED})
	s := &b.Sections[len(b.Sections)-1]
	s.Data = chdr(t, b, elf.COMPRESS_ZSTD, files.Zstd, 6, []byte("\x00main\x00"))
	b.Symbols = []elfbuild.Symbol{{Name: "x", Section: ".text", Value: text, Size: 8,
		Type: elf.STT_FUNC}}
	f := open(t, b)
	i := slices.IndexFunc(f.Sections, func(s Section) bool { return s.Name == ".names" })
	f.Section(".symtab").Link = uint32(i)
	compare(t, "names", symbols(t, f, Symtab), []string{"main 0x401000+0x8 end 0x401008"})
}

func TestDebugData(t *testing.T) {
	inner := elfbuild.Lib(testID, 256, elfbuild.Func{Name: "hidden", Offset: 16,
		Size: 32}).DebugOnly()
	f := open(t, elfbuild.Lib(testID, 256).With(elfbuild.DebugData(inner)))
	for range 2 { // the memory is used again
		mini, release, err := f.DebugData()
		if err != nil || mini == nil {
			t.Fatalf("got %v, %v", mini, err)
		}
		got := symbols(t, mini, Symtab)
		release()
		release() // does no harm
		compare(t, "mini", got, []string{"hidden 0x401010+0x20 end 0x401030"})
	}
	if mini, release, err := open(t, inner).DebugData(); mini != nil || release == nil ||
		err != nil {
		t.Errorf("without: %v, %v", mini, err)
	}
	bad := elfbuild.DebugData(inner)
	bad.Data[len(bad.Data)/2] ^= 1
	_, _, err := open(t, elfbuild.Lib(nil, 64).With(bad)).DebugData()
	wantError(t, err, ".gnu_debugdata does not unpack")
	text := elfbuild.Section{Name: ".gnu_debugdata", Data: elfbuild.XZ([]byte("no ELF file"))}
	_, _, err = open(t, elfbuild.Lib(nil, 64).With(text)).DebugData()
	wantError(t, err, "test.so(.gnu_debugdata): offset 0x0: not an ELF file")
}

// TestSectionBombs: sections that grow a thousandfold are refused before they are in memory.
func TestSectionBombs(t *testing.T) {
	xz, err := os.ReadFile("../../files/testdata/bomb.xz")
	if err != nil {
		t.Fatal(err)
	}
	const floor = 16 << 20
	zeros := make([]byte, floor+1)
	mini := elfbuild.Section{Name: ".gnu_debugdata", Data: xz}
	_, _, err = open(t, elfbuild.Lib(nil, 64).With(mini)).DebugData()
	wantError(t, err, "unpacks to more than the bound")
	b := elfbuild.Lib(nil, 64)
	f := open(t, b.With(elfbuild.Section{Name: "bomb", Flags: elf.SHF_COMPRESSED,
		Data: chdr(t, b, elf.COMPRESS_ZLIB, files.Zlib, uint64(len(zeros)), zeros)}))
	_, err = f.Data(f.Section("bomb"), 0)
	wantError(t, err, "at most 16777216 are read")
}
