package flame_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"symbolize/analyze/advice"
	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/analyze/flame"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

func options() flame.Options {
	return flame.Options{Event: -1, Keep: ingest.Keep{PID: true},
		Demangler: demangle.New(demangle.None)}
}

func page(t *testing.T, p *ingest.Profile, opts flame.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := flame.New(p, opts).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// data returns the data of a page.
func data(t *testing.T, page []byte) []byte {
	t.Helper()
	m := regexp.MustCompile(`id="data">([A-Za-z0-9+/=]*)</script>`).FindSubmatch(page)
	if m == nil {
		t.Fatal("the page has no data")
	}
	packed, err := base64.StdEncoding.DecodeString(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decoded is the part of the data that the tests look at.
type decoded struct {
	Events []struct {
		Name        string
		Total, Kept uint64
	}
	Labels  []struct{ Values []string }
	Columns []struct {
		Event  int
		Values []int
	}
	Frames           struct{ Name []string }
	Forward, Reverse encodedTree
	Top              struct{ Cells []uint64 }
	Notes            []string
}

type encodedTree struct {
	Frame, Depth, Inlined []int
	Cells                 []uint64
}

func decode(t *testing.T, text []byte) (d decoded) {
	t.Helper()
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// weights returns self and left of each node, in all columns of an event.
func (d *decoded) weights(tr *encodedTree, event int) (self, left []uint64) {
	self, left = make([]uint64, len(tr.Frame)), make([]uint64, len(tr.Frame))
	at := uint64(0)
	for k := 0; k < len(tr.Cells); k += 4 {
		at += tr.Cells[k]
		if d.Columns[tr.Cells[k+1]].Event == event {
			self[at] += tr.Cells[k+2]
			left[at] += tr.Cells[k+3]
		}
	}
	return self, left
}

// paths returns the weights of a tree by the names from the root on.
func (d *decoded) paths(tr *encodedTree, event int) map[string]uint64 {
	self, _ := d.weights(tr, event)
	sums := make(map[string]uint64)
	var path []string
	for i := range tr.Frame {
		if path = path[:max(0, tr.Depth[i]-1)]; i > 0 {
			path = append(path, d.Frames.Name[tr.Frame[i]])
		}
		if self[i] > 0 {
			sums[strings.Join(path, ";")] += self[i]
		}
	}
	return sums
}

func TestPageData(t *testing.T) {
	text := data(t, page(t, profilebuild.EveryKind(), options()))
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", " "); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "everykind.json", regexp.MustCompile(`\n\s+(-?\d+,?|\])`).ReplaceAll(b.Bytes(),
		[]byte("$1")))
}

// TestTreesHaveAllStacks compares the trees of a page that leaves nothing out with the stacks.
func TestTreesHaveAllStacks(t *testing.T) {
	p := profilebuild.Random(3, profilebuild.Size{Objects: 5, Functions: 60, Locations: 300,
		Stacks: 400, Depth: 9})
	d := decode(t, data(t, page(t, p, options())))
	s := calltree.New(p, calltree.Options{Demangler: options().Demangler}).Fold(0, false)
	want, byLeaf := make(map[string]uint64), make(map[string]uint64)
	for nodes, value := range s.All() {
		names, back := make([]string, len(nodes)), make([]string, len(nodes))
		for i, n := range nodes {
			id, _ := n.Inlined()
			names[i], back[len(nodes)-1-i] = s.Nodes[id].Name, s.Nodes[id].Name
		}
		want[strings.Join(names, ";")] += value
		byLeaf[strings.Join(back, ";")] += value
	}
	compare(t, "forward", d.paths(&d.Forward, 0), want)
	compare(t, "reverse", d.paths(&d.Reverse, 0), byLeaf)
	if len(d.Notes) > 0 {
		t.Errorf("notes of what is left out: %q", d.Notes)
	}
}

func compare(t *testing.T, what string, got, want map[string]uint64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d paths, want %d", what, len(got), len(want))
	}
	for path, v := range want {
		if got[path] != v {
			t.Fatalf("%s: %s has %d, want %d", what, path, got[path], v)
		}
	}
}

// TestTopIsExact compares the table with that of calltree.
func TestTopIsExact(t *testing.T) {
	p := profilebuild.Random(4, profilebuild.Size{Objects: 5, Functions: 60, Locations: 300,
		Stacks: 400, Depth: 9})
	d := decode(t, data(t, page(t, p, options())))
	type sum struct{ flat, cum uint64 }
	got := make(map[string]sum)
	frame := uint64(0)
	for k := 0; k < len(d.Top.Cells); k += 4 {
		frame += d.Top.Cells[k]
		s := got[d.Frames.Name[frame]]
		got[d.Frames.Name[frame]] = sum{s.flat + d.Top.Cells[k+2], s.cum + d.Top.Cells[k+3]}
	}
	s := calltree.New(p, calltree.Options{Demangler: options().Demangler}).Fold(0, false)
	for _, row := range s.Table(false) {
		name := s.Nodes[row.Node].Name
		if got[name] != (sum{row.Flat, row.Cum}) {
			t.Errorf("%s: %v, want %v", name, got[name], row)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("functions that are on no stack: %v", got)
	}
}

// TestLeftOutStays: a page over its size keeps every total, and notes the missing parts.
func TestLeftOutStays(t *testing.T) {
	p := profilebuild.Random(5, profilebuild.Size{Objects: 20, Functions: 2000, Locations: 20_000,
		Stacks: 40_000, Depth: 30})
	opts := options()
	html := page(t, p, opts)
	d := decode(t, data(t, html))
	for name, tr := range map[string]*encodedTree{"forward": &d.Forward, "reverse": &d.Reverse} {
		self, left := d.weights(tr, 0)
		total, lost := uint64(0), uint64(0)
		for i := range self {
			total += self[i] + left[i]
			lost += left[i]
		}
		if total != d.Events[0].Kept || total != d.Events[0].Total {
			t.Errorf("%s: total %d of %d", name, total, d.Events[0].Total)
		}
		if lost == 0 {
			t.Errorf("%s: nothing is left out, the test looks at nothing", name)
		}
	}
	if len(html) > 1_500_000 {
		t.Errorf("the page has %d bytes", len(html))
	}
	if len(d.Notes) < 2 {
		t.Errorf("notes: %q", d.Notes)
	}
}

// TestMinShare: with a least share, lighter frames are left out, and nothing else.
func TestMinShare(t *testing.T) {
	p := profilebuild.Random(6, profilebuild.Size{Objects: 5, Functions: 60, Locations: 300,
		Stacks: 400, Depth: 9})
	opts := options()
	opts.MinShare = 0.01
	d := decode(t, data(t, page(t, p, opts)))
	self, left := d.weights(&d.Forward, 0)
	cum := make([]uint64, len(self))
	for i := len(self) - 1; i >= 0; i-- {
		cum[i] += self[i] + left[i]
		for up := i - 1; up >= 0; up-- {
			if d.Forward.Depth[up] < d.Forward.Depth[i] {
				cum[up] += cum[i]
				break
			}
		}
		if float64(cum[i]) < 0.01*float64(d.Events[0].Total) {
			t.Errorf("node %d has %d of %d", i, cum[i], d.Events[0].Total)
		}
	}
}

// TestSamePage: equal profiles give equal pages.
func TestSamePage(t *testing.T) {
	size := profilebuild.Size{Objects: 5, Functions: 60, Locations: 300, Stacks: 400, Depth: 9}
	first := page(t, profilebuild.Random(7, size), options())
	if !bytes.Equal(first, page(t, profilebuild.Random(7, size), options())) {
		t.Error("two pages of one profile differ")
	}
}

// TestCoverOfOthers: advice about the host comes from a function that knows the host.
func TestCoverOfOthers(t *testing.T) {
	opts := options()
	if g := flame.New(profilebuild.Shop(), opts); g.Cover == nil || g.Cover.Samples == 0 {
		t.Errorf("coverage %+v", g.Cover)
	}
	opts.Cover = &advice.Coverage{Samples: 7}
	if g := flame.New(profilebuild.Shop(), opts); g.Cover != opts.Cover {
		t.Errorf("coverage %+v", g.Cover)
	}
}

// TestEmptyPage: a profile without samples has a page, too.
func TestEmptyPage(t *testing.T) {
	p := profilebuild.New(profilebuild.Clock()).Profile()
	d := decode(t, data(t, page(t, p, options())))
	if len(d.Events) != 0 || len(d.Forward.Frame) != 1 {
		t.Errorf("%+v", d)
	}
}

// TestScripts runs the tests of the page's scripts, and checks their syntax.
func TestScripts(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil || os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: SYMBOLIZE_LIVE is not set, or the tests of the page's scripts need node (Debian: nodejs)")
	}
	scripts, err := filepath.Glob("page/*.js")
	if err != nil || len(scripts) < 5 {
		t.Fatalf("scripts: %q, %v", scripts, err)
	}
	for _, s := range scripts {
		if out, err := exec.Command(node, "--check", s).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", s, err, out)
		}
	}
	out, err := exec.Command(node, "--test", "page/").CombinedOutput()
	if err != nil {
		t.Errorf("node --test: %v\n%s", err, out)
	}
	if !regexp.MustCompile(`(?m)^# pass [1-9]\d`).Match(out) {
		t.Errorf("node --test ran too few tests:\n%s", out)
	}
}
