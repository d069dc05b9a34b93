package batch_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"symbolize/analyze/batch"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/indexer"
)

// addToStore indexes more files.
func addToStore(t *testing.T, path string, files ...string) {
	t.Helper()
	var w *db.Writer
	_, err := indexer.Index(t.Context(), files, nil, func() (store.Sink, error) {
		var err error
		w, err = db.OpenWriter(t.Context(), path, db.WriterOptions{})
		return w, err
	}, indexer.Options{DebugRoots: []string{}})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestLaterSymbols: symbols that arrive after a run name their objects alone, and only captures with
// copied stacks that could not be unwound without them are read again. The profiles are those of a
// run that had all symbols from the beginning.
func TestLaterSymbols(t *testing.T) {
	n := newNight(t)
	copyFile(t, "../../fixtures/captures/dwarf.data", filepath.Join(n.dir, "web/h0/dwarf.data"))
	n.captures = append(n.captures, filepath.Join(n.dir, "web/h0/dwarf.data"))
	slices.Sort(n.captures)
	want := n.plain(t)
	n.store = newStore(t, "../../fixtures/objects/bin/bpfload", "../../fixtures/objects/bin/mixed.debug")
	out := t.TempDir()
	for _, step := range []struct {
		name    string
		add     string // file that is indexed before the run
		read    int    // captures
		changed bool   // names of objects
		gained  string // a file with more names than before
	}{
		{name: "first", read: len(n.captures), changed: true},
		{name: "nothing new"},
		{name: "a file of no capture", add: "../../fixtures/sampled/none"},
		{name: "a program", add: "../../fixtures/objects/bin/spawn", changed: true, gained: "/srv/app/bin/spawn"},
		{name: "unwinding", add: "../../fixtures/objects/bin/mixed", read: 1, changed: true,
			gained: "/srv/app/bin/mixed"},
	} {
		switch {
		case step.add == "../../fixtures/sampled/none":
			addToStore(t, n.store, os.Args[0])
		case step.add != "":
			addToStore(t, n.store, step.add)
		}
		sum, err := batch.Run(t.Context(), n.captures, n.options(out))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v", step.name, sum)
		if read := sum.Captures - sum.Kept; read != step.read {
			t.Errorf("%s: %d captures were read, want %d", step.name, read, step.read)
		}
		if changed := sum.Objects != sum.ObjectsKept; changed != step.changed {
			t.Errorf("%s: %d objects, %d kept", step.name, sum.Objects, sum.ObjectsKept)
		}
		if step.gained != "" && !slices.ContainsFunc(sum.Gained, func(g batch.Gain) bool {
			return g.File == step.gained && g.Now > g.Before
		}) {
			t.Errorf("%s: %v lacks %s", step.name, sum.Gained, step.gained)
		}
	}
	addToStore(t, n.store, "../../fixtures/objects")
	if _, err := batch.Run(t.Context(), n.captures, n.options(out)); err != nil {
		t.Fatal(err)
	}
	compare(t, written(t, out), want)
}
