package analyze

import (
	"slices"
	"testing"

	"symbolize/buildid"
	"symbolize/store"
)

// newRows returns an overlay with the rows of directories, and two build IDs that are in them.
func newRows(t *testing.T, rows func(one, two buildid.ID) map[string]store.DirRows) (
	o *store.Overlay, one, two buildid.ID) {
	t.Helper()
	one, _ = buildid.Parse("1111111111111111111111111111111111111111")
	two, _ = buildid.Parse("2222222222222222222222222222222222222222")
	o = store.NewOverlay()
	for dir, list := range rows(one, two) {
		if err := o.PutDir(dir, list); err != nil {
			t.Fatal(err)
		}
	}
	return o, one, two
}

// TestKernelFiles: a release leads to the kernels at the paths of that release, each once.
func TestKernelFiles(t *testing.T) {
	o, one, two := newRows(t, func(one, two buildid.ID) map[string]store.DirRows {
		return map[string]store.DirRows{
			"/usr/lib/debug/boot":             {{Name: "vmlinux-6.1.0-18-amd64", ID: one}},
			"/usr/lib/debug/lib/modules/6.12": {{Name: "vmlinux", ID: two}},
			"/lib/modules/6.12":               {{Name: "vmlinux", ID: two}},
			"/boot":                           {{Name: "vmlinux-6.12", ID: one}},
			"/lib/modules/5.4":                {{Name: "vmlinux"}}, // no object
		}
	})
	for release, want := range map[string][]buildid.ID{
		"6.1.0-18-amd64": {one}, "6.12": {one, two}, "5.4": nil, "6.1": nil, "": nil,
	} {
		if got := kernelFiles(o, release); !slices.Equal(got, want) {
			t.Errorf("%q: %v, not %v", release, got, want)
		}
	}
}

// TestNamed: a path leads to its file, else a name to all files of that name, each once.
func TestNamed(t *testing.T) {
	o, one, two := newRows(t, func(one, two buildid.ID) map[string]store.DirRows {
		return map[string]store.DirRows{
			"/a": {{Name: "prog", ID: one}, {Name: "text"}},
			"/b": {{Name: "alone", ID: two}, {Name: "prog", ID: two}},
			"/c": {{Name: "alone", ID: two}},
		}
	})
	for name, want := range map[string][]buildid.ID{
		"/a/prog": {one}, "/b/prog": {two}, "/d/prog": {one, two}, "prog": {one, two},
		"./prog": {one, two}, "alone": {two}, "/a/text": nil, "text": nil, "gone": nil, "": nil,
		"/": nil,
	} {
		if got := o.Named(name); !slices.Equal(got, want) {
			t.Errorf("%q: %v, not %v", name, got, want)
		}
	}
}
