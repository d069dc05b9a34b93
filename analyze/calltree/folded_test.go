package calltree_test

import (
	"bytes"
	"fmt"
	"testing"
	"unicode/utf8"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/analyze/export"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

func folded(t *testing.T, p *ingest.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	stacks := calltree.Fold(p, &calltree.Options{By: []calltree.By{calltree.Comm, calltree.Function},
		Demangler: demangle.New(demangle.None)})
	if err := stacks.WriteFolded(&b, calltree.FoldedOptions{Comm: true}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestFoldedIsThatOfResolve compares with the folded stacks of package export: also of more comms than a
// page has columns.
func TestFoldedIsThatOfResolve(t *testing.T) {
	comms := profilebuild.Shop()
	for i := range comms.Samples {
		comms.Strings = append(comms.Strings, fmt.Sprintf("worker %d", i%300))
		comms.Samples[i].Comm = ingest.StringID(len(comms.Strings) - 1)
	}
	for _, p := range []*ingest.Profile{profilebuild.EveryKind(), profilebuild.Shop(), comms,
		profilebuild.Random(2, profilebuild.Size{Objects: 5, Functions: 60, Locations: 300,
			Stacks: 400, Depth: 9})} {
		var want bytes.Buffer
		err := export.Folded(&want, p, export.FoldedOptions{Demangler: demangle.New(demangle.None)})
		if err != nil {
			t.Fatal(err)
		}
		if got := folded(t, p); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("got\n%.2000s\nwant\n%.2000s", got, want.Bytes())
		}
	}
}

func TestFoldedGolden(t *testing.T) {
	golden.Compare(t, "everykind.folded", folded(t, profilebuild.EveryKind()))
	if out := folded(t, profilebuild.Hostile()); !utf8.Valid(out) || bytes.ContainsAny(out, "\x1b\x00") {
		t.Errorf("control characters: %q", out)
	}
}
