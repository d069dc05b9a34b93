package analyze_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"symbolize/analyze"
	"symbolize/analyze/demangle"
	"symbolize/analyze/export"
	"symbolize/store/local"
)

// TestLocalAgrees has the same result from objects that are looked for, of which only the
// functions at the locations are indexed, as from all of their files: for captures alone and
// together, where the second has further locations in the objects of the first.
func TestLocalAgrees(t *testing.T) {
	dirs := []string{"../fixtures/objects/bin", "../fixtures/objects/lib"}
	var all []string
	for _, name := range []string{"fixed.data", "mixed-buildid.data", "mixed.data", "dlopen.data",
		"clock.data", "nochain.data"} {
		found, err := filepath.Glob(captures + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	lists := [][]string{all}
	for _, c := range all {
		lists = append(lists, []string{c})
	}
	for _, list := range lists {
		want, _ := jsonOf(t, analyze.Options{With: dirs}, list)
		got, found := jsonOf(t, analyze.Options{
			Local: &local.Options{Roots: dirs, DebugRoots: []string{}}}, list)
		if len(list) > 1 && found == "" {
			t.Errorf("%v: nothing was found", list)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%v (%s):\ngot  %s\nwant %s", list, found, got, want)
		}
	}
}

func jsonOf(t *testing.T, opts analyze.Options, list []string) (out []byte, found string) {
	t.Helper()
	s, err := analyze.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := s.Load(t.Context(), list...)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := export.JSON(&b, p, demangle.New(demangle.Full)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), local.Found(s.State().Local)
}
