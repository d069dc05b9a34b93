package callers

import (
	"fmt"
	"slices"
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

// TestJumpedTo: a function that was called may also be jumped to by the one that the next address calls;
// it was not called from there. postgres has XidInMVCCSnapshot so, below HeapTupleSatisfiesVisibility.
func TestJumpedTo(t *testing.T) {
	w := newWorld(t, map[string]*Object{"prog": {Funcs: []Func{
		{Name: "main", Ops: Body(Frame(), Call("visible"), Call("recurse"), Leave())},
		{Name: "visible", Ops: slices.Concat(Frame(), Call("snapshot"), Leave(), Jump("snapshot"))},
		{Name: "snapshot", Ops: Body(Frame(), Call("main"), Leave())},
		{Name: "recurse", Ops: Body(Frame(), Call("recurse"), Leave())},
	}}}, "prog")
	for _, c := range []struct{ stack, want string }{
		{"prog:snapshot+0 prog:main/0", "snapshot visible main"},
		{"prog:recurse+0 prog:main/1", "recurse main"}, // at least one more
	} {
		if got := w.complete(strings.Fields(c.stack), Options{Whole: true}); got != c.want {
			t.Errorf("%s: %s, want %s", c.stack, got, c.want)
		}
	}
}
