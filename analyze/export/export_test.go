package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/demangle"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

func TestGolden(t *testing.T) {
	p := profilebuild.EveryKind()
	for name, write := range map[string]func(io.Writer) error{
		"default.folded": func(w io.Writer) error { return Folded(w, p, FoldedOptions{}) },
		"options.folded": func(w io.Writer) error {
			return Folded(w, p, FoldedOptions{Count: true, Annotate: true, Addresses: true,
				PID:       true,
				Demangler: demangle.New(demangle.None)})
		},
		"faults.folded": func(w io.Writer) error { return Folded(w, p, FoldedOptions{Event: 1}) },
		"profile.json":  func(w io.Writer) error { return JSON(w, p, nil) },
	} {
		t.Run(name, func(t *testing.T) { golden.Text(t, name, write) })
	}
}

func folded(t testing.TB, p *ingest.Profile, opts FoldedOptions) []string {
	t.Helper()
	var out bytes.Buffer
	if err := Folded(&out, p, opts); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// numberAtEnd is flamegraph.pl's pattern of a value, /^(.*)\s+?(\d+(?:\.\d*)?)$/, which it applies
// twice to each line: where a second value comes before the last one, the line is differential.
// inferno's rule is the same, and it drops spaces at the end before the second look.
var numberAtEnd = regexp.MustCompile(`\s(\d+(?:\.\d*)?)$`)

// TestFoldedHasOneValue: viewers find a single value in each line, and the whole name before it.
func TestFoldedHasOneValue(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{name: "Stub 12", want: "Stub_12"},
		{name: "Stub 12 ", want: "Stub_12"},
		{name: "Stub 1 2", want: "Stub 1_2"},
		{name: "Stub 12.", want: "Stub_12."},
		{name: "Stub 12.5", want: "Stub_12.5"},
		{name: "Stub 1.2.3", want: "Stub 1.2.3"},
		{name: "Stub .5", want: "Stub .5"},
		{name: "Stub ;12", want: "Stub :12"},
		{name: "Stub 12x", want: "Stub 12x"},
		{name: " 12", want: "_12"},
		{name: "12", want: "12"},
		{name: "operator new [] (unsigned long)", want: "operator new [] (unsigned long)"},
	} {
		b := profilebuild.New(profilebuild.Clock())
		o := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/a"}})
		place := profilebuild.Place{Object: o}
		b.Name(place, 0, profilebuild.Frame{Name: test.name})
		b.Row(profilebuild.Row{Comm: "a 9", PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 250,
			Stack: []profilebuild.Place{place}})
		for _, line := range folded(t, b.Profile(), FoldedOptions{}) {
			stack, number := strings.CutSuffix(line, " 250")
			if stack != "a_9;"+test.want || !number {
				t.Errorf("%q: the line is %q", test.name, line)
			}
			if numberAtEnd.MatchString(strings.TrimSpace(stack)) {
				t.Errorf("%q: viewers find two values in %q", test.name, line)
			}
		}
	}
}

// naive folds a profile the plain way: a map of strings.
func naive(p *ingest.Profile, opts FoldedOptions) []string {
	d := demangle.New(demangle.Simple)
	sums := make(map[string]uint64)
	for _, s := range p.Samples {
		if int(s.Event) != opts.Event {
			continue
		}
		line := commText(p.Strings[s.Comm], -1)
		for _, l := range slices.Backward(p.Stack(nil, s.Stack)) {
			frames := p.Names.At(l)
			for _, f := range slices.Backward(frames) {
				name := d.Name(p.Names.Functions[f.Func].SystemName)
				name = strings.ReplaceAll(strings.TrimRight(name, " "), ";", ":")
				line += ";" + numberAtEnd.ReplaceAllString(name, "_$1")
			}
			if len(frames) == 0 {
				line += ";[" + ingest.ShortName(&p.Objects[p.Locations[l].Object]) + "]"
			}
		}
		sums[line] += s.Weight
	}
	var lines []string
	for line, v := range sums {
		lines = append(lines, fmt.Sprintf("%s %d", line, v))
	}
	slices.Sort(lines)
	return lines
}

