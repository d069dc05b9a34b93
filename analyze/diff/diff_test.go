package diff

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/pprofrun"
	"symbolize/fixtures/profilebuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

func inputs(profiles ...*ingest.Profile) (list []Input) {
	for i, p := range profiles {
		list = append(list, Input{Name: fmt.Sprintf("dir/%d.pb.gz", i), Profile: p})
	}
	return list
}

func compare(t testing.TB, base, sides []Input, opts Options) *Diff {
	t.Helper()
	d, err := New(base, sides, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAgainstPprof: differences of flat and cumulative values, by function and line, equal `pprof
// -diff_base`; scaled ones up to its rounding.
func TestAgainstPprof(t *testing.T) {
	for seed := range uint64(3) {
		base, p := profilebuild.Calls(seed+10, false), profilebuild.Calls(seed, false)
		for i := range p.Samples { // so that pprof's rounding of each sample is small
			p.Samples[i].Weight *= 1000
		}
		for i := range base.Samples {
			base.Samples[i].Weight *= 500
		}
		files := []*profile.Profile{pprofrun.Profile(t, p, nil), pprofrun.Profile(t, base, nil)}
		for _, tt := range []struct {
			name      string
			by        calltree.By
			normalize bool
			args      []string
		}{
			{name: "function", by: calltree.Function, args: []string{"-functions"}},
			{name: "line", by: calltree.Line, args: []string{"-lines"}},
			{name: "scaled", by: calltree.Function, normalize: true, args: []string{"-functions", "-normalize"}},
		} {
			t.Run(fmt.Sprint(seed, " ", tt.name), func(t *testing.T) {
				d := compare(t, inputs(base), inputs(p), Options{Normalize: tt.normalize,
					Options: calltree.Options{By: []calltree.By{tt.by}}})
				var got []pprofrun.Row
				for _, r := range d.Rows {
					got = append(got, pprofrun.Row{Name: r.Name,
						Flat: int64(math.Round(r.Flat.Delta)), Cum: int64(math.Round(r.Cum.Delta))})
				}
				want := pprofrun.Top(t, files, append(tt.args, "-sample_index=cpu",
					"-diff_base=1.pb")...)
				samples := 0.0
				if tt.normalize { // pprof rounds each sample
					samples = float64(len(base.Samples))
				}
				compareDeltas(t, got, want, samples)
			})
		}
	}
}

// compareDeltas compares rows that are not zero.
func compareDeltas(t *testing.T, got, want []pprofrun.Row, tolerance float64) {
	t.Helper()
	values := make(map[string][4]float64)
	for i, rows := range [][]pprofrun.Row{got, want} {
		for _, r := range rows {
			v := values[r.Name]
			v[2*i] += float64(r.Flat)
			v[2*i+1] += float64(r.Cum)
			values[r.Name] = v
		}
	}
	if len(want) < 10 {
		t.Fatalf("pprof has only %d rows", len(want))
	}
	for name, v := range values {
		if math.Abs(v[0]-v[2]) > tolerance || math.Abs(v[1]-v[3]) > tolerance {
			t.Errorf("%s: %v %v, pprof has %v %v", name, v[0], v[1], v[2], v[3])
		}
	}
}

// service is a profile of a program with functions of these shares, in percent: samples are drawn
// at random, and runs differ by jitter, a standard deviation as a share.
func service(rng *rand.Rand, samples int, jitter float64, shares []float64) *ingest.Profile {
	b := profilebuild.New(profilebuild.Clock())
	b.Meta.MainProgram = "/opt/app/bin/app"
	app := b.Object(ingest.Object{File: ingest.FileRef{Path: b.Meta.MainProgram},
		ID: buildid.New(bytes.Repeat([]byte{byte(1 + rng.IntN(200))}, 20))})
	lib := b.Object(ingest.Object{File: ingest.FileRef{Path: "/lib/libc.so.6"}})
	main := profilebuild.Place{Object: app, Offset: 1}
	b.Name(main, 0, profilebuild.Frame{Name: "main"})
	total, weights := 0.0, make([]float64, len(shares))
	for i, s := range shares {
		weights[i] = s * math.Exp(jitter*rng.NormFloat64())
		total += weights[i]
	}
	counts := make([]uint64, len(shares))
	for range samples {
		at := rng.Float64() * total
		i := 0
		for ; i < len(weights)-1 && at >= weights[i]; i++ {
			at -= weights[i]
		}
		counts[i]++
	}
	for i, n := range counts {
		pl := profilebuild.Place{Object: []profilebuild.Object{app, lib}[i%2],
			Offset: addr.Offset(100 + i)}
		b.Name(pl, 0, profilebuild.Frame{Name: fmt.Sprintf("f%d", i)})
		if n > 0 {
			b.Row(profilebuild.Row{Comm: "app", PID: -1, TID: -1, CPU: -1, Count: n,
				Weight: n * 10_000_000, Stack: []profilebuild.Place{pl, main}})
		}
	}
	return b.Profile()
}

// shares of sixty functions that fall off as in a real service.
func sixty() []float64 {
	shares := make([]float64, 60)
	for i := range shares {
		shares[i] = 20 / float64(1+i)
	}
	return shares
}

func repeated(rng *rand.Rand, n int, shares []float64) []Input {
	var list []*ingest.Profile
	for range n {
		list = append(list, service(rng, 50_000, 0.01, shares))
	}
	return inputs(list...)
}

func significant(d *Diff) (names []string) {
	for _, r := range d.Rows {
		if r.Significant {
			names = append(names, r.Name)
		}
	}
	return names
}

// TestFindsChange: a function that grew by 5 % is found with 5 against 5 profiles; of 11 % of
// the samples, where chance alone makes a quarter of that, in most pairs.
func TestFindsChange(t *testing.T) {
	for _, tt := range []struct {
		name     string
		function int
		least    int // of 20 pairs
	}{{name: "21 % of the samples", function: 0, least: 18}, {name: "11 % of the samples",
		function: 1, least: 14}} {
		found := 0
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 1))
			changed := sixty()
			changed[tt.function] *= 1.05
			fail := 0.02
			d := compare(t, repeated(rng, 5, sixty()), repeated(rng, 5, changed),
				Options{MinShare: 0.005, Alpha: 0.05, Normalize: true, FailAbove: &fail})
			name := fmt.Sprint("f", tt.function)
			if slices.Contains(significant(d), name) {
				found++
			}
			for _, r := range d.Failed {
				if r.Name != name {
					t.Errorf("seed %d: %s fails", seed, d.FailedText(&r))
				}
			}
		}
		t.Logf("%s: found in %d of 20", tt.name, found)
		if found < tt.least {
			t.Errorf("%s: found only in %d of 20 pairs", tt.name, found)
		}
	}
}

