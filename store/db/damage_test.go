package db

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/store"
)

func TestEnvelope(t *testing.T) {
	key := []byte("key")
	for _, payload := range [][]byte{{}, {1}, bytes.Repeat([]byte{7}, 300)} {
		b := seal(key, payload)
		got, err := unseal(key, b)
		if err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("%x, %v", got, err)
		}
		if _, err := unseal([]byte("kez"), b); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("value of another key: %v", err)
		}
		for n := range b {
			if _, err := unseal(key, b[:n:n]); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%d of %d bytes: %v", n, len(b), err)
			}
			c := bytes.Clone(b)
			c[n] ^= 1
			if _, err := unseal(key, c); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("bit of byte %d: %v", n, err)
			}
		}
		if _, err := unseal(key, append(b, 0)); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("a byte more: %v", err)
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte("k"), seal([]byte("k"), []byte("payload")))
	longest := append([]byte{envelopeVersion}, bytes.Repeat([]byte{0xff}, 9)...)
	f.Add([]byte{}, append(longest, 1, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		payload, err := unseal(key, value)
		if err == nil && !bytes.Equal(seal(key, payload), value) {
			// Only a length in more bytes than needed may be spelt otherwise.
			if len(value) <= len(seal(key, payload)) {
				t.Fatalf("%x opens to %x", value, payload)
			}
		}
	})
}

// rawSet writes past all checks.
func rawSet(tb testing.TB, w *Writer, key, value []byte) {
	tb.Helper()
	txn := w.db.NewTransaction(true)
	defer txn.Discard()
	if err := txn.Set(key, value); err != nil {
		tb.Fatal(err)
	}
	if err := txn.Commit(); err != nil {
		tb.Fatal(err)
	}
	w.dirty = true
}

// TestVerifyFinds plants one fault at a time.
func TestVerifyFinds(t *testing.T) {
	table := testTable(t, 1, 20000)
	raw := []byte(strings.Repeat("raw", 1000))
	id := testID(1)
	first := func(w *Writer) *store.SourceInfo {
		ms, err := w.Find(id)
		if err != nil || len(ms) != 1 {
			t.Fatal(ms, err)
		}
		return &ms[0].Sources[0]
	}
	cases := []struct {
		name  string
		plant func(w *Writer)
		kind  ProblemKind
		text  string
	}{
		{name: "nothing", plant: func(*Writer) {}, kind: 0},
		{name: "lost value", plant: func(w *Writer) { rawSet(t, w, manifestKey(id), nil) },
			kind: Damage, text: "value is lost"},
		{name: "manifest of another", plant: func(w *Writer) {
			rawSet(t, w, manifestKey(id), seal(manifestKey(id), store.EncodeManifest(&store.Manifest{ID: testID(2)})))
		}, kind: Damage, text: "manifest is that of"},
		{name: "manifest that does not decode", plant: func(w *Writer) {
			rawSet(t, w, manifestKey(id), seal(manifestKey(id), []byte{1, 7, 100}))
		}, kind: Damage, text: "wanted"},
		{name: "order of sources", plant: func(w *Writer) {
			ms, _ := w.Find(id)
			ms[0].Sources = append([]store.SourceInfo{{Kind: store.EhFrame}}, ms[0].Sources...)
			rawSet(t, w, manifestKey(id), seal(manifestKey(id), store.EncodeManifest(ms[0])))
		}, kind: Damage, text: "not in order"},
		{name: "lost header", plant: func(w *Writer) {
			b := &batch{ctx: context.Background(), w: w}
			b.remove(tableKey(sourcePrefix(prefixTable, id, first(w)), partHeader, 0))
			b.commit()
		}, kind: Damage, text: "not in the store"},
		{name: "lost chunk", plant: func(w *Writer) {
			b := &batch{ctx: context.Background(), w: w}
			b.remove(tableKey(sourcePrefix(prefixTable, id, first(w)), partChunk, 0))
			b.commit()
		}, kind: Damage, text: "is lost"},
		{name: "other table", plant: func(w *Writer) {
			key := tableKey(sourcePrefix(prefixTable, id, first(w)), partHeader, 0)
			rawSet(t, w, key, seal(key, testTable(t, 9, 3).Header))
		}, kind: Damage, text: "digest"},
		{name: "other captured input", plant: func(w *Writer) {
			key := rawKey(sourcePrefix(prefixRaw, id, first(w)), 0)
			rawSet(t, w, key, seal(key, store.Compress(nil, []byte(strings.Repeat("war", 1000)))))
		}, kind: Damage, text: "not the one that was kept"},
		{name: "orphan part", plant: func(w *Writer) {
			key := tableKey(sourcePrefix(prefixTable, id, first(w)), partChunk, 7777)
			rawSet(t, w, key, seal(key, []byte("x")))
		}, kind: Orphan, text: "in no manifest"},
		{name: "orphan source", plant: func(w *Writer) {
			key := rawKey(sourcePrefix(prefixRaw, testID(8), &store.SourceInfo{Kind: store.Symtab}), 0)
			rawSet(t, w, key, seal(key, []byte("x")))
		}, kind: Orphan, text: "in no manifest"},
		{name: "short key", plant: func(w *Writer) {
			rawSet(t, w, []byte("txx"), seal([]byte("txx"), nil))
		}, kind: Damage, text: "names nothing"},
		{name: "foreign key", plant: func(w *Writer) { rawSet(t, w, []byte("zz"), nil) },
			kind: Damage, text: "of no kind"},
		{name: "dangling row", plant: func(w *Writer) {
			w.PutDir("/d", store.DirRows{{Name: "f", ID: testID(77)}})
		}, kind: Dangling, text: "f is listed"},
		{name: "rows", plant: func(w *Writer) {
			rawSet(t, w, dirKey("/d"), seal(dirKey("/d"), []byte{1, 0, 9}))
		}, kind: Damage, text: "header says"},
	}
	for _, tc := range cases {
		w := openTestWriter(t, "")
		mustMerge(t, w, &store.Contribution{Manifest: store.Manifest{ID: id}, Sources: []store.NewSource{
			{Info: store.SourceInfo{Kind: store.Symtab, Producer: 1}, Table: table, Raw: raw}}})
		tc.plant(w)
		v, err := w.Verify(context.Background())
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if tc.text == "" {
			if len(v.Problems) > 0 {
				t.Errorf("%s: %v", tc.name, v.Problems)
			}
			continue
		}
		ok := false
		for _, p := range v.Problems {
			ok = ok || p.Kind == tc.kind && strings.Contains(p.String(), tc.text)
		}
		if !ok || v.Sound() != (tc.kind == Orphan) {
			t.Errorf("%s: sound %v, problems %v", tc.name, v.Sound(), v.Problems)
		}
		w.Close()
	}
}

