package indexer

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"symbolize/buildid"
	"symbolize/store"
	"symbolize/store/symtab"
)

// TestDemangleReadsAgain indexes files with demangled names after they were indexed without,
// and the other way round: only the first reads them again.
func TestDemangleReadsAgain(t *testing.T) {
	m := newMemory()
	bin := filepath.Join(objectsDir, "bin")
	with := Options{Demangler: &symtab.Demangler{ID: "x", Name: func(s string) string { return s }}}
	all := m.index(t, Options{}, bin).Read
	if all == 0 {
		t.Fatal("nothing was read")
	}
	for _, step := range []struct {
		name string
		opts Options
		want uint64
	}{
		{name: "with", opts: with, want: all}, {name: "with again", opts: with, want: 0}, {name: "without",
			opts: Options{}, want: 0},
		{name: "names only", opts: Options{NamesOnly: true}, want: 0},
	} {
		if got := m.index(t, step.opts, bin).Read; got != step.want {
			t.Errorf("%s: %d files read, want %d", step.name, got, step.want)
		}
	}
}

// TestDemangleOnly indexes files anew with the demangled names of one object: only its files are
// read again, once, and only its names are demangled.
func TestDemangleOnly(t *testing.T) {
	m := newMemory()
	bin := filepath.Join(objectsDir, "bin")
	m.index(t, Options{}, bin)
	row, err := FileRow(filepath.Join(bin, "mixed"), false)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64 // by several goroutines
	opts := Options{
		Demangler: &symtab.Demangler{ID: "x", Name: func(s string) string {
			asked.Add(1)
			return s
		}},
		DemangleOnly: func(id buildid.ID) bool { return id == row.ID }, Workers: 1,
	}
	sum := m.index(t, opts, bin)
	if sum.Read == 0 || sum.Read != sum.Demangled || sum.Unchanged == 0 || asked.Load() == 0 {
		t.Errorf("%d files read, %d with demangled names, %d unchanged, %d names",
			sum.Read, sum.Demangled, sum.Unchanged, asked.Load())
	}
	for _, step := range []Options{opts, {}} {
		if got := m.index(t, step, bin).Read; got != 0 {
			t.Errorf("then %d files read", got)
		}
	}
}

// TestDemangleSymbols demangles of the symbols those names that the debug information lacks.
func TestDemangleSymbols(t *testing.T) {
	by := &symtab.Demangler{ID: "x", Name: func(s string) string { return "shown " + s }}
	s := sources{w: &fileReader{ix: &index{opts: Options{Demangler: by}}}, c: &store.Contribution{}}
	if s.demangler(store.Symtab) != nil {
		t.Error("symbols of an object without lines are demangled")
	}
	b := symtab.NewBuilder(symtab.Options{})
	b.Add(symtab.Func{Start: 1, Size: 1, Name: "known"})
	table := b.Encode()
	s.c.Sources = append(s.c.Sources, store.NewSource{
		Info: store.SourceInfo{Kind: store.DWARF}, Table: table})
	for _, kind := range []store.SourceKind{store.Symtab, store.Dynsym} {
		d := s.demangler(kind)
		if d == nil || d.ID != "x" || d.Name("known") != "known" || d.Name("new") != "shown new" {
			t.Errorf("%s: %+v", kind, d)
		}
	}
	if s.demangler(store.DWARF) != by || s.demangler(store.PLT) != nil {
		t.Error("debug information is not demangled, or stubs are")
	}
}
