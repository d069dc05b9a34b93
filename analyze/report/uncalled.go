package report

import (
	"cmp"

	"symbolize/analyze/table"
	"symbolize/ingest"
)

// Uncalled counts the frames of user code that no call can have led to: callers at the first byte
// of their function, by ingest's rule for return addresses (input.Options.Exact). Code without
// frame pointers left such words where a chain of frame pointers took them for return addresses:
// pointers to functions, entries of tables of virtual functions. They have names as other frames,
// as perf has them, but did not call what they seem to. Neither frames that an interrupt or a
// signal came to count, nor code whose address is put below the outermost function on purpose.
// Words inside of functions cannot be recognized: the stacks with an uncalled frame are the least
// that are wrong.
type Uncalled struct {
	Frames  uint64  `json:"frames"`
	Share   float64 `json:"share_percent"` // of all frames, by weight
	Samples uint64  `json:"samples"`       // that have such frames
	Hint    string  `json:"hint"`

	heaviest ingest.LocationID
}

// uncalledHint makes the chains right.
const uncalledHint = "gcc -fno-omit-frame-pointer, or perf record --call-graph dwarf"

// newUncalled returns nil for a profile without such frames. all is the sum of its frames.
func newUncalled(p *ingest.Profile, count bool, all ingest.FrameSum) *Uncalled {
	if p.Names == nil || p.Stats.NoStarts || p.Stats.NoReturns {
		return nil
	}
	sums := make(map[ingest.LocationID]ingest.FrameSum)
	for l := range p.Locations {
		if id := ingest.LocationID(l); atStart(p, id) {
			sums[id] = ingest.FrameSum{}
		}
	}
	if len(sums) == 0 {
		return nil
	}
	u := &Uncalled{Hint: uncalledHint}
	var sum ingest.FrameSum
	for s, w := range p.SampleSums(count) {
		some := false
		for _, l := range uncalled(p, p.Stack(s.Stack), sums) {
			at := sums[l]
			at.Add(w)
			sums[l] = at
			sum.Add(w)
			some = true
		}
		if some {
			u.Samples += s.Count
		}
	}
	if sum.Frames == 0 {
		return nil
	}
	u.Frames, u.Share = sum.Frames, share(sum, all)
	heaviest := ingest.FrameSum{}
	for l := range p.Locations { // in order, as a map has none
		at := sums[ingest.LocationID(l)]
		if cmp.Or(cmp.Compare(at.Weight, heaviest.Weight),
			cmp.Compare(at.Frames, heaviest.Frames)) > 0 {
			u.heaviest, heaviest = ingest.LocationID(l), at
		}
	}
	return u
}

// uncalled returns the frames of a stack that are at places that no call leads to.
func uncalled(p *ingest.Profile, locs []ingest.LocationID,
	places map[ingest.LocationID]ingest.FrameSum) (found []ingest.LocationID) {
	for i := 1; i < len(locs); i++ {
		if _, ok := places[locs[i]]; ok && calls(p, locs[i-1]) {
			found = append(found, locs[i])
		}
	}
	return found
}

// atStart reports whether a location is the first byte of a function of a file, but none of which
// the first byte, or the one behind it, is put onto stacks as the address that the outermost
// function returns to.
func atStart(p *ingest.Profile, l ingest.LocationID) bool {
	if p.Names.SymOff[l] != 0 || !p.Names.Named(l) ||
		p.Objects[p.Locations[l].Object].Kind != ingest.ELF {
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

// uncalledAdvice is the warning about uncalled frames, nil where they are few.
func uncalledAdvice(p *ingest.Profile, all ingest.FrameSum) *ingest.Warning {
	u := newUncalled(p, false, all)
	samples := uint64(0)
	for i := range p.Samples {
		samples += p.Samples[i].Count
	}
	if u == nil || percent(float64(u.Samples), float64(samples)) < uncalledShare {
		return nil
	}
	name := NewDemangler(Simple).Name(functionAt(p, u.heaviest))
	return &ingest.Warning{Hint: u.Hint,
		Text: share100(percent(float64(u.Samples), float64(samples))) + " of the samples have callers " +
			"that called nothing, as " + name + ": words that code without frame pointers left on " +
			"the stack"}
}
