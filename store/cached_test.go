package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
)

// countingView counts the calls of Find, and fails while err is set.
type countingView struct {
	View
	finds int
	err   error
}

func (v *countingView) Find(id buildid.ID) ([]*Manifest, error) {
	v.finds++
	if v.err != nil {
		return nil, v.err
	}
	return v.View.Find(id)
}

// mergeObject adds an object to an overlay.
func mergeObject(t *testing.T, o *Overlay, id buildid.ID, machine uint16) {
	t.Helper()
	c := &Contribution{Manifest: Manifest{ID: id, Kind: ingest.ELF, Machine: machine}}
	if err := o.Merge(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

func TestCached(t *testing.T) {
	known, unknown := buildid.New([]byte{8, 7, 6, 5, 4, 3, 2, 1}), buildid.New([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	behind := NewOverlay()
	mergeObject(t, behind, known, 62)
	count := &countingView{View: behind}
	front := NewOverlay()
	v := Layer(front, Cached(count))

	for _, tt := range []struct {
		name  string
		id    buildid.ID
		err   error
		found int
		finds int // in all
	}{
		{name: "error", id: known, err: errors.New("read error"), finds: 1},
		{name: "an error is not kept", id: known, found: 1, finds: 2},
		{name: "kept", id: known, found: 1, finds: 2},
		{name: "none", id: unknown, found: 0, finds: 3},
		{name: "none is kept", id: unknown, found: 0, finds: 3},
	} {
		count.err = tt.err
		found, err := v.Find(tt.id)
		if len(found) != tt.found || !errors.Is(err, tt.err) || count.finds != tt.finds {
			t.Errorf("%s: %d manifests, %v, %d calls of Find; want %d, %v, %d", tt.name,
				len(found), err, count.finds, tt.found, tt.err, tt.finds)
		}
		for _, m := range found {
			m.Machine = 1
		}
	}

	// The overlay grows between two look-ups.
	mergeObject(t, front, unknown, 183)
	for id, machine := range map[buildid.ID]uint16{known: 62, unknown: 183} {
		if found, err := v.Find(id); err != nil || len(found) != 1 || found[0].Machine != machine {
			t.Errorf("%v: %+v, %v; want one of machine %d", id, found, err, machine)
		}
	}
}

// countingDirs counts the calls of Dir.
type countingDirs struct {
	View
	dirs int
}

func (v *countingDirs) Dir(dir string) (DirRows, bool, error) {
	v.dirs++
	return v.View.Dir(dir)
}

// TestCachedDirs: the rows of a directory are read once, also beside an overlay's.
func TestCachedDirs(t *testing.T) {
	behind, front := NewOverlay(), NewOverlay()
	if err := behind.PutDir("/lib", DirRows{{Name: "a"}, {Name: "c"}}); err != nil {
		t.Fatal(err)
	}
	count := &countingDirs{View: behind}
	cached := Cached(count)
	v := Layer(front, cached)
	check := func(name, dir string, want, calls int) {
		t.Helper()
		rows, ok, err := v.Dir(dir)
		if len(rows) != want || ok != (want > 0) || err != nil || count.dirs != calls {
			t.Errorf("%s: %d rows, %t, %v, %d calls; want %d rows, %d calls", name, len(rows), ok, err,
				count.dirs, want, calls)
		}
	}
	check("first", "/lib", 2, 1)
	check("kept", "/lib", 2, 1)
	check("none", "/usr", 0, 2)
	check("none is kept", "/usr", 0, 2)
	if err := front.PutDir("/lib", DirRows{{Name: "b"}}); err != nil {
		t.Fatal(err)
	}
	check("united with an overlay's", "/lib", 3, 2)
	check("not changed by that", "/lib", 3, 2)
	if rows, _, _ := cached.Dir("/lib"); len(rows) != 2 || rows[1].Name != "c" {
		t.Errorf("the kept rows are %+v", rows)
	}
	cached.Forget()
	check("forgotten", "/lib", 3, 3)
	for i := range 2 * maxCachedRows {
		if _, _, err := cached.Dir(fmt.Sprint("/", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(cached.dirs) > maxCachedRows || cached.rows > maxCachedRows {
		t.Errorf("%d directories, %d rows are kept", len(cached.dirs), cached.rows)
	}
}

// TestCachedIsBounded: a cache forgets before it grows without limit.
func TestCachedIsBounded(t *testing.T) {
	c := Cached(NewOverlay())
	for i := range 3 * maxCached {
		id := buildid.New([]byte{byte(i), byte(i >> 8), byte(i >> 16), 1, 2, 3, 4, 5})
		if _, err := c.Find(id); err != nil {
			t.Fatal(err)
		}
		if len(c.found) > maxCached || c.size > maxCached {
			t.Fatalf("%d IDs kept, size %d", len(c.found), c.size)
		}
	}
}
