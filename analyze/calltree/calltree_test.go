package calltree_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/fixtures/pprofrun"
	"symbolize/fixtures/profilebuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest"
)

var same = demangle.New(demangle.None)

// filterCase is a Filter as options of pprof.
type filterCase struct {
	name   string
	filter calltree.Filter
	args   []string
}

func filterCases() []filterCase {
	rx := regexp.MustCompile
	return []filterCase{
		{name: "none"},
		{name: "focus function", filter: calltree.Filter{Focus: rx("f0_1")},
			args: []string{"-focus=f0_1"}},
		{name: "focus file", filter: calltree.Filter{Focus: rx("y.c")},
			args: []string{"-focus=y.c"}},
		{name: "focus object", filter: calltree.Filter{Focus: rx("lib/b")},
			args: []string{"-focus=lib/b"}},
		{name: "ignore", filter: calltree.Filter{Ignore: rx("f1_[12]")},
			args: []string{"-ignore=f1_[12]"}},
		{name: "ignore object", filter: calltree.Filter{Ignore: rx("kernel")},
			args: []string{"-ignore=kernel"}},
		{name: "hide", filter: calltree.Filter{Hide: rx("f[01]_[012]")},
			args: []string{"-hide=f[01]_[012]"}},
		{name: "hide object", filter: calltree.Filter{Hide: rx("/lib")},
			args: []string{"-hide=/lib"}},
		{name: "hide all", filter: calltree.Filter{Hide: rx(".")}, args: []string{"-hide=."}},
		{name: "show", filter: calltree.Filter{Show: rx("_[34]")}, args: []string{"-show=_[34]"}},
		{name: "show object", filter: calltree.Filter{Show: rx("bin/a")},
			args: []string{"-show=bin/a"}},
		{name: "show-from", filter: calltree.Filter{ShowFrom: rx("f2_")},
			args: []string{"-show_from=f2_"}},
		{name: "show-from object", filter: calltree.Filter{ShowFrom: rx("/bin/a")},
			args: []string{"-show_from=/bin/a"}},
		{name: "unresolved", filter: calltree.Filter{Hide: rx(`\+0x100[1-5]`)},
			args: []string{`-hide=\+0x100[1-5]`}},
		{name: "all",
			filter: calltree.Filter{Focus: rx("f0|f1"), Ignore: rx("f2_4"), Hide: rx("y.c"),
				Show: rx("f0|f2|a"), ShowFrom: rx("f0_[0-3]")},
			args: []string{"-focus=f0|f1", "-ignore=f2_4", "-hide=y.c", "-show=f0|f2|a",
				"-show_from=f0_[0-3]"}},
	}
}

// ourTop is a Table as the rows of pprof.
func ourTop(s *calltree.Stacks) []pprofrun.Row {
	var rows []pprofrun.Row
	for _, r := range s.Table(false) {
		rows = append(rows, pprofrun.Row{Name: s.Nodes[r.Node].Name, Flat: int64(r.Flat),
			Cum: int64(r.Cum)})
	}
	return rows
}

func compareRows(t *testing.T, got, want []pprofrun.Row) {
	t.Helper()
	pprofrun.Sort(got)
	pprofrun.Sort(want)
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("row %d of %d and %d: %v, pprof has %v", i, len(got), len(want), got[i],
					want[i])
			}
		}
		t.Fatalf("%d rows, pprof has %d: %v, %v", len(got), len(want), got, want)
	}
}

// TestTableAgainstPprof: flat and cumulative values by function and line equal pprof's with each of
// the filters.
func TestTableAgainstPprof(t *testing.T) {
	for seed := range uint64(4) {
		for _, tt := range []struct {
			name       string
			unresolved bool
			by         calltree.By
			arg        string
		}{
			{name: "function", by: calltree.Function, arg: "-functions"},
			{name: "line", unresolved: true, by: calltree.Line, arg: "-lines"},
			{name: "file", by: calltree.File, arg: "-files"},
		} {
			p := profilebuild.Calls(seed, tt.unresolved)
			prof := pprofrun.Profile(t, p, nil)
			for i, f := range filterCases() {
				if i%4 != int(seed) && !sweep.All() { // each of them on one profile
					continue
				}
				t.Run(fmt.Sprint(seed, " ", tt.name, " ", f.name), func(t *testing.T) {
					got := calltree.New(p, calltree.Options{By: []calltree.By{tt.by},
						Filter: f.filter, Demangler: same}).Fold(0, false)
					args := slices.Concat(f.args, []string{tt.arg, "-sample_index=cpu"})
					compareRows(t, ourTop(got), pprofrun.Top(t, []*profile.Profile{prof}, args...))
				})
			}
		}
	}
}

