package flame

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"

	"symbolize/analyze/calltree"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

const (
	// maxTimed bounds how many samples Times keeps, of 24 bytes each.
	maxTimed = 4_000_000
	// maxThreads bounds how many threads a file for the Firefox Profiler has; the lightest ones
	// share one for each event.
	maxThreads = 2_000
	timedBlock = 1 << 15 // samples
)

// ErrManySamples is the error of Times.Add for recordings that are too long for a viewer.
var ErrManySamples = errors.New("over 4,000,000 samples")

// Times has the samples of a recording in order of time, for WriteGecko and WriteHTML.
type Times struct {
	g       *Graph
	columns map[string]uint16 // of a page: columns of the graph by columnText; else nil
	line    func(ingest.LocationID) uint32
	// children has the nodes of the forward tree by the index of their caller and their frame, of a
	// page.
	children map[[2]uint32]int32
	text     []byte
	table    geckoStacks
	nodes    map[[2]uint32]uint32       // rows of table by parent (0: none, else one more) and frame
	stacks   map[string]int32           // numbers in chains by comm and locations; droppedStack
	comms    map[string]calltree.NodeID // nodes by name, if they are the outermost frames; else nil
	chains   []chain
	threads  []timedThread
	index    map[threadKey]uint32
	blocks   [][]timedSample
	first    uint64 // the earliest time; 0 before there is one
	last     uint64

	locations []ingest.LocationID
	key       []byte
	frames    []calltree.NodeID
}

// chain is a distinct stack: its last row in the table, and the location of its innermost frame.
type chain struct {
	row  int32 // -1 for an empty stack; of a page: its place in the tree, by index
	leaf ingest.LocationID
}

// noLocation is the innermost frame of an empty stack.
const noLocation = ^ingest.LocationID(0)

// droppedStack is the number of a stack that the filter drops.
const droppedStack = -1

type threadKey struct {
	event    int // in the graph
	pid, tid int32
	column   uint16 // of the graph, in a page
}

type timedThread struct {
	threadKey
	comm    string // the last one
	samples []uint32
	count   int
	shared  bool // the lightest threads of the event
}

type timedSample struct {
	time, weight uint64
	thread       uint32
	stack        int32 // number in chains
}

// SetTimes makes an empty Times for WriteGecko. The graph has to be of the Profile of one recording
// and only by comm and attributes of frames.
func (g *Graph) SetTimes() *Times {
	t := &Times{g: g, nodes: make(map[[2]uint32]uint32), stacks: make(map[string]int32),
		index: make(map[threadKey]uint32)}
	if g.rows.comms {
		t.comms = make(map[string]calltree.NodeID)
		for i := range g.rows.nodes {
			if n := &g.rows.nodes[i]; n.By == calltree.Comm {
				t.comms[n.Name] = calltree.NodeID(i)
			}
		}
	}
	g.times = t
	return t
}

// DropTimes undoes SetTimes.
func (g *Graph) DropTimes() { g.times = nil }

// Timed reports whether the graph has samples with times.
func (g *Graph) Timed() bool { return g.times != nil && g.times.first != 0 }

// Add adds the next sample of a replay. Samples without a time count as samples of the time
// before.
func (t *Times) Add(s *input.ReplaySample) error {
	event := slices.Index(t.g.rows.number, int(s.Event))
	if event < 0 {
		return nil
	}
	stack := t.stack(s)
	if stack == droppedStack {
		return nil
	}
	time := s.Time
	switch {
	case time == 0 || time == ^uint64(0):
		time = t.last
	case t.first == 0:
		t.first = time
	}
	t.last = time
	weight := s.Period
	if t.g.Events[event].Unit == countUnit {
		weight = 1
	}
	k := threadKey{event: event, pid: s.PID, tid: s.TID}
	if t.columns != nil {
		var ok bool
		if k.column, ok = t.column(event, s); !ok {
			return ErrManyLabels
		}
	}
	n := len(t.blocks)
	if n == 0 || len(t.blocks[n-1]) == timedBlock {
		if n*timedBlock >= maxTimed {
			return ErrManySamples
		}
		t.blocks = append(t.blocks, make([]timedSample, 0, timedBlock))
		n++
	}
	t.blocks[n-1] = append(t.blocks[n-1], timedSample{time: time, weight: weight,
		thread: t.thread(k, s.Comm), stack: stack})
	return nil
}

// countUnit is the unit of counted samples (calltree.Stacks.Unit).
const countUnit = "samples"

func (t *Times) thread(k threadKey, comm string) uint32 {
	n, ok := t.index[k]
	if !ok {
		n = uint32(len(t.threads))
		t.index[k] = n
		t.threads = append(t.threads, timedThread{threadKey: k})
	}
	t.threads[n].comm = comm
	t.threads[n].count++
	return n
}

// stack returns the number of the stack of a sample in chains, or droppedStack.
func (t *Times) stack(s *input.ReplaySample) int32 {
	t.key, t.locations = t.key[:0], t.locations[:0]
	if t.comms != nil {
		t.key = append(append(t.key, s.Comm...), 0)
	}
	for _, f := range s.Frames {
		t.key = binary.AppendUvarint(t.key, uint64(f.Location))
		t.locations = append(t.locations, f.Location)
	}
	number, ok := t.stacks[string(t.key)]
	if ok {
		return number
	}
	number = droppedStack
	if t.frames, ok = t.g.rows.folder.Stack(t.root(s.Comm), t.locations); ok {
		number = int32(len(t.chains))
		c := chain{row: t.lastRow(t.frames), leaf: noLocation}
		if len(t.locations) > 0 {
			c.leaf = t.locations[0]
		}
		t.chains = append(t.chains, c)
	}
	t.stacks[string(t.key)] = number
	return number
}

