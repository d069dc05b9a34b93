package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/store"
)

// someFacts returns the content and the name of committed facts.
func someFacts(tb testing.TB) ([]byte, digest) {
	tb.Helper()
	w := openTestWriter(tb, "")
	mustMerge(tb, w, testContribution(tb, 1, 5))
	put(tb, w, "a blob")
	if err := errors.Join(w.PutDir("/d", testRows(2)), w.Close()); err != nil {
		tb.Fatal(err)
	}
	facts, open, err := listFacts(w.path)
	if err != nil || len(facts) != 1 || len(open) != 0 {
		tb.Fatal(facts, open, err)
	}
	for id := range facts {
		b := must.Read(tb, filepath.Join(w.path, factsName, id.String()))
		return b, id
	}
	return nil, digest{}
}

// TestFactsTruncated cuts facts everywhere, and changes each byte: they are not whole, and the
// records before are as they were.
func TestFactsTruncated(t *testing.T) {
	whole, id := someFacts(t)
	path := filepath.Join(t.TempDir(), "facts")
	read := func(b []byte) (kinds string, ok bool) {
		must.Write(t, path, b)
		_, sum, ended, err := readFacts(path, func(kind byte, payload []byte) error {
			kinds += string(kind)
			return (&state{}).apply(kind, payload)
		})
		if err != nil && !errors.Is(err, store.ErrVersion) && !errors.Is(err, store.ErrDamaged) {
			t.Fatal(err)
		}
		return kinds, ended && sum == id
	}
	all, ok := read(whole)
	if !ok || all != "mbd" {
		t.Fatalf("records %q, %t", all, ok)
	}
	for n := range whole {
		if kinds, ok := read(whole[:n]); ok || !bytes.HasPrefix([]byte(all), []byte(kinds)) {
			t.Errorf("%d of %d bytes: records %q, whole %t", n, len(whole), kinds, ok)
		}
		c := bytes.Clone(whole)
		c[n] ^= 0x55
		if kinds, ok := read(c); ok || !bytes.HasPrefix([]byte(all), []byte(kinds)) {
			t.Errorf("byte %d: records %q, whole %t", n, kinds, ok)
		}
	}
}

func FuzzFacts(f *testing.F) {
	whole, _ := someFacts(f)
	f.Add(whole)
	f.Add([]byte(factsHead))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "facts")
		must.Write(t, path, b)
		s := &state{}
		readFacts(path, s.apply)
	})
}

