package db

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

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

// TestMergeAnyOrder merges the same contributions in many orders, some twice: always the same
// bytes.
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

// TestMergeAnyOrderInStore does the same with a database, where parts are written over: digest and
// every table and captured input agree.
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
