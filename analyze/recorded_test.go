package analyze_test

import (
	"debug/elf"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/analyze"
	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// TestRecordedSymbols names code by what simpleperf noted in the recording, where it is sure which
// object of the recording the names are of, and where nothing better is known.
func TestRecordedSymbols(t *testing.T) {
	b := perfbuild.New()
	at := perfbuild.At{PID: 7, TID: 7, Time: 1}
	names := func(prefix string) []perfbuild.FileSymbol {
		return []perfbuild.FileSymbol{{Addr: 0x5010, Size: 16, Name: prefix + "_first"},
			{Addr: 0x5020, Name: prefix + "_empty"}, {Addr: 0x4fff, Size: 4, Name: prefix + "_before"}}
	}
	var files []perfbuild.SymbolFile
	for i, o := range []struct{ path, id string }{
		{"/lib/known.so", "01234567890123456789"}, {"/lib/twice.so", "aaaa567890123456789a"},
		{"/lib/twice.so", "bbbb567890123456789b"}, {"/lib/noid.so", ""}, {"/lib/short.so", "0123456789abcdef"},
	} {
		m := perfbuild.Mmap{PID: 7, Addr: uint64(0x100000 * (i + 1)), Len: 0x10000, PgOff: 0x1000,
			Maj: 8, Ino: uint64(i + 1), Filename: o.path}
		if o.id != "" {
			m.BuildID = []byte(o.id)
		}
		b.Mmap2(m, at)
		for _, off := range []uint64{0x10, 0x1f, 0x20, 0x0} {
			b.Sample(perfbuild.Sample{PID: 7, Time: 5, Chain: []uint64{perfbuild.ContextUser, m.Addr + off}})
		}
		files = append(files, perfbuild.SymbolFile{Path: o.path, Type: 2, Addr: 0x5000, Offset: 0x1000,
			Symbols: names(filepath.Base(o.path))})
	}
	b.Files2(files...)
	path := filepath.Join(t.TempDir(), "perf.data")
	must.Write(t, path, b.Bytes())
	s, err := analyze.Open(t.Context(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := s.Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]uint64)
	for _, row := range p.Samples {
		l := p.Stack(nil, row.Stack)[0]
		name := "none in " + p.Objects[p.Locations[l].Object].File.Path
		if f := p.Names.At(ingest.LocationID(l)); len(f) > 0 {
			name = p.Names.Functions[f[0].Func].SystemName
		}
		got[name] += row.Count
	}
	want := map[string]uint64{"known.so_first": 2, "none in /lib/known.so": 2, "none in /lib/twice.so": 8,
		"noid.so_first": 2, "none in /lib/noid.so": 2, "short.so_first": 2, "none in /lib/short.so": 2}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d samples, want %d", name, got[name], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRecordedKinds names what simpleperf lists besides ELF files with a place: the kernel, with
// functions at run-time addresses; DEX files, with functions at offsets, and addresses that are
// never return addresses; compiled code, over which files with its symbols are mapped; symbol maps
// of processes; and files of old versions, which do not note a place.
func TestRecordedKinds(t *testing.T) {
	const kernel = 0xffffff8000080000
	b := perfbuild.New()
	b.Mmap(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Len: ^uint64(0), Filename: "[kernel.kallsyms]"},
		perfbuild.At{})
	at := perfbuild.At{PID: 7, TID: 7, Time: 1}
	for i, m := range []perfbuild.Mmap{
		{Addr: 0x100000, Len: 0x10000, PgOff: 0x2000, Filename: "/app/base.vdex"},
		{Addr: 0x99fab000, Len: 0x100, PgOff: 0x7808, Prot: 0x4000, Filename: "p.data_jit_app_cache:1-2"},
		{Addr: 0x99fab100, Len: 0x100, PgOff: 0, Prot: 0x4000, Filename: "./TemporaryFile-x"},
		{Addr: 0x300000, Len: 0x4000, Filename: "/lib/old.so"},
		{Addr: 0x304000, Len: 0x1000, PgOff: 0x4000, Filename: "/lib/old.so"},
	} {
		m.PID, m.Maj, m.Ino = 7, 8, uint64(i+1)
		if m.Filename == "/lib/old.so" {
			m.Ino = 4
		}
		b.Mmap2(m, at)
	}
	one := func(kind uint32, path string, addr uint64, name string) perfbuild.SymbolFile {
		return perfbuild.SymbolFile{Path: path, Type: kind, NoOffset: kind == 2,
			Symbols: []perfbuild.FileSymbol{{Addr: addr, Size: 0x40, Name: name}}}
	}
	old := one(2, "/lib/old.so", 0x3010, "old")
	files := []perfbuild.SymbolFile{one(0, "[kernel.kallsyms]", kernel, "do_work"),
		one(3, "/app/base.vdex", 0x2800, "com.App.run"), one(2, "p.data_jit_app_cache:1-2", 0x99fab010, "jit"),
		one(2, "./TemporaryFile-x", 0x99fab110, "jitted"), one(4, "perf-9.map", 0x500000, "mapped"), old}
	b.Comm(9, 9, "node", true, perfbuild.At{PID: 9, TID: 9, Time: 2})
	user, inKernel := uint64(perfbuild.ContextUser), uint64(perfbuild.ContextKernel)
	b.Sample(perfbuild.Sample{PID: 7, Time: 5, Chain: []uint64{inKernel, kernel + 0x10, kernel + 0x20,
		kernel + 0x80, user, 0x99fab020, 0x100800, 0x99fab130, 0x100840, 0x303030}})
	b.Sample(perfbuild.Sample{PID: 9, TID: 9, Time: 5, Chain: []uint64{user, 0x500010}})
	for i, set := range []func(...perfbuild.SymbolFile){b.Files, b.Files2} {
		if set(files...); i == 1 {
			b.Files()
		}
		path := filepath.Join(t.TempDir(), "perf.data")
		must.Write(t, path, b.Bytes())
		s, err := analyze.Open(t.Context(), analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Load(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range p.Samples {
			for _, l := range p.Stack(nil, row.Stack) {
				if f := p.Names.At(l); len(f) > 0 {
					got = append(got, p.Names.Functions[f[0].Func].SystemName)
				} else {
					got = append(got, p.Names.Reasons[l].String())
				}
			}
		}
		if want := "do_work do_work kernel hidden jit com.App.run jitted stripped old mapped"; strings.Join(
			got, " ") != want {
			t.Errorf("feature %d: %q, want %s", i, got, want)
		}
		s.Close()
	}
}

// TestRecordedSymbolsYield: names in the recording are not used where the file itself is known.
func TestRecordedSymbolsYield(t *testing.T) {
	const program = "../fixtures/unwound/bare"
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	notes, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := buildid.FromNotes(notes, false, 4)
	text := f.Section(".text")
	b := perfbuild.New()
	b.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x100000, Len: 0x10000, PgOff: text.Offset &^ 0xfff, BuildID: id.Bytes(),
		Filename: "/bin/bare"}, perfbuild.At{PID: 7, TID: 7, Time: 1})
	b.Sample(perfbuild.Sample{PID: 7, Time: 5, Chain: []uint64{perfbuild.ContextUser,
		0x100000 + f.Entry - text.Addr + text.Offset&0xfff}})
	b.Files2(perfbuild.SymbolFile{Path: "/bin/bare", Type: 2, Addr: text.Addr, Offset: text.Offset,
		Symbols: []perfbuild.FileSymbol{{Addr: text.Addr, Size: uint32(text.Size), Name: "recorded"}}})
	path := filepath.Join(t.TempDir(), "perf.data")
	must.Write(t, path, b.Bytes())
	for name, with := range map[string][]string{"recorded": nil, "_start": {program}} {
		s, err := analyze.Open(t.Context(), analyze.Options{With: with})
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Load(t.Context(), path)
		if err != nil || len(p.Names.Functions) != 1 || p.Names.Functions[0].SystemName != name {
			t.Errorf("with %q: %+v, %v, want %s", with, p.Names.Functions, err, name)
		}
		s.Close()
	}
}
