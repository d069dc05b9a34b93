package flame

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"symbolize/analyze/advice"
	"symbolize/analyze/annotate"
	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Options are for New.
type Options struct {
	By     []calltree.By // of frames; nil is by function
	Filter calltree.Filter
	Event  int         // number in the Profile; -1 for all that have samples
	Shown  int         // number in the Profile of the event that is shown first
	Count  bool        // samples instead of weight
	Keep   ingest.Keep // labels that the Profile keeps apart and the page can choose by
	// Cover is how much of the Profile is named; nil computes it, with steps for any host.
	Cover     *advice.Coverage
	Demangler *demangle.Demangler // nil shows simple names
	// Reverse has the graph by leaf: at first in a page, always in a picture.
	Reverse bool
	// MinShare leaves out frames with less than this share of each event, from 0 to 1. Without it
	// only the size of the page counts.
	MinShare float64
}

// The sizes of a page. Names and labels differ too much in size to foresee the page's:
// where it comes out larger than maxPage bytes, it is made anew with fewer nodes and functions.
const (
	maxForward = 75_000 // nodes of the tree from the roots
	maxReverse = 55_000 // nodes of the tree from the leaves
	maxTop     = 5_000  // functions of the table
	maxName    = 600    // characters of a name
	maxPage    = 1_490_000
	maxReport  = 1_990_000 // with code
)

// Views of times that a page can begin with.
const (
	HeatView = "heat map"
	Timeline = "timeline"
)

// Graph is the data of one page or file.
type Graph struct {
	Title  string           `json:"title"`
	About  []Fact           `json:"about"`
	Events []Event          `json:"events"`
	Labels []Label          `json:"labels"`
	Shown  int              `json:"shown"` // the event that is shown first
	Notes  []string         `json:"notes"` // on the parts that the page leaves out
	Cover  *advice.Coverage `json:"coverage"`

	// StartReversed has the graph by leaf at first.
	StartReversed bool `json:"reversed"`

	// Scaling is set in a differential graph: the first event is then the new side, the second
	// the base.
	Scaling *Scaling `json:"scaling,omitempty"`

	// Heat has the samples of the shown event by time, Rows by an attribute, RowsBy, if that is not
	// the thread of ranges.
	Heat   *HeatGrid       `json:"heat,omitempty"`
	Rows   *HeatGrid       `json:"rows,omitempty"`
	RowsBy string          `json:"rows_by,omitempty"`
	View   string          `json:"view,omitempty"` // HeatView, Timeline; else the table is shown first
	Code   *annotate.Parts `json:"-"`              // which the page reads when it is first seen
	Tables []Table         `json:"tables,omitempty"`

	Columns []column   `json:"columns"`
	Objects []object   `json:"objects"`
	Frames  frameTable `json:"frames"`
	Forward treeData   `json:"forward"`
	Reverse treeData   `json:"reverse"`
	Top     topData    `json:"top"`

	rows *rows
	// The trees of a page of the usual size, made when they are first needed.
	forward, reverse func() *tree
	times            *Times
	startMillis      int64 // wall clock, since 1970; 0 if not known
	minShare         float64
	tests            *Tests
}

// Fact is one property of a recording, by name.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Event is one event of the page.
type Event struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"` // "samples" with Options.Count
	Samples uint64 `json:"samples"`
	Total   uint64 `json:"total"` // of all samples
	Kept    uint64 `json:"kept"`  // of samples that the filter keeps
}

type object struct {
	Path string `json:"path"`
	ID   string `json:"id"`
}

// frameTable has the frames as columns: index into strings would save nothing, as the page is
// deflated.
type frameTable struct {
	Name   []string `json:"name"`
	File   []string `json:"file"`   // "/src/a.c:12"
	Object []int    `json:"object"` // -1 for none
	Kind   []int    `json:"kind"`
	// numbers of the frames in the folder
	nodes []calltree.NodeID
	index map[calltree.NodeID]int
}

// treeData is a tree in preorder. Cells are four numbers each: the distance from the node of
// the cell before, column, self and left.
type treeData struct {
	Frame   []int    `json:"frame"`
	Depth   []int32  `json:"depth"`
	Inlined []int    `json:"inlined"`
	Cells   []uint64 `json:"cells"`
}

// topData has the table of functions as cells: the distance from the frame of the cell before,
// column, flat, cum.
type topData struct {
	Cells []uint64 `json:"cells"`
	Left  int      `json:"left"` // how many functions are not in it
}

