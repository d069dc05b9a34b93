package callers

import (
	"fmt"
	"strings"
	"testing"

	. "symbolize/fixtures/callsbuild"
	"symbolize/ingest"
)

// TestCounts counts the pairs of stacks by kind, the same with marks of gaps and without.
func TestCounts(t *testing.T) {
	w := newWorld(t, map[string]*Object{"libc": libc, "prog": program}, "libc", "prog")
	for _, c := range []struct {
		stack string
		want  string // proven, restored, recorded, cut, gaps, with the reasons of the last three
	}{
		{"prog:compare+8 prog:main/0", "1 0 0 0 0; 1 proven"},
		{"libc:memcmp prog:main/0", "1 1 0 0 0; 1 proven"},
		{"libc:syscall prog:main/1", "1 3 0 0 0; 1 proven"},
		{"libc:memcmp prog:main/3", "0 1 0 0 1; 0 proven, /libc function without frame"},
		{"libc:step prog:start/0", "1 1 0 0 1; 0 proven, /libc function without frame"},
		{"libc:memcmp prog:start/0", "0 0 0 0 1; 0 proven, /libc function without frame"},
		{"libc:uses prog:main/8", "0 0 0 1 0; 0 proven, /libc register holds data"},
		{"prog:compare+8 prog:main+4", "0 0 0 1 0; 0 proven, /prog no call there"},
		{"prog:bare prog:main/0", "0 0 1 0 0; 0 proven, /prog no unwind rule"},
		{"jit prog:main/9", "0 0 1 0 0; 0 proven, " + ingest.AnonymousPath + " calls not indexed"},
		{"prog:main/0", "0 0 0 0 0; 0 proven"},
	} {
		for _, gaps := range []bool{false, true} {
			p := w.profile(strings.Fields(c.stack))
			q, _ := Complete(p, Options{Gaps: gaps, Whole: true,
				Code: func(o *ingest.Object) *Code { return w.codes[strings.TrimPrefix(o.File.Path, "/")] }})
			s := &q.Stats.Callers
			got := fmt.Sprintf("%d %d %d %d %d; %d proven", s.Proven, s.Restored, s.Recorded, s.Cut, s.Gaps,
				s.SamplesProven)
			for _, u := range s.Unproven {
				got += fmt.Sprintf(", %s %s", u.Path, u.Reason)
				if u.Pairs != 1 {
					t.Errorf("%s: %d pairs", c.stack, u.Pairs)
				}
			}
			if got != c.want {
				t.Errorf("%s, gaps %t:\ngot  %s\nwant %s", c.stack, gaps, got, c.want)
			}
		}
	}
}
