package diff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// gate compares sides with a bound of 5 % as diff does by default.
func gate(t *testing.T, base, sides []Input, normalize bool) *Diff {
	above := 0.05
	return compare(t, base, sides, Options{MinShare: 0.005, Alpha: 0.05, Normalize: normalize,
		FailAbove: &above})
}

// TestGateEqualRuns: of 200 pairs of equal runs at most 5 % fail, with one profile a side, with
// several on one, of few samples and of many, as shares and as measured.
func TestGateEqualRuns(t *testing.T) {
	pairs := sweep.Most(200, 40)
	for _, tt := range []struct {
		name         string
		base, sides  int
		samples, new int
		jitter       float64
		normalize    bool
	}{
		{name: "5,000 samples", base: 1, sides: 1, samples: 5_000, new: 5_000},
		{name: "shares of unequal runs", base: 1, sides: 1, samples: 2_000, new: 50_000,
			normalize: true},
		{name: "shares of a short run", base: 1, sides: 1, samples: 50_000, new: 1_000,
			normalize: true},
		{name: "50 samples", base: 1, sides: 1, samples: 50, new: 50},
		{name: "several of the base", base: 5, sides: 1, samples: 5_000, new: 5_000, jitter: 0.03,
			normalize: true},
		{name: "two of the base", base: 2, sides: 1, samples: 5_000, new: 5_000, jitter: 0.03,
			normalize: true},
		{name: "several new ones", base: 1, sides: 4, samples: 5_000, new: 5_000, jitter: 0.03},
	} {
		red := 0
		for seed := range uint64(pairs) {
			rng := rand.New(rand.NewPCG(seed, 3))
			var both [2][]*ingest.Profile
			for range tt.base {
				both[0] = append(both[0], service(rng, tt.samples, tt.jitter, sixty()))
			}
			for range tt.sides {
				both[1] = append(both[1], service(rng, tt.new, tt.jitter, sixty()))
			}
			d := gate(t, inputs(both[0]...), inputs(both[1]...), tt.normalize)
			if len(d.Failed) > 0 {
				red++
			}
		}
		t.Logf("%s: %d of %d pairs of equal runs fail", tt.name, red, pairs)
		if red > 10 { // of 200, which a sample is a part of
			t.Errorf("%s: %d of %d pairs of equal runs fail", tt.name, red, pairs)
		}
	}
}

// TestGateFinds: a function of 10 % of 50,000 samples that grew by 10 % is found in 95 % of the
// pairs, with one profile a side, and its interval contains the growth.
func TestGateFinds(t *testing.T) {
	shares := slices.Repeat([]float64{2.25}, 40)
	shares = append(shares, 10)
	pairs := sweep.Most(200, 40)
	found, within, others := 0, 0, 0
	for seed := range uint64(pairs) {
		rng := rand.New(rand.NewPCG(seed, 4))
		changed := slices.Clone(shares)
		changed[40] *= 1.1
		d := gate(t, inputs(service(rng, 50_000, 0, shares)),
			inputs(service(rng, 50_500, 0, changed)), false)
		for i := range d.Failed {
			if d.Failed[i].Name != "f40" {
				others++
				continue
			}
			found++
		}
		for i := range d.Rows {
			r := &d.Rows[i]
			if r.Name == "f40" && r.Interval[0] <= 0.1 && r.Interval[1] >= 0.1 {
				within++
			}
		}
	}
	text := fmt.Sprintf("found in %d, within the interval in %d, others fail in %d of %d pairs",
		found, within, others, pairs)
	t.Log(text)
	if found < pairs*95/100 || within < pairs*90/100 || others > pairs*5/100 {
		t.Error(text)
	}
}

// TestGateUnequalWeights: samples with weights that differ by orders of magnitude, as times of
// waiting do, scatter more than their number shows; equal runs do not fail.
func TestGateUnequalWeights(t *testing.T) {
	run := func(rng *rand.Rand) *ingest.Profile {
		b := profilebuild.New(profilebuild.Clock())
		o := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/app"}})
		for i := range 20 {
			p := profilebuild.Place{Object: o, Offset: addr.Offset(16 * i)}
			b.Name(p, 0, profilebuild.Frame{Name: fmt.Sprint("wait", i)})
			for pid := range 200 {
				b.Row(profilebuild.Row{PID: int32(pid), TID: -1, CPU: -1, Count: 1,
					Weight: uint64(math.Exp(10 + rng.NormFloat64())), Stack: []profilebuild.Place{p}})
			}
		}
		return b.Profile()
	}
	red, pairs := 0, sweep.Most(200, 40)
	for seed := range uint64(pairs) {
		rng := rand.New(rand.NewPCG(seed, 5))
		if d := gate(t, inputs(run(rng)), inputs(run(rng)), true); len(d.Failed) > 0 {
			red++
		}
	}
	t.Logf("%d of %d pairs of equal runs fail", red, pairs)
	if red > 10 { // of 200, which a sample is a part of
		t.Errorf("%d of %d pairs of equal runs fail", red, pairs)
	}
}