// root returns t.frames with only the node of a comm, if the comms are roots.
func (t *Times) root(comm string) []calltree.NodeID {
	text, _ := calltree.SampleLabel(calltree.Comm, comm, "", -1, -1, -1)
	if n, ok := t.comms[text]; ok {
		return append(t.frames[:0], n)
	}
	return t.frames[:0]
}

// lastRow returns the row of the innermost frame of a stack; of a page, twice the index of the last
// node of the tree that the stack has, plus one if it goes on.
func (t *Times) lastRow(stack []calltree.NodeID) int32 {
	if t.columns == nil {
		row := int32(-1)
		for _, n := range stack {
			row = t.row(row, n)
		}
		return row
	}
	at := int32(0)
	for _, n := range stack {
		frame, _ := n.Inlined()
		child, ok := t.children[[2]uint32{uint32(at), uint32(frame)}]
		if !ok {
			return 2*at + 1
		}
		at = child
	}
	return 2 * at
}

// row returns the row of the table for a frame with a parent.
func (t *Times) row(parent int32, n calltree.NodeID) int32 {
	frame := geckoFrame(n)
	k := [2]uint32{uint32(parent + 1), frame}
	row, ok := t.nodes[k]
	if !ok {
		row = uint32(len(t.table.frames))
		t.nodes[k] = row
		distance := uint32(0)
		if parent >= 0 {
			distance = row - uint32(parent)
		}
		t.table.parents = append(t.table.parents, distance)
		t.table.frames = append(t.table.frames, frame)
	}
	return int32(row)
}

// share lists the samples of each thread, of the lightest beyond maxThreads together.
func (t *Times) share() []*timedThread {
	order := make([]*timedThread, len(t.threads))
	for i := range t.threads {
		order[i] = &t.threads[i]
		order[i].samples = order[i].samples[:0] // from an earlier file
	}
	slices.SortFunc(order, func(a, b *timedThread) int {
		return cmp.Or(cmp.Compare(b.count, a.count), compareThreads(a, b))
	})
	var others []*timedThread
	place := make(map[threadKey]*timedThread, len(order))
	for i, th := range order {
		place[th.threadKey] = th
		if i < maxThreads {
			continue
		}
		at := slices.IndexFunc(others, func(o *timedThread) bool { return o.event == th.event })
		if at < 0 {
			at = len(others)
			others = append(others, &timedThread{threadKey: threadKey{event: th.event, tid: -1},
				comm: "others", shared: true})
		}
		place[th.threadKey] = others[at]
	}
	order = append(order[:min(len(order), maxThreads)], others...)
	for b := range t.blocks {
		for i := range t.blocks[b] {
			th := place[t.threads[t.blocks[b][i].thread].threadKey]
			th.samples = append(th.samples, uint32(b*timedBlock+i))
		}
	}
	slices.SortFunc(order, compareThreads)
	return order
}

// compareThreads orders threads as the viewer shows them: processes, their main threads first.
func compareThreads(a, b *timedThread) int {
	side := func(t *timedThread) int {
		if t.tid == t.pid {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(side(a), side(b)),
		cmp.Compare(a.tid, b.tid), cmp.Compare(a.event, b.event))
}

func (t *Times) at(n uint32) *timedSample { return &t.blocks[n/timedBlock][n%timedBlock] }

// write writes the shared tables and the threads.
func (t *Times) write(j *jsonWriter) {
	t.g.geckoTables(j, &t.table)
	threads := t.share()
	processes := make(map[int32]string)
	for _, th := range threads {
		if _, ok := processes[th.pid]; !ok || th.pid == th.tid {
			processes[th.pid] = th.comm
		}
	}
	j.WriteString(`,"threads":`)
	main := int32(-1)
	j.list(len(threads), func(i int) {
		th := threads[i]
		before := t.first
		isMain := th.pid == th.tid && th.pid != main // the first one of several events
		if isMain {
			main = th.pid
		}
		tid := strconv.Itoa(int(th.tid))
		if len(t.g.Events) > 1 {
			tid += "." + strconv.Itoa(th.event+1)
		}
		j.geckoThread(&geckoThread{name: th.comm, process: processes[th.pid],
			pid: strconv.Itoa(int(th.pid)), tid: tid, event: &t.g.Events[th.event],
			several: len(t.g.Events) > 1, main: isMain, samples: len(th.samples),
			stack:  func(i int) int32 { return t.chains[t.at(th.samples[i]).stack].row },
			weight: func(i int) uint64 { return t.at(th.samples[i]).weight },
			delta: func(i int) float64 {
				time := max(t.at(th.samples[i]).time, before)
				d := time - before
				before = time
				return float64(d) / 1e6
			}})
	})
}

// interval is the usual distance of samples in milliseconds: the median of the thread that has
// most of them, or 1 without times.
func (g *Graph) interval() float64 {
	if g.times == nil || len(g.times.threads) == 0 {
		return 1
	}
	t := g.times
	busiest := uint32(0)
	for i := range t.threads {
		if t.threads[i].count > t.threads[busiest].count {
			busiest = uint32(i)
		}
	}
	var gaps []uint64
	before := uint64(0)
	for _, b := range t.blocks {
		for i := range b {
			if b[i].thread != busiest {
				continue
			}
			if before != 0 && b[i].time > before {
				gaps = append(gaps, b[i].time-before)
			}
			before = b[i].time
		}
	}
	if len(gaps) == 0 {
		return 1
	}
	slices.Sort(gaps)
	return float64(gaps[len(gaps)/2]) / 1e6
}
