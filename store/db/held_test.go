package db

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"symbolize/store"
)

// heapContext notes the most bytes in use whenever it was asked for its state so many times: the
// methods of a store ask at each object.
type heapContext struct {
	context.Context
	asked int
	most  int64
}

const heapEvery = 500

func (c *heapContext) Err() error {
	if c.asked++; c.asked%heapEvery == 0 {
		c.most = max(c.most, liveHeap())
	}
	return nil
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestHeldPerObject: the memory of what reads a whole store grows by no more than a key for each
// object.
func TestHeldPerObject(t *testing.T) {
	const few, many = 1500, 6000 // more than a page of a scan
	readers := make(map[int]*Reader)
	c := testContribution(t, 0, 30)
	for _, n := range []int{few, many} {
		w := openTestWriter(t, "")
		for i := range n {
			c.Manifest.ID = testID(i)
			mustMerge(t, w, c)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		readers[n] = openTestReader(t, w.path)
	}
	for _, tt := range []struct {
		name string
		most int64 // bytes an object
		read func(ctx context.Context, r *Reader) error
	}{
		{name: "verify", most: 24, // eight, in lists that grow to twice their content
			read: func(ctx context.Context, r *Reader) error {
				_, err := r.Verify(ctx)
				return err
			}},
		{name: "stats", most: 8, read: func(ctx context.Context, r *Reader) error {
			_, err := r.Stats(ctx)
			return err
		}},
		{name: "digest", most: 8, read: func(ctx context.Context, r *Reader) error {
			_, err := r.Digest(ctx)
			return err
		}},
		{name: "export", most: 8, read: func(ctx context.Context, r *Reader) error {
			out, err := os.Create(filepath.Join(t.TempDir(), "archive"))
			if err != nil {
				return err
			}
			defer out.Close()
			_, err = store.Export(ctx, out, r, nil)
			return err
		}},
		{name: "gc", most: 40, read: func(ctx context.Context, r *Reader) error { // its use, and that it is kept
			_, err := r.PlanGC(ctx, GCOptions{})
			return err
		}},
	} {
		once := func(n int) int64 {
			before := liveHeap()
			ctx := &heapContext{Context: t.Context()}
			if err := tt.read(ctx, readers[n]); err != nil {
				t.Fatal(err)
			}
			if ctx.asked < n {
				t.Fatalf("%s: the context was asked %d times", tt.name, ctx.asked)
			}
			return ctx.most - before
		}
		held := func(n int) int64 { return min(once(n), once(n), once(n)) } // Badger's goroutines allocate, too
		once(few)                                                           // what is made once
		small, large := held(few), held(many)
		if each := (large - small) / (many - few); each > tt.most {
			t.Errorf("%s: %d bytes an object, at most %d: %d of %d objects, %d of %d", tt.name, each, tt.most,
				small, few, large, many)
		}
	}
}
