package calltree

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Stacks holds the samples of an event as stacks of nodes with their values.
type Stacks struct {
	Nodes []Node
	Event string // printable names of the event and its unit
	Unit  string
	// Total is the value of all samples of the event, Kept of the samples that the filter keeps.
	Total, Kept uint64
	Samples     uint64 // number of all samples of the event
	// BaseTotal and BaseKept are the totals of the base, if two profiles are compared.
	BaseTotal, BaseKept uint64
	// Unmatched has the names of the filter's expressions that match nothing in the
	// profile, or no label in its samples: "focus", "ignore", "hide", "show", "show-from",
	// "tag-focus", "tag-ignore".
	Unmatched []string

	folder *Folder
	frames []frame
	leaves []uint32 // by stack: its innermost frame
	path   []uint32 // the frames of the last stack that addNodes added
	values []uint64
	// squares are the sums of the squares of the samples' values by stack, with Options.Squares.
	squares []float64
	base    []uint64 // nil for none
}

// AllEvents is for Fold: the samples of all events, counted.
const AllEvents = -1

// Fold adds up the samples of an event: their weight or, with count, their number, which also
// weighs an event that has no periods at all.
func (f *Folder) Fold(event int, count bool) *Stacks {
	s, value := f.begin(event, count)
	if len(f.roots) == 0 {
		s.foldByStack(event, value)
		s.Nodes = f.nodes
		return s
	}
	var locs []ingest.LocationID
	for i := range f.Profile.Samples {
		smp := &f.Profile.Samples[i]
		if s.take(smp, event, value) {
			locs = f.Profile.Stack(locs[:0], smp.Stack)
			s.add(locs, smp, value(smp), squares(smp, value))
		}
	}
	s.Nodes = f.nodes
	return s
}

// begin returns stacks without samples, and how a sample weighs.
func (f *Folder) begin(event int, count bool) (*Stacks, func(*ingest.Sample) uint64) {
	s := &Stacks{folder: f, Unmatched: f.unmatched(), frames: make([]frame, 1)}
	return s, s.describe(event, count)
}

// FoldSums is Fold for the flat and cumulative values of nodes alone, see Stacks.Sums. The stacks
// that it returns have all samples but, if every stack of the profile is kept as it is, no frames:
// these are as much memory as the profile's stacks.
func (f *Folder) FoldSums(event int, count bool) (s *Stacks, flat, cum []uint64) {
	if len(f.roots) > 0 || f.filtered != nil {
		s = f.Fold(event, count)
		flat, cum = s.Sums()
		return s, flat, cum
	}
	s, value := f.begin(event, count)
	sums, _ := s.byStack(event, value)
	s.Nodes = f.nodes
	flat = make([]uint64, len(f.nodes))
	for id, v := range sums {
		if s.Kept += v; id > 0 {
			nodes := f.nodesAt(f.Profile.Leaves[id])
			flat[nodes[len(nodes)-1]&^inlinedBit] += v
		}
	}
	return s, flat, f.cumulative(sums)
}

// cumulative returns the cumulative values of nodes from the values of stacks, which it changes.
func (f *Folder) cumulative(sums []uint64) []uint64 {
	p, cum := f.Profile, make([]uint64, len(f.nodes))
	for id := len(sums) - 1; id > 0; id-- {
		sums[p.Callers[id]] += sums[id]
	}
	open := make([]uint32, len(f.nodes)) // frames of the node in the stacks of path
	var path []ingest.StackID            // the beginnings of a stack, each a stack
	for id := 1; id < len(sums); id++ {
		for ; len(path) > 0 && path[len(path)-1] != p.Callers[id]; path = path[:len(path)-1] {
			for _, n := range f.nodesAt(p.Leaves[path[len(path)-1]]) {
				open[n&^inlinedBit]--
			}
		}
		path = append(path, ingest.StackID(id))
		for _, n := range f.nodesAt(p.Leaves[id]) {
			n &^= inlinedBit
			if open[n] == 0 {
				cum[n] += sums[id]
			}
			open[n]++
		}
	}
	return cum
}

// describe sets names and returns how a sample weighs.
func (s *Stacks) describe(event int, count bool) func(*ingest.Sample) uint64 {
	p := s.folder.Profile
	if event >= 0 && event < len(p.Events) {
		s.Event = texts.Printable(p.Events[event].Name)
		s.Unit = texts.Printable(p.Events[event].Unit)
	}
	periods := false
	for i := range p.Samples {
		periods = periods || int(p.Samples[i].Event) == event && p.Samples[i].Weight != 0
	}
	if count || event == AllEvents || !periods {
		s.Unit = "samples"
		return func(smp *ingest.Sample) uint64 { return smp.Count }
	}
	return func(smp *ingest.Sample) uint64 { return smp.Weight }
}