// New makes the graph of a named profile.
func New(p *ingest.Profile, opts Options) *Graph {
	r := newRows(p, &opts)
	r.sortValues()
	g := &Graph{Labels: r.labels, Columns: r.columns, minShare: opts.MinShare,
		StartReversed: opts.Reverse, Shown: r.shown, Cover: opts.Cover}
	if g.Cover == nil {
		g.Cover = advice.NewCoverage(p, advice.CoverageOptions{Count: opts.Count})
	}
	g.setRows(r)
	for _, s := range r.events {
		g.Events = append(g.Events, Event{Name: s.Event, Unit: s.Unit, Samples: s.Samples,
			Total: s.Total, Kept: s.Kept})
	}
	g.describe(p)
	return g
}

// setRows sets the stacks, and how trees are made of them.
func (g *Graph) setRows(r *rows) {
	g.rows = r
	g.forward = sync.OnceValue(func() *tree { return newTree(r, false, maxForward, g.minShare) })
	g.reverse = sync.OnceValue(func() *tree { return newTree(r, true, maxReverse, g.minShare) })
}

// Unmatched returns the names of the expressions of the filter that matched nothing.
func (g *Graph) Unmatched() []string {
	if len(g.rows.events) == 0 {
		return nil
	}
	return g.rows.events[0].Unmatched
}

// fill makes trees and tables of a part of the usual size, and returns the forward tree.
func (g *Graph) fill(part float64) *tree {
	g.Notes = []string{}
	g.Frames = frameTable{index: make(map[calltree.NodeID]int)}
	var wg sync.WaitGroup
	wg.Go(func() { g.forward() })
	wg.Go(func() { g.reverse() })
	g.fillTop(int(maxTop * part))
	wg.Wait()
	forward, reverse := g.forward(), g.reverse()
	if part < 1 {
		forward, reverse = forward.cut(int(maxForward*part)), reverse.cut(int(maxReverse*part))
	}
	g.Forward, g.Reverse = g.encode(forward), g.encode(reverse)
	g.noteTree("", forward)
	g.noteTree("by leaf: ", reverse)
	g.fillFrames()
	g.fillTests()
	return forward
}

// encode numbers the frames of a tree and brings it into arrays.
func (g *Graph) encode(t *tree) treeData {
	d := treeData{Frame: []int{}, Depth: []int32{}, Inlined: []int{}, Cells: []uint64{}}
	last := 0
	t.preorder(func(n *node) {
		i := len(d.Frame)
		d.Frame = append(d.Frame, g.number(n.frame))
		d.Depth = append(d.Depth, n.depth)
		if n.inlined {
			d.Inlined = append(d.Inlined, i)
		}
		for _, c := range n.cells {
			d.Cells = append(d.Cells, uint64(i-last), uint64(c.column), c.self, c.left)
			last = i
		}
	})
	return d
}

// number gives a frame its number in the page.
func (g *Graph) number(n calltree.NodeID) int {
	if n == calltree.NoNode {
		return -1
	}
	f := &g.Frames
	i, ok := f.index[n]
	if !ok {
		i = len(f.nodes)
		f.index[n] = i
		f.nodes = append(f.nodes, n)
	}
	return i
}

// noteTree adds the note on the part of a tree that was left out.
func (g *Graph) noteTree(which string, t *tree) {
	if t.leftOut == 0 {
		return
	}
	g.Notes = append(g.Notes, which+leftOutText(t))
}

// describe sets title and facts.
func (g *Graph) describe(p *ingest.Profile) {
	m := &p.Meta
	words := []string{}
	for _, c := range m.Captures {
		words = append(words, texts.Printable(ingest.BaseName(c)))
	}
	if len(words) > 3 {
		words = append(words[:3], "…")
	}
	g.Title, g.About = cmp.Or(strings.Join(words, ", "), "profile"), []Fact{}
	add := func(name, text string) {
		if text != "" {
			g.About = append(g.About, Fact{name, texts.Printable(text)})
		}
	}
	add("captures", strings.Join(m.Captures, ", "))
	add("host", m.Host)
	add("kernel", strings.TrimSpace(m.OSRelease+" "+m.Arch))
	g.startMillis = m.StartNanos / 1e6
	if m.StartNanos > 0 {
		add("began", time.Unix(0, m.StartNanos).UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	if m.Duration > 0 {
		add("duration", time.Duration(m.Duration).Round(time.Millisecond).String())
	}
	add("recorder", m.Recorder)
	add("command", m.Command)
	if g.Shown < len(g.Events) && calltree.OfPrograms(p, g.rows.number[g.Shown]) {
		return
	}
	add("main program", m.MainProgram)
	if i := slices.IndexFunc(p.Objects, func(o ingest.Object) bool {
		return m.MainProgram != "" && o.File.Path == m.MainProgram
	}); i >= 0 {
		add("build ID", p.Objects[i].ID.String())
	}
}
