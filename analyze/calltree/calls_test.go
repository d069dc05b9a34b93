package calltree

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/table"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// texts and JSON of the reports of one profile.
func everyReport(p *ingest.Profile) map[string]func(io.Writer) error {
	text := func(write func(io.Writer, table.Style) error, style table.Style) func(io.Writer) error {
		return func(w io.Writer) error { return write(w, style) }
	}
	options := Options{By: []By{Comm, Function}}
	top, plain := NewTop(p, TopOptions{}), table.Style{}
	filtered := NewTop(p, TopOptions{Options: Options{By: []By{Line},
		Filter: Filter{Focus: regexp.MustCompile("main"),
			Hide: regexp.MustCompile("libc")}}})
	tree := NewTree(p, options, TreeOptions{MinShare: 0.05})
	callers := NewTree(p, Options{}, TreeOptions{Reverse: true, MaxDepth: 2})
	peek := NewPeek(p, regexp.MustCompile("main|foo"), Options{})
	return map[string]func(io.Writer) error{
		"top.txt": text(top.WriteText, plain), "top.json": top.WriteJSON,
		"narrow.txt": text(top.WriteText, table.Style{Width: 64}),
		"lines.txt":  text(filtered.WriteText, plain), "lines.json": filtered.WriteJSON,
		"tree.txt": text(tree.WriteText, plain), "tree.json": tree.WriteJSON,
		"callers.txt": text(callers.WriteText, plain),
		"peek.txt":    text(peek.WriteText, plain), "peek.json": peek.WriteJSON,
	}
}

