package record

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
)

// TestRecordings: the perf.data files that a command has written, by its words.
func TestRecordings(t *testing.T) {
	dir := t.TempDir()
	f := perfbuild.New()
	f.Words64(perfbuild.FeatureSampleTime, 100, 500)
	f.Comm(7, 7, "a", false, perfbuild.At{Time: 1})
	since := time.Now().Add(-time.Hour)
	for _, name := range []string{"perf.data", "x.data", "threads/data", "old.data"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		must.Write(t, path, f.Bytes())
	}
	if err := os.Chtimes(filepath.Join(dir, "old.data"), since, since.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	must.Write(t, filepath.Join(dir, "text"), []byte("no recording"))
	for _, tc := range []struct {
		name    string
		command []string
		want    []string // besides perf.data
	}{
		{name: "default", command: []string{"perf", "record", "./test"}},
		{name: "-o FILE", command: []string{"perf", "record", "-o", "x.data", "./test"}, want: []string{"x.data"}},
		{name: "-oFILE", command: []string{"perf", "record", "-ox.data", "./test"}, want: []string{"x.data"}},
		{name: "--output=FILE", command: []string{"perf", "record", "--output=x.data"}, want: []string{"x.data"}},
		{name: "absolute", command: []string{"perf", "record", "-o", filepath.Join(dir, "x.data")},
			want: []string{"x.data"}},
		{name: "behind sh -c", command: []string{"sh", "-c", "perf record -o 'x.data' ./test; true"},
			want: []string{"x.data"}},
		{name: "directory", command: []string{"perf", "record", "--threads", "-o", "threads"},
			want: []string{"threads"}},
		{name: "written before", command: []string{"perf", "record", "-o", "old.data"}},
		{name: "no recording", command: []string{"perf", "record", "-o", "text", "gone"}},
	} {
		var got []string
		for _, r := range recordings(tc.command, dir, since) {
			got = append(got, r.Path)
			if r.Size == 0 || r.First != 100 {
				t.Errorf("%s: %+v", tc.name, r)
			}
		}
		want := []string{filepath.Join(dir, "perf.data")}
		for _, name := range tc.want {
			want = append(want, filepath.Join(dir, name))
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", tc.name, got, want)
		}
	}
}
