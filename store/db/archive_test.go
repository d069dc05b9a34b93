package db

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/klauspost/compress/zstd"

	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// namelessTable returns a table of one function and of a range that has lines and no
// function, as an assembly file's: it reaches as far as a damaged unit allows.
func namelessTable(tb testing.TB, end addr.Addr) *symtab.Encoded {
	tb.Helper()
	b := symtab.NewBuilder(symtab.Options{})
	lines := func(at addr.Addr) []symtab.Line {
		return []symtab.Line{{Addr: at, File: b.File([]byte("/src/a.s")), Line: 7}}
	}
	b.AddFunction(&symtab.DebugFunc{
		Sub:    b.Sub(symtab.Subprogram{Name: []byte("main")}),
		Ranges: []addr.Range{{Start: 0x1000, End: 0x1040}}, Lines: lines(0x1000),
	})
	b.AddFunction(&symtab.DebugFunc{
		Ranges: []addr.Range{{Start: 0x2000, End: end}}, Lines: lines(0x2000),
	})
	return b.Encode()
}

// TestImportCountsNames imports tables with ranges that no function names: the store
// that comes out has the digest of the one that was exported.
func TestImportCountsNames(t *testing.T) {
	for name, end := range map[string]addr.Addr{"small": 0x2400, "vast": math.MaxUint64} {
		t.Run(name, func(t *testing.T) {
			w := openTestWriter(t, "")
			mustMerge(t, w, &store.Contribution{Manifest: store.Manifest{ID: testID(1)}, Sources: []store.NewSource{
				{Info: store.SourceInfo{Kind: store.DWARF}, Table: namelessTable(t, end)}}})
			var whole bytes.Buffer
			to := openTestWriter(t, "")
			_, err := store.Import(t.Context(), &whole, to)
			if err == nil {
				t.Fatal("an empty archive is imported")
			}
			_, err = store.Export(t.Context(), &whole, w, nil)
			if _, importErr := store.Import(t.Context(), &whole, to); err != nil ||
				importErr != nil {
				t.Fatal(errors.Join(err, importErr))
			}
			a, _ := w.Digest(t.Context())
			if b, err := to.Digest(t.Context()); err != nil || a != b {
				t.Errorf("digest %x, was %x: %v", b, a, err)
			}
			s, err := to.Stats(t.Context())
			if err != nil || s.Sources[store.DWARF].Named != 0x40 {
				t.Errorf("stats: %+v, %v; 64 bytes have a name", s.Sources[store.DWARF], err)
			}
		})
	}
}

// TestStatsSaturate adds up tables that name more bytes than there are.
func TestStatsSaturate(t *testing.T) {
	s := &Stats{Sources: make(map[store.SourceKind]SourceStats)}
	for range 2 {
		s.addSource(&store.SourceInfo{Kind: store.Symtab, Named: math.MaxUint64 - 1})
	}
	if got := s.Sources[store.Symtab].Named; got != math.MaxUint64 {
		t.Errorf("%d bytes named", got)
	}
}

// packedArchive is the archive of three objects, which share a BPF program's entry.
func packedArchive(tb testing.TB) []byte {
	tb.Helper()
	w := openTestWriter(tb, "")
	for n := range 3 {
		mustMerge(tb, w, testContribution(tb, n, 40))
	}
	var b bytes.Buffer
	if _, err := store.Export(tb.Context(), &b, w, nil); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// exportPlain returns an archive without its compression, as programs wrote it before.
func exportPlain(tb testing.TB, from store.ExportSource, want func(*store.Manifest) bool) []byte {
	tb.Helper()
	var b bytes.Buffer
	if _, err := store.Export(context.Background(), &b, from, want); err != nil {
		tb.Fatal(err)
	}
	z, err := zstd.NewReader(&b)
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	plain, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return plain
}

// TestExportSome exports one object of three, compressed and, as programs before did, plain.
func TestExportSome(t *testing.T) {
	w := openTestWriter(t, "")
	for n := range 3 {
		mustMerge(t, w, testContribution(t, n, 4000))
	}
	want := func(m *store.Manifest) bool { return m.ID == testID(1) }
	var packed bytes.Buffer
	n, err := store.Export(t.Context(), &packed, w, want)
	if err != nil || n != 1 {
		t.Fatal(n, err)
	}
	plain := exportPlain(t, w, want)
	if packed.Len() >= len(plain) {
		t.Errorf("%d bytes packed, %d plain", packed.Len(), len(plain))
	}
	for name, b := range map[string]*bytes.Buffer{"packed": &packed,
		"plain": bytes.NewBuffer(plain)} {
		to := openTestWriter(t, "")
		res, err := store.Import(t.Context(), b, to)
		if err != nil || res.Objects != 1 || len(res.Problems) > 0 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		checkObject(t, to, 1, 4000)
	}
}

// TestImportPackedTruncated cuts a compressed archive everywhere, up to where the end of the tar
// file within is complete.
func TestImportPackedTruncated(t *testing.T) {
	b := packedArchive(t)
	for n := range b {
		o := store.NewOverlay()
		res, err := store.Import(t.Context(), bytes.NewReader(b[:n]), o)
		if err == nil && (n < len(b)-16 || res.Objects != 3) {
			t.Fatalf("%d of %d bytes: no error, %d objects", n, len(b), res.Objects)
		}
	}
	for n := range b {
		c := bytes.Clone(b)
		c[n] ^= 0x55
		o := store.NewOverlay()
		store.Import(t.Context(), bytes.NewReader(c), o)
		for _, m := range o.Objects {
			for j := range m.Sources {
				table, err := o.Open(m, j)
				if err != nil {
					t.Fatalf("byte %d: %v", n, err)
				}
				if sum, err := table.Digest(); err != nil || sum != m.Sources[j].Digest {
					t.Fatalf("byte %d: a damaged table was merged: %v", n, err)
				}
			}
		}
	}
}
