package files

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"symbolize/fixtures/must"
)

// TestMakeDirs: each directory that gets a new entry is synced, and no other one.
func TestMakeDirs(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	must.Write(t, file, nil)
	var synced []string
	note := func(dir string) error {
		synced = append(synced, dir)
		return SyncDir(dir)
	}
	in := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	for _, tc := range []struct {
		path string
		want []string
		fail bool
	}{
		{path: in("a", "b", "store"), want: []string{base, in("a"), in("a", "b")}},
		{path: in("a", "b", "store")},
		{path: in("a", "other"), want: []string{in("a")}},
		{path: file, fail: true},
		{path: in("file", "store"), fail: true},
	} {
		synced = nil
		err := MakeDirs(tc.path, note)
		if fi, statErr := os.Stat(tc.path); (err != nil) != tc.fail || !slices.Equal(synced, tc.want) ||
			!tc.fail && (statErr != nil || !fi.IsDir()) {
			t.Errorf("%s: %v, synced %q, want %q", tc.path, err, synced, tc.want)
		}
	}
}