// TestNoFalseAlarms: of 100 pairs without a change at most 5 have any significant function;
// also where functions have a handful of samples, and nothing is left out for its size.
func TestNoFalseAlarms(t *testing.T) {
	pairs := sweep.Most(100, 20)
	for _, tt := range []struct {
		name    string
		samples int
		jitter  float64
		share   float64
		uneven  bool // some functions vary much more than others
	}{{name: "usual", samples: 50_000, jitter: 0.01, share: 0.005}, {name: "few samples",
		samples: 500, jitter: 0, share: 0},
		{name: "noisy", samples: 5_000, jitter: 0.1, share: 0}, {name: "uneven", samples: 20_000,
			jitter: 0.02, share: 0.001, uneven: true}} {
		alarms := 0
		for seed := range uint64(pairs) {
			rng := rand.New(rand.NewPCG(seed, 2))
			var both []*ingest.Profile
			for range 10 {
				shares := sixty()
				for i := range shares {
					if tt.uneven && i%5 == 0 {
						shares[i] *= math.Exp(0.2 * rng.NormFloat64())
					}
				}
				both = append(both, service(rng, tt.samples, tt.jitter, shares))
			}
			d := compare(t, inputs(both[:5]...), inputs(both[5:]...),
				Options{MinShare: tt.share, Alpha: 0.05, Normalize: true})
			if len(significant(d)) > 0 {
				alarms++
			}
		}
		t.Logf("%s: %d alarms in %d pairs", tt.name, alarms, pairs)
		if alarms > 5 { // of 100, which a sample is a part of
			t.Errorf("%s: %d alarms in %d pairs without a change", tt.name, alarms, pairs)
		}
	}
}

