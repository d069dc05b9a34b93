package db

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestIndexInPieces makes the index again from all facts, and from those that a generation lacks, with
// little in memory at a time: the same store, and nothing is left over.
func TestIndexInPieces(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	defer func(old int64) { maxExtra = old }(maxExtra)
	for _, tt := range []struct {
		name string
		lose func(t *testing.T, path string)
	}{
		{name: "no generation", lose: func(t *testing.T, path string) { removeAll(t, path, gensName+"/*") }},
		{name: "an old generation", lose: func(t *testing.T, path string) { removeAll(t, path, gensName+"/2") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := t.TempDir()
			fillStore(t, path, 0, 3)
			fillStore(t, path, 3, 60)
			want := digestOf(t, path)
			tt.lose(t, path)
			maxExtra = 2 << 10
			r := openTestReader(t, path)
			if !r.state.spilled || r.state.extra.size > 64<<10 || !r.Stale() {
				t.Errorf("reader: %d bytes in memory, in pieces %t", r.state.extra.size, r.state.spilled)
			}
			if got, err := r.Digest(t.Context()); err != nil || got != want {
				t.Errorf("reader: digest %x, %v, want %x", got, err, want)
			}
			w := openTestWriter(t, path)
			if !w.state.spilled || w.state.extra.size > 64<<10 {
				t.Errorf("writer: %d bytes in memory, in pieces %t", w.state.extra.size, w.state.spilled)
			}
			if err := errors.Join(r.Close(), w.Close()); err != nil {
				t.Fatal(err)
			}
			maxExtra = 16 << 20
			r = openTestReader(t, path)
			if r.Stale() || digestOf(t, path) != want {
				t.Error("not the same store after it was published")
			}
			if v := mustVerify(t, path); len(v.Problems) > 0 {
				t.Error(v.Problems)
			}
			for _, dir := range []string{filepath.Join(path, gensName, tmpPrefix), temp + "/symbolize-store-"} {
				if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
					t.Errorf("left over: %v", left)
				}
			}
		})
	}
}

func removeAll(t *testing.T, path, pattern string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(path, filepath.FromSlash(pattern)))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	for _, p := range list {
		if err := os.RemoveAll(p); err != nil {
			t.Fatal(err)
		}
	}
}
