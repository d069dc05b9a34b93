package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"symbolize/fixtures/must"
	"symbolize/store"
)

// fillStore writes objects [from, to), one writer.
func fillStore(tb testing.TB, path string, from, to int) {
	tb.Helper()
	w := openTestWriter(tb, path)
	for n := from; n < to; n++ {
		mustMerge(tb, w, testContribution(tb, n, 20+n))
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

// treeSums returns name, size and checksum of all files below a directory.
func treeSums(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	sums := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sums[path] = fmt.Sprintf("%d %08x", len(b), crc32.Checksum(b, castagnoli))
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return sums
}

// TestGenerationsStayWhole runs writer after writer while readers have generations open: no file of a
// generation ever changes, and readers see the same data.
func TestGenerationsStayWhole(t *testing.T) {
	path := t.TempDir()
	var last map[string]string
	var readers []*Reader
	for round := range 14 {
		fillStore(t, path, 30*round, 30*round+30)
		gens, err := generations(path)
		if err != nil || gens[0] != uint64(round+1) || len(gens) > keptGenerations {
			t.Fatalf("round %d: generations %v, %v", round, gens, err)
		}
		for name, sum := range last {
			b := must.Read(t, name)
			if got := fmt.Sprintf("%d %08x", len(b), crc32.Checksum(b, castagnoli)); got != sum {
				t.Fatalf("round %d: %s was %s and is %s", round, name, sum, got)
			}
		}
		last = treeSums(t, genDir(path, gens[0]))
		readers = append(readers, openTestReader(t, path))
	}
	for round, r := range readers {
		if r.Generation() != uint64(round+1) {
			t.Errorf("reader %d has generation %d", round, r.Generation())
		}
		for n := 0; n < 30*round+30; n += 17 {
			checkObject(t, r, n, 20+n)
		}
		if ms, err := r.Find(testID(30*round + 30)); err != nil || len(ms) != 0 {
			t.Errorf("reader %d sees what came later: %v, %v", round, ms, err)
		}
	}
}

func mapsEqual(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}

// flip inverts a byte of a file, at a fraction of its length.
func flip(tb testing.TB, path string, at float64) {
	tb.Helper()
	b := must.Read(tb, path)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	off := int64(at * float64(len(b)-1))
	if _, err := f.WriteAt([]byte{^b[off]}, off); err != nil {
		tb.Fatal(err)
	}
}

// TestDamagedGeneration damages each file of the newest generation in turn: a reader passes it over
// and has all objects from the facts, and the next writer makes it again.
func TestDamagedGeneration(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 10)
	fillStore(t, path, 10, 20)
	x, err := checkIndex(genDir(path, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(x.files, fileSum{name: indexName}) {
		info, err := os.Stat(filepath.Join(genDir(path, 2), s.name))
		if err != nil {
			t.Fatal(err)
		}
		for name, damage := range map[string]func(string){
			"flipped":   func(p string) { flip(t, p, 0.9) },
			"truncated": func(p string) { os.Truncate(p, info.Size()/2) },
			"lost":      func(p string) { os.Remove(p) },
		} {
			copied := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(copied, os.DirFS(path)); err != nil {
				t.Fatal(err)
			}
			damage(filepath.Join(genDir(copied, 2), s.name))
			r, err := OpenReader(copied)
			if err != nil {
				t.Errorf("%s %s: %v", s.name, name, err)
				continue
			}
			if r.Generation() != 1 || len(r.Warnings()) != 1 || len(r.PassedOver()) != 1 {
				t.Errorf("%s %s: generation %d, warnings %q", s.name, name, r.Generation(), r.Warnings())
			}
			checkObject(t, r, 15, 35)
			if v, err := r.Verify(t.Context()); err != nil || v.Sound() || v.Objects != 20 {
				t.Errorf("%s %s: verify: %v, %v", s.name, name, v, err)
			}
			r.Close()
			fillStore(t, copied, 10, 10)
			if v := mustVerify(t, copied); v.Objects != 20 {
				t.Errorf("%s %s: %d objects after the next run", s.name, name, v.Objects)
			}
		}
	}
}

func mustVerify(tb testing.TB, path string) *VerifyResult {
	tb.Helper()
	r := openTestReader(tb, path)
	defer r.Close()
	v, err := r.Verify(context.Background())
	if err != nil || !v.Sound() {
		tb.Fatalf("verify: %v, %v", v, err)
	}
	return v
}

// TestIndexMadeAgain damages, removes or ages all generations: readers and writers have the facts.
func TestIndexMadeAgain(t *testing.T) {
	for name, harm := range map[string]func(path string){
		"damaged": func(path string) { flip(t, filepath.Join(genDir(path, 1), "MANIFEST"), 0.9) },
		"absent":  func(path string) { os.RemoveAll(filepath.Join(path, gensName)) },
		"old": func(path string) {
			text := []byte("symbolize index 2\nschema 2\nof a form unknown")
			os.WriteFile(filepath.Join(genDir(path, 1), indexName), text, 0o644)
		},
		"first form": func(path string) { // with checksums in its values
			name := filepath.Join(genDir(path, 1), indexName)
			text, _ := os.ReadFile(name)
			text = bytes.Replace(text, []byte("index 2\n"), []byte("index\n"), 1)
			text = text[:bytes.LastIndex(text, []byte("end "))]
			os.WriteFile(name, fmt.Appendf(text, "end %08x\n", crc32.Checksum(text, castagnoli)), 0o644)
		},
	} {
		path := t.TempDir()
		fillStore(t, path, 0, 10)
		want := digestOf(t, path)
		harm(path)
		r := openTestReader(t, path)
		if got := digestOf(t, path); got != want || r.Generation() != 0 {
			t.Errorf("%s: digest %x, want %x, generation %d", name, got, want, r.Generation())
		}
		checkObject(t, r, 7, 27)
		w := openTestWriter(t, path)
		checkObject(t, w, 7, 27)
		if n := len(w.Warnings()); n > 1 || n == 0 && name != "absent" {
			t.Errorf("%s: warnings %q", name, w.Warnings())
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if v := mustVerify(t, path); v.Objects != 10 || digestOf(t, path) != want {
			t.Errorf("%s: %d objects after the next run", name, v.Objects)
		}
	}
}

// TestFactsAndIndexDamaged: with neither a sound index nor sound facts, nothing is read.
func TestFactsAndIndexDamaged(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 10)
	facts, _, err := listFacts(path)
	if err != nil || len(facts) != 1 {
		t.Fatal(facts, err)
	}
	for id := range facts {
		flip(t, filepath.Join(path, factsName, id.String()), 0.5)
	}
	r := openTestReader(t, path)
	checkObject(t, r, 7, 27) // the index is sound
	if v, err := r.Verify(t.Context()); err != nil || v.Sound() {
		t.Errorf("verify: %+v, %v", v, err)
	}
	copied := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(copied, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	w := openTestWriter(t, copied)
	if _, err := w.GC(t.Context(), GCOptions{Exists: func(string) bool { return true }}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if v := mustVerify(t, copied); v.Objects != 10 || len(v.Problems) > 0 {
		t.Errorf("after gc: %+v", v)
	}
	flip(t, filepath.Join(genDir(path, 1), "MANIFEST"), 0.9)
	if _, err := OpenReader(path); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("reader: %v", err)
	}
	if _, err := OpenWriter(context.Background(), path, WriterOptions{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("writer: %v", err)
	}
}

// TestPublish publishes during a run: readers see it at once, and the writer reads and writes on.
func TestPublish(t *testing.T) {
	w := openTestWriter(t, "")
	if _, err := OpenReader(w.path); !errors.Is(err, store.ErrNoStore) {
		t.Errorf("before anything is published: %v", err)
	}
	for n := range 5 {
		mustMerge(t, w, testContribution(t, n, 30))
		ms, _ := w.Find(testID(0))
		table, err := w.Open(ms[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Publish(), w.Publish()); err != nil {
			t.Fatal(err)
		}
		if w.Generation() != uint64(n+1) {
			t.Errorf("generation %d after %d times", w.Generation(), n+1)
		}
		if _, err := table.Digest(); err != nil {
			t.Errorf("table opened before publishing: %v", err)
		}
		checkObject(t, openTestReader(t, w.path), n, 30)
	}
	w.opts.PublishEvery = time.Nanosecond
	w.publishTook = 0
	mustMerge(t, w, testContribution(t, 5, 30))
	if w.Generation() != 6 {
		t.Errorf("not published by the way: generation %d", w.Generation())
	}
	w.publishTook = time.Hour // it would take more than its share
	mustMerge(t, w, testContribution(t, 6, 30))
	if w.Generation() != 6 {
		t.Error("published at any price")
	}
}

// TestEmptyStore publishes even when nothing was written: a reader then finds an empty store, not
// none. An unchanged one gets no new generation.
func TestEmptyStore(t *testing.T) {
	path := t.TempDir()
	for range 3 {
		fillStore(t, path, 0, 0)
	}
	r := openTestReader(t, path)
	if v := mustVerify(t, path); v.Objects != 0 || r.Generation() != 1 {
		t.Errorf("generation %d, %+v", r.Generation(), v)
	}
}

// TestReadersBesideWriter opens and reads all the time while a writer publishes as fast as it can:
// no opening fails, and no reader misses a published object before it opened.
func TestReadersBesideWriter(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 1)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				gens, _ := generations(path)
				r, err := OpenReader(path)
				if err != nil {
					t.Error(err)
					return
				}
				if r.Generation() < gens[0] || len(r.Warnings()) > 0 {
					t.Errorf("generation %d of %v, %q", r.Generation(), gens, r.Warnings())
				}
				for n := range int(r.Generation()) {
					ms, err := r.Find(testID(n))
					if err != nil || len(ms) != 1 {
						t.Errorf("generation %d: object %d: %v, %v", r.Generation(), n, ms, err)
					}
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	w := openTestWriter(t, path)
	for n := 1; n < 16; n++ {
		mustMerge(t, w, testContribution(t, n, 5))
		if err := w.Publish(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	wg.Wait()
}

// TestCloseOfRemovedGeneration reads and closes a generation that the writer removed long ago.
func TestCloseOfRemovedGeneration(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 1)
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range keptGenerations {
		fillStore(t, path, n+1, n+2)
	}
	if _, err := os.Lstat(genDir(path, 1)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("generation 1 is there still: %v", err)
	}
	checkObject(t, r, 0, 20)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyDirectory opens a store that nothing can be written to.
func TestReadOnlyDirectory(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 5)
	before := treeSums(t, path)
	filepath.WalkDir(path, func(p string, e fs.DirEntry, _ error) error {
		if e.IsDir() {
			return os.Chmod(p, 0o555)
		}
		return os.Chmod(p, 0o444)
	})
	t.Cleanup(func() {
		filepath.WalkDir(path, func(p string, e fs.DirEntry, _ error) error { return os.Chmod(p, 0o755) })
	})
	r := openTestReader(t, path)
	checkObject(t, r, 3, 23)
	r.Close()
	if got := treeSums(t, path); !mapsEqual(got, before) {
		t.Error("reading changed the store")
	}
}

// TestModes lets others read as far as the umask allows.
func TestModes(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 300, 303)
	x, err := checkIndex(genDir(path, 1))
	if err != nil || len(x.files) != 3 {
		t.Fatal(x, err)
	}
	modes := []string{filepath.Join(genDir(path, 1), indexName)}
	for _, s := range x.files {
		modes = append(modes, filepath.Join(genDir(path, 1), s.name))
	}
	for _, dir := range []string{inputsName, factsName} {
		found, _ := filepath.Glob(filepath.Join(path, dir, "*"))
		modes = append(modes, found...)
	}
	want, err := os.Stat(filepath.Join(path, formatName))
	if err != nil {
		t.Fatal(err)
	}
	mode := want.Mode().Perm()
	if info, err := os.Stat(genDir(path, 1)); err != nil || info.Mode().Perm() != mode|mode>>2&0o111 {
		t.Errorf("generation: %v, %v", info.Mode(), err)
	}
	for _, name := range modes {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want.Mode() {
			t.Errorf("%s: %v, want %v", name, info.Mode(), want.Mode())
		}
	}
}

// TestShadow reads through a directory of links, as where the file system refuses to lock or sync.
func TestShadow(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 5)
	x, err := checkIndex(genDir(path, 1))
	if err != nil {
		t.Fatal(err)
	}
	shadow, err := makeShadow(genDir(path, 1), x.files)
	if err != nil {
		t.Fatal(err)
	}
	r := &Reader{database: &database{path: path, inputs: inputFiles{path: path}}}
	r.state = &state{root: path, dir: shadow, shadow: shadow, indexInfo: *x}
	if r.state.db, err = openBadger(badgerOptions(shadow, true, &r.log)); err != nil {
		t.Fatal(err)
	}
	checkObject(t, r, 3, 23)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(shadow); err == nil {
		t.Error("shadow directory is left")
	}
	mustVerify(t, path)
}

func TestIndexInfoTruncated(t *testing.T) {
	x := &indexInfo{level: 7, facts: map[digest]bool{{1}: true, {2}: true}, past: map[digest]bool{{3}: true},
		files: []fileSum{{"000001.sst", 99, 0xdeadbeef}, {"MANIFEST", 0, 1}}}
	b := x.encode()
	got, err := parseIndexInfo("test", b)
	if err != nil || !reflect.DeepEqual(got, x) {
		t.Fatalf("%+v, %v", got, err)
	}
	for n := range b {
		if _, err := parseIndexInfo("test", b[:n]); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for i := range b {
		c := bytes.Clone(b)
		c[i] ^= 0x10
		if _, err := parseIndexInfo("test", c); err == nil {
			t.Errorf("byte %d changed: no error", i)
		}
	}
}

// TestRefresh: a reader goes on with the newest generation, and tables that it has opened stay valid.
func TestRefresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	add := func(opts WriterOptions, n int) {
		t.Helper()
		w, err := OpenWriter(t.Context(), path, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Merge(t.Context(), testContribution(t, n, 20)), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	add(WriterOptions{}, 1)
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	first := r.Generation()
	found, err := r.Find(testID(1))
	if err != nil || len(found) != 1 {
		t.Fatal(err)
	}
	table, err := r.Open(found[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err := table.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for n := 2; n < 6; n++ { // the generation that is open is removed
		add(WriterOptions{}, n)
	}
	for _, want := range []bool{true, false} {
		if changed, err := r.Refresh(); err != nil || changed != want {
			t.Fatalf("refreshed: changed %t, %v, want %t", changed, err, want)
		}
	}
	if found, err := r.Find(testID(5)); err != nil || len(found) != 1 {
		t.Errorf("the new object: %d, %v", len(found), err)
	}
	if got, err := table.Digest(); err != nil || got != want {
		t.Errorf("the table of before: %x, %v", got, err)
	}
	if r.Generation() == first {
		t.Errorf("generation %d", r.Generation())
	}
}