// TestPeekAgainstPprof: callers and callees of each function equal pprof's.
func TestPeekAgainstPprof(t *testing.T) {
	p := profilebuild.Calls(4, false)
	for _, f := range filterCases()[:8] {
		t.Run(f.name, func(t *testing.T) {
			s := calltree.New(p, calltree.Options{Filter: f.filter, Demangler: same}).Fold(0, false)
			got := ourPeek(s, regexp.MustCompile("f[02]_[13]"))
			want := pprofPeek(t, pprofrun.Profile(t, p, nil), slices.Concat(f.args,
				[]string{"-functions", "-sample_index=cpu", "-peek=f[02]_[13]"})...)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\npprof has\n%s", strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
		})
	}
}

// ourPeek has a line for each call: "caller of f: g 12 inline".
func ourPeek(s *calltree.Stacks, re *regexp.Regexp) (lines []string) {
	for _, n := range s.Peek(func(n *calltree.Node) bool { return re.MatchString(n.Name) }) {
		name := s.Nodes[n.Node].Name
		lines = append(lines, fmt.Sprintf("%s %d %d", name, n.Flat, n.Cum))
		for _, c := range n.Callers {
			lines = append(lines, fmt.Sprintf("caller of %s: %s %d", name, s.Nodes[c.Node].Name,
				c.Value))
		}
		for _, c := range n.Callees {
			lines = append(lines, fmt.Sprintf("callee of %s: %s %d", name, s.Nodes[c.Node].Name,
				c.Value))
		}
	}
	return lines
}

// pprofPeek is the same of `pprof -peek`.
func pprofPeek(t *testing.T, prof *profile.Profile, args ...string) (lines []string) {
	t.Helper()
	out := pprofrun.Run(t, []*profile.Profile{prof}, append([]string{"-nodecount=0",
		"-nodefraction=0", "-edgefraction=0", "-source_path=/none", "-unit=ns"}, args...)...)
	if strings.Contains(out, "no matches found") {
		return nil
	}
	_, table, ok := strings.Cut(out, "calls calls% + context")
	if !ok {
		t.Fatalf("no table in %s", out)
	}
	rule := strings.Repeat("-", 58) + "+" + strings.Repeat("-", 13) + "\n"
	for block := range strings.SplitSeq(table, rule) {
		lines = append(lines, peekBlock(t, block)...)
	}
	return lines
}

var (
	peekNode = regexp.MustCompile(`^ *(\S+) +\S+% +\S+% +(\S+) +\S+%  +\| (.*)$`)
	peekCall = regexp.MustCompile(`^ +(\S+) +\S+% \|  ( ?)(.*)$`)
)

func peekBlock(t *testing.T, block string) (lines []string) {
	t.Helper()
	rows := strings.Split(strings.TrimRight(block, "\n"), "\n")
	at := slices.IndexFunc(rows, peekNode.MatchString)
	if at < 0 {
		return nil
	}
	f := peekNode.FindStringSubmatch(rows[at])
	name := pprofrun.CutInline(strings.TrimSpace(f[3]))
	lines = append(lines, fmt.Sprintf("%s %d %d", name, pprofrun.Number(t, f[1]),
		pprofrun.Number(t, f[2])))
	for i, row := range rows {
		if i == at {
			continue
		}
		c := peekCall.FindStringSubmatch(row)
		if c == nil {
			t.Fatalf("%q is no call of pprof", row)
		}
		kind := "caller"
		if i > at {
			kind = "callee"
		}
		lines = append(lines, fmt.Sprintf("%s of %s: %s %d", kind, name,
			pprofrun.CutInline(strings.TrimSpace(c[3])), pprofrun.Number(t, c[1])))
	}
	return lines
}