// TestGammas: values from tables, and the inverse.
func TestGammas(t *testing.T) {
	for _, tt := range []struct {
		name      string
		got, want float64
	}{
		{name: "digamma(1)", got: digamma(1), want: -0.5772156649}, {name: "digamma(4)",
			got: digamma(4), want: 1.2561176684},
		{name: "trigamma(1)", got: trigamma(1), want: math.Pi * math.Pi / 6},
		{name: "trigamma(0.5)", got: trigamma(0.5), want: math.Pi * math.Pi / 2},
		{name: "inverse", got: trigammaInverse(trigamma(3.7)), want: 3.7},
		{name: "inverse", got: trigammaInverse(trigamma(0.02)), want: 0.02},
	} {
		if math.Abs(tt.got-tt.want) > 1e-8 {
			t.Errorf("%s is %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestHolm(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.005, 1})
	want := []float64{0.04, 0.09, 0.09, 0.025, 1}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("%v, want %v", got, want)
			break
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values         []float64
		median, spread float64
	}{{median: 0, spread: 0}, {values: []float64{3}, median: 3, spread: 0}, {values: []float64{4, 1, 2},
		median: 2, spread: 0.75},
		{values: []float64{4, 1, 2, 3}, median: 2.5, spread: 0.6}, {values: []float64{0, 0},
			median: 0, spread: 0}} {
		if m, s := median(tt.values), spread(tt.values); m != tt.median || s != tt.spread {
			t.Errorf("%v: %v ±%v, want %v ±%v", tt.values, m, s, tt.median, tt.spread)
		}
	}
}

// build is one build of a program, with names and paths that differ from build to build.
func build(n int) *ingest.Profile {
	b := profilebuild.New(profilebuild.Clock())
	b.Meta = ingest.Meta{MainProgram: fmt.Sprintf("/opt/v%d/app-%d", n, n), Host: "web1",
		StartNanos: 1_700_000_000_000_000_000 + int64(n)*1e9, Duration: 1e9}
	app := b.Object(ingest.Object{File: ingest.FileRef{Path: b.Meta.MainProgram},
		ID: buildid.New(bytes.Repeat([]byte{byte(n)}, 20))})
	lib := b.Object(ingest.Object{File: ingest.FileRef{Path: fmt.Sprintf("/lib/libx.so.%d", n)}})
	tag := fmt.Sprintf("%016x", n)
	bpf := b.Object(ingest.Object{Kind: ingest.JIT,
		File: ingest.FileRef{Path: "bpf_prog_" + tag + "_count"}})
	at := func(o profilebuild.Object, off int, frames ...profilebuild.Frame) profilebuild.Place {
		pl := profilebuild.Place{Object: o, Offset: addr.Offset(off)}
		if len(frames) > 0 {
			b.Name(pl, 0, frames...)
		} else {
			b.Unresolved(pl, ingest.Stripped)
		}
		return pl
	}
	row := func(weight int, stack ...profilebuild.Place) {
		b.Row(profilebuild.Row{Comm: "app", PID: -1, TID: -1, CPU: -1, Count: 1,
			Weight: uint64(weight) * 1_000_000, Stack: stack})
	}
	file := fmt.Sprintf("/build/app-%d/src/main.c", n)
	main := at(app, 0x10*n, profilebuild.Frame{Name: "main", File: file, StartLine: int32(10 * n),
		Line: int32(10*n + 3)})
	row(100+n, at(app, 0x100*n, profilebuild.Frame{
		Name: fmt.Sprintf("_ZN4core3ptr13drop_in_place17h%016xE",
			uint64(n)*0x123456789abcdef)}), main)
	row(50*n, at(lib, 0x10*n, profilebuild.Frame{Name: "x_read"}), main)
	row(30, at(lib, 0x1000*n), main)
	row(20, at(bpf, 4, profilebuild.Frame{Name: "bpf_prog_" + tag + "_count"}), main)
	row(10, at(app, 0x777, profilebuild.Frame{Name: fmt.Sprintf("only_in_%d", n)}), main)
	return b.Profile()
}

func text(write func(io.Writer, table.Style) error, style table.Style) func(io.Writer) error {
	return func(w io.Writer) error { return write(w, style) }
}

// TestGolden: two builds compare by function and line; nodes of one build alone are marked.
func TestGolden(t *testing.T) {
	fail := 0.05
	plain := compare(t, inputs(build(1)), inputs(build(2)),
		Options{Normalize: true, FailAbove: &fail, Alpha: 0.05})
	lines := compare(t, inputs(build(1)), inputs(build(2)), Options{Cum: true,
		Limit: 3, MinShare: 0.1, Options: calltree.Options{By: []calltree.By{calltree.Line}}})
	rng := rand.New(rand.NewPCG(1, 1))
	changed := sixty()
	changed[2] *= 1.2
	tested := compare(t, repeated(rng, 5, sixty()), repeated(rng, 4, changed),
		Options{MinShare: 0.005, Alpha: 0.01, Limit: 6, Normalize: true, FailAbove: &fail})
	for name, write := range map[string]func(io.Writer) error{
		"plain.txt": text(plain.WriteText, table.Style{}), "plain.json": plain.WriteJSON,
		"narrow.txt": text(plain.WriteText, table.Style{Width: 60}),
		"color.txt":  text(plain.WriteText, table.Style{Color: true, Width: 90}),
		"lines.txt":  text(lines.WriteText, table.Style{}), "lines.json": lines.WriteJSON,
		"tested.txt": text(tested.WriteText, table.Style{}), "tested.json": tested.WriteJSON,
	} {
		t.Run(name, func(t *testing.T) { golden.Output(t, name, write) })
	}
}

// TestFolded: the sums of the columns are the totals, and a stack of both builds is one line.
func TestFolded(t *testing.T) {
	f, err := Fold(inputs(build(1)), inputs(build(2)), calltree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	golden.Output(t, "both.folded", func(w io.Writer) error { return f.WriteFolded(w, false) })
	for _, normalize := range []bool{false, true} {
		var b bytes.Buffer
		if err := f.WriteFolded(&b, normalize); err != nil {
			t.Fatal(err)
		}
		var base, sum int64
		for line := range strings.Lines(b.String()) {
			at := strings.LastIndex(line[:strings.LastIndex(line, " ")], " ")
			var x, y int64
			if _, err := fmt.Sscan(line[at:], &x, &y); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			base, sum = base+x, sum+y
		}
		want := int64(f.New[0].Total)
		if normalize {
			want = int64(f.Base[0].Total)
		}
		if base != int64(f.Base[0].Total) || sum < want-10 || sum > want+10 {
			t.Errorf("normalize %v: sums %d and %d, want %d", normalize, base, sum, want)
		}
	}
}

// TestMatching: the keys of nodes across builds.
func TestMatching(t *testing.T) {
	for base, want := range map[string]string{"libc.so.6": "libc", "libc-2.31.so": "libc",
		"libstdc++.so.6.0.30": "libstdc++", "python3.11": "python", "app-v1.2.3": "app",
		"[jit] node": "[jit] node", "7": "7", "[kernel.kallsyms]": "[kernel.kallsyms]",
		"x86_64": "x86"} {
		if got := stem(base); got != want {
			t.Errorf("%s: %s, want %s", base, got, want)
		}
	}
	b := profilebuild.New(profilebuild.Clock())
	for i, path := range []string{"/lib/foo1", "/lib/foo2"} {
		o := b.Object(ingest.Object{File: ingest.FileRef{Path: path}})
		pl := profilebuild.Place{Object: o, Offset: 1}
		b.Name(pl, 0, profilebuild.Frame{Name: "run"})
		b.Row(profilebuild.Row{Count: 1, Weight: uint64(1 + i), Stack: []profilebuild.Place{pl}})
	}
	p := b.Profile()
	if d := compare(t, inputs(p), inputs(p), Options{}); len(d.Rows) != 2 || d.Normalized {
		t.Errorf("two objects of one profile are %d rows", len(d.Rows))
	}
}

// TestMainPrograms: a program that was renamed is one; the busiest of a host's programs is none
// that has changed its name.
func TestMainPrograms(t *testing.T) {
	host := func(main string, programs ...string) *ingest.Profile {
		b := profilebuild.New(profilebuild.Clock())
		b.Meta.MainProgram = main
		for i, path := range programs {
			o := b.Object(ingest.Object{File: ingest.FileRef{Path: path}})
			pl := profilebuild.Place{Object: o, Offset: 1}
			b.Name(pl, 0, profilebuild.Frame{Name: "work"})
			b.Row(profilebuild.Row{Count: 1, Weight: uint64(10 + i),
				Stack: []profilebuild.Place{pl}})
		}
		return b.Profile()
	}
	for _, tt := range []struct {
		name      string
		base, new *ingest.Profile
		rows      int
		status    string
	}{
		{name: "renamed", base: host("/bin/server", "/bin/server"),
			new: host("/bin/daemon", "/bin/daemon"), rows: 1},
		{name: "busiest", base: host("/bin/java", "/bin/java", "/bin/node"),
			new: host("/bin/node", "/bin/java", "/bin/node"), rows: 2},
		{name: "gone", base: host("/bin/java", "/bin/java", "/bin/node"),
			new: host("/bin/node", "/bin/node"), rows: 2,
			status: StatusGone},
	} {
		d := compare(t, inputs(tt.base), inputs(tt.new), Options{})
		status := ""
		for _, r := range d.Rows {
			status += r.Status
		}
		if len(d.Rows) != tt.rows || status != tt.status {
			t.Errorf("%s: %d rows, %q", tt.name, len(d.Rows), status)
		}
	}
}

// TestErrors: a profile without samples, or without the event.
func TestErrors(t *testing.T) {
	p, none := build(1), &ingest.Profile{}
	other := profilebuild.New(ingest.Event{Name: "cycles", Unit: "count"}).Profile()
	for _, tt := range []struct{ base, side *ingest.Profile }{{base: p, side: none}, {base: none,
		side: p}, {base: other, side: p}} {
		if d, err := New(inputs(tt.base), inputs(tt.side), Options{}); err == nil {
			t.Errorf("no error: %+v", d)
		}
	}
	// An event with all samples on one side.
	empty := profilebuild.New(profilebuild.Clock()).Profile()
	d := compare(t, inputs(empty), inputs(p), Options{
		Options: calltree.Options{Demangler: demangle.New(demangle.Full)}})
	if len(d.Rows) != 6 || d.Normalized {
		t.Errorf("%d rows beside an empty base, scaled %v", len(d.Rows), d.Normalized)
	}
	for _, r := range d.Rows {
		if r.Status != StatusNew {
			t.Errorf("%s is %q", r.Name, r.Status)
		}
	}
}
