package analyze_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"symbolize/analyze"
	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/fixtures/storebuild"
	"symbolize/ingest"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/indexer"
	"symbolize/store/remote"
	"symbolize/store/symtab"
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

func (c *countedBucket) List(ctx context.Context, prefix string) ([]remote.Entry, error) {
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
	return pushedFrom(t, storebuild.New(t, indexer.Options{}, "../fixtures/objects"))
}

// pushedFrom returns a bucket with the tables of a store.
func pushedFrom(t *testing.T, path string) *countedBucket {
	t.Helper()
	r, err := db.OpenReader(path)
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

// vdsoStore returns a store with a kernel and its vdso images, of 64 and of 32 bits.
func vdsoStore(t *testing.T, kernel buildid.ID) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	w, err := db.OpenWriter(t.Context(), path, db.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object := func(kind ingest.ObjectKind, id buildid.ID, class uint8, name string, vdso ...buildid.ID) {
		b := symtab.NewBuilder(symtab.Options{})
		b.Add(symtab.Func{Start: 0x10, Size: 0x100, Name: name})
		table := b.Encode()
		m := store.Manifest{ID: id, Kind: kind, Class: class, VDSO: vdso}
		if kind == ingest.VDSO {
			m.Layout = []elf.Segment{{FileSize: 0x1000, MemSize: 0x1000, Flags: 5}}
		}
		err = w.Merge(t.Context(), &store.Contribution{Manifest: m, Sources: []store.NewSource{{
			Info: store.SourceInfo{Kind: store.Symtab, Producer: store.Producer, Path: name}, Table: table}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	image := func(b byte) buildid.ID { return buildid.New(bytes.Repeat([]byte{b}, 20)) }
	object(ingest.VDSO, image(2), 2, "clock_64")
	object(ingest.VDSO, image(3), 1, "clock_32")
	object(ingest.Kernel, kernel, 2, "do_work", image(2), image(3))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRemoteVDSO: the first run with an empty store names the vdso by the build ID in the kernel's
// manifest, also if only the bucket has the kernel.
func TestRemoteVDSO(t *testing.T) {
	kernel := bytes.Repeat([]byte{1}, 20)
	bucket := pushedFrom(t, vdsoStore(t, buildid.New(kernel)))
	c := perfbuild.New()
	c.FeatureString(perfbuild.FeatureArch, "x86_64")
	c.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.Kernel, ID: kernel, Filename: "[kernel.kallsyms]"})
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	c.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x7fff00000000, Len: 0x1000, Filename: "[vdso]"}, perfbuild.At{Time: 1})
	c.Sample(perfbuild.Sample{PID: 7, Time: 2, Chain: []uint64{perfbuild.ContextUser, 0x7fff00000020}})
	capture := filepath.Join(t.TempDir(), "perf.data")
	must.Write(t, capture, c.Bytes())
	path := filepath.Join(t.TempDir(), "store")
	for run := range 2 {
		s, err := analyze.Open(t.Context(), analyze.Options{Store: path, Remote: bucket})
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Load(t.Context(), capture)
		if err != nil || !slices.Equal(named(p), []string{"clock_64"}) || s.State().Partial {
			t.Errorf("run %d: %v, %v", run, err, named(p))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
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
			if err != nil || !slices.Equal(named(p), fixedNames) || s.State().Partial {
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
		if n != 1 && key != "symbolize-remote" { // each session asks for the version
			t.Errorf("%s was fetched %d times", key, n)
		}
	}
}

// TestRemoteNewer: a bucket of a newer version gives nothing but one warning.
func TestRemoteNewer(t *testing.T) {
	b := pushed(t)
	if err := b.Replace(t.Context(), "symbolize-remote", []byte("symbolize remote 3\n")); err != nil {
		t.Fatal(err)
	}
	var warnings []analyze.Warning
	s, err := analyze.Open(t.Context(), analyze.Options{Remote: b,
		Warn: func(w analyze.Warning) { warnings = append(warnings, w) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"fixed.data", "spawn.data"} {
		if p, err := s.Load(t.Context(), captures+name); err != nil || len(named(p)) > 0 {
			t.Errorf("%s: %v, %v", name, err, named(p))
		}
	}
	if len(warnings) != 1 || !errors.Is(warnings[0].Err, store.ErrVersion) || !s.State().Partial || len(b.gets) != 1 {
		t.Errorf("%+v, partial %t, %v", warnings, s.State().Partial, b.gets)
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
		if err != nil || !slices.Equal(named(p), fixedNames) || s.State().Partial {
			t.Errorf("session %d: %v, %v, partial %t", i, err, named(p), s.State().Partial)
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
	if err != nil || !slices.Equal(named(p), fixedNames) || s.State().Pulled.Changed != 1 {
		t.Errorf("%v, %v, %+v", err, named(p), s.State().Pulled)
	}
}

// TestRemoteReplacedStore: another process makes new generations of the store, and removes the
// generations that the run has open, whenever it asks.
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
	if err != nil || !slices.Equal(named(p), fixedNames) || s.State().Partial || len(files) > 0 {
		t.Errorf("%v, %v, partial %t, %q not indexed", err, named(p), s.State().Partial, files)
	}
}
