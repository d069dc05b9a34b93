package local

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/storebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/indexer"
)

const objects = "../../fixtures/objects/bin/"

// place copies a fixture to a path below dir, and returns the path.
func place(t *testing.T, fixture string, elem ...string) string {
	t.Helper()
	b := must.Read(t, objects+fixture)
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	must.Write(t, path, b)
	return path
}

func idOf(t *testing.T, fixture string) buildid.ID {
	t.Helper()
	row, err := indexer.FileRow(objects+fixture, false)
	if err != nil || row.ID.IsZero() {
		t.Fatal(row, err)
	}
	return row.ID
}

// TestPlaces finds an object in each place, and nothing where the file is another one.
func TestPlaces(t *testing.T) {
	id, other := idOf(t, "fixed"), idOf(t, "mixed")
	link := id.Hex()[:2] + "/" + id.Hex()[2:]
	for _, tt := range []struct {
		name string
		at   string // below the directory
		want Place
	}{
		{name: "recorded path", at: "app/prog", want: File},
		{name: "recorded path below a root", at: "root/DIR/app/prog", want: Root},
		{name: "name in a root", at: "root/prog", want: Root},
		{name: "tree of build IDs in a root", at: "root/.build-id/" + link, want: Root},
		{name: "the same of Fedora", at: "root/usr/lib/.build-id/" + link, want: Root},
		{name: "perf's cache in a root", at: "root/.debug/.build-id/" + link + "/elf", want: Root},
		{name: "tree of build IDs", at: "debug/.build-id/" + link, want: File},
		{name: "debug file alone", at: "debug/.build-id/" + link + ".debug", want: File},
		{name: "perf's cache", at: "perf/.build-id/" + link + "/elf", want: PerfCache},
		{name: "debuginfod's cache", at: "debuginfod/" + id.Hex() + "/executable",
			want: DebuginfodDir},
		{name: "debug file in debuginfod's cache", at: "debuginfod/" + id.Hex() + "/debuginfo",
			want: DebuginfodDir},
		{name: "elsewhere", at: "prog", want: Nowhere},
	} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		path := tt.at
		if rest, ok := cut(path, "root/DIR/"); ok {
			path = "root" + dir + "/" + rest
		}
		path = place(t, "fixed", dir, path)
		opts := Options{Host: true, Roots: []string{at("root")}, DebugRoots: []string{at("debug")},
			PerfCaches: []string{at("perf")}, Debuginfod: []string{at("debuginfod")}}
		o := ingest.Object{ID: id, File: ingest.FileRef{Path: at("app/prog")}}
		for _, step := range []struct {
			name    string
			change  func()
			want    Place
			objects int
		}{
			{change: func() {}, want: tt.want, objects: 1},
			{name: "without the host", change: func() { opts.Host = false },
				want: onlyRoot(tt.want), objects: 1},
			{name: "another file", change: func() { opts.Host = true; place(t, "mixed", path) },
				want: Nowhere, objects: 0},
			{name: "no object", change: func() { os.WriteFile(path, []byte("\x7fELF"), 0o644) },
				want: Nowhere, objects: 0},
			{name: "no file", change: func() { os.Remove(path) }, want: Nowhere, objects: 0},
		} {
			step.change()
			overlay := store.NewOverlay()
			f := New(overlay, opts)
			f.Find([]ingest.Object{o, o}, overlay, true)
			if _, err := f.Index(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			got := f.Objects()
			if len(got) != 1 || got[0].Place != step.want {
				t.Errorf("%s %s: %v, want %v", tt.name, step.name, got, step.want)
			}
			for key, m := range overlay.Objects {
				if m.IsAlias() {
					delete(overlay.Objects, key)
				}
			}
			if n := len(overlay.Objects); n != min(int(step.want), 1) {
				t.Errorf("%s %s: %d objects indexed", tt.name, step.name, n)
			}
			rows, _, err := f.Rows().Dir(at("app"))
			if shown := len(rows) == 1 && rows[0].ID == other; err != nil ||
				shown != (step.name == "another file" && filepath.Base(filepath.Dir(tt.at)) == "app") {
				t.Errorf("%s %s: rows %v, %v", tt.name, step.name, rows, err)
			}
		}
	}
}

func cut(s, prefix string) (string, bool) {
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return s, false
}

