package indexer

import (
	"context"
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/store"
)

// forgetful is a sink that keeps nothing.
type forgetful struct{ store.Sink }

func (forgetful) Merge(context.Context, *store.Contribution) error { return nil }
func (forgetful) PutDir(string, store.DirRows) error               { return nil }

// TestHeldPerFile: an index run keeps little of each file, and its buffers are of the size of the
// files.
func TestHeldPerFile(t *testing.T) {
	const few, many = 200, 800
	read := func(n int) (held, allocated int64) {
		dir := t.TempDir()
		for i := range n {
			id := sha1.Sum(fmt.Append(nil, i))
			lib := elfbuild.Lib(id[:], 256, elfbuild.Func{Name: fmt.Sprint("f", i), Size: 64})
			path := filepath.Join(dir, fmt.Sprint(i/100), fmt.Sprint(i))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			must.Write(t, path, lib.Bytes())
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		sum, err := Index(t.Context(), []string{dir}, nil, func() (store.Sink, error) { return forgetful{}, nil },
			Options{Workers: 1, DebugRoots: []string{}, Progress: func(p Progress) {
				if p.Done == uint64(n) && p.Dirs == uint64(n/100+1) {
					runtime.GC()
					runtime.ReadMemStats(&after)
				}
			}})
		if err != nil || sum.Objects != uint64(n) {
			t.Fatalf("%d objects of %d, %v", sum.Objects, n, err)
		}
		return int64(after.HeapAlloc) - int64(before.HeapAlloc), int64(after.TotalAlloc - before.TotalAlloc)
	}
	read(few) // what is made once
	fewHeld, fewAllocated := read(few)
	held, allocated := read(many)
	if each := (held - fewHeld) / (many - few); each > 1000 { // 300, and what pools hold
		t.Errorf("%d bytes of each file are kept, at most 1000", each)
	}
	if each := (allocated - fewAllocated) / (many - few); each > 256<<10 { // 12 KB, and pools that -race empties
		t.Errorf("%d bytes are allocated for each file, at most 256 KiB", each)
	}
}
