package elf

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/decode"
	"symbolize/ingest/magic"
)

// pack packs b in one of the formats.
func pack(t testing.TB, how packing, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch how {
	case magic.Gzip:
		w = gzip.NewWriter(&out)
	case packedZlib:
		w = zlib.NewWriter(&out)
	case magic.Zstd:
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			t.Fatal(err)
		}
	case magic.XZ:
		return elfbuild.XZ(b)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnpack(t *testing.T) {
	raw := elfbuild.Module(testID, 100_000, elfbuild.Func{Name: "demo", Size: 8}).Bytes()
	for _, how := range []packing{magic.XZ, magic.Zstd, magic.Gzip} {
		for range 2 { // decoders are used again
			b := pack(t, how, raw)
			data, size, kind, err := Unpack("demo.ko", bytes.NewReader(b), int64(len(b)))
			if err != nil || kind != string(how) || size != int64(len(raw)) {
				t.Fatalf("%s: %d bytes, kind %q, %v", how, size, kind, err)
			}
			f, err := Open("demo.ko", data, size)
			if err != nil || !f.IsModule() || len(symbols(t, f, Symtab)) != 3 {
				t.Errorf("%s: %v", how, err)
			}
		}
	}
	r := bytes.NewReader(raw)
	data, size, kind, err := Unpack("demo.ko", r, int64(len(raw)))
	if data != io.ReaderAt(r) || size != int64(len(raw)) || kind != "" || err != nil {
		t.Errorf("a file that is not packed: %v, %d, %q, %v", data, size, kind, err)
	}
	if _, size, _, err := Unpack("empty", bytes.NewReader(nil), 0); size != 0 || err != nil {
		t.Errorf("an empty file: %d, %v", size, err)
	}
}

func TestUnpackBad(t *testing.T) {
	raw := bytes.Repeat([]byte("symbolize "), 1000)
	for _, how := range []packing{magic.XZ, magic.Zstd, magic.Gzip} {
		b := pack(t, how, raw)
		for n := 6; n < len(b); n += max(1, len(b)/200) {
			_, _, _, err := Unpack("demo.ko", bytes.NewReader(b[:n]), int64(n))
			if de := (*decode.Error)(nil); !errors.As(err, &de) {
				t.Errorf("%s cut at %d of %d: %v", how, n, len(b), err)
			}
		}
		_, err := unpackAll(how, bytes.NewReader(b), uint64(len(raw)-1))
		if !errors.Is(err, errTooLong) {
			t.Errorf("%s over its bound: %v", how, err)
		}
		if got, err := unpackAll(how, bytes.NewReader(b), uint64(len(raw))); err != nil ||
			!bytes.Equal(got, raw) {
			t.Errorf("%s at its bound: %v", how, err)
		}
	}
	_, _, _, err := Unpack("gone", failing{io.ErrClosedPipe}, 10)
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	_, _, _, err = Unpack("short", bytes.NewReader(nil), 10)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that shrank: %v", err)
	}
}

