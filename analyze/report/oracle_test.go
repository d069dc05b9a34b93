package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/texts"
)

// mixed is a profile with several events, domains, inlined calls, recursion and
// unresolved places, different for each seed.
func mixed(seed uint64) *ingest.Profile {
	rng := rand.New(rand.NewPCG(seed, 3))
	b := profilebuild.New(profilebuild.Clock(), ingest.Event{Name: "faults", Unit: "count"},
		ingest.Event{Name: "silent", Unit: "count"})
	var places []profilebuild.Place
	for i, o := range []ingest.Object{
		{File: ingest.FileRef{Path: "/bin/a"}, ID: sampleID, IDSource: ingest.IDRecorded},
		{File: ingest.FileRef{Path: "/lib/b"}},
		{Kind: ingest.Kernel, File: ingest.FileRef{Path: "[kernel.kallsyms]"},
			IDSource: ingest.IDByPath},
		{Kind: ingest.JIT, Symbol: "bpf_prog_1", File: ingest.FileRef{Path: "bpf_prog_1"}},
		{Kind: ingest.PerfMap, File: ingest.FileRef{Path: "/tmp/perf-1.map"}, PID: 1},
		{Kind: ingest.Unmapped, File: ingest.FileRef{Path: ingest.UnmappedPath}},
	} {
		h := b.Object(o)
		for off := range addr.Offset(8) {
			pl := profilebuild.Place{Object: h, Offset: off}
			places = append(places, pl)
			var frames []profilebuild.Frame
			for n := rng.IntN(3); n > 0; n-- {
				frames = append(frames, profilebuild.Frame{Name: fmt.Sprintf("f%d_%d", i,
					rng.IntN(4)),
					File: []string{"", "x.c"}[rng.IntN(2)], Inlined: n > 1})
			}
			b.Name(pl, uint64(off), frames...)
			b.Unresolved(pl, []ingest.Reason{ingest.Stripped, ingest.NotIndexed}[rng.IntN(2)])
		}
	}
	for range 200 {
		var stack []profilebuild.Place
		for range 1 + rng.IntN(6) {
			stack = append(stack, places[rng.IntN(len(places))])
		}
		b.Row(profilebuild.Row{Event: rng.IntN(2), Comm: fmt.Sprint("c", rng.IntN(3)),
			PID: int32(rng.IntN(3)),
			TID: -1, CPU: -1, Count: uint64(1 + rng.IntN(3)), Weight: uint64(rng.IntN(100)),
			Stack: stack})
	}
	return b.Profile()
}

// TestCoverageAgainstNaive counts frame by frame, sample by sample.
func TestCoverageAgainstNaive(t *testing.T) {
	type key struct{ object, reason string }
	for seed := range uint64(20) {
		p := mixed(seed)
		for _, count := range []bool{false, true} {
			frames, weight, named := uint64(0), 0.0, 0.0
			samples, namedSamples := 0.0, 0.0
			missing, domains := make(map[key]uint64), make(map[string]uint64)
			for _, s := range p.Samples {
				w := float64(s.Weight)
				if count {
					w = float64(s.Count)
				}
				samples += w
				for i, l := range p.Stack(nil, s.Stack) {
					if i == 0 && len(p.Names.At(l)) > 0 {
						namedSamples += w
					}
					o := &p.Objects[p.Locations[l].Object]
					frames += s.Count
					weight += w
					domains[domainText[o.Domain()]] += s.Count
					if len(p.Names.At(l)) > 0 {
						named += w
					} else {
						missing[key{o.File.Path, p.Names.Reasons[l].String()}] += s.Count
					}
				}
			}
			c := NewCoverage(p, CoverageOptions{Count: count})
			want, wantSamples := 100*named/weight, 100*namedSamples/samples
			if c.Frames != frames || math.Abs(c.NamedFrames-want) > 1e-9 ||
				math.Abs(c.Named-wantSamples) > 1e-9 {
				t.Fatalf("seed %d: %d frames, %f named, %f of the samples; want %d, %f, %f", seed,
					c.Frames, c.NamedFrames, c.Named, frames, want, wantSamples)
			}
			for _, m := range c.Missing {
				k := key{m.Object, m.Reason}
				if missing[k] != m.Frames {
					t.Fatalf("seed %d: %v has %d frames, want %d", seed, k, m.Frames, missing[k])
				}
				delete(missing, k)
			}
			if len(missing) > 0 {
				t.Fatalf("seed %d: rows left out: %v", seed, missing)
			}
			for _, d := range c.Domains {
				if domains[d.Domain] != d.Frames {
					t.Fatalf("seed %d: domain %s has %d frames, want %d", seed, d.Domain, d.Frames,
						domains[d.Domain])
				}
			}
		}
	}
}

