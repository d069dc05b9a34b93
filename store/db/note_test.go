package db

import (
	"os"
	"path/filepath"
	"testing"

	"symbolize/store"
)

// TestNotes: notes of pulled manifests are in the store until a gc, also those of a killed run.
func TestNotes(t *testing.T) {
	path := t.TempDir()
	w := openTestWriter(t, path)
	mustMerge(t, w, testContribution(t, 1, 5))
	for n := range 2 {
		if err := w.Note(digest{byte(n)}); err != nil {
			t.Fatal(err)
		}
	}
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, killed} {
		w := openTestWriter(t, path)
		if err := w.tidy(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r := openTestReader(t, path)
		if !r.Noted(digest{0}) || !r.Noted(digest{1}) || r.Noted(digest{2}) {
			t.Errorf("%s: noted %t, %t, %t", path, r.Noted(digest{0}), r.Noted(digest{1}), r.Noted(digest{2}))
		}
		mustVerify(t, path)
		w = openTestWriter(t, path)
		if _, err := w.GC(t.Context(), GCOptions{Exists: func(string) bool { return true }}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if r := openTestReader(t, path); r.Noted(digest{0}) {
			t.Errorf("%s: noted after gc", path)
		}
	}
}

// TestInputBeingWritten publishes and collects while another goroutine writes an input that no facts
// name yet: it is neither synced nor collected.
func TestInputBeingWritten(t *testing.T) {
	w := openTestWriter(t, "")
	c := testContribution(t, 1, 5)
	in := store.EncodeInput([]store.NewSource{c.Sources[0]})
	w.written[in.ID] = false // as writeInput does before it writes
	mustMerge(t, w, testContribution(t, 2, 6))
	if err := w.Publish(); err != nil {
		t.Fatal(err)
	}
	if err := w.inputs.put(in); err != nil {
		t.Fatal(err)
	}
	if _, err := w.GC(t.Context(), GCOptions{Exists: func(string) bool { return true }}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(w.path, inputsName, in.ID.String())); err != nil {
		t.Errorf("collected: %v", err)
	}
	mustMerge(t, w, c)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, w.path)
}
