package dwarf

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"symbolize/fixtures/containers"
	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
	ingestelf "symbolize/ingest/object/elf"
)

func deflate(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// chdr is a compression header of ELF.
func chdr(kind uint32, size uint64, class64, big bool) []byte {
	var order binary.AppendByteOrder = binary.LittleEndian
	if big {
		order = binary.BigEndian
	}
	b := order.AppendUint32(nil, kind)
	if !class64 {
		return order.AppendUint32(order.AppendUint32(b, uint32(size)), 1)
	}
	return order.AppendUint64(order.AppendUint64(order.AppendUint32(b, 0), size), 1)
}

func zdebug(size uint64, data []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte("ZLIB"), size), data...)
}

// loadOne loads a file with one section, from memory or from disk.
func loadOne(
	t *testing.T, name string, data []byte, s RawSection, o LoadOptions, disk bool,
) *Loaded {
	t.Helper()
	s.Name, s.Size = name, uint64(len(data))
	o.Name, o.TempDir = "file", t.TempDir()
	if !disk {
		return Load(bytes.NewReader(data), []RawSection{s}, o)
	}
	const lead = 5000 // not at a page
	path := filepath.Join(t.TempDir(), "file")
	must.Write(t, path, append(make([]byte, lead), data...))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s.Offset = lead
	l := Load(f, []RawSection{s}, o)
	left, err := os.ReadDir(o.TempDir)
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v %v", left, err)
	}
	return l
}

