package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/analyze/table"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/texts"
)

func TestGolden(t *testing.T) {
	p := profilebuild.EveryKind()
	p.Stats.Lost, p.Stats.Throttled, p.Stats.CutChains = 1234, 2, 17
	p.Stats.Warnings = []ingest.Warning{{Text: "a \x1b[31mwarning"}}
	cover := NewCoverage(p, CoverageOptions{})
	for name, write := range map[string]func(io.Writer) error{
		"default.folded": func(w io.Writer) error { return Folded(w, p, FoldedOptions{}) },
		"options.folded": func(w io.Writer) error {
			return Folded(w, p, FoldedOptions{Count: true, Annotate: true, Addresses: true,
				PID:       true,
				Demangler: NewDemangler(None)})
		},
		"faults.folded": func(w io.Writer) error { return Folded(w, p, FoldedOptions{Event: 1}) },
		"profile.json":  func(w io.Writer) error { return JSON(w, p, nil) },
		"summary.txt":   cover.WriteSummary,
		"short.txt":     func(w io.Writer) error { return cover.WriteShort(w, table.Style{}) },
		"narrow.txt":    func(w io.Writer) error { return cover.WriteShort(w, table.Style{Width: 60}) },
		"missing.txt":   cover.WriteMissing,
		"missing.json":  cover.WriteMissingJSON,
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
	d := NewDemangler(Simple)
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
	cover := NewCoverage(p, CoverageOptions{})
	for name, err := range map[string]error{
		"folded":  Folded(failing{}, p, FoldedOptions{}),
		"json":    JSON(failing{}, p, nil),
		"summary": cover.WriteSummary(failing{}),
		"missing": cover.WriteMissing(failing{}),
		"script":  Script(failing{}, p, replayOf(p), ScriptOptions{}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDemangle(t *testing.T) {
	long := "_ZN" + strings.Repeat("3abc", 10_000) + "Ev"
	tests := []struct{ system, simple, templates, full string }{
		{system: "main", simple: "main", templates: "main", full: "main"},
		{system: "_ZN3foo3barIiEEvT_", simple: "foo::bar", templates: "foo::bar<int>",
			full: "void foo::bar<int>(int)"},
		{system: "_ZN3foo3barEi.cold", simple: "foo::bar [clone .cold]",
			templates: "foo::bar [clone .cold]",
			full:      "foo::bar(int) [clone .cold]"},
		{system: "_ZN3foo3barEi.isra.0.part.1", simple: "foo::bar [clone .isra.0.part.1]",
			templates: "foo::bar [clone .isra.0.part.1]",
			full:      "foo::bar(int) [clone .isra.0.part.1]"},
		{system: "_ZN3foo3barEi.llvm.123456", simple: "foo::bar", templates: "foo::bar",
			full: "foo::bar(int)"},
		{system: "_ZN3foo3barEi.llvm.12.cold", simple: "foo::bar [clone .cold]",
			templates: "foo::bar [clone .cold]",
			full:      "foo::bar(int) [clone .cold]"},
		{system: "_ZdaPvm@CXXABI_1.3.9", simple: "operator delete[]@CXXABI_1.3.9",
			templates: "operator delete[]@CXXABI_1.3.9",
			full:      "operator delete[](void*, unsigned long)@CXXABI_1.3.9"},
		{system: "_ZNSaIcEC1Ev@plt", simple: "std::allocator::allocator@plt",
			templates: "std::allocator<char>::allocator@plt",
			full:      "std::allocator<char>::allocator()@plt"},
		{system: "memcpy@@GLIBC_2.14", simple: "memcpy@@GLIBC_2.14",
			templates: "memcpy@@GLIBC_2.14", full: "memcpy@@GLIBC_2.14"},
		{system: "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
			simple:    "core::fmt::Formatter::pad",
			templates: "core::fmt::Formatter::pad",
			full:      "core::fmt::Formatter::pad"},
		{system: "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.77",
			simple:    "core::fmt::Formatter::pad",
			templates: "core::fmt::Formatter::pad", full: "core::fmt::Formatter::pad"},
		{system: "_RNvCs15kBYyAo9fc_7mycrate7example", simple: "mycrate::example",
			templates: "mycrate::example",
			full:      "mycrate::example"},
		{system: "main.(*T).Foo[...]", simple: "main.(*T).Foo[...]",
			templates: "main.(*T).Foo[...]", full: "main.(*T).Foo[...]"},
		{system: "_Zzz", simple: "_Zzz", templates: "_Zzz", full: "_Zzz"},
		{system: "_Renamed", simple: "_Renamed", templates: "_Renamed", full: "_Renamed"},
		{system: "a\x1b[31m\nb\xff", simple: "a?[31m?b?", templates: "a?[31m?b?",
			full: "a?[31m?b?"},
		{system: long, simple: long, templates: long, full: long},
		{full: ""},
	}
	for _, tt := range tests {
		for mode, want := range map[Mode]string{Simple: tt.simple, Templates: tt.templates,
			Full: tt.full,
			None: texts.Printable(tt.system)} {
			d := NewDemangler(mode)
			for range 2 { // made, then remembered
				if got := d.Name(tt.system); got != want {
					t.Errorf("%s of %.60q: %.80q, want %.80q", mode, tt.system, got, want)
				}
			}
		}
	}
}

// TestWarm: names done ahead are the same, and a profile's are all done.
func TestWarm(t *testing.T) {
	p := profilebuild.Random(3, profilebuild.Size{Objects: 9, Functions: 900, Locations: 1800,
		Stacks: 300, Depth: 6})
	warm, cold := NewDemangler(Simple), NewDemangler(Simple)
	warm.Warm(p)
	for _, f := range p.Names.Functions {
		if _, ok := warm.cache[f.SystemName]; !ok {
			t.Fatalf("%s is not done", f.SystemName)
		}
		if got, want := warm.Name(f.SystemName), cold.Name(f.SystemName); got != want {
			t.Fatalf("%s is %s, want %s", f.SystemName, got, want)
		}
	}
}

// TestDemangleBounded: a short name that grows by substitution stays bounded.
func TestDemangleBounded(t *testing.T) {
	name := "_Z1fI1aE"
	for range 40 {
		name = "_Z1fI" + strings.Repeat("S_", 3) + name[2:] + "E"
	}
	for _, mode := range []Mode{Simple, Templates, Full} {
		if got := NewDemangler(mode).Name(name); len(got) > 1<<maxDemangledShift+len(name) {
			t.Errorf("%s: %d bytes", mode, len(got))
		}
	}
}

func FuzzDemangle(f *testing.F) {
	for _, s := range []string{"_ZN3foo3barIiEEvT_", "_RNvCs15kBYyAo9fc_7mycrate7example",
		"_ZN1a17h0123456789abcdefE.x", "_Z@", "_Z.llvm."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for mode := Simple; mode <= None; mode++ {
			name := NewDemangler(mode).Name(s)
			if name != texts.Printable(name) {
				t.Errorf("%s of %q is not printable: %q", mode, s, name)
			}
		}
	})
}

func TestParseMode(t *testing.T) {
	for m := Simple; m <= None; m++ {
		if got, err := ParseMode(m.String()); got != m || err != nil {
			t.Errorf("%s: %v, %v", m, got, err)
		}
	}
	if _, err := ParseMode("some"); err == nil {
		t.Error("no error for an unknown mode")
	}
}

func TestOtherEvents(t *testing.T) {
	if got := OtherEvents(mixed(1), 0); !slices.Equal(got, []string{"faults"}) {
		t.Errorf("other events: %v", got)
	}
}

// TestCoverage: shares are by weight over all events, rows by object and reason.
func TestCoverage(t *testing.T) {
	p := profilebuild.EveryKind()
	c := NewCoverage(p, CoverageOptions{})
	if c.Samples != 19 || c.Frames != 6*2+10*3+4+4+3 {
		t.Errorf("%d samples, %d frames", c.Samples, c.Frames)
	}
	if !slices.IsSortedFunc(c.Missing, func(a, b Missing) int {
		return cmp.Or(cmp.Compare(b.SampleShare, a.SampleShare), cmp.Compare(b.Share, a.Share))
	}) {
		t.Error("what is missing is not sorted by samples, then by frames")
	}
	var missing, samples float64
	for _, m := range c.Missing {
		missing += m.Share
		samples += m.SampleShare
	}
	if math.Abs(missing+c.NamedFrames-100) > 0.001 || math.Abs(samples+c.Named-100) > 0.001 {
		t.Errorf("missing and named make %f and %f", missing+c.NamedFrames, samples+c.Named)
	}
	p.Names = nil
	if c := NewCoverage(p, CoverageOptions{Count: true}); c.Named != 0 || c.NamedFrames != 0 ||
		c.Missing[0].Reason != "not indexed" {
		t.Errorf("without names: %+v", c)
	}
	empty := NewCoverage(&ingest.Profile{}, CoverageOptions{})
	if empty.Named != 0 || len(empty.Missing) != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
	var out bytes.Buffer
	if err := empty.WriteMissing(&out); err != nil || !strings.HasPrefix(out.String(),
		"there are no frames") {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// TestShare100: no rounding to all or nothing.
func TestShare100(t *testing.T) {
	for v, want := range map[float64]string{100: "100%", 99.999: ">99.99%", 50: "50.00%",
		0.001: "<0.01%", 0: "0.00%"} {
		if got := share100(v); got != want {
			t.Errorf("%f is %s, want %s", v, got, want)
		}
	}
}

// TestJSONLines: every line is an object of one of the two kinds, and stacks refer to locations
// that came before.
func TestJSONLines(t *testing.T) {
	p := profilebuild.Random(3, profilebuild.Size{Objects: 5, Functions: 40, Locations: 200,
		Stacks: 300, Depth: 6})
	var out bytes.Buffer
	if err := JSON(&out, p, NewDemangler(Simple)); err != nil {
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

func BenchmarkCoverage(b *testing.B) {
	p := profilebuild.Random(1, profilebuild.LikeBig)
	b.ReportAllocs()
	for b.Loop() {
		NewCoverage(p, CoverageOptions{})
	}
}

func BenchmarkDemangle(b *testing.B) {
	names := make([]string, 1000)
	for i := range names {
		n := strconv.Itoa(i)
		names[i] = "_ZN4room" + strconv.Itoa(len(n)+1) + "f" + n + "ISt6vectorIiSaIiEEEEvT_"
	}
	for b.Loop() {
		d := NewDemangler(Simple)
		for _, n := range names {
			d.Name(n)
		}
	}
	b.ReportMetric(float64(len(names)), "names/op")
}
