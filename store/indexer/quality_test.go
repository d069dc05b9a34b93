package indexer

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/store"
)

// TestQuality has an object of each quality, in a first run and in one that knows all
// from before.
func TestQuality(t *testing.T) {
	root, m := realDir(t), newMemory()
	must.Write(t, filepath.Join(root, "bin/mixed"), fixture(t, "bin/mixed"))
	must.Write(t, filepath.Join(root, "bin/mixed.debug"), fixture(t, "bin/mixed.debug"))
	must.Write(t, filepath.Join(root, "bin/spawn"), fixture(t, "bin/spawn"))
	must.Write(t, filepath.Join(root, "bin/stripped"),
		elfbuild.Lib([]byte("stripped-20-byte-id!"), 0x100).Stripped().Bytes())
	must.Write(t, filepath.Join(root, "bin/noid"), elfbuild.Lib(nil, 0x100,
		elfbuild.Func{Name: "f", Size: 8}).Bytes())
	settle()
	want := []string{"mixed lines dwarf", "noid names only symtab", "spawn names only symtab",
		"stripped nothing "}
	for run, sum := range []*Summary{
		m.index(t, Options{Quality: true}, root), m.again(t, Options{Quality: true}, root),
	} {
		var got []string
		for _, q := range sum.Quality {
			best := ""
			if q.Best != 0 {
				best = q.Best.String()
			}
			got = append(got, filepath.Base(q.Path)+" "+q.Quality.String()+" "+best)
		}
		if !slices.Equal(got, want) {
			t.Errorf("run %d: %q", run, got)
		}
	}
	if sum := newMemory().index(t, Options{}, root); sum.Quality != nil {
		t.Errorf("quality without being asked: %v", sum.Quality)
	}
}

func TestQualityOf(t *testing.T) {
	var o objectState
	for _, step := range []struct {
		take, best store.SourceKind
	}{
		{take: store.EhFrame, best: store.EhFrame}, {take: store.PLT, best: store.PLT}, {take: store.Dynsym,
			best: store.Dynsym},
		{take: store.PLT, best: store.Dynsym}, {take: store.Symtab, best: store.Symtab}, {take: store.Pclntab,
			best: store.Pclntab},
		{take: store.Symtab, best: store.Pclntab}, {take: store.DWARF, best: store.DWARF}, {take: store.Pclntab,
			best: store.DWARF},
	} {
		if o.add(step.take); o.best != step.best {
			t.Errorf("after %s: %s, want %s", step.take, o.best, step.best)
		}
	}
	if s := Lines.String() + strings.ToUpper(Nothing.String()); s != "linesNOTHING" {
		t.Error(s)
	}
}
