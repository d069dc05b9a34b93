package pgo

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
)

// branchProfile has a branch in /bin/a, two in /lib/b.so, and one from one to the other.
func branchProfile() *ingest.Profile {
	id := buildid.Make(buildid.GNU, []byte{0xab, 0xcd})
	p := &ingest.Profile{Strings: []string{"", ingest.JoinTags(ingest.BranchTag, ingest.BranchTaken),
		ingest.JoinTags(ingest.BranchTag, ingest.BranchRun), ingest.JoinTags(ingest.BranchTag, ingest.BranchSampled)},
		Objects: []ingest.Object{{Kind: ingest.ELF, File: ingest.FileRef{Path: "/bin/a"}},
			{Kind: ingest.ELF, ID: id, File: ingest.FileRef{Path: "/lib/b.so"}}},
		Locations: []ingest.Location{{Object: 0, Offset: 0x10}, {Object: 0, Offset: 0x20},
			{Object: 1, Offset: 0x30}, {Object: 1, Offset: 0x40}},
		Callers: make([]ingest.StackID, 1), Leaves: make([]ingest.LocationID, 1)}
	add := func(tags ingest.StringID, count uint64, locs ...ingest.LocationID) {
		s := ingest.StackID(0)
		for _, l := range slices.Backward(locs) {
			p.Callers, p.Leaves = append(p.Callers, s), append(p.Leaves, l)
			s = ingest.StackID(len(p.Callers) - 1)
		}
		p.Samples = append(p.Samples, ingest.Sample{Stack: s, Tags: tags,
			Count: count, Weight: count})
	}
	add(1, 3, 0, 1)
	add(1, 7, 2, 3)
	add(1, 2, 0, 3)
	add(2, 5, 2, 3)
	add(2, 4, 0, 3)
	add(3, 1, 3)
	add(3, 9, 0)
	return p
}

func TestAutoFDO(t *testing.T) {
	const b = "1\n30-40:5\n1\n40:1\n1\n40->30:7\n"
	for _, tt := range []struct {
		object, want string
		branches     uint64
		err          error
	}{
		{want: b, branches: 7},
		{object: "b.so", want: b, branches: 7},
		{object: "/lib/b.so", want: b, branches: 7},
		{object: "ABCD", want: b, branches: 7},
		{object: "a", want: "0\n1\n10:9\n1\n20->10:3\n", branches: 3},
		{object: "c", err: ErrNoCounts},
	} {
		p := New(branchProfile(), store.NewOverlay(), 0)
		object, err := p.Find(tt.object)
		var out strings.Builder
		var stats Stats
		if err == nil {
			stats, err = p.autoFDO(&out, object)
		}
		if !errors.Is(err, tt.err) || out.String() != tt.want || stats.Traces != tt.branches {
			t.Errorf("%q: %q, %+v, %v", tt.object, out.String(), stats, err)
		}
	}
}