// TestDamagedLog flips bytes all over a value log. Every read value is right or an
// error, and GC and indexing again bring all of it back.
func TestDamagedLog(t *testing.T) {
	path := t.TempDir()
	w := openTestWriter(t, path)
	var rows store.DirRows
	for n := range 40 {
		mustMerge(t, w, testContribution(t, n, 200+n))
		rows = append(rows, store.PathRow{Name: testID(n).Hex(), ID: testID(n)})
	}
	if err := errors.Join(w.PutDir("/lib", rows), w.Close()); err != nil {
		t.Fatal(err)
	}
	want := digestOf(t, path)
	name, _ := newestFile(genDir(path, 1), ".vlog")
	for _, at := range []float64{0.01, 0.3, 0.31, 0.7, 0.999} {
		flip(t, filepath.Join(genDir(path, 1), name), at)
	}
	r := openTestReader(t, path)
	v, err := r.Verify(context.Background())
	if err != nil || v.Sound() {
		t.Fatalf("damage is not seen: %v, %v", v, err)
	}
	w = openTestWriter(t, path)
	res, err := w.GC(context.Background(), GCOptions{Exists: func(string) bool { return true }})
	if err != nil || res.Damaged == 0 {
		t.Fatalf("gc: %+v, %v", res, err)
	}
	left, _, err := w.Dir("/lib")
	if err != nil || len(left) == len(rows) {
		t.Errorf("rows of damaged objects stay: %d, %v", len(left), err)
	}
	for n := range 40 { // as index does with files that have no row
		if left.Find(testID(n).Hex()) == nil {
			mustMerge(t, w, testContribution(t, n, 200+n))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, path)
	if got := digestOf(t, path); got != want {
		t.Errorf("digest %x, was %x", got, want)
	}
}

// TestVerifyLogBytes changes bytes of a value log that are of no value: its header, which
// only encryption would use, and a value that was written over. Verify notices, also in a
// generation that took the log over from the one before; the objects are read all the
// same, and GC leaves the damage behind.
func TestVerifyLogBytes(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   func(list []logEntry) int64
	}{
		{name: "header", at: func([]logEntry) int64 { return vlogHeader - 1 }},
		{name: "value that is no more",
			at: func(list []logEntry) int64 { return list[0].value + 9 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := t.TempDir()
			w := openTestWriter(t, path)
			rawSet(t, w, dirKey("/old"), bytes.Repeat([]byte{7}, 2*valueThreshold))
			b := &batch{ctx: t.Context(), w: w}
			if err := errors.Join(b.remove(dirKey("/old")), b.commit()); err != nil {
				t.Fatal(err)
			}
			mustMerge(t, w, testContribution(t, 1, 300))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			log := filepath.Join(genDir(path, 1), "000001.vlog")
			flipAt(t, log, tc.at(logEntries(t, log)))
			w = openTestWriter(t, path)
			mustMerge(t, w, testContribution(t, 2, 300))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			r := openTestReader(t, path)
			v, err := r.Verify(t.Context())
			if err != nil || v.Sound() || !strings.Contains(v.Problems[0].String(), "000001.vlog") {
				t.Errorf("verify: %+v, %v", v, err)
			}
			checkObject(t, r, 1, 300)
			r.Close()
			w = openTestWriter(t, path)
			if _, err := w.GC(t.Context(), GCOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			mustVerify(t, path)
		})
	}
}

// flipAt flips a bit of a byte, for all names of the file.
func flipAt(tb testing.TB, path string, at int64) {
	tb.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 4
	if err == nil {
		_, err = f.WriteAt(b[:], at)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		tb.Fatal(err)
	}
}