// TestBetaCDF: the approximation against sums of binomial probabilities.
func TestBetaCDF(t *testing.T) {
	for _, tt := range []struct {
		chance float64
		n, k   int
		want   float64 // of at least k of n
	}{
		{chance: 0.5, n: 10, k: 8, want: 0.0546875}, {chance: 0.5, n: 60, k: 40, want: 0.0067446},
		{chance: 0.02, n: 500, k: 18, want: 0.0133911}, {chance: 0.96, n: 300, k: 295, want: 0.0185816},
		{chance: 0.5, n: 1000, k: 560, want: 8.25249e-05},
		{chance: 0.02, n: 500, k: 25, want: 3.75e-05},
	} {
		got := betaCDF(tt.chance, float64(tt.k), float64(tt.n-tt.k+1))
		if got < 0.99*tt.want || got > 1.35*tt.want {
			t.Errorf("%d of %d at %v: %v, want %v", tt.k, tt.n, tt.chance, got, tt.want)
		}
	}
}

// sampled has samples of 1 ms in two functions.
func sampled(work, rest uint64) *ingest.Profile {
	b := profilebuild.New(profilebuild.Clock())
	o := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/app"}})
	for i, count := range []uint64{work, rest} {
		p := profilebuild.Place{Object: o}
		if i == 1 {
			p.Offset = 64
		}
		b.Name(p, 0, profilebuild.Frame{Name: []string{"work", "rest"}[i]})
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: count,
			Weight: count * 1_000_000, Stack: []profilebuild.Place{p}})
	}
	return b.Profile()
}

// TestFailedText: messages have the values that were measured, with both totals.
func TestFailedText(t *testing.T) {
	for _, tt := range []struct {
		name      string
		base, new *ingest.Profile
		normalize bool
		want      string
		noise     string
	}{
		{name: "as measured", base: sampled(521, 2000), new: sampled(1640, 2010),
			want: `^dir/0.pb.gz: work grew by 214\.78% \(95% interval 185\.\d+% to 247\.\d+%\), from ` +
				`521\.00ms of 2\.52s to 1\.64s of 3\.65s$`},
		{name: "shares", base: sampled(521, 2000), new: sampled(1640, 2010), normalize: true,
			want: `^dir/0.pb.gz: work: its share grew by 117\.\d+% \(95% interval [0-9.]+% to [0-9.]+%\), from ` +
				`521\.00ms \(20\.67% of 2\.52s\) to 1\.64s \(44\.93% of 3\.65s\)$`},
		{name: "faster build", base: sampled(1640, 2010), new: sampled(521, 2000)},
		{name: "noise", base: sampled(41, 2000), new: sampled(44, 2000),
			noise: "1 function grew by more than 5%, but not beyond the noise of counting samples"},
		{name: "new", base: sampled(0, 2000), new: sampled(100, 2000),
			want: `^dir/0.pb.gz: work is new, with 100\.00ms of 2\.10s$`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := gate(t, inputs(tt.base), inputs(tt.new), tt.normalize)
			var texts []string
			for i := range d.Failed {
				texts = append(texts, d.FailedText(&d.Failed[i]))
			}
			if tt.want == "" && len(texts) > 0 || tt.want != "" && (len(texts) != 1 ||
				!regexp.MustCompile(tt.want).MatchString(texts[0])) {
				t.Errorf("failed: %q, want %s", texts, tt.want)
			}
			if d.NoiseText() != tt.noise {
				t.Errorf("noise: %q", d.NoiseText())
			}
		})
	}
}

// TestTotalFailed: a total fails where it grew by more than the bound and beyond chance.
func TestTotalFailed(t *testing.T) {
	total := func(samples uint64) *ingest.Profile { return sampled(samples/2, samples-samples/2) }
	for _, tt := range []struct {
		name      string
		base, new []*ingest.Profile
		normalize bool
		want      string
	}{
		{name: "larger", base: []*ingest.Profile{total(2000)}, new: []*ingest.Profile{total(3000)},
			want: `^dir/0.pb.gz: the total grew by 50\.00% \(95% interval 4\d\.\d+% to 5\d\.\d+%\), from 2\.00s to 3\.00s$`},
		{name: "within the bound", base: []*ingest.Profile{total(20000)}, new: []*ingest.Profile{total(20900)}},
		{name: "within noise", base: []*ingest.Profile{total(100)}, new: []*ingest.Profile{total(110)}},
		{name: "smaller", base: []*ingest.Profile{total(3000)}, new: []*ingest.Profile{total(2000)}},
		{name: "shares", base: []*ingest.Profile{total(2000)}, new: []*ingest.Profile{total(3000)}, normalize: true},
		{name: "several", base: []*ingest.Profile{total(2000), total(2010), total(1990)},
			new:  []*ingest.Profile{total(3000), total(3010), total(2990)},
			want: `^dir/2.pb.gz and 2 others: the total grew by 50\.00% `},
		{name: "several that vary", base: []*ingest.Profile{total(2000), total(4000), total(1000)},
			new: []*ingest.Profile{total(3000), total(1500), total(4500)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := gate(t, inputs(tt.base...), inputs(tt.new...), tt.normalize)
			got := ""
			if d.TotalFailed != nil {
				got = d.TotalText()
			}
			if tt.want == "" && got != "" || !regexp.MustCompile(tt.want).MatchString(got) {
				t.Errorf("%q, want %s", got, tt.want)
			}
		})
	}
}