// TestFoldedAgainstNaive compares with the plain way, on names chosen to be beginnings of one
// another and to sort around ';' and ' '.
func TestFoldedAgainstNaive(t *testing.T) {
	names := []string{"a", "a b", "a(b)", "a;b", "a:b", "ab", "a~", "a+", "a 9", "a 1 b", "b",
		"_Z1av", "_Z1aIiEvT_", "a\x01"}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		b := profilebuild.New(profilebuild.Clock())
		var places []profilebuild.Place
		for _, path := range []string{"/bin/a", "/lib/a", "[kernel.kallsyms]"} {
			o := b.Object(ingest.Object{File: ingest.FileRef{Path: path}})
			for off := range addr.Offset(12) {
				pl := profilebuild.Place{Object: o, Offset: off}
				places = append(places, pl)
				var frames []profilebuild.Frame
				for range rng.IntN(4) {
					frames = append(frames, profilebuild.Frame{Name: names[rng.IntN(len(names))]})
				}
				b.Name(pl, 0, frames...)
			}
		}
		for range 300 {
			var stack []profilebuild.Place
			for range rng.IntN(4) {
				stack = append(stack, places[rng.IntN(len(places))])
			}
			b.Row(profilebuild.Row{Comm: names[rng.IntN(len(names))], PID: -1, TID: -1, CPU: -1,
				Count: 1, Weight: uint64(rng.IntN(1000)), Stack: stack})
		}
		p := b.Profile()
		want, got := naive(p, FoldedOptions{}), folded(t, p, FoldedOptions{})
		if !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("seed %d, line %d:\n got %q\nwant %q", seed, i, got[i], want[i])
				}
			}
			t.Fatalf("seed %d: %d lines, want %d", seed, len(got), len(want))
		}
	}
}