// treeLines has a line for each node of a tree: path, flat and cumulative value.
func treeLines(tr *calltree.Tree) (lines []string) {
	paths := make([]string, len(tr.Nodes))
	for i, n := range tr.Nodes {
		if n.Parent >= 0 {
			paths[i] = paths[n.Parent] + ";" + tr.Stacks.Nodes[n.Node].Name
		}
		lines = append(lines, fmt.Sprintf("%s %d %d %d %d", paths[i], n.Flat, n.Cum, n.BaseFlat,
			n.BaseCum))
	}
	slices.Sort(lines)
	return lines
}

// naiveTree counts paths of names with a map.
func naiveTree(p *ingest.Profile, event int, reverse bool, side int, into map[string]*[4]uint64) {
	add := func(path string, at int, v uint64) {
		if into[path] == nil {
			into[path] = new([4]uint64)
		}
		into[path][at] += v
	}
	for _, s := range p.Samples {
		if int(s.Event) != event || s.Weight == 0 {
			continue
		}
		var names []string // leaf first
		for _, l := range p.Stack(nil, s.Stack) {
			for _, f := range p.Names.At(l) {
				names = append(names, p.Names.Functions[f.Func].SystemName)
			}
		}
		if !reverse {
			slices.Reverse(names)
		}
		path := ""
		add(path, side+1, s.Weight)
		for _, n := range names {
			path += ";" + n
			add(path, side+1, s.Weight)
		}
		add(path, side, s.Weight)
	}
}

func naiveLines(paths map[string]*[4]uint64) (lines []string) {
	for path, v := range paths {
		lines = append(lines, fmt.Sprintf("%s %d %d %d %d", path, v[0], v[1], v[2], v[3]))
	}
	slices.Sort(lines)
	return lines
}

