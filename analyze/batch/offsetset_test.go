package batch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"symbolize/ingest/addr"
)

// TestOffsetSet: the union of lists of any sizes, with few and with many elements in common. An
// object with two records in a capture has a list that is not ascending.
func TestOffsetSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	for _, most := range []uint64{10, 1000, 1 << 40} {
		var s offsetSet
		var want []addr.Offset
		for range 200 {
			list := make([]addr.Offset, rng.IntN(100))
			for i := range list {
				list[i] = addr.Offset(rng.Uint64N(most))
			}
			if rng.IntN(10) > 0 {
				slices.Sort(list)
			}
			s.add(list)
			want = sortedUnion(want, list)
		}
		if got := s.all(); !slices.Equal(got, want) {
			t.Errorf("below %d: %d offsets, want %d", most, len(got), len(want))
		}
	}
}
