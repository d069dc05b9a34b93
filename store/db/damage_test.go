package db

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/store"
)

// rawSet sets an entry past all checks.
func rawSet(w *Writer, key, payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.extra.set(string(key), payload)
	w.dirty = true
}

// inputPath returns the file of an object's input.
func inputPath(tb testing.TB, w *Writer, n int) string {
	tb.Helper()
	ms, err := w.Find(testID(n))
	if err != nil || len(ms) != 1 {
		tb.Fatal(ms, err)
	}
	id := digest(ms[0].Sources[0].Input)
	w.inputs.forget(id)
	return filepath.Join(w.path, inputsName, id.String())
}

// TestVerifyFinds plants one fault at a time.
func TestVerifyFinds(t *testing.T) {
	table := testTable(t, 1, 20000)
	raw := []byte(strings.Repeat("raw", 1000))
	id := testID(1)
	cases := []struct {
		name  string
		plant func(w *Writer)
		kind  ProblemKind
		text  string
	}{
		{name: "nothing", plant: func(*Writer) {}, kind: 0},
		{name: "lost value", plant: func(w *Writer) { rawSet(w, manifestKey(id), nil) },
			kind: Damage, text: "LEB128"},
		{name: "manifest of another", plant: func(w *Writer) {
			rawSet(w, manifestKey(id), store.AppendStored(nil, &store.Manifest{ID: testID(2)}))
		}, kind: Damage, text: "manifest belongs to"},
		{name: "manifest that does not decode", plant: func(w *Writer) {
			rawSet(w, manifestKey(id), []byte{3, 1, 7, 100})
		}, kind: Damage, text: "wanted"},
		{name: "order of sources", plant: func(w *Writer) {
			ms, _ := w.Find(id)
			ms[0].Sources = append([]store.SourceInfo{{Kind: store.EhFrame}}, ms[0].Sources...)
			rawSet(w, manifestKey(id), store.AppendStored(nil, ms[0]))
		}, kind: Damage, text: "not in order"},
		{name: "lost input", plant: func(w *Writer) { os.Remove(inputPath(t, w, 1)) },
			kind: Damage, text: "input"},
		{name: "input cut off", plant: func(w *Writer) { os.Truncate(inputPath(t, w, 1), 100_000) },
			kind: Damage, text: "it has the content of"},
		{name: "bit in an input", plant: func(w *Writer) { flip(t, inputPath(t, w, 1), 0.7) },
			kind: Damage, text: "it has the content of"},
		{name: "bit in the directory", plant: func(w *Writer) { flip(t, inputPath(t, w, 1), 0.0003) },
			kind: Damage, text: "checksum of the directory"},
		{name: "table of another input", plant: func(w *Writer) {
			ms, _ := w.Find(id)
			mustMerge(t, w, testContribution(t, 2, 5))
			other, _ := w.Find(testID(2))
			ms[0].Sources[0].Input = other[0].Sources[0].Input
			rawSet(w, manifestKey(id), store.AppendStored(nil, ms[0]))
		}, kind: Damage, text: "has no symtab table"},
		{name: "other captured input", plant: func(w *Writer) {
			ms, _ := w.Find(id)
			ms[0].Sources[0].RawDigest[3]++
			rawSet(w, manifestKey(id), store.AppendStored(nil, ms[0]))
		}, kind: Damage, text: "not the one that was kept"},
		{name: "orphan input", plant: func(w *Writer) {
			os.WriteFile(filepath.Join(w.path, inputsName, digest{9}.String()), []byte("x"), 0o644)
		}, kind: Orphan, text: "is in no facts"},
		{name: "foreign file", plant: func(w *Writer) {
			os.WriteFile(filepath.Join(w.path, inputsName, "x"), []byte("x"), 0o644)
		}, kind: Orphan, text: "is not an input"},
		{name: "orphan blob", plant: func(w *Writer) { put(t, w, "nobody's") },
			kind: Orphan, text: "in no manifest"},
		{name: "dangling row", plant: func(w *Writer) {
			w.PutDir("/d", store.DirRows{{Name: "f", ID: testID(77)}})
		}, kind: Dangling, text: "f is listed"},
		{name: "rows", plant: func(w *Writer) { rawSet(w, dirKey("/d"), []byte{1, 1, 0, 9}) },
			kind: Damage, text: "header says"},
		{name: "facts", plant: func(w *Writer) {
			facts, _, _ := listFacts(w.path)
			for id := range facts {
				flip(t, filepath.Join(w.path, factsName, id.String()), 0.5)
			}
		}, kind: Damage, text: "its content is another"},
	}
	for _, tc := range cases {
		w := openTestWriter(t, "")
		mustMerge(t, w, &store.Contribution{Manifest: store.Manifest{ID: id}, Sources: []store.NewSource{
			{Info: store.SourceInfo{Kind: store.Symtab, Producer: 1}, Table: table, Raw: raw}}})
		if err := w.Publish(); err != nil {
			t.Fatal(err)
		}
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

// TestDamagedInputs flips bytes of inputs. Every read value is right or an error, and GC and indexing
// again bring all of it back.
func TestDamagedInputs(t *testing.T) {
	path := t.TempDir()
	w := openTestWriter(t, path)
	var rows store.DirRows
	for n := range 40 {
		mustMerge(t, w, testContribution(t, n, 200+n))
		rows = append(rows, store.PathRow{Name: testID(n).Hex(), ID: testID(n)})
	}
	if err := errors.Join(w.PutDir("/lib", rows), w.Publish()); err != nil {
		t.Fatal(err)
	}
	want := digestOf(t, path)
	for i, at := range []float64{0, 0.01, 0.3, 0.7, 1} {
		flip(t, inputPath(t, w, 7*i), at)
	}
	w.Close()
	r := openTestReader(t, path)
	v, err := r.Verify(context.Background())
	if err != nil || v.Sound() {
		t.Fatalf("damage is not seen: %v, %v", v, err)
	}
	w = openTestWriter(t, path)
	res, err := w.GC(context.Background(), GCOptions{Exists: func(string) bool { return true }})
	if err != nil || res.Damaged != 5 {
		t.Fatalf("gc: %+v, %v", res, err)
	}
	left, _, err := w.Dir("/lib")
	if err != nil || len(left) != 35 {
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