func TestLoadSections(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 5000, heapSection + 12345} {
		plain := make([]byte, size)
		for i := range plain {
			plain[i] = byte(i * i >> 7)
		}
		n := uint64(size)
		z, zs := deflate(t, plain), enc.EncodeAll(plain, nil)
		tests := []struct {
			name, section string
			data          []byte
			raw           RawSection
			o             LoadOptions
		}{
			{name: "plain", section: ".debug_info", data: plain, raw: RawSection{},
				o: LoadOptions{}},
			{name: "dwo", section: ".debug_info.dwo", data: plain, raw: RawSection{},
				o: LoadOptions{Split: true}},
			{name: "zlib", section: ".debug_info", data: append(chdr(1, n, true, false), z...),
				raw: RawSection{Compressed: true}, o: LoadOptions{Class64: true}},
			{name: "zlib 32 big", section: ".debug_info",
				data: append(chdr(1, n, false, true), z...),
				raw:  RawSection{Compressed: true}, o: LoadOptions{BigEndian: true}},
			{name: "zstd", section: ".debug_info", data: append(chdr(2, n, true, false), zs...),
				raw: RawSection{Compressed: true}, o: LoadOptions{Class64: true, Workers: 2}},
			{name: "gnu", section: ".zdebug_info", data: zdebug(n, z), raw: RawSection{},
				o: LoadOptions{}},
			{name: "gnu dwo", section: ".zdebug_info.dwo", data: zdebug(n, z), raw: RawSection{},
				o: LoadOptions{Split: true}},
		}
		for _, test := range tests {
			for _, disk := range []bool{false, true} {
				l := loadOne(t, test.section, test.data, test.raw, test.o, disk)
				if len(l.Problems) > 0 || !bytes.Equal(l.Sections.Info, plain) {
					t.Errorf("%s of %d bytes, disk %v: %d bytes, problems %v", test.name, size,
						disk, len(l.Sections.Info), l.Problems)
				}
				l.Release()
				if !bytes.Equal(l.Sections.Info, plain) {
					t.Errorf("%s: other bytes after Release", test.name)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestLoadPassesOver(t *testing.T) {
	data := []byte("abcdef")
	for _, name := range []string{".debug_types", ".text", ".debug_info.dwo", ".debug_"} {
		l := loadOne(t, name, data, RawSection{}, LoadOptions{}, false)
		for base, sec := range l.Sections.wanted(true) {
			if *sec != nil {
				t.Errorf("%s became %s", name, base)
			}
		}
	}
	l := loadOne(t, ".debug_info", data, RawSection{}, LoadOptions{Split: true}, false)
	if l.Sections.Info != nil {
		t.Error(".debug_info taken for .debug_info.dwo")
	}
	l = loadOne(t, ".debug_cu_index", data, RawSection{}, LoadOptions{Split: true}, false)
	if string(l.Sections.CUIndex) != "abcdef" {
		t.Error("no .debug_cu_index")
	}
}

// The content before the damage is kept, and the damage is reported.
func TestLoadDamage(t *testing.T) {
	plain := bytes.Repeat([]byte("abcdefgh"), heapSection/4)
	n := uint64(len(plain))
	z := deflate(t, plain)
	bomb := deflate(t, make([]byte, 20<<20))
	tests := []struct {
		name, section, want string
		data                []byte
		size                uint64
		some                bool // a beginning is kept
	}{
		{name: "cut", section: ".zdebug_info", want: "inflat", data: zdebug(n, z[:len(z)/2]),
			size: 0, some: true},
		{name: "short", section: ".zdebug_info", want: "inflates to 2097152 bytes, not 2098152",
			data: zdebug(n+1000, z), size: 0,
			some: true},
		{name: "no header", section: ".zdebug_info", want: "does not end", data: []byte("ZLIB"),
			size: 0},
		{name: "other header", section: ".zdebug_info", want: "not \"ZLIB\"",
			data: append([]byte("XXXX12345678"), z...), size: 0},
		{name: "not zlib", section: ".zdebug_info", want: "inflating",
			data: zdebug(n, []byte("xxxxxxxx")), size: 0},
		{name: "bomb", section: ".zdebug_info", want: "claim to inflate",
			data: zdebug(20<<20, bomb), size: 0},
		{name: "liar", section: ".zdebug_info", want: "claim to inflate", data: zdebug(1<<60, z),
			size: 0},
		{name: "beyond the file", section: ".debug_info", want: "longer than the file",
			data: plain, size: 1 << 32},
		{name: "beyond all", section: ".debug_info", want: "too large", data: plain,
			size: 1 << 63},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			must.Write(t, path, test.data)
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			s := RawSection{Name: test.section, Size: uint64(len(test.data))}
			if test.size > 0 {
				s.Size = test.size
			}
			l := Load(f, []RawSection{s}, LoadOptions{Name: "file"})
			defer l.Close()
			if len(l.Problems) != 1 || !strings.Contains(l.Problems[0].Error(), test.want) {
				t.Errorf("problems %v, want %q", l.Problems, test.want)
			}
			if got := l.Sections.Info; test.some != (len(got) > 0) || !bytes.HasPrefix(plain, got) {
				t.Errorf("%d bytes kept", len(got))
			}
		})
	}
	short := Load(bytes.NewReader(plain), []RawSection{{Name: ".debug_str", Size: 1 << 32}},
		LoadOptions{})
	if len(short.Problems) != 1 || !bytes.Equal(short.Sections.Str, plain) {
		t.Errorf("a section beyond the end: %v, %d bytes", short.Problems, len(short.Sections.Str))
	}
}

// TestRelocatableObject reads a compiler's object file, relocated, and compares with debug/dwarf.
func TestRelocatableObject(t *testing.T) {
	containers.Live(t)
	for _, flags := range []string{"-g -gdwarf-4 -ffunction-sections", "-g -gdwarf-5"} {
		dir := t.TempDir()
		containers.Compile(t, dir, containers.Variant{CC: "g++", Flags: flags})
		path := filepath.Join(dir, "main.o")
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		sd, err := f.DWARF()
		if err != nil {
			t.Fatal(err)
		}
		all := []addr.Range{{Start: 0, End: 1 << 40}}
		d := New(relocated(t, path), Options{Name: path, Text: all})
		tx := text{ranges: all, last: 1<<64 - 1}
		want, got := stdWalk(t, sd, tx.alive), ourWalk(t, d, 1)
		if len(want) == 0 || len(got) != len(want) {
			t.Fatalf("%d functions, want %d", len(got), len(want))
		}
		for i := range want {
			if got[i].Name != want[i].Name || got[i].Ranges != want[i].Ranges {
				t.Errorf("got %v, want %v", got[i], want[i])
			}
		}
		f.Close()
	}
}

// relocated loads the sections of an object file as the indexer does, but with all of its sections
// at 0, as debug/elf has it.
func relocated(t *testing.T, path string) Sections {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := ingestelf.Open(path, r, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	rl, err := f.Relocator(func(int) (addr.Addr, bool) { return 0, true })
	if err != nil {
		t.Fatal(err)
	}
	var raw []RawSection
	for i, s := range f.Sections {
		raw = append(raw,
			RawSection{Name: s.Name, Offset: uint64(s.Offset), Size: s.Size, Index: i})
	}
	l := Load(r, raw, LoadOptions{Class64: true, Workers: 2,
		Patch: func(s RawSection, b []byte) error { return rl.Apply(s.Index, b) }})
	for _, p := range l.Problems {
		t.Error(p)
	}
	return l.Sections
}

// A file that shrinks under its mapping costs the units in it, not the process.
func TestFileShrinks(t *testing.T) {
	u := cu(4)
	for i := range uint64(200_000) {
		u.Root.Add(fn("f", 0x1000+i, 1))
	}
	secs := built(one(u).Sections(), false)
	path := filepath.Join(t.TempDir(), "file")
	must.Write(t, path, secs.Info)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := Load(f, []RawSection{{Name: ".debug_info", Size: uint64(len(secs.Info))}}, LoadOptions{})
	defer l.Close()
	if len(l.Problems) > 0 || len(l.Sections.Info) < heapSection {
		t.Fatalf("%v, %d bytes", l.Problems, len(l.Sections.Info))
	}
	l.Sections.Abbrev = secs.Abbrev
	if err := os.Truncate(path, 64<<10); err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 2} {
		d := New(l.Sections, Options{})
		funcs, lost := 0, 0
		err := d.Walk(t.Context(), workers, func(u *Unit) error {
			funcs += len(u.Functions)
			lost += u.Lost
			return nil
		})
		if err != nil || funcs == 0 || lost != 1 {
			t.Errorf("%v, %d functions, %d problems", err, funcs, lost)
		}
		err = d.Walk(t.Context(), workers, func(*Unit) error {
			_ = bytes.Count(l.Sections.Info, []byte{1})
			return nil
		})
		if !errors.Is(err, ErrChanged) {
			t.Errorf("a fault in the visit: %v", err)
		}
	}
}