// TestFoldedInParts: a profile that several cores fold gives the same as one.
func TestFoldedInParts(t *testing.T) {
	p := profilebuild.Random(5, profilebuild.Size{Objects: 5, Functions: 60, Locations: 900,
		Stacks: 48 << 10, Depth: 6})
	want, got := naive(p, FoldedOptions{}), folded(t, p, FoldedOptions{})
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

// TestFoldedWithoutNames: an unresolved profile folds by object.
func TestFoldedWithoutNames(t *testing.T) {
	p := profilebuild.EveryKind()
	p.Names = nil
	if got := folded(t, p, FoldedOptions{Event: 1}); !slices.Equal(got,
		[]string{"main;[main program];[libc.so.6] 1"}) {
		t.Errorf("got %q", got)
	}
	if got := folded(t, p, FoldedOptions{Event: 7}); !slices.Equal(got, []string{""}) {
		t.Errorf("an event that is not there: %q", got)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestWriteErrors: a reader that has gone away is an error, not a short report.
func TestWriteErrors(t *testing.T) {
	p := profilebuild.EveryKind()
	for name, err := range map[string]error{
		"folded": Folded(failing{}, p, FoldedOptions{}),
		"json":   JSON(failing{}, p, nil),
		"script": Script(failing{}, p, replayOf(p), ScriptOptions{}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestJSONLines: every line is an object of one of the two kinds, and stacks refer to locations
// that came before.
func TestJSONLines(t *testing.T) {
	p := profilebuild.Random(3, profilebuild.Size{Objects: 5, Functions: 40, Locations: 200,
		Stacks: 300, Depth: 6})
	var out bytes.Buffer
	if err := JSON(&out, p, demangle.New(demangle.Simple)); err != nil {
		t.Fatal(err)
	}
	locations, samples := 0, uint64(0)
	for line := range strings.Lines(out.String()) {
		var v struct {
			Location *int
			Symbol   []JSONSymbol
			Error    *JSONError
			Stack    []int
			Count    uint64
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		switch {
		case v.Location != nil:
			if *v.Location != locations || (len(v.Symbol) == 0) == (v.Error == nil) {
				t.Fatalf("location %d: %s", locations, line)
			}
			locations++
		case v.Stack != nil:
			samples += v.Count
			for _, l := range v.Stack {
				if l >= locations {
					t.Fatalf("location %d of %d", l, locations)
				}
			}
		default:
			t.Fatalf("line %s", line)
		}
	}
	if locations != len(p.Locations) || samples != p.Stats.Samples {
		t.Errorf("%d locations, %d samples", locations, samples)
	}
}

func BenchmarkFolded(b *testing.B) {
	p := profilebuild.Random(1, profilebuild.LikeBig)
	lines := len(folded(b, p, FoldedOptions{}))
	var size bytes.Buffer
	if err := Folded(&size, p, FoldedOptions{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(size.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if err := Folded(io.Discard, p, FoldedOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(p.Samples)), "rows/op")
	b.ReportMetric(float64(lines), "lines/op")
}

// TestFoldedOptions: each option changes its part and nothing else, and the numbers always add up.
func TestFoldedOptions(t *testing.T) {
	for seed := range uint64(10) {
		p := profilebuild.Mixed(seed)
		var weight, count uint64
		for _, s := range p.Samples {
			if s.Event == 0 {
				weight += s.Weight
				count += s.Count
			}
		}
		for _, opts := range []FoldedOptions{{}, {Count: true}, {Annotate: true}, {Addresses: true},
			{PID: true},
			{Count: true, Annotate: true, Addresses: true, PID: true}} {
			lines := folded(t, p, opts)
			if !slices.IsSorted(lines) {
				t.Fatalf("seed %d, %+v: lines are not sorted", seed, opts)
			}
			sum := uint64(0)
			seen := make(map[string]bool)
			for _, line := range lines {
				at := strings.LastIndexByte(line, ' ')
				var v uint64
				if _, err := fmt.Sscan(line[at+1:], &v); err != nil || seen[line[:at]] {
					t.Fatalf("line %q: %v, seen before: %v", line, err, seen[line[:at]])
				}
				seen[line[:at]] = true
				sum += v
				checkFoldedLine(t, line[:at], opts)
			}
			want := weight
			if opts.Count {
				want = count
			}
			if sum != want {
				t.Fatalf("seed %d, %+v: sum %d, want %d", seed, opts, sum, want)
			}
		}
	}
}

func checkFoldedLine(t *testing.T, line string, opts FoldedOptions) {
	t.Helper()
	elements := strings.Split(line, ";")
	if strings.Contains(elements[0], "-") != opts.PID {
		t.Errorf("first element %q", elements[0])
	}
	for _, e := range elements[1:] {
		kernel := strings.HasPrefix(e, "f2_") || strings.HasPrefix(e, "f3_") ||
			strings.HasPrefix(e, "[kernel") || strings.HasPrefix(e, "[bpf")
		marked := strings.HasSuffix(e, "_[k]") || strings.HasSuffix(e, "_[i]")
		if kernel && marked != opts.Annotate {
			t.Errorf("element %q with %+v", e, opts)
		}
		if strings.HasPrefix(e, "[a") && strings.Contains(e, "+0x") != opts.Addresses {
			t.Errorf("element %q with %+v", e, opts)
		}
	}
}

// TestJSONOfMerged has no starts of functions that come from a pprof file, also where other
// captures are in the profile, which then has no header of such a file.
func TestJSONOfMerged(t *testing.T) {
	for _, from := range []bool{true, false} {
		b := profilebuild.New(profilebuild.Clock())
		b.Stats.NoStarts = from
		place := profilebuild.Place{Object: b.Object(ingest.Object{}), Offset: 0x100}
		b.Name(place, 0, profilebuild.Frame{Name: "main"})
		b.Row(profilebuild.Row{Count: 1, Weight: 1, Stack: []profilebuild.Place{place}})
		var out bytes.Buffer
		if err := JSON(&out, b.Profile(), nil); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(out.String(), `"StartAddress":"0x100"`); has == from {
			t.Errorf("from a pprof file %t: %s", from, out.String())
		}
	}
}
