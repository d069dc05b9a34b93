package btf

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A set has the pairs that were added since it was emptied, as a map has them.
func TestPairSet(t *testing.T) {
	for _, test := range []struct {
		name  string
		pairs int
		skip  uint32 // rounds after the first one
	}{
		{"none", 0, 0},
		{"one", 1, 0},
		{"many", 10 * leastPairSlots, 0},
		{"rounds start again", 10 * leastPairSlots, math.MaxUint32 - 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			set := pairSet{seed: 7}
			for i := range 5 {
				set.reset()
				want := make(map[pair]bool)
				for range test.pairs {
					x := pair{random.IntN(40), ID(random.IntN(40))}
					if set.has(x) != want[x] {
						t.Fatalf("has %v is %v with %d pairs", x, !want[x], len(want))
					}
					set.add(x)
					want[x] = true
				}
				for k := range 40 * 40 {
					if x := (pair{k / 40, ID(k % 40)}); set.has(x) != want[x] {
						t.Fatalf("has %v is %v", x, !want[x])
					}
				}
				if set.len != len(want) {
					t.Errorf("%d pairs, want %d", set.len, len(want))
				}
				if i == 0 {
					set.round += test.skip
				}
			}
		})
	}
}
