package diff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// trendNight makes the profile of a night: samples by stack: functions separated by ";", the
// outermost first, each with the noise of counting.
func trendNight(rng *rand.Rand, stacks map[string]float64) *ingest.Profile {
	b := profilebuild.New(profilebuild.Clock())
	object := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/app"}})
	places := make(map[string]profilebuild.Place)
	keys := make([]string, 0, len(stacks))
	for s := range stacks {
		keys = append(keys, s)
	}
	slices.Sort(keys)
	for _, s := range keys {
		var stack []profilebuild.Place
		for name := range strings.SplitSeq(s, ";") {
			p, ok := places[name]
			if !ok {
				p = profilebuild.Place{Object: object, Offset: addr.Offset(16 * len(places))}
				places[name] = p
				b.Name(p, 0, profilebuild.Frame{Name: name})
			}
			stack = append([]profilebuild.Place{p}, stack...)
		}
		if n := draw(rng, stacks[s]); n > 0 {
			b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: n, Weight: n * 1000, Stack: stack})
		}
	}
	return b.Profile()
}

func draw(rng *rand.Rand, mean float64) uint64 {
	return uint64(max(0, mean+rng.NormFloat64()*0.5*mean/100+0.5))
}

// TestMoved: a cost that moved to a caller, a callee or a function with the same caller is no
// growth; one of another caller is, and so is the part that exceeds the decline elsewhere.
func TestMoved(t *testing.T) {
	const before, after = 0, 1
	for _, tt := range []struct {
		name   string
		stacks [2]map[string]float64 // of the functions that change
		cum    bool
		failed []string
		moved  map[string]string
	}{
		{name: "renamed", stacks: [2]map[string]float64{{"main;run;old": 9000}, {"main;run;new": 9000}},
			moved: map[string]string{"old": "new", "new": "old"}},
		{name: "renamed, cumulative", cum: true,
			stacks: [2]map[string]float64{{"main;run;old": 9000}, {"main;run;new": 9000}},
			moved:  map[string]string{"old": "new", "new": "old"}},
		{name: "inlined", stacks: [2]map[string]float64{{"main;run": 9000, "main;run;leaf": 9000},
			{"main;run": 18000}}, moved: map[string]string{"run": "leaf", "leaf": "run"}},
		{name: "split", stacks: [2]map[string]float64{{"main;run;big": 18000},
			{"main;run;big": 9000, "main;run;big;part": 9000}},
			moved: map[string]string{"big": "part", "part": "big"}},
		{name: "another caller", stacks: [2]map[string]float64{{"main;run;old": 9000},
			{"main;other;new": 9000}}, failed: []string{"new"}},
		{name: "grew as well", stacks: [2]map[string]float64{{"main;run;old": 9000},
			{"main;run;new": 18000}}, failed: []string{"new"},
			moved: map[string]string{"old": "new", "new": "old"}},
		{name: "grew alone", stacks: [2]map[string]float64{{"main;run;old": 9000},
			{"main;run;old": 12000}}, failed: []string{"old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 5))
			above := 0.05
			b := NewTrend(TrendOptions{Every: 24 * time.Hour, MinShare: 0.005, Alpha: 0.05,
				Cum: tt.cum, FailAbove: &above})
			profiles := make(map[time.Time]Input)
			for night := range 10 {
				stacks := map[string]float64{"main;run": 1000, "main;other": 1000}
				for i := range 40 {
					stacks[fmt.Sprintf("main;step%d", i)] = 20000
				}
				side := before
				if night >= 8 { // the tenth night proves it
					side = after
				}
				for s, n := range tt.stacks[side] {
					stacks[s] += n
				}
				began := time.Date(2026, time.March, 1+night, 5, 0, 0, 0, time.UTC)
				in := Input{Name: fmt.Sprint(night), Profile: trendNight(rng, stacks)}
				profiles[b.PeriodOf(began)] = in
				if err := b.Add(in, began); err != nil {
					t.Fatal(err)
				}
			}
			trend := b.Trend()
			if err := b.Relate(trend, func(p *Period) ([]Input, error) {
				return []Input{profiles[p.Start]}, nil
			}); err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, c := range trend.Failed {
				failed = append(failed, c.Name)
			}
			if slices.Sort(failed); !slices.Equal(failed, tt.failed) {
				t.Errorf("failed: %q, want %q", failed, tt.failed)
			}
			moved := make(map[string]string)
			for _, c := range trend.Changes() {
				if len(c.Moved) > 0 {
					moved[c.Name] = strings.Join(c.Moved, " ")
				}
			}
			if fmt.Sprint(moved) != fmt.Sprint(tt.moved) {
				t.Errorf("moved: %v, want %v", moved, tt.moved)
			}
		})
	}
}

// TestTrendEmpty: a profile without samples makes no period, and no change.
func TestTrendEmpty(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 5))
	b := NewTrend(TrendOptions{Every: 24 * time.Hour, Alpha: 0.05})
	for night := range 8 {
		stacks := map[string]float64{"main;work": 50000}
		if night%2 == 1 {
			stacks = nil
		}
		in := Input{Name: fmt.Sprint(night), Profile: trendNight(rng, stacks)}
		if err := b.Add(in, time.Date(2026, time.March, 1+night, 0, 0, 0, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
		if trend := b.Trend(); len(trend.Periods) != night/2+1 || len(trend.Changes()) > 0 {
			t.Errorf("night %d: %d periods, %d changes", night, len(trend.Periods), len(trend.Changes()))
		}
	}
	if trend := NewTrend(TrendOptions{Every: time.Hour}).Trend(); len(trend.Periods) > 0 {
		t.Error("a period without profiles")
	}
}
