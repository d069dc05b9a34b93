package record

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAbandonedGroups: the group of a killed recorder is removed after its processes have ended;
// groups of live recorders, and other groups, stay.
func TestAbandonedGroups(t *testing.T) {
	parent := t.TempDir()
	alive, err := makeGroup(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.file.Close()
	killed, err := makeGroup(parent)
	if err != nil {
		t.Fatal(err)
	}
	killed.file.Close()
	used, err := makeGroup(parent)
	if err != nil {
		t.Fatal(err)
	}
	used.file.Close()
	for _, dir := range []string{used.dir + "/process", parent + "/other-1"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeAbandoned(parent)
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	want := []string{alive.dir, used.dir, filepath.Join(parent, "other-1")}
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("%q, want %q", left, want)
	}
	if f, err := lockGroup(alive.dir); err == nil {
		f.Close()
		t.Error("the group of a recorder that lives can be locked")
	}
}
