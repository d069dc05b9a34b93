package diff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"symbolize/fixtures/sweep"
)

// nights makes simulated nights of functions: shares that fall as 1/rank, with the noise of so many
// samples a night, one that differs between nights, and factors by function and night.
type nights struct {
	functions, nights, samples int
	// jitter is the relative standard deviation between nights, alike how much of a night's
	// deviation the next one keeps.
	jitter, alike float64
	level         func(function, night int) float64
}

func (n nights) series(rng *rand.Rand) (list []*series) {
	weights := 0.0
	for f := range n.functions {
		weights += 1 / float64(f+5)
	}
	for f := range n.functions {
		usual := 1 / float64(f+5) / weights
		s := &series{}
		deviation := rng.NormFloat64()
		for i := range n.nights {
			deviation = n.alike*deviation + math.Sqrt(1-n.alike*n.alike)*rng.NormFloat64()
			mean := usual * (1 + n.jitter*deviation)
			if n.level != nil {
				mean *= n.level(f, i)
			}
			chance := mean / float64(n.samples)
			s.share = append(s.share, mean+math.Sqrt(chance)*rng.NormFloat64())
			s.chance = append(s.chance, usual/float64(n.samples))
		}
		list = append(list, s)
	}
	return list
}

// TestChangesFound: of 200 functions in 30 nights five change by 5 to 20 %, one of them for a week:
// all are found, within two nights, and no others.
func TestChangesFound(t *testing.T) {
	growth := map[int]struct {
		by       float64
		from, to int
	}{3: {by: 1.05, from: 15, to: 30}, 10: {by: 0.93, from: 8, to: 30}, 20: {by: 1.1, from: 22, to: 30},
		40: {by: 1.2, from: 10, to: 17}, 60: {by: 1.2, from: 27, to: 30}}
	runs := sweep.Most(100, 20)
	missed, far, others := 0, 0, 0
	for seed := range uint64(runs) {
		list := nights{functions: 200, nights: 30, samples: 2_000_000, jitter: 0.01,
			level: func(f, night int) float64 {
				if g, ok := growth[f]; ok && night >= g.from && night < g.to {
					return g.by
				}
				return 1
			}}.series(rand.New(rand.NewPCG(seed, 1)))
		findChanges(list, 0.05)
		for f, s := range list {
			g, changed := growth[f]
			found := false
			for _, c := range s.changes {
				switch {
				case changed && max(c.at-g.from, g.from-c.at) <= 2:
					found = true
				case changed && max(c.at-g.to, g.to-c.at) <= 2:
				case changed:
					far++
				default:
					others++
				}
			}
			if changed && !found {
				missed++
			}
		}
	}
	text := fmt.Sprintf("of %d changes %d are missed, %d at other nights, %d false alarms",
		runs*len(growth), missed, far, others)
	t.Log(text)
	if missed > 0 || far > 0 || others > runs/20+1 {
		t.Error(text)
	}
}

// TestNoChanges: of 100 functions that do not change, in many runs or few, with nights that are like
// the ones before, at most one in 100 has a change.
func TestNoChanges(t *testing.T) {
	for _, tt := range []struct {
		name string
		nights
	}{
		{name: "counting noise", nights: nights{nights: 30, samples: 100_000}},
		{name: "few samples", nights: nights{nights: 30, samples: 2_000}},
		{name: "few nights", nights: nights{nights: 5, samples: 100_000, jitter: 0.02}},
		{name: "a quarter", nights: nights{nights: 91, samples: 100_000, jitter: 0.02}},
		{name: "alike", nights: nights{nights: 30, samples: 1_000_000, jitter: 0.03, alike: 0.5}},
		{name: "weekly", nights: nights{nights: 28, samples: 1_000_000, jitter: 0.01,
			level: func(f, night int) float64 {
				if night%7 >= 5 {
					return 0.9 + 0.2*float64(f%2)
				}
				return 1
			}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs, alarms, red := sweep.Most(100, 20), 0, 0
			tt.functions = 100
			for seed := range uint64(runs) {
				list := tt.series(rand.New(rand.NewPCG(seed, 2)))
				findChanges(list, 0.05)
				before := alarms
				for _, s := range list {
					alarms += len(s.changes)
				}
				if alarms > before {
					red++
				}
			}
			text := fmt.Sprintf("%d changes in %d series, in %d of %d runs", alarms, 100*runs, red, runs)
			t.Log(text)
			if alarms > runs {
				t.Error(text)
			}
		})
	}
}
