package batch

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest"
)

func TestValues(t *testing.T) {
	meta := ingest.Meta{Host: "h1", StartNanos: 1_790_000_000_000_000_000}
	for _, tt := range []struct {
		name, path, pattern string
		keys                []string
		manifest            map[string]map[string]string
		want, missing       []string
	}{
		{name: "captures' own", path: "x/perf.data", keys: []string{"host", "day", "main"},
			want: []string{"h1", "2026-09-21", "unknown"}, missing: []string{"main"}},
		{name: "end of the path", path: "/a/b/web/h7/1.data",
			pattern: "{service}/{host}/{n}.data", keys: []string{"service", "host"},
			want: []string{"web", "h7"}},
		{name: "path that does not match", path: "/a/1.dat", pattern: "{service}/{n}.data",
			keys: []string{"service", "host"},
			want: []string{"unknown", "h1"}, missing: []string{"service"}},
		{name: "key with a dash", path: "eu-1.data", pattern: "{data-center}-{n}.data",
			keys: []string{"data-center"},
			want: []string{"eu"}},
		{name: "dots are dots", path: "aXdata", pattern: "{n}.data", keys: []string{"n"},
			want: []string{"unknown"}, missing: []string{"n"}},
		{name: "manifest first", path: "web/1.data", pattern: "{service}/{n}.data",
			keys:     []string{"service"},
			manifest: map[string]map[string]string{"web/1.data": {"service": "shop"}},
			want:     []string{"shop"}},
	} {
		g := Grouping{Keys: tt.keys, Pattern: tt.pattern, Manifest: tt.manifest}
		if err := g.compile(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, missing := g.values(&Head{Path: tt.path, Meta: meta})
		if !slices.Equal(got, tt.want) || !slices.Equal(missing, tt.missing) {
			t.Errorf("%s: %q without %q, want %q without %q", tt.name, got, missing, tt.want, tt.missing)
		}
	}
}

func TestBadGrouping(t *testing.T) {
	for _, g := range []Grouping{
		{Keys: []string{"team"}},
		{Keys: []string{"n"}, Pattern: "{n}/{n}.data"},
		{Keys: []string{"host"}, Pattern: "x.data"},
	} {
		if err := g.compile(); !errors.Is(err, ErrGrouping) {
			t.Errorf("%+v: %v", g, err)
		}
	}
	for name, text := range map[string]string{"header": "a\tb\n", "fields": "path\ta\nx\n"} {
		path := filepath.Join(t.TempDir(), name)
		must.Write(t, path, []byte(text))
		if _, err := ReadManifest(path); !errors.Is(err, ErrGrouping) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSafeNames: no value leaves the directory, and different values have different names.
func TestSafeNames(t *testing.T) {
	seen := make(map[string]string)
	for _, v := range []string{"web", "..", ".", "a/b", "a%2Fb", "a\nb", "ü", "a b", `a\b`, ".x", "x.",
		strings.Repeat("x", 300), strings.Repeat("x", 301), strings.Repeat("/", 90),
		safeName(strings.Repeat("x", 300))} {
		got := filepath.Join("out", name([]string{v, "h"})+".pb.gz")
		if filepath.Dir(filepath.Dir(got)) != "out" || seen[got] != "" ||
			len(filepath.Base(filepath.Dir(got))) > maxName {
			t.Errorf("%q: %s, as of %q", v, got, seen[got])
		}
		seen[got] = v
	}
}