func TestGolden(t *testing.T) {
	for name, write := range everyReport(profilebuild.EveryKind()) {
		t.Run(name, func(t *testing.T) { golden.Text(t, name, write) })
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestWriteErrors: a reader that has gone away is an error, not a short report.
func TestWriteErrors(t *testing.T) {
	for name, write := range everyReport(profilebuild.EveryKind()) {
		if write(failing{}) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestEmpty: a profile without samples gives empty reports, with lists and not null in JSON.
func TestEmpty(t *testing.T) {
	for name, write := range everyReport(&ingest.Profile{}) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(b.String(), "null") {
			t.Errorf("%s: %s", name, b.String())
		}
	}
}

// labels are the keys that a frame is counted under: names and object, or the object.
func labels(p *ingest.Profile, l ingest.LocationID) []string {
	o := &p.Objects[p.Locations[l].Object]
	var list []string
	for _, f := range p.Names.At(l) {
		list = append(list, p.Names.Functions[f.Func].SystemName+" in "+o.File.Path)
	}
	if len(list) == 0 {
		list = append(list, "["+ingest.ShortName(o)+"] in "+o.File.Path)
	}
	return list
}

// TestTop: recursion counts once, unresolved frames by object, limits.
func TestTop(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock(), ingest.Event{Name: "faults", Unit: "count"})
	o := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/x"}})
	at := func(off addr.Offset) profilebuild.Place {
		return profilebuild.Place{Object: o,
			Offset: off}
	}
	b.Name(at(1), 0, profilebuild.Frame{Name: "loop"})
	b.Name(at(2), 0, profilebuild.Frame{Name: "loop", File: "other.c"})
	b.Name(at(3), 0, profilebuild.Frame{Name: "leaf", Inlined: true},
		profilebuild.Frame{Name: "loop"})
	b.Unresolved(at(4), ingest.Stripped)
	b.Unresolved(at(5), ingest.Stripped)
	row := func(event int, weight uint64, stack ...profilebuild.Place) {
		b.Row(profilebuild.Row{Event: event, PID: -1, TID: -1, CPU: -1, Count: 1, Weight: weight,
			Stack: stack})
	}
	row(0, 100, at(1), at(2), at(1), at(3))
	row(0, 10, at(3), at(4), at(5))
	row(0, 1, at(5))
	row(1, 1000, at(1))
	p := b.Profile()
	list := func(opts TopOptions) string {
		top := NewTop(p, opts)
		text := fmt.Sprintf("%s %d/%d:", top.Event, top.Total, top.Samples)
		for _, r := range top.Rows {
			text += fmt.Sprintf(" %s %d %d,", r.Name, r.Flat, r.Cum)
		}
		return text + fmt.Sprintf(" left %d %v", top.Left, top.Others)
	}
	for _, tt := range []struct {
		opts TopOptions
		want string
	}{
		{opts: TopOptions{},
			want: "cpu-clock 111/3: loop 100 110, leaf 10 110, [x] 1 11, left 0 [faults]"},
		{opts: TopOptions{Cum: true},
			want: "cpu-clock 111/3: loop 100 110, leaf 10 110, [x] 1 11, left 0 [faults]"},
		{opts: TopOptions{Options: Options{Count: true}},
			want: "cpu-clock 3/3: [x] 1 2, leaf 1 2, loop 1 2, left 0 [faults]"},
		{opts: TopOptions{Limit: 1}, want: "cpu-clock 111/3: loop 100 110, left 2 [faults]"},
		{opts: TopOptions{Options: Options{Event: 1}},
			want: "faults 1000/1: loop 1000 1000, left 0 [cpu-clock]"},
		{opts: TopOptions{Options: Options{Event: 5}}, want: " 0/0: left 0 [cpu-clock faults]"},
	} {
		if got := list(tt.opts); got != tt.want {
			t.Errorf("%+v:\n got %s\nwant %s", tt.opts, got, tt.want)
		}
	}
}

// TestFoldSums: the sums of a profile are those of its stacks, by all attributes of frames.
func TestFoldSums(t *testing.T) {
	for seed := range uint64(20) {
		p := profilebuild.Calls(seed, true)
		for _, by := range [][]By{nil, {File}, {Line}, {Object}, {BuildID}, {Comm, Function}} {
			f := New(p, Options{By: by})
			s, flat, cum := f.FoldSums(0, false)
			want := f.Fold(0, false)
			wantFlat, wantCum := want.Sums()
			if !slices.Equal(flat, wantFlat) || !slices.Equal(cum, wantCum) || s.Kept != want.Kept ||
				s.Total != want.Total || s.Samples != want.Samples || len(s.Nodes) != len(want.Nodes) {
				t.Errorf("seed %d by %v: %d %d, want %d %d", seed, by, flat, cum, wantFlat, wantCum)
			}
		}
	}
}

// TestTopAgainstNaive counts with maps of strings.
func TestTopAgainstNaive(t *testing.T) {
	for seed := range uint64(20) {
		p := profilebuild.Calls(seed, true)
		for event := range 2 {
			flat, cum := make(map[string]uint64), make(map[string]uint64)
			total := uint64(0)
			for _, s := range p.Samples {
				if int(s.Event) != event {
					continue
				}
				total += s.Weight
				seen := make(map[string]bool)
				for k, l := range p.Stack(nil, s.Stack) {
					for i, name := range labels(p, l) {
						if k == 0 && i == 0 {
							flat[name] += s.Weight
						}
						if !seen[name] {
							seen[name] = true
							cum[name] += s.Weight
						}
					}
				}
			}
			top := NewTop(p, TopOptions{Options: Options{Event: event}})
			if top.Total != total {
				t.Fatalf("seed %d: total %d, want %d", seed, top.Total, total)
			}
			for _, r := range top.Rows {
				name := r.Name + " in " + r.Object
				if r.Flat != flat[name] || r.Cum != cum[name] {
					t.Fatalf("seed %d, event %d: %s has %d %d, want %d %d", seed, event, name,
						r.Flat, r.Cum, flat[name], cum[name])
				}
				delete(cum, name)
			}
			for name, v := range cum {
				if v > 0 {
					t.Fatalf("seed %d: %s is missing", seed, name)
				}
			}
		}
	}
}

// TestTopText: the sums run up and the rows left off are counted.
func TestTopText(t *testing.T) {
	var out bytes.Buffer
	top := NewTop(profilebuild.Calls(2, true), TopOptions{Limit: 3})
	if err := top.WriteText(&out, table.Style{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3+3+1 || !strings.HasPrefix(lines[0], "event: cpu-clock, ") ||
		lines[1] != "other events: faults (--event)" || !strings.HasSuffix(lines[6], " more rows") {
		t.Errorf("table:\n%s", out.String())
	}
	last := 0.0
	for _, line := range lines[3:6] {
		var sum float64
		if _, err := fmt.Sscanf(strings.Fields(line)[2], "%f%%", &sum); err != nil || sum < last {
			t.Errorf("sum in %q after %f: %v", line, last, err)
		}
		last = sum
	}
}

func BenchmarkTop(b *testing.B) {
	p := profilebuild.Random(1, profilebuild.LikeBig)
	b.SetBytes(16 * int64(len(p.Callers)))
	b.ReportAllocs()
	for b.Loop() {
		NewTop(p, TopOptions{})
	}
}

// TestTreeOf counts the calls of a node, and its callers, by all stacks with it.
func TestTreeOf(t *testing.T) {
	for seed := range uint64(10) {
		s := Fold(profilebuild.Calls(seed, true), &Options{})
		_, cum := s.Sums()
		for n := range s.Nodes {
			node := NodeID(n)
			callees, callers := make(map[NodeID]uint64), make(map[NodeID]uint64)
			for list, value := range s.All() {
				for i := range list {
					list[i], _ = list[i].Inlined()
				}
				first, last := slices.Index(list, node), len(list)-1
				for last >= 0 && list[last] != node {
					last--
				}
				if first >= 0 && first+1 < len(list) {
					callees[list[first+1]] += value
				}
				if last > 0 {
					callers[list[last-1]] += value
				}
			}
			for reverse, want := range map[bool]map[NodeID]uint64{false: callees, true: callers} {
				tree := s.TreeOf(node, TreeOptions{Reverse: reverse})
				root, got := &tree.Nodes[0], make(map[NodeID]uint64)
				sum := root.Flat
				for _, c := range tree.Nodes[root.First : root.First+root.Children] {
					got[c.Node] = c.Cum
					sum += c.Cum
				}
				if root.Cum != cum[n] || sum != root.Cum || !maps.Equal(got, want) {
					t.Fatalf("seed %d, node %d, reverse %v: %d, want %d; %v, want %v", seed, n, reverse,
						root.Cum, cum[n], got, want)
				}
			}
		}
	}
}
