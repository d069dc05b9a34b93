package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
)

// TestBundleOpenedOnce: a command unpacks each bundle once, whether it serves other
// captures, is one itself, or both. After that it needs the files no more.
func TestBundleOpenedOnce(t *testing.T) {
	l := bundlebuild.NewLoad(50)
	l.Processes, l.Programs = 2, 1
	for _, tt := range []struct {
		name  string
		files map[string][]byte
		want  []string // that are captures
	}{
		{name: "stacks alone",
			files: map[string][]byte{"stacks.data": l.Bundle(bundlebuild.NewHost())},
			want:  []string{"stacks.data"}},
		{name: "stacks and a recording",
			files: map[string][]byte{"perf.data": l.PerfData(bundlebuild.NewHost()),
				"stacks.data": l.Bundle(bundlebuild.NewHost())},
			want: []string{"perf.data", "stacks.data"}},
		{name: "no stacks",
			files: map[string][]byte{"perf.data": l.PerfData(bundlebuild.NewHost()),
				"capture.data": bundlebuild.NewHost().Bundle()}, want: []string{"perf.data"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var paths, want []string
			for name, data := range tt.files {
				paths = append(paths, filepath.Join(dir, name))
				must.Write(t, filepath.Join(dir, name), data)
			}
			for _, name := range tt.want {
				want = append(want, filepath.Join(dir, name))
			}
			slices.Sort(paths)
			env, _, stderr := inProcess()
			env.Getenv = func(string) string { return filepath.Join(dir, "store") }
			a, o := &App{Env: env}, &InputOptions{}
			captures := o.SplitBundles(t.Context(), paths)
			defer o.Opened.Close()
			if slices.Sort(captures); !slices.Equal(captures, want) {
				t.Fatalf("captures %q, want %q", captures, want)
			}
			s, err := a.OpenSession(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, path := range o.Bundles {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			p, err := s.Load(t.Context(), captures)
			if err != nil {
				t.Fatal(err)
			}
			if n := uint64(l.Samples * len(want)); p.Stats.Samples != n {
				t.Errorf("%d samples, want %d; stderr %s", p.Stats.Samples, n, stderr)
			}
		})
	}
}
