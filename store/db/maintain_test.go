package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/symtab"
)

func TestGC(t *testing.T) {
	path := t.TempDir()
	tree := t.TempDir()
	w := openTestWriter(t, path)
	var rows store.DirRows
	for n := range 6 {
		mustMerge(t, w, testContribution(t, n, 300))
		name := fmt.Sprintf("lib%d.so", n)
		rows = append(rows, store.PathRow{Name: name, ID: testID(n)})
		if n < 4 { // the files of 4 and 5 have vanished
			os.WriteFile(filepath.Join(tree, name), nil, 0o644)
		}
	}
	// An object with a table that a newer decoder has made anew.
	newer := testContribution(t, 0, 299)
	newer.Sources[0].Info.Producer = 2
	mustMerge(t, w, newer)
	// Objects that cannot be made again, and one that is nowhere.
	mustMerge(t, w,
		&store.Contribution{Manifest: store.Manifest{ID: buildid.Make(buildid.JIT, []byte{1, 2})}},
		&store.Contribution{Manifest: store.Manifest{ID: testID(100), Kind: ingest.Kernel}, Sources: []store.NewSource{
			{Info: store.SourceInfo{Kind: store.Kallsyms}, Table: testTable(t, 100, 50), Raw: []byte("kallsyms")}}},
		testContribution(t, 101, 10))
	os.WriteFile(filepath.Join(path, inputsName, digest{7}.String()), []byte("of a killed run"), 0o644)
	err := errors.Join(w.PutDir(tree, rows), w.PutDir(filepath.Join(tree, "gone"), rows), w.Publish())
	if err != nil {
		t.Fatal(err)
	}
	old := openTestReader(t, path)

	res, err := w.GC(t.Context(), GCOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := &GCResult{
		Objects: 9, Superseded: 1, Rows: 4, RowsDropped: 8, Before: res.Before, After: res.After, kept: res.kept,
	}
	if !reflect.DeepEqual(res, want) || res.After >= res.Before {
		t.Errorf("gc: %+v, want %+v", res, want)
	}
	res, err = w.GC(t.Context(), GCOptions{Unreferenced: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.Objects != 6 || res.Dropped != 3 {
		t.Errorf("gc of unreferenced: %+v", res)
	}
	mustMerge(t, w, testContribution(t, 200, 10)) // the writer goes on
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	v := mustVerify(t, path)
	if v.Objects != 7 || len(v.Problems) > 0 {
		t.Errorf("verify: %+v", v)
	}
	checkObject(t, openTestReader(t, path), 0, 299)
	checkObject(t, old, 101, 10) // a reader keeps its open files
}

// TestTidy writes in very many runs: their facts are joined before they are too many for a reader.
func TestTidy(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 3)
	w := openTestWriter(t, path)
	for n := range maxFacts {
		rows := store.DirRows{{Name: "f", ID: testID(n % 3)}}
		if err := w.PutDir(fmt.Sprintf("/d/%d", n), rows); err != nil {
			t.Fatal(err)
		}
		w.writing.Lock()
		err := errors.Join(w.finish(), w.commit())
		w.writing.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := w.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	facts, _, err := listFacts(path)
	if err != nil || len(facts) != 1 {
		t.Errorf("%d files of facts, %v", len(facts), err)
	}
	if v := mustVerify(t, path); v.Objects != 3 || v.Dirs != maxFacts || digestOf(t, path) != want {
		t.Errorf("after joining: %+v", v)
	}
}

func TestRebuild(t *testing.T) {
	w := openTestWriter(t, "")
	for n := range 4 {
		c := &store.Contribution{Manifest: store.Manifest{ID: testID(n)}, Sources: []store.NewSource{
			{Info: store.SourceInfo{Kind: store.Kallsyms, Producer: 1, Path: "/proc/kallsyms"},
				Table: testTable(t, 10+n, 20000), Raw: fmt.Appendf(nil, "raw %d", n)},
			{Info: store.SourceInfo{Kind: store.Symtab, Producer: 1}, Table: testTable(t, 50, 10)},
		}}
		mustMerge(t, w, c)
	}
	opts := RebuildOptions{
		Producer: func(store.SourceKind) uint32 { return 2 },
		Table: func(m *store.Manifest, info store.SourceInfo, raw []byte) (*symtab.Encoded, error) {
			switch string(raw) {
			case "raw 0":
				return testTable(t, 10, 20000), nil // the same again
			case "raw 1":
				return testTable(t, 99, 30), nil
			case "raw 2":
				return nil, errors.New("does not decode any more")
			}
			return testTable(t, 98, 25000), nil
		},
	}
	res, err := w.Rebuild(t.Context(), opts)
	if err != nil || res.Sources != 4 || res.Changed != 2 || len(res.Problems) != 1 {
		t.Fatalf("rebuild: %+v, %v", res, err)
	}
	for n, want := range []uint32{20000, 30, 20000, 25000} {
		ms, err := w.Find(testID(n))
		if err != nil || len(ms[0].Sources) != 2 {
			t.Fatal(ms, err)
		}
		s := ms[0].Sources[0]
		if s.Kind == store.Symtab {
			s = ms[0].Sources[1]
		}
		producer := uint32(2)
		if n == 2 {
			producer = 1
		}
		if s.Funcs != want || s.Producer != producer || s.Path != "/proc/kallsyms" {
			t.Errorf("object %d: %+v", n, s)
		}
	}
	v, err := w.Verify(t.Context())
	if err != nil || len(v.Problems) > 0 {
		t.Errorf("verify: %+v, %v", v, err)
	}
	if res, err := w.Rebuild(t.Context(), opts); err != nil || res.Changed != 0 {
		t.Errorf("second rebuild: %+v, %v", res, err)
	}
}

func TestStats(t *testing.T) {
	w := openTestWriter(t, "")
	mustMerge(t, w, mergePool(t)...)
	mustMerge(t, w, testContribution(t, 50, 300), &store.Contribution{Manifest: store.Manifest{ID: testID(60)}})
	err := errors.Join(w.PutDir("/a", testRows(10)), w.PutDir("/b", testRows(5)), w.Publish())
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Objects != 3 || s.Kinds[ingest.ELF] != 2 || s.Quality[0] != 1 || s.Quality[store.Symtab] != 1 ||
		s.NoLayout != 1 || s.Dirs != 2 || s.PathRows != 15 || s.Damaged != 0 || len(s.Generations) != 1 ||
		s.Disk < s.Size || s.RawStored == 0 || s.Sources[store.Symtab].Funcs < 300 {
		t.Errorf("stats: %+v", s)
	}
	rawSet(w, manifestKey(testID(60)), nil)
	rawSet(w, dirKey("/a"), nil)
	s, err = w.Stats(t.Context())
	if err != nil || s.Damaged != 2 || s.Objects != 2 || s.PathRows != 5 {
		t.Errorf("stats of a damaged store: %+v, %v", s, err)
	}
}

func TestLayer(t *testing.T) {
	front, back := store.NewOverlay(), store.NewOverlay()
	layout := testContribution(t, 1, 1).Manifest.Layout
	mustMerge(t, back, testContribution(t, 1, 100), testContribution(t, 2, 7),
		&store.Contribution{Manifest: store.Manifest{
			ID: buildid.New([]byte{9, 9}), RefSyms: []store.RefSymbol{{Name: "_stext", Addr: 7}},
		}})
	mustMerge(t, front, &store.Contribution{
		Manifest: store.Manifest{ID: testID(1), Layout: layout[:1]},
		Sources: []store.NewSource{
			{Info: store.SourceInfo{Kind: store.Symtab, Producer: 1}, Table: testTable(t, 70, 5)},
			{Info: store.SourceInfo{Kind: store.PLT}, Table: testTable(t, 71, 3)},
		},
	}, &store.Contribution{Manifest: store.Manifest{ID: buildid.New([]byte{9, 9, 0})}})
	front.PutDir("/x", testRows(2))
	back.PutDir("/x", testRows(3))
	back.PutDir("/y", testRows(4))
	v := store.Layer(nil, front, back)

	ms, err := v.Find(testID(1))
	if err != nil || len(ms) != 1 {
		t.Fatal(ms, err)
	}
	got := ""
	for i, s := range ms[0].Sources {
		table, err := v.Open(ms[0], i)
		if err != nil {
			t.Fatal(err)
		}
		got += fmt.Sprintf("%s%d ", s.Kind, table.NumFuncs())
	}
	// The front's table of a kind is used first, though it names less.
	if want := "symtab5 symtab100 plt3 "; got != want || len(ms[0].Layout) != 1 {
		t.Errorf("sources %s, want %s; layout %v", got, want, ms[0].Layout)
	}
	checkObject(t, v, 2, 7)
	inexact := buildid.Padded([]byte{9, 9})
	if is, err := v.Find(inexact); err != nil || len(is) != 1 || is[0].ID.Len() != 3 ||
		is[0].RefSyms != nil {
		t.Errorf("what the front has decides: %v, %v", is, err)
	}
	for dir, want := range map[string]int{"/x": 3, "/y": 4, "/z": 0} {
		if rows, ok, err := v.Dir(dir); err != nil || len(rows) != want || ok != (want > 0) {
			t.Errorf("Dir(%s) = %d rows, %v, %v", dir, len(rows), ok, err)
		}
	}
	ms[0].Sources[0].Digest[0]++
	if _, err := v.Open(ms[0], 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("table of nobody: %v", err)
	}
	if store.Layer(front) != store.View(front) {
		t.Error("one view needs no layers")
	}
}

func TestExportImport(t *testing.T) {
	w := openTestWriter(t, "")
	mustMerge(t, w, mergePool(t)...)
	long := buildid.New(bytes.Repeat([]byte{0xab}, buildid.MaxLen))
	mustMerge(t, w, &store.Contribution{Manifest: store.Manifest{ID: testID(1)}, Sources: []store.NewSource{
		{Info: store.SourceInfo{Kind: store.DWARF}, Table: testTable(t, 1, 30000), Raw: []byte("raw")}}},
		&store.Contribution{Manifest: store.Manifest{ID: long}, Sources: []store.NewSource{
			{Info: store.SourceInfo{Kind: store.EhFrame}, Table: testTable(t, 2, 30000)}}})
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if n, err := store.Export(t.Context(), b, w, nil); err != nil || n != 3 {
			t.Fatal(n, err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two exports differ")
	}
	to := openTestWriter(t, "")
	for range 2 {
		res, err := store.Import(t.Context(), bytes.NewReader(first.Bytes()), to)
		if err != nil || len(res.Problems) > 0 || res.Objects != 3 {
			t.Fatalf("import: %+v, %v", res, err)
		}
	}
	var third bytes.Buffer
	if _, err := store.Export(t.Context(), &third, to, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), third.Bytes()) {
		t.Error("export of the imported store differs")
	}
	a, _ := w.Digest(t.Context())
	if b, _ := to.Digest(t.Context()); a != b {
		t.Errorf("digest %x, was %x", b, a)
	}
}

// smallArchive is an archive of one object with two sources, one of them with blocks.
func smallArchive(tb testing.TB, funcs int) []byte {
	tb.Helper()
	o := openTestWriter(tb, "")
	mustMerge(tb, o, &store.Contribution{Manifest: store.Manifest{ID: testID(1)}, Sources: []store.NewSource{
		{Info: store.SourceInfo{Kind: store.DWARF}, Table: testTable(tb, 1, funcs), Raw: []byte("raw")},
		{Info: store.SourceInfo{Kind: store.PLT}, Table: testTable(tb, 2, 3)}}})
	b := exportPlain(tb, o, nil)
	o.Close()
	return b
}

// TestImportTruncated cuts an archive everywhere: whole objects are merged, and a cut is an error.
func TestImportTruncated(t *testing.T) {
	b := smallArchive(t, 5)
	end := bytes.Index(b, []byte("objects 1\n")) + len("objects 1\n")
	for n := range end {
		o := store.NewOverlay()
		res, err := store.Import(t.Context(), bytes.NewReader(b[:n]), o)
		if err == nil {
			t.Fatalf("%d of %d bytes: no error", n, len(b))
		}
		ms, err := o.Find(testID(1))
		if err != nil || len(ms) != min(res.Objects, 1) {
			t.Fatalf("%d bytes: %v, %v", n, ms, err)
		}
		if len(ms) > 0 && len(ms[0].Sources) != res.Sources {
			t.Fatalf("%d bytes: %d sources, result says %d", n, len(ms[0].Sources), res.Sources)
		}
	}
}

// TestImportDamaged changes one byte at a time outside of tar's headers.
func TestImportDamaged(t *testing.T) {
	b := smallArchive(t, 5)
	want, _, _ := strings.Cut(string(b), "\x00")
	if want != "symbolize-store" {
		t.Fatalf("archive begins with %q", want)
	}
	for n := 512; n < len(b)-1024; n++ {
		c := bytes.Clone(b)
		c[n] ^= 0x55
		o := store.NewOverlay()
		store.Import(t.Context(), bytes.NewReader(c), o)
		ms, _ := o.Find(testID(1))
		for i := range ms {
			for j := range ms[i].Sources {
				table, err := o.Open(ms[i], j)
				if err != nil {
					t.Fatalf("byte %d: %v", n, err)
				}
				if sum, err := table.Digest(); err != nil || sum != ms[i].Sources[j].Digest {
					t.Fatalf("byte %d: a damaged table was merged: %v", n, err)
				}
			}
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add(smallArchive(f, 5))
	f.Add(smallArchive(f, 20000)[:8192])
	f.Add([]byte("symbolize-store"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o := store.NewOverlay()
		res, err := store.Import(context.Background(), bytes.NewReader(b), o)
		if err == nil && res.Objects == 0 && len(o.Objects) > 0 {
			t.Fatal("objects from nowhere")
		}
	})
}
