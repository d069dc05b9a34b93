package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/ingest/format/bundle"
)

// TestUnfinished: a bundle of stacks that was cut off gives the same as when it is complete,
// but for a note; and so does the one that is made of it.
func TestUnfinished(t *testing.T) {
	recorded, err := filepath.Glob("../../fixtures/sampled/*.data")
	if err != nil || len(recorded) == 0 {
		t.Fatal(recorded, err)
	}
	for _, from := range recorded {
		b, err := bundle.OpenFile(from)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		path := filepath.Join(t.TempDir(), filepath.Base(from))
		w, err := bundle.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		for _, name := range b.Names() {
			r, size, err := b.Entry(name)
			if err == nil {
				err = w.AddReader(name, io.NewSectionReader(r, 0, size))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		m := b.Manifest
		if err := w.Flush(&m); err != nil {
			t.Fatal(err)
		}
		store := filepath.Join(t.TempDir(), "store")
		resolve := func(path string) string {
			return runMain(t, "resolve", "--quiet", "--store", store, "--labels", "pid", "--format",
				"folded", path)
		}
		want := resolve(from)
		if got := resolve(path); got != want || want == "" {
			t.Errorf("%s: cut off it gives\n%s\nwant\n%s", from, got, want)
		}
		if info := runMain(t, "info", path); !strings.Contains(info, "the recording was cut off") {
			t.Errorf("%s: info does not say that it is cut off:\n%s", from, info)
		}
		if _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		if got := resolve(path); got != want {
			t.Errorf("%s: completed it gives\n%s\nwant\n%s", from, got, want)
		}
	}
}
