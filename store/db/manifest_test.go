package db

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// fullManifest has something in every field.
func fullManifest() *store.Manifest {
	return &store.Manifest{
		ID: testID(7), Kind: ingest.Kernel, Machine: 62, Class: 2, BigEndian: true, Type: 3,
		Layout: []elf.Segment{
			{Offset: 0x1000, Addr: 0xffffffff81000000, FileSize: 1 << 24, MemSize: 1 << 25, Flags: 5,
				Align: 1 << 21},
		},
		Sections: []elf.PlacedSection{readSectionOf(".text"), readSectionOf(".init.text")},
		OtherLayouts: [][]byte{
			store.EncodeLayout([]elf.Segment{
				{Offset: 1, Addr: 2, FileSize: 3, MemSize: 4, Flags: 5, Align: 6},
			}, nil),
		},
		RefSyms: []store.RefSymbol{{Name: "_etext", Addr: 0xe00000}, {Name: "_stext", Addr: 0x200}},
		VDSO:    []buildid.ID{testID(1), testID(2)},
		Sources: []store.SourceInfo{
			{Kind: store.DWARF, Digest: [32]byte{1}, Producer: 3, Path: "/usr/lib/debug/vmlinux", Funcs: 5,
				Named: 1 << 40, Size: 99, TableVersion: 1, Chunks: 2, Strings: 3},
			{Kind: store.Kallsyms, Digest: [32]byte{2}, Producer: 1, Path: "/proc/kallsyms", Funcs: 1,
				Named: 16, Size: 1, TableVersion: 1, RawSize: 70, RawPieces: 1, RawStored: 30,
				RawDigest: [32]byte{9}},
		},
	}
}

// readSectionOf returns a placed section as the codec keeps it.
func readSectionOf(name string) elf.PlacedSection {
	return elf.PlacedSection{Name: name, Index: 3, Addr: 0x40, Size: 0x200}
}

func TestManifestRoundTrip(t *testing.T) {
	for _, m := range []*store.Manifest{fullManifest(), {ID: buildid.Make(buildid.Content, []byte{1})}} {
		b := store.EncodeManifest(m)
		got, err := store.DecodeManifest("test", b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("decoded\n%+v\nwant\n%+v", got, m)
		}
	}
}

