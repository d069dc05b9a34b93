package advice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

var sampleID = buildid.New(bytes.Repeat([]byte{1}, 20))

func TestGolden(t *testing.T) {
	p := profilebuild.EveryKind()
	p.Stats.Lost, p.Stats.Throttled, p.Stats.CutChains = 1234, 2, 17
	p.Stats.Warnings = []ingest.Warning{{Text: "a \x1b[31mwarning"}}
	cover := NewCoverage(p, CoverageOptions{})
	for name, write := range map[string]func(io.Writer) error{
		"summary.txt":  cover.WriteSummary,
		"short.txt":    func(w io.Writer) error { return cover.WriteShort(w, table.Style{}) },
		"narrow.txt":   func(w io.Writer) error { return cover.WriteShort(w, table.Style{Width: 60}) },
		"missing.txt":  cover.WriteMissing,
		"missing.json": cover.WriteMissingJSON,
	} {
		t.Run(name, func(t *testing.T) { golden.Text(t, name, write) })
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestWriteErrors: a reader that has gone away is an error, not a short report.
func TestWriteErrors(t *testing.T) {
	p := profilebuild.EveryKind()
	cover := NewCoverage(p, CoverageOptions{})
	for name, err := range map[string]error{
		"summary": cover.WriteSummary(failing{}),
		"missing": cover.WriteMissing(failing{}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOtherEvents(t *testing.T) {
	if got := OtherEvents(profilebuild.Mixed(1), 0); !slices.Equal(got, []string{"faults"}) {
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

func BenchmarkCoverage(b *testing.B) {
	p := profilebuild.Random(1, profilebuild.LikeBig)
	b.SetBytes(16 * int64(len(p.Callers)))
	b.ReportAllocs()
	for b.Loop() {
		NewCoverage(p, CoverageOptions{})
	}
}

// TestCoverageAgainstNaive counts frame by frame, sample by sample.
func TestCoverageAgainstNaive(t *testing.T) {
	type key struct{ object, reason string }
	for seed := range uint64(20) {
		p := profilebuild.Mixed(seed)
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
	c := NewCoverage(profilebuild.Mixed(1), CoverageOptions{})
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
