package db

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"symbolize/store"
)

// TestWritersAndReaders has five writers, which wait for one another, and ten readers, which wait
// for nobody: each sees a whole generation with all that was published before.
func TestWritersAndReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	fillStore(t, path, 0, 1)
	const writers, rounds = 5, 2
	var published [writers]atomic.Int64 // rounds that each has published
	var done atomic.Bool
	var writing, reading sync.WaitGroup
	write := func(k int) error {
		for i := range rounds {
			w, err := OpenWriter(context.Background(), path, WriterOptions{LockTimeout: -1})
			if err != nil {
				return err
			}
			n := 1 + k*rounds + i
			err = errors.Join(w.Merge(context.Background(), testContribution(t, n, 300+n)), w.Close())
			if err != nil {
				return err
			}
			published[k].Add(1)
		}
		return nil
	}
	read := func() error {
		var before [writers]int64
		for k := range before {
			before[k] = published[k].Load()
		}
		r, err := OpenReader(path)
		if err != nil {
			return err
		}
		defer r.Close()
		v, err := r.Verify(context.Background())
		if err == nil && !v.Sound() {
			err = errors.New(v.Problems[0].String())
		}
		for k := range before {
			for i := range int(before[k]) {
				ms, ferr := r.Find(testID(1 + k*rounds + i))
				if ferr == nil && len(ms) != 1 {
					ferr = errors.New("a published object is not there")
				}
				err = errors.Join(err, ferr)
			}
		}
		return err
	}
	for k := range writers {
		writing.Go(func() {
			if err := write(k); err != nil {
				t.Errorf("writer %d: %v", k, err)
			}
		})
	}
	for k := range 10 {
		reading.Go(func() {
			for last := false; !last; {
				last = done.Load()
				if err := read(); err != nil {
					t.Errorf("reader %d: %v", k, err)
					return
				}
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	if v := mustVerify(t, path); v.Objects != 1+writers*rounds {
		t.Errorf("%d objects", v.Objects)
	}
}

// TestCopyWhileWriting copies a store file by file, as cp does, while a writer publishes one
// generation after the other. A copy that opens is whole; one that does not is reported
// as damaged; and a writer goes on from the whole part.
func TestCopyWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	if out, err := child(t, "write", path).Output(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := digestOf(t, path)
	whole := 0
	for range 2 {
		writer := child(t, "write", path)
		writer.Stdout = nil
		if err := errors.Join(os.RemoveAll(path), writer.Start()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- writer.Wait() }()
		for running := true; running; {
			select {
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
			copied := filepath.Join(t.TempDir(), "copy")
			copyTree(t, path, copied)
			if checkCopy(t, copied) {
				whole++
			}
		}
		if got := digestOf(t, path); got != want {
			t.Fatalf("digest %x of what was copied, want %x", got, want)
		}
	}
	if whole == 0 {
		t.Error("no copy opened")
	}
	t.Logf("%d copies opened", whole)
}

// copyTree copies the files; ones that vanish meanwhile are left out.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the walk goes on behind it
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if e.IsDir() {
			return os.MkdirAll(at, 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		return os.WriteFile(at, b, 0o644)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// checkCopy reports whether a copy can be read; then it is sound, and can be written.
func checkCopy(t *testing.T, path string) bool {
	t.Helper()
	r, err := OpenReader(path)
	if err != nil {
		if !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNoStore) {
			t.Errorf("copy: %v", err)
		}
		return false
	}
	objects, passed := r.countObjects(t), len(r.PassedOver())
	v, err := r.Verify(context.Background())
	if err != nil || passed == 0 && !v.Sound() {
		t.Errorf("copy: %+v, %v", v, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	w, err := OpenWriter(context.Background(), path, WriterOptions{})
	if err == nil {
		err = errors.Join(w.Merge(context.Background(), testContribution(t, 999, 20)), w.Close())
	}
	if err != nil {
		t.Errorf("writing to a copy: %v", err)
		return true
	}
	if v := mustVerify(t, path); v.Objects <= objects {
		t.Errorf("%d objects after writing to a copy of %d", v.Objects, objects)
	}
	return true
}

func (r *Reader) countObjects(t *testing.T) (n int) {
	t.Helper()
	for _, err := range r.Objects() {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	return n
}