// TestBombs unpacks files that grow a thousandfold and more: they are refused before they are in
// memory. Content up to the floor is accepted in every packing.
func TestBombs(t *testing.T) {
	// head -c $((16*1024*1024+1)) /dev/zero | xz -9e
	xz, err := os.ReadFile("testdata/bomb.xz")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := Unpack("demo.ko", bytes.NewReader(xz), int64(len(xz))); err == nil ||
		!strings.Contains(err.Error(), errTooLong.Error()) {
		t.Errorf("xz: %v", err)
	}
	if b, err := unpackAll(magic.XZ, bytes.NewReader(xz), unpackFloor+1); err != nil ||
		len(b) != unpackFloor+1 {
		t.Errorf("xz without the bound: %d bytes, %v", len(b), err)
	}
	for _, how := range []packing{magic.Zstd, magic.Gzip} {
		for _, size := range []int{unpackFloor, unpackFloor + 1} {
			b := pack(t, how, make([]byte, size))
			if len(b) > size/maxRatio {
				t.Fatalf("%s: %d bytes pack to %d, no bomb", how, size, len(b))
			}
			_, n, _, err := Unpack("demo.ko", bytes.NewReader(b), int64(len(b)))
			if size == unpackFloor && (err != nil || n != int64(size)) ||
				size > unpackFloor && (err == nil || !strings.Contains(err.Error(), errTooLong.Error())) {
				t.Errorf("%s: %d bytes in %d: %d, %v", how, size, len(b), n, err)
			}
		}
	}
	zeros := make([]byte, unpackFloor+1)
	mini := elfbuild.Section{Name: ".gnu_debugdata", Data: xz}
	_, _, err = open(t, elfbuild.Lib(nil, 64).With(mini)).DebugData()
	wantError(t, err, errTooLong.Error())
	b := elfbuild.Lib(nil, 64)
	f := open(t, b.With(elfbuild.Section{Name: "bomb", Flags: elf.SHF_COMPRESSED,
		Data: chdr(t, b, elf.COMPRESS_ZLIB, packedZlib, uint64(len(zeros)), zeros)}))
	_, err = f.Data(f.Section("bomb"), 0)
	wantError(t, err, "at most 16777216 are read")
	for _, c := range []struct{ packed, limit, want uint64 }{
		{packed: 0, limit: maxUnpacked, want: unpackFloor}, {packed: 0, limit: 100, want: 100}, {packed: 1 << 20,
			limit: maxUnpacked, want: 32 << 20},
		{packed: 1 << 30, limit: maxUnpacked, want: maxUnpacked}, {packed: 1 << 63,
			limit: maxUnpacked, want: maxUnpacked},
	} {
		if got := unpackBound(c.packed, c.limit); got != c.want {
			t.Errorf("%d bytes may unpack to %d, want %d", c.packed, got, c.want)
		}
	}
}

// chdr packs a section in the SHF_COMPRESSED format.
func chdr(t testing.TB, b *elfbuild.File, kind elf.CompressionType, how packing, size uint64,
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
	return append(out, pack(t, how, data)...)
}

func TestCompressedSections(t *testing.T) {
	data := bytes.Repeat([]byte("debug information "), 500)
	n := uint64(len(data))
	for _, fm := range forms {
		b := lib(fm, elfbuild.Func{Name: "f", Size: 8})
		add := func(name string, kind elf.CompressionType, how packing, size uint64) {
			b = b.With(elfbuild.Section{Name: name, Flags: elf.SHF_COMPRESSED,
				Data: chdr(t, b, kind, how, size, data)})
		}
		add("zlib", elf.COMPRESS_ZLIB, packedZlib, n)
		add("zstd", elf.COMPRESS_ZSTD, magic.Zstd, n)
		add("long", elf.COMPRESS_ZLIB, packedZlib, n-1)
		add("short", elf.COMPRESS_ZSTD, magic.Zstd, n+1)
		add("unknown", 9, packedZlib, n)
		add("huge", elf.COMPRESS_ZLIB, packedZlib, maxSection+1)
		b = b.With(elfbuild.Section{Name: "head", Flags: elf.SHF_COMPRESSED, Data: make([]byte, 7)},
			elfbuild.Section{Name: "rubbish", Flags: elf.SHF_COMPRESSED,
				Data: append(chdr(t, b, elf.COMPRESS_ZLIB, packedZlib, n, nil)[:ehdrLen(fm)],
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
	s.Data = chdr(t, b, elf.COMPRESS_ZSTD, magic.Zstd, 6, []byte("\x00main\x00"))
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

// TestPackedHead: only the beginning is unpacked.
func TestPackedHead(t *testing.T) {
	const whole = 64 << 20
	data := make([]byte, whole)
	copy(data, "\x7fELF, and much behind it")
	gz, zst := pack(t, magic.Gzip, data), pack(t, magic.Zstd, data)
	for _, tt := range []struct {
		name string
		file []byte
		want []byte
	}{
		{name: "not packed", file: data}, {name: "empty"},
		{name: "gzip", file: gz, want: data[:peekBytes]}, {name: "zstd", file: zst,
			want: data[:peekBytes]},
		{name: "short", file: pack(t, magic.XZ, []byte("ab")), want: []byte("ab")},
		{name: "magic alone", file: zst[:4]}, {name: "cut in the header", file: gz[:8]},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := PackedHead(bytes.NewReader(tt.file), int64(len(tt.file)))
		runtime.ReadMemStats(&after)
		if !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > whole/4 {
			t.Errorf("%s: %d bytes allocated for %d", tt.name, n, peekBytes)
		}
	}
}
