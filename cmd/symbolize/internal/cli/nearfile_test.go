package cli

import (
	"os"
	"path/filepath"
	"testing"

	"symbolize/fixtures/must"
)

func TestNearFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"perf.data", "other/run.data", "web 1.pb.gz", "notes.txt", "in/x/a.tar"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		must.Write(t, path, nil)
	}
	for path, want := range map[string]string{
		"perf.dta":        "did you mean perf.data?",
		"PERF":            "did you mean perf.data?",
		"run.data":        "did you mean other/run.data?",
		"other/perf.data": "did you mean perf.data?",
		"other/nun.data":  "did you mean other/run.data?",
		"collected.bin":   "in . there are perf.data, 'web 1.pb.gz'",
		"gone/perf.data":  "there is no directory gone",
		"in/xyzxyz":       "",
		"in/x/b":          "in in/x there are in/x/a.tar",
	} {
		_, err := os.Open(path)
		if got := Hint(err); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
