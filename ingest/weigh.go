package ingest

import "iter"

// FrameSum is a sum over frames.
type FrameSum struct {
	Frames uint64
	Weight float64 // frames by the weight of their samples; sums pass 2^64
}

// Add adds another sum.
func (s *FrameSum) Add(o FrameSum) { s.Frames += o.Frames; s.Weight += o.Weight }

// SampleSums returns the samples, each with what one of its frames adds to a sum. The weight is that
// of the sample: the sum of periods or, with count and for events without periods, the number
// of samples.
func (p *Profile) SampleSums(count bool) iter.Seq2[*Sample, FrameSum] {
	periods := make([]bool, len(p.Events))
	for i := range p.Samples {
		s := &p.Samples[i]
		periods[s.Event] = periods[s.Event] || s.Weight != 0
	}
	return func(yield func(*Sample, FrameSum) bool) {
		for i := range p.Samples {
			s := &p.Samples[i]
			w := FrameSum{Frames: s.Count, Weight: float64(s.Weight)}
			if count || !periods[s.Event] {
				w.Weight = float64(s.Count)
			}
			if !yield(s, w) {
				return
			}
		}
	}
}

// WeighFrames sums the frames of a profile by location, over all its events, as SampleSums weighs
// them.
func (p *Profile) WeighFrames(count bool) []FrameSum {
	locations := make([]FrameSum, len(p.Locations))
	for s, w := range p.SampleSums(count) {
		for _, l := range p.Stack(s.Stack) {
			locations[l].Add(w)
		}
	}
	return locations
}

// WeighInnermost sums the samples of a profile by the location of their innermost frame, and all
// samples, also those without a frame. A sum counts each sample as one frame.
func (p *Profile) WeighInnermost(count bool) (locations []FrameSum, all FrameSum) {
	locations = make([]FrameSum, len(p.Locations))
	for s, w := range p.SampleSums(count) {
		all.Add(w)
		if stack := p.Stack(s.Stack); len(stack) > 0 {
			locations[stack[0]].Add(w)
		}
	}
	return locations, all
}

// IsNamed reports whether a location of the profile has the name of a function (see
// Names.Named).
func (p *Profile) IsNamed(l LocationID) bool { return p.Names != nil && p.Names.Named(l) }

// NamedFrames adds up the sums of WeighFrames or WeighInnermost: of all frames, and of those with
// the name of a function. Every printed share of what is named is made of these.
func (p *Profile) NamedFrames(locations []FrameSum) (named, all FrameSum) {
	for l, w := range locations {
		all.Add(w)
		if p.IsNamed(LocationID(l)) {
			named.Add(w)
		}
	}
	return named, all
}
