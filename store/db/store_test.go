package db

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/symtab"
)

// testID returns the build ID of test object n, of the length that GNU ld gives.
func testID(n int) buildid.ID {
	b := bytes.Repeat([]byte{0xa0}, 20)
	b[0], b[1], b[2] = byte(n>>16), byte(n>>8), byte(n)
	return buildid.New(b)
}

// testTable returns a table of funcs functions with names that depend on seed.
func testTable(tb testing.TB, seed, funcs int) *symtab.Encoded {
	tb.Helper()
	b := symtab.NewBuilder(symtab.Options{})
	rnd := rand.New(rand.NewPCG(uint64(seed), 1))
	at := addr.Addr(0x1000)
	for i := range funcs {
		size := uint64(16 + rnd.IntN(500))
		b.Add(symtab.Func{Start: at, Size: size, Name: fmt.Sprintf("fn_%d_%x_%d", seed, rnd.Uint64(), i)})
		at += addr.Addr(size)
	}
	return b.Encode()
}

// testContribution is the contribution of a runtime file with a .symtab to object n.
func testContribution(tb testing.TB, n, funcs int) *store.Contribution {
	tb.Helper()
	return &store.Contribution{
		Manifest: store.Manifest{
			ID: testID(n), Kind: ingest.ELF, Machine: 62, Class: 2, Type: 3,
			Layout: []elf.Segment{
				{Offset: 0, Addr: 0, FileSize: 0x1000, MemSize: 0x1000, Flags: 4, Align: 0x1000},
				{Offset: 0x1000, Addr: 0x1000, FileSize: 0x5000, MemSize: 0x5000, Flags: 5, Align: 0x1000},
			},
		},
		Sources: []store.NewSource{{
			Info:  store.SourceInfo{Kind: store.Symtab, Producer: 1, Path: fmt.Sprintf("/usr/lib/lib%d.so", n)},
			Table: testTable(tb, n, funcs),
		}},
	}
}

// openTestWriter opens a store in a directory of the test's own, or in path.
func openTestWriter(tb testing.TB, path string) *Writer {
	tb.Helper()
	if path == "" {
		path = filepath.Join(tb.TempDir(), "store")
	}
	w, err := OpenWriter(context.Background(), path, WriterOptions{LockTimeout: forkWait})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { w.Close() })
	return w
}

func mustMerge(tb testing.TB, s store.Sink, cs ...*store.Contribution) {
	tb.Helper()
	for _, c := range cs {
		if err := s.Merge(context.Background(), c); err != nil {
			tb.Fatal(err)
		}
	}
}

func openTestReader(tb testing.TB, path string) *Reader {
	tb.Helper()
	r, err := OpenReader(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r
}

func TestWriteAndRead(t *testing.T) {
	w := openTestWriter(t, "")
	for n := range 50 {
		mustMerge(t, w, testContribution(t, n, 1+n*40))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := openTestReader(t, w.path)
	for n := range 50 {
		checkObject(t, r, n, 1+n*40)
	}
}

// checkObject looks a test object up and every function of its first table.
func checkObject(tb testing.TB, v store.View, n, funcs int) {
	tb.Helper()
	ms, err := v.Find(testID(n))
	if err != nil || len(ms) != 1 {
		tb.Fatalf("Find(%s) = %d manifests, %v", testID(n), len(ms), err)
	}
	table, err := v.Open(ms[0], 0)
	if err != nil {
		tb.Fatal(err)
	}
	if table.NumFuncs() != funcs {
		tb.Fatalf("object %d: %d functions, want %d", n, table.NumFuncs(), funcs)
	}
	sum, err := table.Digest()
	if err != nil || sum != ms[0].Sources[0].Digest {
		tb.Fatalf("object %d: digest %x, %v; manifest has %x", n, sum, err, ms[0].Sources[0].Digest)
	}
}

func addrOf(i int) addr.Addr { return addr.Addr(0x1000 + 16*i) }
