package analyze_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"symbolize/analyze"
	"symbolize/buildid"
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
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
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
		l := p.Stack(row.Stack)[0]
		name := "none in " + p.Objects[p.Locations[l].Object].File.Path
		if f := p.Names.At(ingest.LocationID(l)); len(f) > 0 {
			name = p.Names.Functions[f[0].Func].SystemName
		}
		got[name] += row.Count
	}
	want := map[string]uint64{"known.so_first": 2, "none in /lib/known.so": 2, "none in /lib/twice.so": 8,
		"none in /lib/noid.so": 4, "short.so_first": 2, "none in /lib/short.so": 2}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d samples, want %d", name, got[name], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
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
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
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
