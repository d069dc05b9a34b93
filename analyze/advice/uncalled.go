package advice

import (
	"cmp"
	"slices"

	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/ingest"
)

// Uncalled counts the frames of user code that cannot be callers: callers at the first byte of
// their function, by ingest's rule for return addresses (input.Options.Exact). Code without frame
// pointers left such words where a chain of frame pointers expects return addresses: pointers to
// functions, entries of tables of virtual functions. They have names, as in perf, but did not call
// their apparent callees. Frames that an interrupt or a signal reached are not counted, and neither
// is code with an address put below the outermost function on purpose. Words inside functions
// cannot be recognized: the stacks with an uncalled frame are the least that are wrong.
type Uncalled struct {
	Frames  uint64  `json:"frames"`
	Share   float64 `json:"frames_percent"` // of all frames, by weight
	Samples uint64  `json:"samples"`        // that have such frames
	Hint    string  `json:"hint"`
}

// uncalledHint makes the chains right.
const uncalledHint = "gcc -fno-omit-frame-pointer, or perf record --call-graph dwarf"

// newUncalled returns nil for a profile without such frames. all is the sum of its frames.
func newUncalled(p *ingest.Profile, count bool, all ingest.FrameSum) *Uncalled {
	c := countUncalled(p, count)
	if c == nil {
		return nil
	}
	return &Uncalled{Frames: c.sum.Frames, Share: share(c.sum, all), Samples: c.samples,
		Hint: uncalledHint}
}

// uncalledCount counts the uncalled frames of a profile.
type uncalledCount struct {
	p       *ingest.Profile
	first   []bool          // by location: atStart
	sum     ingest.FrameSum // of uncalled frames
	samples uint64          // that have such
}

// countUncalled returns nil for a profile without uncalled frames. Stacks are looked at once each,
// not once a sample.
func countUncalled(p *ingest.Profile, count bool) *uncalledCount {
	if p.Names == nil || p.Stats.NoStarts || p.Stats.NoReturns {
		return nil
	}
	c := &uncalledCount{p: p, first: make([]bool, len(p.Locations))}
	for l := range c.first {
		c.first[l] = atStart(p, ingest.LocationID(l))
	}
	if !slices.Contains(c.first, true) {
		return nil
	}
	frames := make([]uint32, len(p.Callers)) // uncalled ones of each stack
	for s := 1; s < len(frames); s++ {
		frames[s] = frames[p.Callers[s]]
		if c.uncalled(ingest.StackID(s)) {
			frames[s]++
		}
	}
	for s, w := range p.SampleSums(count) {
		if n := frames[s.Stack]; n > 0 {
			c.samples += s.Count
			c.sum.Add(ingest.FrameSum{Frames: w.Frames * uint64(n), Weight: w.Weight * float64(n)})
		}
	}
	if c.sum.Frames == 0 {
		return nil
	}
	return c
}

// uncalled reports whether the caller of the innermost frame of a stack is uncalled.
func (c *uncalledCount) uncalled(s ingest.StackID) bool {
	caller := c.p.Callers[s]
	return caller != 0 && c.first[c.p.Leaves[caller]] && calls(c.p, c.p.Leaves[s])
}

// heaviest returns the uncalled location with most weight; count is as for countUncalled.
func (c *uncalledCount) heaviest(count bool) (heaviest ingest.LocationID) {
	weights := make([]ingest.FrameSum, len(c.p.Callers))
	for s, w := range c.p.SampleSums(count) {
		weights[s.Stack].Add(w)
	}
	sums := make([]ingest.FrameSum, len(c.first))
	for s := len(weights) - 1; s > 0; s-- { // callees come after their callers
		caller := c.p.Callers[s]
		if c.uncalled(ingest.StackID(s)) {
			sums[c.p.Leaves[caller]].Add(weights[s])
		}
		weights[caller].Add(weights[s])
	}
	for l := range sums {
		if cmp.Or(cmp.Compare(sums[l].Weight, sums[heaviest].Weight),
			cmp.Compare(sums[l].Frames, sums[heaviest].Frames)) > 0 {
			heaviest = ingest.LocationID(l)
		}
	}
	return heaviest
}

// atStart reports whether a location is the first byte of a function of a file, but none of which
// the first byte, or the byte after it, is put onto stacks as the address that the outermost
// function returns to.
func atStart(p *ingest.Profile, l ingest.LocationID) bool {
	o := &p.Objects[p.Locations[l].Object]
	if p.Names.SymOff[l] != 0 || !p.Names.Named(l) || o.Kind != ingest.ELF || o.Entry {
		return false
	}
	switch name := functionAt(p, l); name {
	case "runtime.goexit", "runtime.goexit.abi0", "__start_context":
		return false
	default:
		return !ingest.IsSignalReturn(name)
	}
}

// calls reports whether a frame has the next one for its caller: neither the kernel interrupted
// that, nor a signal.
func calls(p *ingest.Profile, l ingest.LocationID) bool {
	switch p.Objects[p.Locations[l].Object].Domain() {
	case ingest.KernelDomain, ingest.BPFDomain:
		return false
	}
	return !ingest.IsSignalReturn(functionAt(p, l))
}

// functionAt returns the symbol of the physical function at a location, "" for none.
func functionAt(p *ingest.Profile, l ingest.LocationID) string {
	frames := p.Names.At(l)
	if len(frames) == 0 {
		return ""
	}
	return p.Names.Functions[frames[len(frames)-1].Func].SystemName
}

// String returns the counts in words.
func (u *Uncalled) String() string {
	noun := " frames"
	if u.Frames == 1 {
		noun = " frame"
	}
	return table.Thousands(u.Frames) + noun + " that no call led to (" + share100(u.Share) + ")"
}

// uncalledShare is the share of samples with uncalled frames, in percent, from which readers of a
// table of functions are warned.
const uncalledShare = 1

// UncalledWarning is the warning about uncalled frames of a named profile, nil where they are few.
func UncalledWarning(p *ingest.Profile) *ingest.Warning {
	if a := uncalled(p); a != nil {
		return &a.Warning
	}
	return nil
}

func uncalled(p *ingest.Profile) *finding {
	c := countUncalled(p, false)
	if c == nil {
		return nil
	}
	samples := uint64(0)
	for i := range p.Samples {
		samples += p.Samples[i].Count
	}
	part := percent(float64(c.samples), float64(samples))
	if part < uncalledShare {
		return nil
	}
	name := demangle.New(demangle.Simple).Name(functionAt(p, c.heaviest(false)))
	return &finding{share: part, Warning: ingest.Warning{Hint: uncalledHint,
		Text: share100(part) + " of the samples have callers that called nothing, as " + name +
			": words that code without frame pointers left on the stack"}}
}