// take counts a sample in the totals if it is of the event, and reports whether the filters by
// labels keep it.
func (s *Stacks) take(smp *ingest.Sample, event int, value func(*ingest.Sample) uint64) bool {
	if event != AllEvents && int(smp.Event) != event {
		return false
	}
	s.Total += value(smp)
	s.Samples += smp.Count
	return s.folder.keeps(smp)
}

// byStack adds up the samples of an event, and with Options.Squares their squares, by stack of the
// profile.
func (s *Stacks) byStack(event int, value func(*ingest.Sample) uint64) (sums []uint64,
	squared []float64) {
	p := s.folder.Profile
	sums = make([]uint64, len(p.Callers))
	if s.folder.opts.Squares {
		squared = make([]float64, len(p.Callers))
	}
	for i := range p.Samples {
		smp := &p.Samples[i]
		if !s.take(smp, event, value) {
			continue
		}
		sums[smp.Stack] += value(smp)
		if squared != nil {
			squared[smp.Stack] += squares(smp, value)
		}
	}
	return sums, squared
}

// foldByStack adds samples up by stack first, so that each stack is walked once.
func (s *Stacks) foldByStack(event int, value func(*ingest.Sample) uint64) {
	p := s.folder.Profile
	sums, squared := s.byStack(event, value)
	if s.folder.filtered != nil {
		var locs []ingest.LocationID
		for id, v := range sums {
			if v != 0 {
				locs = p.Stack(locs[:0], ingest.StackID(id))
				s.add(locs, nil, v, at(squared, id))
			}
		}
		return
	}
	used, frames := make([]bool, len(sums)), 0
	for id := len(sums) - 1; id > 0; id-- {
		used[id] = used[id] || sums[id] != 0
		used[p.Callers[id]] = used[p.Callers[id]] || used[id]
		if used[id] {
			frames += len(s.folder.nodesAt(p.Leaves[id]))
		}
	}
	s.frames = slices.Grow(s.frames, frames)
	leaves := make([]uint32, len(sums)) // frame by stack
	for id, v := range sums {
		if id > 0 && used[id] {
			leaves[id] = s.addLocation(leaves[p.Callers[id]], p.Leaves[id])
		}
		if v != 0 {
			s.addStack(leaves[id], v, at(squared, id))
		}
	}
}

// at returns an element of a list that can be nil.
func at(list []float64, i int) float64 {
	if list == nil {
		return 0
	}
	return list[i]
}

// addLocation adds the frames of a location below a caller, and returns the innermost.
func (s *Stacks) addLocation(caller uint32, l ingest.LocationID) uint32 {
	f := s.folder
	for _, n := range f.nodesAt(l) {
		if caller == 0 || !f.joins() || s.frames[caller].node&^inlinedBit != n&^inlinedBit {
			caller = s.addFrame(caller, n)
		}
	}
	return caller
}

// squares returns the sum of the squares of the values of samples that were added up as one: they
// count as equal.
func squares(smp *ingest.Sample, value func(*ingest.Sample) uint64) float64 {
	v := float64(value(smp))
	return v * v / float64(max(1, smp.Count))
}

// add adds a stack of locations, leaf first, with the labels of a sample.
func (s *Stacks) add(locs []ingest.LocationID, smp *ingest.Sample, value uint64, squares float64) {
	if f := s.folder; value != 0 && f.stackOf(locs, smp) {
		s.addStack(s.addNodes(f.list), value, squares)
	}
}

// stackOf sets list to the nodes of a stack, outermost first, with those of the labels of a sample, if there is one.
// It reports whether the filter keeps the stack.
func (f *Folder) stackOf(locs []ingest.LocationID, smp *ingest.Sample) bool {
	locs, ok := f.filter(locs)
	if !ok {
		return false
	}
	f.list = f.list[:0]
	if smp != nil {
		for _, by := range f.roots {
			f.list = append(f.list, f.labelNode(by, smp))
		}
	}
	f.list = f.appendNodes(f.list, locs)
	return true
}

// filter applies the filter of frames to a stack, leaf first: see filtered.stack.
func (f *Folder) filter(locs []ingest.LocationID) ([]ingest.LocationID, bool) {
	if f.filtered == nil {
		return locs, true
	}
	return f.filtered.stack(&f.opts.Filter, locs)
}

