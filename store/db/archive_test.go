package db

import (
	"bytes"
	"errors"
	"math"
	"testing"

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
	e, err := b.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// TestImportCountsNames imports tables with ranges that no function names: the store
// that comes out has the digest of the one that was exported.
func TestImportCountsNames(t *testing.T) {
	for name, end := range map[string]addr.Addr{"small": 0x2400, "vast": math.MaxUint64} {
		t.Run(name, func(t *testing.T) {
			w := openTestWriter(t, "")
			mustMerge(t, w, &store.Contribution{Manifest: store.Manifest{ID: testID(1)}, Sources: []store.NewSource{
				{Info: store.SourceInfo{Kind: store.DWARF}, Table: namelessTable(t, end)}}})
			var archive bytes.Buffer
			to := openTestWriter(t, "")
			_, err := Import(t.Context(), &archive, to)
			if err == nil {
				t.Fatal("an empty archive is imported")
			}
			err = w.Export(t.Context(), &archive)
			if _, importErr := Import(t.Context(), &archive, to); err != nil || importErr != nil {
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
