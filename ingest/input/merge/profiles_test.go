package merge_test

import (
	"fmt"
	"maps"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/merge"
)

// TestNamesWithoutAddresses merges files that number their locations in place of addresses: equal
// numbers are not equal places, unless they have a build ID.
func TestNamesWithoutAddresses(t *testing.T) {
	file := func(o ingest.Object, names ...string) *ingest.Profile {
		b := profilebuild.New(profilebuild.Clock())
		object := b.Object(o)
		for i, name := range names {
			place := profilebuild.Place{Object: object, Offset: addr.Offset(i)}
			if name != "" {
				b.Name(place, 0, profilebuild.Frame{Name: name})
			}
			b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
				Stack: []profilebuild.Place{place}})
		}
		return b.Profile()
	}
	withID := ingest.Object{ID: buildid.Make(buildid.GNU, []byte{1, 2, 3, 4}),
		File: ingest.FileRef{Path: "/bin/a"}}
	for _, tc := range []struct {
		name   string
		object ingest.Object
		want   map[string]uint64
	}{
		{name: "no file", want: map[string]uint64{"alpha": 3, "beta": 1, "gamma": 1, "delta": 1, "?": 1}},
		{name: "no mapping", object: ingest.Object{Kind: ingest.Unmapped,
			File: ingest.FileRef{Path: ingest.UnmappedPath}},
			want: map[string]uint64{"alpha": 3, "beta": 2, "gamma": 1, "delta": 1}},
		{name: "a file", object: ingest.Object{File: ingest.FileRef{Path: "/bin/a"}},
			want: map[string]uint64{"alpha": 3, "beta": 2, "gamma": 1, "delta": 1}},
		{name: "a build ID", object: withID,
			want: map[string]uint64{"alpha": 3, "beta": 2, "gamma": 2}}, // the names of the first
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := []*ingest.Profile{file(tc.object, "alpha", "beta", "gamma"),
				file(tc.object, "delta", "", "alpha"), file(tc.object, "alpha")}
			p, err := merge.Profiles(in)
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[string]uint64)
			for i := range p.Samples {
				s := &p.Samples[i]
				name := "?"
				if f := p.Names.At(p.Leaves[s.Stack]); len(f) > 0 {
					name = p.Names.Functions[f[0].Func].SystemName
				}
				got[name] += s.Count
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			again, err := merge.Profiles([]*ingest.Profile{p})
			if err != nil || fmt.Sprint(rows(again)) != fmt.Sprint(rows(p)) {
				t.Errorf("a merge of the merged profile differs: %v", err)
			}
		})
	}
}
