package export

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// brokenAfter accepts some bytes and fails then.
type brokenAfter int

var errBroken = errors.New("broken")

func (w *brokenAfter) Write(b []byte) (int, error) {
	if *w -= brokenAfter(len(b)); *w < 0 {
		return 0, errBroken
	}
	return len(b), nil
}

// TestPrint: lines keep their order however many pieces they make, and the first error of a writer
// is returned.
func TestPrint(t *testing.T) {
	round := runtime.GOMAXPROCS(0) * pieceSamples
	for _, n := range []int{1, 2, pieceSamples, pieceSamples + 1, round, round + 1, 5*round - 1} {
		p := profilebuild.Random(uint64(n), profilebuild.Size{Objects: 3, Functions: 20, Locations: 200,
			Stacks: n, Depth: 5})
		want := naive(p, FoldedOptions{})
		size := len(strings.Join(want, "\n")) + 1
		if got := folded(t, p, FoldedOptions{}); !slices.Equal(got, want) {
			t.Errorf("%d stacks: %d lines, want %d", n, len(got), len(want))
		}
		for _, most := range []int{0, size / 2, size - 1} {
			w := brokenAfter(most)
			if err := Folded(&w, p, FoldedOptions{}); !errors.Is(err, errBroken) {
				t.Errorf("%d stacks: a writer that fails after %d bytes: %v", n, most, err)
			}
		}
	}
}

// TestFoldedWithoutComms: if no sample has a comm, stacks begin with their frames.
func TestFoldedWithoutComms(t *testing.T) {
	n := 3 * pieceSamples
	p := profilebuild.Random(7, profilebuild.Size{Objects: 3, Functions: 20, Locations: 200, Stacks: n, Depth: 5})
	for i := range p.Samples {
		p.Samples[i].Comm = 0
	}
	slices.SortFunc(p.Samples, ingest.CompareSamples)
	want := naive(p, FoldedOptions{})
	for i := range want {
		want[i] = strings.TrimPrefix(want[i], NoComm+";")
	}
	got := folded(t, p, FoldedOptions{})
	if !slices.Equal(got, want) || strings.Contains(strings.Join(got, "\n"), NoComm+";") {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	if len(p.Strings) < 2 {
		t.Fatal("no comms")
	}
	p.Samples[0].Comm = 1 // CompareSamples: the first of its event
	slices.SortFunc(p.Samples, ingest.CompareSamples)
	if got := folded(t, p, FoldedOptions{}); !slices.Equal(got, naive(p, FoldedOptions{})) {
		t.Error("with a comm: other lines")
	}
}