func onlyRoot(p Place) Place {
	if p == Root {
		return Root
	}
	return Nowhere
}

// TestAgain indexes an object for some addresses, then all of it; objects of a view are not looked
// for.
func TestAgain(t *testing.T) {
	dir, id := t.TempDir(), idOf(t, "fixed")
	o := ingest.Object{ID: id, File: ingest.FileRef{Path: place(t, "fixed", dir, "prog")}}
	overlay := store.NewOverlay()
	f := New(overlay, Options{Host: true, DebugRoots: []string{}})
	f.Find([]ingest.Object{o}, overlay, false)
	index := func(all bool) (funcs uint32) {
		t.Helper()
		only := func(*store.Manifest) ([]addr.Addr, bool) { return nil, all }
		if _, err := f.Index(t.Context(), only); err != nil {
			t.Fatal(err)
		}
		found, err := overlay.Find(id)
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		for _, s := range found[0].Sources {
			funcs = max(funcs, s.Funcs)
		}
		return funcs
	}
	if n := index(false); n != 0 {
		t.Errorf("%d functions at no address", n)
	}
	f.Again(id)
	if n := index(true); n == 0 {
		t.Error("no function")
	}
	if paths, kernel := f.Found(); len(paths) != 0 || kernel {
		t.Errorf("left: %v, %v", paths, kernel)
	}
	f = New(overlay, Options{Host: true, FindOnly: true})
	f.Find([]ingest.Object{o}, overlay, false)
	if got := f.Objects(); len(got) != 1 || got[0].Place != Known || Found(got) != "" {
		t.Errorf("%v", got)
	}
}

func TestFoundText(t *testing.T) {
	list := []Object{{Place: File}, {Place: Nowhere}, {Place: PerfCache}, {Place: File}, {Place: Known}}
	if got := Found(list); got != "2 objects from local files, 1 from ~/.debug" {
		t.Error(got)
	}
	if got := Found(list[2:3]); got != "1 object from ~/.debug" {
		t.Error(got)
	}
}

// TestFits: of two files with the build ID the one that the mappings of the object fit is used, also
// if view has the other.
func TestFits(t *testing.T) {
	dir := t.TempDir()
	id := buildid.New(bytes.Repeat([]byte{7}, 20))
	write := func(name string, text uint64) string {
		path := filepath.Join(dir, name)
		file := elfbuild.Lib(id.Bytes(), text, elfbuild.Func{Name: "f", Size: text}).Bytes()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, file, 0o644)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := write("app", 0x100)
	second := write(filepath.Join("perf/.build-id", id.Hex()[:2], id.Hex()[2:], "elf"), 0x200)
	known := storebuild.Overlay(t, indexer.Options{}, first)
	for _, tc := range []struct {
		name   string
		view   store.View
		length uint64 // of the code that was mapped
		want   string
		place  Place
	}{
		{name: "the first fits", view: store.NewOverlay(), length: 0x100, want: first, place: File},
		{name: "the second fits", view: store.NewOverlay(), length: 0x200, want: second, place: PerfCache},
		{name: "none fits", view: store.NewOverlay(), length: 0x300, want: first, place: File},
		{name: "the view's fits", view: known, length: 0x100, place: Known},
		{name: "the view's does not fit", view: known, length: 0x200, want: second, place: PerfCache},
	} {
		f := New(store.NewOverlay(), Options{Host: true, FindOnly: true, DebugRoots: []string{},
			PerfCaches: []string{filepath.Join(dir, "perf")},
			Fits: func(o *ingest.Object, machine uint16, layouts ...[]elf.Segment) bool {
				return slices.ContainsFunc(layouts, func(l []elf.Segment) bool {
					return slices.ContainsFunc(l, func(s elf.Segment) bool { return s.FileSize == o.Segments[0].Len })
				})
			}})
		f.Find([]ingest.Object{{ID: id, File: ingest.FileRef{Path: first},
			Segments: []ingest.SegmentRef{{Len: tc.length}}}}, tc.view, true)
		paths, _ := f.Found()
		if got := strings.Join(paths, " "); got != tc.want || f.Objects()[0].Place != tc.place {
			t.Errorf("%s: %q, %v; want %q, %v", tc.name, got, f.Objects()[0].Place, tc.want, tc.place)
		}
	}
}