// TestCoverageOfSilentEvent: an event with periods of zero weighs by samples; it must not vanish.
func TestCoverageOfSilentEvent(t *testing.T) {
	b := profilebuild.New(ingest.Event{Name: "probe", Unit: "count"})
	o := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/x"}})
	good, bad := profilebuild.Place{Object: o, Offset: 1}, profilebuild.Place{Object: o, Offset: 2}
	b.Name(good, 0, profilebuild.Frame{Name: "f"})
	b.Row(profilebuild.Row{Count: 3, Stack: []profilebuild.Place{good}})
	b.Row(profilebuild.Row{Count: 1, Stack: []profilebuild.Place{bad}})
	if c := NewCoverage(b.Profile(), CoverageOptions{}); c.Named != 75 || c.Missing[0].Share != 25 {
		t.Errorf("%f named, %+v", c.Named, c.Missing)
	}
}

// TestFoldedOptions: each option changes its part and nothing else, and the numbers always add up.
func TestFoldedOptions(t *testing.T) {
	for seed := range uint64(10) {
		p := mixed(seed)
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

// TestSummaryText holds single lines of the summary.
func TestSummaryText(t *testing.T) {
	for _, tt := range []struct {
		c    Coverage
		want string
	}{
		{c: Coverage{Samples: 1500, Events: []EventCoverage{{"cycles", 1500, 1_000_000, "count"}},
			Frames: 3000, NamedFrames: 99.999, Named: 27.5},
			want: "samples    1,500 cycles (weight 1,000,000)\n" +
				"named      27.50% of the samples by their innermost frame\n" +
				"frames     3,000, >99.99% named\n"},
		{c: Coverage{}, want: "samples    0\nframes     0, none to be named\n"},
		{c: Coverage{Lost: 1200, CutChains: 1},
			want: "samples    0\nframes     0, none to be named\n" +
				"losses     1,200 records lost, 1 stacks cut at an invalid address\n"},
		{c: Coverage{Missing: []Missing{{Object: "/bin/x", BuildID: "aa", Found: "bb",
			Reason: "build ID mismatch", Frames: 7,
			SampleShare: 12.5, Share: 50, Hint: "do this"}}},
			want: "samples    0\nframes     0, none to be named\n" +
				"not named, heaviest first by the samples that end there:\n" +
				"  samples%  frames%  reason                 object, build ID\n" +
				"    12.50%   50.00%  build ID mismatch      /bin/x  aa, the file there is now bb\n" +
				"                     do this\n"},
	} {
		var out bytes.Buffer
		if err := tt.c.WriteSummary(&out); err != nil || out.String() != tt.want {
			t.Errorf("got\n%s\nwant\n%s", out.String(), tt.want)
		}
	}
}

// TestMismatchNamesBoth: the present file at the path is reported.
func TestMismatchNamesBoth(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	o := b.Object(ingest.Object{ID: sampleID, File: ingest.FileRef{Path: "/bin/x"}})
	pl := profilebuild.Place{Object: o, Offset: 1}
	b.Unresolved(pl, ingest.Mismatch)
	b.Row(profilebuild.Row{Count: 1, Weight: 1, Stack: []profilebuild.Place{pl}})
	p := b.Profile()
	other := profilebuild.EveryKind().Objects[0].ID
	p.Names.Found = map[ingest.ObjectID]buildid.ID{0: other}
	m := NewCoverage(p, CoverageOptions{}).Missing[0]
	if m.BuildID != sampleID.Hex() || m.Found != other.Hex() {
		t.Errorf("%+v", m)
	}
}

// TestQuoteByShell has a shell undo the quoting of hostile paths.
func TestQuoteByShell(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	for _, path := range []string{"/usr/lib/libc.so.6", "/a b", "/$(reboot)", "/`x`", "/'; x",
		`/"\`, "/~", "/*", "/#x",
		"/x\ny", "/ä", "-x", "/a=b@c,d:e%f+g"} {
		out, err := exec.Command(shell, "-c", "printf %s "+texts.ShellWord(path)).Output()
		if err != nil || string(out) != texts.Printable(path) {
			t.Errorf("%q comes back as %q, %v", path, out, err)
		}
	}
}

// TestMissingJSON: the document has the rows of the table.
func TestMissingJSON(t *testing.T) {
	c := NewCoverage(mixed(1), CoverageOptions{})
	var out bytes.Buffer
	if err := c.WriteMissingJSON(&out); err != nil {
		t.Fatal(err)
	}
	var back Coverage
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(back.Missing, c.Missing) || back.Frames != c.Frames || back.Named != c.Named {
		t.Errorf("comes back as %+v", back)
	}
	var table bytes.Buffer
	if err := c.WriteMissing(&table); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Missing {
		if !strings.Contains(table.String(), m.Object) ||
			!strings.Contains(table.String(), m.Reason) {
			t.Errorf("%s, %s is not in the table", m.Object, m.Reason)
		}
	}
}