// Stack appends the nodes of a stack of locations, which is leaf first, to list: outermost first
// and marked where they are of inlined calls, without those of labels. It reports whether the
// filter of frames keeps the stack.
func (f *Folder) Stack(list []NodeID, locs []ingest.LocationID) ([]NodeID, bool) {
	locs, ok := f.filter(locs)
	if !ok {
		return list, false
	}
	return f.appendNodes(list, locs), true
}

// appendNodes appends the nodes of a stack of locations, leaf first, to list.
func (f *Folder) appendNodes(list []NodeID, locs []ingest.LocationID) []NodeID {
	start := len(list)
	for i := len(locs) - 1; i >= 0; i-- {
		for _, n := range f.nodesAt(locs[i]) {
			if f.joins() && len(list) > start && list[len(list)-1]&^inlinedBit == n&^inlinedBit {
				continue
			}
			list = append(list, n)
		}
	}
	return list
}

// joins reports whether neighbouring frames of a node are one.
func (f *Folder) joins() bool { return f.by == File || f.by == Object || f.by == BuildID }

// nodesAt returns the nodes of a location, outermost first, with inlinedBit.
func (f *Folder) nodesAt(l ingest.LocationID) []NodeID {
	from := uint32(0)
	if l > 0 {
		from = f.ends[l-1]
	}
	return f.at[from:f.ends[l]]
}

// labelNode returns the node of a label of a sample.
func (f *Folder) labelNode(by By, s *ingest.Sample) NodeID {
	k := nodeKey{by: by}
	switch by {
	case Comm:
		k.number = int64(s.Comm)
	case PID:
		k.number = int64(s.PID)
	case TID:
		k.number = int64(s.TID)
	case CPU:
		k.number = int64(s.CPU)
	case Event:
		k.number = int64(s.Event)
	case Label:
		k.text = f.labelText(s)
	default:
		k.text = f.Profile.Tag(s, ingest.TagKey(string(by)))
	}
	return f.node(k, func() Node {
		return Node{Name: f.labelName(by, s)}
	})
}

func (f *Folder) labelName(by By, s *ingest.Sample) string {
	switch by {
	case Event:
		return texts.Printable(f.Profile.Events[s.Event].Name)
	case Label:
		return f.labelText(s)
	}
	if text, ok := SampleLabel(by, f.Profile.Strings[s.Comm], "", s.PID, s.TID, s.CPU); ok {
		return text
	}
	key := ingest.TagKey(string(by))
	return tagText(key, f.Profile.Tag(s, key))
}

// SampleLabel returns the name of the node of a label of a sample with these attributes, negative
// or empty for unknown ones; ok is false if the label is not Comm, PID, TID, CPU or the state.
func SampleLabel(by By, comm, state string, pid, tid, cpu int32) (text string, ok bool) {
	switch by {
	case ingest.StateTag:
		return tagText(ingest.StateTag, state), state != ""
	case Comm:
		return commText(comm), true
	case PID:
		return numberText("pid", pid), true
	case TID:
		return numberText("tid", tid), true
	case CPU:
		return numberText("cpu", cpu), true
	}
	return "", false
}

// tagText is the name of a tag's node, with the key if the value is a number.
func tagText(key, value string) string {
	switch {
	case value == "":
		return "[no " + texts.Printable(key) + "]"
	case strings.ContainsAny(value[:1], "0123456789"):
		return texts.Printable(key + " " + value)
	}
	return texts.Printable(value)
}

// labelText joins all labels of a sample that its profile keeps.
func (f *Folder) labelText(s *ingest.Sample) string {
	words := []string{"comm " + commText(f.Profile.Strings[s.Comm])}
	for name, n := range sampleNumbers(s) {
		words = append(words, numberText(name, n))
	}
	for t := range f.Profile.AllTags(s) {
		words = append(words, texts.Printable(t.Key+" "+t.Value()))
	}
	return strings.Join(words, ", ")
}

// sampleNumbers returns the numeric labels that a sample has.
func sampleNumbers(s *ingest.Sample) iter.Seq2[string, int32] {
	return func(yield func(string, int32) bool) {
		if s.PID >= 0 && !yield("pid", s.PID) || s.TID >= 0 && !yield("tid", s.TID) {
			return
		}
		if s.CPU >= 0 {
			yield("cpu", s.CPU)
		}
	}
}

// noComm is the name of the node of samples without a comm.
const noComm = "[no comm]"

func commText(comm string) string {
	if comm == "" {
		return noComm
	}
	return texts.Printable(comm)
}

func numberText(label string, n int32) string {
	if n < 0 {
		return "[no " + label + "]"
	}
	return label + " " + strconv.Itoa(int(n))
}