// TestTreeAgainstNaive: trees in both directions, of one profile and of two, count every path.
func TestTreeAgainstNaive(t *testing.T) {
	for seed := range uint64(6) {
		p, base := profilebuild.Calls(seed, false), profilebuild.Calls(seed+100, false)
		for _, reverse := range []bool{false, true} {
			paths := make(map[string]*[4]uint64)
			naiveTree(p, 0, reverse, 0, paths)
			s := calltree.New(p, calltree.Options{Demangler: same}).Fold(0, false)
			opts := calltree.TreeOptions{Reverse: reverse}
			if got, want := treeLines(s.Tree(opts)), naiveLines(paths); !slices.Equal(got, want) {
				t.Fatalf("seed %d, reverse %v: got\n%s\nwant\n%s", seed, reverse,
					strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			naiveTree(base, 0, reverse, 2, paths)
			b := calltree.New(base, calltree.Options{Demangler: same}).Fold(0, false)
			both := calltree.Unify([]*calltree.Stacks{s, b},
				func(_ int, n *calltree.Node) string { return n.Name })
			diff := calltree.Compare(both[:1], both[1:]).Tree(opts)
			if got, want := treeLines(diff), naiveLines(paths); !slices.Equal(got, want) {
				t.Fatalf("seed %d, reverse %v: two sides differ", seed, reverse)
			}
		}
	}
}

// TestTreePruning: pruned nodes are accounted for, and the others have the same values.
func TestTreePruning(t *testing.T) {
	for seed := range uint64(6) {
		s := calltree.New(profilebuild.Calls(seed, true), calltree.Options{Demangler: same}).Fold(0, false)
		all := treeLines(s.Tree(calltree.TreeOptions{}))
		for _, opts := range []calltree.TreeOptions{{MinShare: 0.01}, {MinShare: 0.1},
			{MinShare: 2}, {MaxDepth: 2}, {MaxDepth: 1, MinShare: 0.05}} {
			tr := s.Tree(opts)
			for _, line := range treeLines(tr) {
				if _, ok := slices.BinarySearch(all, line); !ok {
					t.Errorf("%+v: %s is not of the whole tree", opts, line)
				}
			}
			left := uint64(0)
			for i, n := range tr.Nodes {
				sum := n.Flat + n.Left
				for _, c := range tr.Nodes[n.First : n.First+n.Children] {
					sum += c.Cum
					if c.Parent != int32(i) || c.Depth != n.Depth+1 {
						t.Fatalf("%+v: node %d is no child of %d", opts, n.First, i)
					}
				}
				if left += n.Left; sum != n.Cum {
					t.Errorf("%+v: node %d has %d, its parts %d", opts, i, n.Cum, sum)
				}
				if i > 0 && float64(n.Cum) < opts.MinShare*float64(s.Kept) {
					t.Errorf("%+v: node %d has only %d", opts, i, n.Cum)
				}
			}
			if left != tr.LeftValue || left == 0 || len(tr.Nodes)+tr.LeftOut > len(all) {
				t.Errorf("%+v: %d nodes, %d left out with %d of %d", opts, len(tr.Nodes),
					tr.LeftOut, tr.LeftValue, left)
			}
		}
	}
}

// TestGranularities: each value of By gives its nodes.
func TestGranularities(t *testing.T) {
	p := profilebuild.Calls(1, true)
	for _, tt := range []struct{ by, first string }{
		{by: "function", first: "f"}, {by: "object", first: "/lib/b"}, {by: "buildid",
			first: "/lib/b"}, {by: "comm", first: "c"},
		{by: "pid", first: "pid "}, {by: "tid", first: "[no tid]"}, {by: "cpu", first: "[no cpu]"}, {by: "label",
			first: "comm c"},
		{by: "event", first: "cpu-clock"}, {by: "comm,function", first: "c"}, {by: "line",
			first: "f"}, {by: "file", first: "y.c"},
	} {
		by, err := calltree.ParseBy(tt.by)
		if err != nil {
			t.Fatal(err)
		}
		s := calltree.New(p, calltree.Options{By: by, Demangler: same}).Fold(0, false)
		rows := s.Table(true)
		if name := s.Nodes[rows[0].Node].Name; !strings.HasPrefix(name, tt.first) {
			t.Errorf("by %s: %q is first, not %s…", tt.by, name, tt.first)
		}
		if s.Kept != s.Total || s.Total == 0 {
			t.Errorf("by %s: %d of %d", tt.by, s.Kept, s.Total)
		}
		if by[0].OfSample() {
			sum := uint64(0)
			for _, n := range s.Tree(calltree.TreeOptions{}).Nodes {
				if n.Depth == 1 {
					sum += n.Cum
				}
			}
			if sum != s.Total {
				t.Errorf("by %s: sum %d of %d", tt.by, sum, s.Total)
			}
		}
	}
	for _, bad := range []string{"", "functions", "function,line", "comm,comm"} {
		if _, err := calltree.ParseBy(bad); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
	events := calltree.New(p, calltree.Options{By: []calltree.By{calltree.Event}, Demangler: same})
	if s := events.Fold(calltree.AllEvents, false); len(s.Table(false)) != 2 || s.Unit != "samples" {
		t.Errorf("%d events in %s", len(s.Table(false)), s.Unit)
	}
}

// TestUnmatched: expressions that match nothing are named.
func TestUnmatched(t *testing.T) {
	rx := regexp.MustCompile
	filter := calltree.Filter{Focus: rx("none"), Ignore: rx("f0_1"), Hide: rx("nor this"),
		Show: rx("f"), ShowFrom: rx("never")}
	p := profilebuild.Calls(1, true)
	f := calltree.New(p, calltree.Options{Demangler: same, Filter: filter}).Fold(0, false)
	if got := strings.Join(f.Unmatched, " "); got != "focus hide show-from" {
		t.Errorf("unmatched: %s", got)
	}
	f = calltree.New(profilebuild.Calls(1, true), calltree.Options{Demangler: same}).Fold(0, false)
	if got := f.Unmatched; got != nil {
		t.Errorf("unmatched without a filter: %v", got)
	}
}
