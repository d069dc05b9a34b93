package flame_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"testing"

	"symbolize/analyze/advice"
	"symbolize/analyze/calltree"
	"symbolize/analyze/diff"
	"symbolize/analyze/flame"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

var (
	before = map[string]uint64{"main;work": 600e6, "main;work;memcpy": 200e6, "main;old": 150e6,
		"main;old;older": 50e6}
	after = map[string]uint64{"main;work": 200e6, "main;work;memcpy": 250e6, "main;added": 50e6}
)

// differential compares two profiles.
func differential(t *testing.T, base, sides *ingest.Profile, normalize bool) *flame.Graph {
	t.Helper()
	f, err := diff.Fold([]diff.Input{{Name: "b.data", Profile: base}},
		[]diff.Input{{Name: "n.data", Profile: sides}}, calltree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, n := f.Sides()
	cover := func(p *ingest.Profile) *advice.Coverage {
		return advice.NewCoverage(p, advice.CoverageOptions{})
	}
	return flame.NewDifferential(flame.Comparison{New: f.New, Base: f.Base, Normalize: normalize,
		Title: n.Title() + " against " + b.Title(), Cover: cover(sides), BaseCover: cover(base)})
}

func differentialPage(t *testing.T, base, sides *ingest.Profile, normalize bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := differential(t, base, sides, normalize).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDifferentialGolden(t *testing.T) {
	html := differentialPage(t, profilebuild.Stacks(before), profilebuild.Stacks(after), true)
	var b bytes.Buffer
	if err := json.Indent(&b, data(t, html), "", " "); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "differential.json",
		regexp.MustCompile(`\n\s+(-?\d+,?|\])`).ReplaceAll(b.Bytes(), []byte("$1")))
	const title = "<title>Differential flame graph: n.data against b.data</title>"
	if !bytes.Contains(html, []byte(title)) {
		t.Error("the title does not name both sides")
	}
	if again := differentialPage(t, profilebuild.Stacks(before), profilebuild.Stacks(after), true); !bytes.Equal(again, html) {
		t.Error("the page differs from run to run")
	}
	for name, normalize := range map[string]bool{"differential.svg": true,
		"differential.raw.svg": false} {
		b.Reset()
		if err := differential(t, profilebuild.Stacks(before), profilebuild.Stacks(after), normalize).WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, name, b.Bytes())
	}
}

// TestDifferentialStacks: the trees have all stacks of both sides, as they are.
func TestDifferentialStacks(t *testing.T) {
	size := profilebuild.Size{Objects: 5, Functions: 60, Locations: 300, Stacks: 400, Depth: 9}
	base, sides := profilebuild.Random(3, size), profilebuild.Random(4, size)
	f, err := diff.Fold([]diff.Input{{Name: "b", Profile: base}},
		[]diff.Input{{Name: "n", Profile: sides}}, calltree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := decode(t, data(t, differentialPage(t, base, sides, true)))
	for event, s := range []*calltree.Stacks{f.New[0], f.Base[0]} {
		want := make(map[string]uint64)
		for nodes, value := range s.All() {
			names := make([]string, len(nodes))
			for i, n := range nodes {
				frame, _ := n.Inlined()
				names[i] = s.Nodes[frame].Name
			}
			want[strings.Join(names, ";")] += value
		}
		if got := d.paths(&d.Forward, event); !maps.Equal(got, want) {
			t.Errorf("side %d: %d stacks, want %d, or their values differ", event, len(got), len(want))
		}
		if d.Events[event].Total != s.Total {
			t.Errorf("side %d: total %d, want %d", event, d.Events[event].Total, s.Total)
		}
	}
}

// TestScaling: a side without samples scales nothing, and equal totals neither.
func TestScaling(t *testing.T) {
	none := map[string]uint64{}
	for _, tc := range []struct {
		name        string
		base, sides map[string]uint64
		raw         bool
		want        flame.Scaling
	}{
		{name: "scaled", base: before, sides: after, want: flame.Scaling{Scale: 2, Total: 1e9}},
		{name: "raw", base: before, sides: after, raw: true,
			want: flame.Scaling{Scale: 1, Total: 1e9, Raw: true}},
		{name: "equal", base: before, sides: before, raw: true,
			want: flame.Scaling{Scale: 1, Total: 1e9}},
		{name: "empty base", base: none, sides: after, want: flame.Scaling{Scale: 1, Total: 5e8}},
		{name: "empty new side", base: before, sides: none,
			want: flame.Scaling{Scale: 1, Total: 1e9}},
		{name: "both empty", base: none, sides: none, want: flame.Scaling{Scale: 1, Total: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := differential(t, profilebuild.Stacks(tc.base), profilebuild.Stacks(tc.sides), !tc.raw)
			got := *g.Scaling
			got.Steps = nil
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			for _, write := range []func(io.Writer) error{g.WriteHTML, g.WriteSVG} {
				if err := write(io.Discard); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestDifferentialHostile: names stay texts in page and picture.
func TestDifferentialHostile(t *testing.T) {
	g := differential(t, profilebuild.Hostile(), profilebuild.Hostile(), true)
	var html, svg bytes.Buffer
	if err := errors.Join(g.WriteHTML(&html), g.WriteSVG(&svg)); err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{"<script>pwned", "<img", "\x1b", "\u202e"} {
		if bytes.Contains(html.Bytes(), []byte(mark)) {
			t.Errorf("the page has %q", mark)
		}
	}
	z := xml.NewDecoder(&svg)
	for {
		token, err := z.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && !strings.Contains(
			" svg title style rect text g ", " "+e.Name.Local+" ") {
			t.Errorf("element %s", e.Name.Local)
		}
	}
}

// TestChangeColours: the page and the picture have the same colours.
func TestChangeColours(t *testing.T) {
	html := string(differentialPage(t, profilebuild.Stacks(before), profilebuild.Stacks(after), true))
	var svg bytes.Buffer
	if err := differential(t, profilebuild.Stacks(before), profilebuild.Stacks(after), true).WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`\.c\d\{fill:(#[0-9a-f]{6})\}`).FindAllStringSubmatch(svg.String(), -1)
	if len(list) != 7 {
		t.Fatalf("%d colours", len(list))
	}
	for _, c := range list {
		if !strings.Contains(html, `"`+c[1]+`"`) {
			t.Errorf("the page has no %s", c[1])
		}
	}
}