// TestManifestSkipsUnknownTags reads the manifest of a newer program of the same schema.
func TestManifestSkipsUnknownTags(t *testing.T) {
	m := fullManifest()
	b := store.AppendTag(store.EncodeManifest(m), 99, []byte("from later"))
	got, err := store.DecodeManifest("test", b)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestManifestTruncated cuts an encoded manifest at every length: an error, or a
// manifest of the fields that were whole.
func TestManifestTruncated(t *testing.T) {
	b := store.EncodeManifest(fullManifest())
	errs := 0
	for n := range len(b) {
		m, err := store.DecodeManifest("test", b[:n:n])
		if (m == nil) == (err == nil) {
			t.Fatalf("%d bytes: manifest %v and error %v", n, m, err)
		}
		if err != nil {
			errs++
		}
	}
	if errs < len(b)-20 {
		t.Errorf("only %d of %d prefixes are errors", errs, len(b))
	}
}

func TestManifestRefusals(t *testing.T) {
	id := store.AppendTag([]byte{store.ManifestVersion}, store.TagID, store.AppendID(nil, testID(1)))
	repeat := func(n int, tag uint64, payload []byte) []byte {
		b := bytes.Clone(id)
		for range n {
			b = store.AppendTag(b, tag, payload)
		}
		return b
	}
	source := store.AppendSource(nil, &store.SourceInfo{Kind: store.Symtab})
	layout := store.EncodeLayout([]elf.Segment{{}}, nil)
	cases := map[string][]byte{
		"empty":             nil,
		"newer version":     append([]byte{2}, id[1:]...),
		"no build ID":       {store.ManifestVersion},
		"zero build ID":     store.AppendTag([]byte{store.ManifestVersion}, store.TagID, make([]byte, 21)),
		"space of no kind":  store.AppendTag([]byte{store.ManifestVersion}, store.TagID, []byte{9, 1, 2}),
		"kind of no source": repeat(1, store.TagSource, append([]byte{200}, source[1:]...)),
		"source cut":        repeat(1, store.TagSource, source[:40]),
		"many sources":      repeat(store.MaxSources+1, store.TagSource, source),
		"many layouts":      repeat(store.MaxOtherLayouts+1, store.TagOtherLayout, layout),
		"many vdsos":        repeat(store.MaxVDSOs+1, store.TagVDSO, store.AppendID(nil, testID(1))),
		"many symbols":      repeat(store.MaxRefSyms+1, store.TagRefSym, []byte{1, 'a'}),
		"segments missing":  repeat(1, store.TagLayout, []byte{200, 1, 0}),
		"layout of nothing": repeat(1, store.TagLayout, []byte{0, 0}),
		"layout with rest":  repeat(1, store.TagLayout, append(bytes.Clone(layout), 0)),
		"over the limit":    append(bytes.Clone(id), make([]byte, store.MaxManifest)...),
	}
	for name, b := range cases {
		if m, err := store.DecodeManifest("test", b); err == nil {
			t.Errorf("%s: no error, got %+v", name, m)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(store.EncodeManifest(fullManifest()))
	f.Add(store.EncodeManifest(&store.Manifest{ID: testID(1)}))
	f.Add([]byte{store.ManifestVersion, store.TagLayout, 3, 200, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := store.DecodeManifest("fuzz", b)
		if (m == nil) == (err == nil) {
			t.Fatalf("manifest %v and error %v", m, err)
		}
		if err != nil {
			return
		}
		// Accepted manifests survive being written.
		again, err := store.DecodeManifest("again", store.EncodeManifest(m))
		if err != nil || !bytes.Equal(store.EncodeManifest(again), store.EncodeManifest(m)) {
			t.Fatalf("second decoding: %v", err)
		}
	})
}

// mergePool returns contributions to one object that overlap and disagree.
func mergePool(t testing.TB) []*store.Contribution {
	t.Helper()
	id := testID(3)
	layouts := [][]elf.Segment{
		{{Offset: 0, Addr: 0x1000, FileSize: 10, MemSize: 10, Flags: 5, Align: 1}},
		{{Offset: 0, Addr: 0x2000, FileSize: 10, MemSize: 10, Flags: 5, Align: 1}},
		{{Offset: 0, FileSize: 9}, {Offset: 16, Addr: 16, FileSize: 9, Flags: 5}},
	}
	var pool []*store.Contribution
	for i := range 10 {
		c := &store.Contribution{Manifest: store.Manifest{ID: id, Machine: uint16(62 + i%2), Type: uint16(2 + i%2),
			Kind: ingest.ObjectKind(i % 3), Class: 2}}
		if i%3 != 0 {
			c.Manifest.Layout = layouts[(i/3)%len(layouts)]
		}
		if i%4 == 0 {
			c.Manifest.RefSyms = []store.RefSymbol{{Name: "_stext", Addr: addr.Addr(i)}, {Name: "_text", Addr: 0}}
			c.Manifest.VDSO = []buildid.ID{testID(20 + i)}
		}
		for k := range 1 + i%2 {
			s := store.NewSource{
				Info: store.SourceInfo{Kind: store.SourceKind(1 + (i+k)%3), Producer: uint32(1 + i%2),
					Path: fmt.Sprintf("/p%d", 9-i)},
				Table: testTable(t, i%4, 10+i%4),
			}
			if i%5 == 0 {
				s.Raw = bytes.Repeat([]byte{byte('a' + i)}, 100+i)
			}
			c.Sources = append(c.Sources, s)
		}
		pool = append(pool, c)
	}
	return pool
}

// TestMergeAnyOrder merges the same contributions in many orders, some twice:
// always the same bytes.
func TestMergeAnyOrder(t *testing.T) {
	pool := mergePool(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	var want []byte
	for round := range 300 {
		o := store.NewOverlay()
		for _, i := range rnd.Perm(len(pool)) {
			mustMerge(t, o, pool[i])
			if rnd.IntN(3) == 0 {
				mustMerge(t, o, pool[rnd.IntN(len(pool))])
			}
		}
		ms, err := o.Find(testID(3))
		if err != nil || len(ms) != 1 {
			t.Fatal(len(ms), err)
		}
		got := store.EncodeManifest(ms[0])
		if round == 0 {
			want = got
			if len(ms[0].OtherLayouts) != 2 || len(ms[0].Layout) != 2 {
				t.Fatalf("layouts: %+v", ms[0])
			}
			continue
		}
		if !bytes.Equal(got, want) {
			m, _ := store.DecodeManifest("want", want)
			t.Fatalf("round %d:\n%+v\nfirst round:\n%+v", round, ms[0], m)
		}
	}
}

// TestMergeAnyOrderInStore does the same with a database, where parts are written
// over: digest and every table and captured input agree.
func TestMergeAnyOrderInStore(t *testing.T) {
	pool := mergePool(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	var want []byte
	for round := range 6 {
		w := openTestWriter(t, "")
		for _, i := range rnd.Perm(len(pool)) {
			mustMerge(t, w, pool[i], pool[rnd.IntN(len(pool))])
		}
		for _, c := range pool { // once more: nothing is written
			w.dirty = false
			mustMerge(t, w, c)
			if w.dirty {
				t.Fatal("merging what is there wrote something")
			}
		}
		got, err := w.get(manifestKey(testID(3)))
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			want = got
		} else if !bytes.Equal(got, want) {
			t.Fatalf("round %d: other bytes", round)
		}
		v, err := w.Verify(context.Background())
		if err != nil || !v.Sound() {
			t.Fatalf("verify: %+v, %v", v, err)
		}
		if n := countKind(v, Conflict); n == 0 {
			t.Error("conflicting layouts and sources are not reported")
		}
		if n := countKind(v, Orphan); n != 0 {
			t.Errorf("%d orphans: %v", n, v.Problems)
		}
		w.Close()
	}
}

func countKind(v *VerifyResult, kind ProblemKind) (n int) {
	for _, p := range v.Problems {
		if p.Kind == kind {
			n++
		}
	}
	return n
}

func TestSourceOrder(t *testing.T) {
	big, small := testTable(t, 1, 100), testTable(t, 2, 10)
	o := store.NewOverlay()
	for _, s := range []store.NewSource{
		{Info: store.SourceInfo{Kind: store.PLT, Producer: 1}, Table: small},
		{Info: store.SourceInfo{Kind: store.Symtab, Producer: 1}, Table: small},
		{Info: store.SourceInfo{Kind: store.Symtab, Producer: 1}, Table: big},
		{Info: store.SourceInfo{Kind: store.Dynsym, Producer: 1}, Table: big},
		{Info: store.SourceInfo{Kind: store.Dynsym, Producer: 2}, Table: small},
	} {
		mustMerge(t, o, &store.Contribution{Manifest: store.Manifest{ID: testID(1)}, Sources: []store.NewSource{s}})
	}
	ms, _ := o.Find(testID(1))
	got := ""
	for _, s := range ms[0].Sources {
		got += fmt.Sprintf("%s/%d/%d ", s.Kind, s.Producer, s.Funcs)
	}
	want := "symtab/1/100 symtab/1/10 dynsym/2/10 dynsym/1/100 plt/1/10 "
	if got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

func TestContributionRefused(t *testing.T) {
	for name, c := range map[string]*store.Contribution{
		"no build ID": {},
		"inexact":     {Manifest: store.Manifest{ID: buildid.Padded(make([]byte, 19))}},
		"padded":      {Manifest: store.Manifest{ID: buildid.Padded([]byte{1, 2, 0})}},
		"sources":     {Manifest: store.Manifest{ID: testID(1), Sources: []store.SourceInfo{{Kind: store.DWARF}}}},
		"no table": {Manifest: store.Manifest{ID: testID(1)},
			Sources: []store.NewSource{{Info: store.SourceInfo{Kind: store.DWARF}}}},
		"no kind": {Manifest: store.Manifest{ID: testID(1)},
			Sources: []store.NewSource{{Table: testTable(t, 1, 1)}}},
	} {
		if err := store.NewOverlay().Merge(context.Background(), c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
