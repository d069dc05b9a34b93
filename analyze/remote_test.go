package analyze_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"symbolize/analyze"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/indexer"
	"symbolize/store/remote"
)

// countedBucket counts the requests for each object.
type countedBucket struct {
	remote.Bucket
	mu   sync.Mutex
	gets map[string]int
	list func() // called by List, nil for nothing
}

func (c *countedBucket) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	c.mu.Lock()
	c.gets[key]++
	c.mu.Unlock()
	return c.Bucket.Get(ctx, key, limit)
}

func (c *countedBucket) List(ctx context.Context, prefix string) ([]string, error) {
	c.mu.Lock()
	if c.list != nil {
		c.list()
	}
	c.mu.Unlock()
	return c.Bucket.List(ctx, prefix)
}

// pushed returns a bucket with the tables of the fixtures.
func pushed(t *testing.T) *countedBucket {
	t.Helper()
	r, err := db.OpenReader(newStore(t, "../fixtures/objects"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var objects []*store.Manifest
	for m, err := range r.Objects() {
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, m)
	}
	b := &countedBucket{Bucket: remote.OpenDir(t.TempDir()), gets: make(map[string]int)}
	if _, err := remote.Push(t.Context(), r, objects, b, remote.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	clear(b.gets)
	return b
}

var fixedNames = []string{"collatz", "longest_below", "main"}

// TestRemoteOnce: whatever runs on a machine at a time, each object comes once.
func TestRemoteOnce(t *testing.T) {
	b := pushed(t)
	path := filepath.Join(t.TempDir(), "store")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s, err := analyze.Open(t.Context(), analyze.Options{Store: path, Remote: b})
			if err != nil {
				t.Error(err)
				return
			}
			for _, name := range []string{"fixed.data", "mixed-buildid.data", "fixed.data"} {
				if _, err := s.Load(t.Context(), captures+name); err != nil {
					t.Error(err)
				}
			}
			p, err := s.Load(t.Context(), captures+"fixed.data")
			if err != nil || !slices.Equal(named(p), fixedNames) || s.Partial() {
				t.Errorf("%v, %v", err, named(p))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(b.gets) < 4 {
		t.Errorf("%d objects were fetched", len(b.gets))
	}
	for key, n := range b.gets {
		if n != 1 {
			t.Errorf("%s was fetched %d times", key, n)
		}
	}
}

// TestRemoteKeptByAnother: a session sees the tables that another one, of another process, has
// kept since it opened the store.
func TestRemoteKeptByAnother(t *testing.T) {
	b := pushed(t)
	path := filepath.Join(t.TempDir(), "store")
	var sessions [2]*analyze.Session
	for i := range sessions {
		s, err := analyze.Open(t.Context(), analyze.Options{Store: path, Remote: b})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sessions[i] = s
	}
	for i, s := range sessions {
		p, err := s.Load(t.Context(), captures+"fixed.data")
		if err != nil || !slices.Equal(named(p), fixedNames) || s.Partial() {
			t.Errorf("session %d: %v, %v, partial %t", i, err, named(p), s.Partial())
		}
	}
}

// TestRemoteInMemory: without a store the tables serve one run.
func TestRemoteInMemory(t *testing.T) {
	b := pushed(t)
	s, err := analyze.Open(t.Context(), analyze.Options{Remote: b})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := s.Load(t.Context(), captures+"fixed.data")
	if err != nil || !slices.Equal(named(p), fixedNames) || s.Pulled().Changed != 1 {
		t.Errorf("%v, %v, %+v", err, named(p), s.Pulled())
	}
}

// TestRemoteReplacedStore: another process makes new generations of the store, and removes those
// that the run has open, whenever it asks.
func TestRemoteReplacedStore(t *testing.T) {
	b := pushed(t)
	path := filepath.Join(t.TempDir(), "store")
	files := []string{"spawn", "gone", "fixed", "spawn", "gone", "fixed"}
	b.list = func() {
		if len(files) == 0 {
			return
		}
		w, err := db.OpenWriter(t.Context(), path, db.WriterOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		for range 3 {
			if len(files) == 0 {
				break
			}
			_, err := indexer.Index(t.Context(), []string{"../fixtures/objects/bin/" + files[0]}, nil,
				func() (store.Sink, error) { return w, nil }, indexer.Options{DebugRoots: []string{}})
			files = files[1:]
			if err := errors.Join(err, w.Publish()); err != nil {
				t.Error(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	s, err := analyze.Open(t.Context(), analyze.Options{Store: path, Remote: b})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Load(t.Context(), captures+"mixed-buildid.data"); err != nil {
		t.Fatal(err)
	}
	p, err := s.Load(t.Context(), captures+"fixed.data")
	if err != nil || !slices.Equal(named(p), fixedNames) || s.Partial() || len(files) > 0 {
		t.Errorf("%v, %v, partial %t, %q not indexed", err, named(p), s.Partial(), files)
	}
}