// joinStores copies facts and inputs of one store into another, as two writers leave them that did
// not see each other.
func joinStores(t *testing.T, from, to string) {
	t.Helper()
	for _, dir := range []string{inputsName, factsName} {
		found, err := filepath.Glob(filepath.Join(from, dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, dir, filepath.Base(path)), b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFactsOfTwo has two writers that begin with one store and do not see each other: whichever facts
// come first, the union is the same, for readers at once and for the next writer.
func TestFactsOfTwo(t *testing.T) {
	pool := mergePool(t)
	base := t.TempDir()
	fillStore(t, base, 10, 13)
	var paths []string
	for side := range 2 {
		path := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(path, os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		w := openTestWriter(t, path)
		for i := range pool {
			if i%2 == side {
				mustMerge(t, w, pool[i])
			}
		}
		rows := store.DirRows{{Name: "x", Size: 1}, {Name: "y", Size: uint64(side)}}
		err := errors.Join(w.PutDir("/both", rows), w.PutDir(fmt.Sprint("/", side), rows[:1]))
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	single := openTestWriter(t, "")
	for n := 10; n < 13; n++ {
		mustMerge(t, single, testContribution(t, n, 20+n))
	}
	mustMerge(t, single, pool...)
	want, err := single.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entriesOf := func(d *database) (text string) {
		for e, err := range d.scanAll(nil) {
			if err != nil || e.err != nil {
				t.Fatal(err, e.err)
			}
			text += fmt.Sprintf("%x %x\n", e.key, e.payload)
		}
		return text
	}
	var all []string
	for side := range 2 {
		path := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(path, os.DirFS(paths[side])); err != nil {
			t.Fatal(err)
		}
		joinStores(t, paths[1-side], path)
		for range 2 { // read by a reader, indexed by a writer
			r := openTestReader(t, path)
			if got, err := r.Digest(t.Context()); err != nil || got != want {
				t.Errorf("side %d: digest %x, %v, want %x", side, got, err, want)
			}
			all = append(all, entriesOf(r.database))
			r.Close()
			fillStore(t, path, 10, 10)
		}
		mustVerify(t, path)
	}
	for _, text := range all {
		if text != all[0] {
			t.Error("the order of facts changes the index")
		}
	}
}

// TestRemovedAndAdded has one writer that removes an object, and another that adds to it without
// having seen that: the addition stays, and nothing else of the object comes back.
func TestRemovedAndAdded(t *testing.T) {
	base := t.TempDir()
	fillStore(t, base, 0, 3)
	other := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(other, os.DirFS(base)); err != nil {
		t.Fatal(err)
	}
	w := openTestWriter(t, other)
	mustMerge(t, w, &store.Contribution{Manifest: store.Manifest{ID: testID(1)}, Sources: []store.NewSource{
		{Info: store.SourceInfo{Kind: store.PLT}, Table: testTable(t, 50, 7)}}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = openTestWriter(t, base)
	_, err := w.GC(t.Context(), GCOptions{Exists: func(string) bool { return true },
		Remove: map[buildid.ID]bool{testID(1): true, testID(2): true}})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	joinStores(t, other, base) // brings the replaced facts back, too
	for range 2 {
		r := openTestReader(t, base)
		ms, err := r.Find(testID(1))
		if err != nil || len(ms) != 1 || len(ms[0].Sources) != 1 || ms[0].Sources[0].Kind != store.PLT {
			t.Errorf("added: %+v, %v", ms, err)
		}
		if ms, err := r.Find(testID(2)); err != nil || len(ms) > 0 {
			t.Errorf("removed: %+v, %v", ms, err)
		}
		r.Close()
		fillStore(t, base, 10, 10)
	}
	mustVerify(t, base)
}

// withoutLocks has file systems that cannot lock until the test ends.
func withoutLocks(t *testing.T) {
	lock := lockFile
	lockFile = func(*os.File) (bool, error) { return false, syscall.ENOLCK }
	t.Cleanup(func() { lockFile = lock })
}

// TestNoLocks has two writers at a time on a file system without locks, one of which collects: all
// that both wrote is there, and the store is sound at each step.
func TestNoLocks(t *testing.T) {
	withoutLocks(t)
	path := t.TempDir()
	fillStore(t, path, 0, 3)
	a, b := openTestWriter(t, path), openTestWriter(t, path)
	mustMerge(t, a, testContribution(t, 10, 30))
	mustMerge(t, b, testContribution(t, 11, 31)) // its input is named by nothing yet
	if err := a.Publish(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.GC(t.Context(), GCOptions{Remove: map[buildid.ID]bool{testID(0): true}}); err != nil {
		t.Fatal(err)
	}
	id := digest(mustFind(t, b, 11).Sources[0].Input)
	if _, err := os.Stat(filepath.Join(path, inputsName, id.String())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not collected: %v", err)
	}
	checkObject(t, b, 11, 31) // from trash/
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	// As if it had been collected after that.
	trashed := findTrash(path, id.String())
	if trashed != "" {
		t.Errorf("left in %s", trashed)
	}
	trashed = filepath.Join(path, trashName, "1", id.String())
	err := errors.Join(os.Mkdir(filepath.Dir(trashed), 0o755),
		os.Rename(filepath.Join(path, inputsName, id.String()), trashed))
	if err != nil {
		t.Fatal(err)
	}
	r := openTestReader(t, path)
	for n, funcs := range map[int]int{1: 21, 2: 22, 10: 30, 11: 31} {
		checkObject(t, r, n, funcs)
	}
	if v, err := r.Verify(t.Context()); err != nil || !v.Sound() {
		t.Errorf("verify: %+v, %v", v, err)
	}
	r.Close()
	fillStore(t, path, 20, 21) // brings the input back
	if _, err := os.Stat(filepath.Join(path, inputsName, id.String())); err != nil {
		t.Errorf("not brought back: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(path, trashName, "*"))
	if err != nil || len(left) == 0 {
		t.Errorf("the trash was emptied within the day: %v, %v", left, err)
	}
	old := time.Now().Add(-2 * trashAge)
	for _, dir := range left {
		os.Chtimes(dir, old, old)
	}
	fillStore(t, path, 21, 22)
	if left, _ = filepath.Glob(filepath.Join(path, trashName, "[0-9]*")); len(left) > 0 {
		t.Errorf("after two days: %v", left)
	}
	if v := mustVerify(t, path); v.Objects < 6 || len(v.Problems) > 0 {
		t.Errorf("verify: %+v", v)
	}
}

func mustFind(tb testing.TB, v store.View, n int) *store.Manifest {
	tb.Helper()
	ms, err := v.Find(testID(n))
	if err != nil || len(ms) != 1 {
		tb.Fatalf("object %d: %v, %v", n, ms, err)
	}
	return ms[0]
}

// TestTrash removes objects while a reader has them: it reads on, also tables that it did not open
// before, and when it is closed the next writer deletes the files.
func TestTrash(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 6)
	r := openTestReader(t, path)
	for n := range 5 {
		w := openTestWriter(t, path)
		_, err := w.GC(t.Context(), GCOptions{Exists: func(string) bool { return true },
			Remove: map[buildid.ID]bool{testID(n): true}})
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		if v := mustVerify(t, path); v.Objects != 5-n || len(v.Problems) > 0 {
			t.Errorf("verify: %+v", v)
		}
	}
	for n := range 6 {
		checkObject(t, r, n, 20+n)
	}
	if v, err := r.Verify(t.Context()); err != nil || !v.Sound() {
		t.Errorf("verify of the reader's: %+v, %v", v, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	fillStore(t, path, 0, 0)
	if left, _ := os.ReadDir(filepath.Join(path, trashName)); len(left) > 0 {
		t.Errorf("trash is left: %v", left)
	}
	for dir, want := range map[string]int{inputsName: 1, factsName: 1, gensName: 1} {
		if list, _ := os.ReadDir(filepath.Join(path, dir)); len(list) != want {
			t.Errorf("%s: %d files", dir, len(list))
		}
	}
}

// TestAdoptDamaged kills a writer before its commit, and then its inputs are damaged: the objects of
// the others are adopted, and no path rows, so that the next index run reads those files again.
func TestAdoptDamaged(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 1)
	w := openTestWriter(t, path)
	for n := 1; n < 5; n++ {
		mustMerge(t, w, testContribution(t, n, 20+n))
		if err := w.PutDir(fmt.Sprint("/lib/", n), store.DirRows{{Name: "f", ID: testID(n)}}); err != nil {
			t.Fatal(err)
		}
	}
	put(t, w, "ends with the last rows")
	copied := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(copied, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	w.path = copied
	flip(t, inputPath(t, w, 2), 0.5)
	os.Remove(inputPath(t, w, 3))
	w.path = path

	got, err := OpenWriter(context.Background(), copied, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		ms, err := got.Find(testID(n))
		if err != nil || len(ms) != 1 != (n == 2 || n == 3) {
			t.Errorf("object %d: %v, %v", n, ms, err)
		}
		if rows, ok, err := got.Dir(fmt.Sprint("/lib/", n)); ok || err != nil {
			t.Errorf("rows %v, %v", rows, err)
		}
	}
	mustMerge(t, got, testContribution(t, 2, 22), testContribution(t, 3, 23))
	if err := got.Close(); err != nil {
		t.Fatal(err)
	}
	if _, open, err := listFacts(copied); err != nil || len(open) > 0 {
		t.Errorf("left: %v, %v", open, err)
	}
	if v := mustVerify(t, copied); v.Objects != 5 {
		t.Errorf("verify: %+v", v)
	}
}
