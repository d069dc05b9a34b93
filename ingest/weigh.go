package ingest

// FrameSum is a sum over frames.
type FrameSum struct {
	Frames uint64
	Weight float64 // frames by the weight of their samples; sums pass 2^64
}

// Add adds another sum.
func (s *FrameSum) Add(o FrameSum) { s.Frames += o.Frames; s.Weight += o.Weight }

// WeighFrames sums the frames of a profile by location, of all its events. A frame weighs
// as its sample does: by its periods or, with count, by the number of samples, by which
// those of an event do that has no periods at all.
func (p *Profile) WeighFrames(count bool) []FrameSum {
	periods := make([]bool, len(p.Events))
	for i := range p.Samples {
		s := &p.Samples[i]
		periods[s.Event] = periods[s.Event] || s.Weight != 0
	}
	locations := make([]FrameSum, len(p.Locations))
	for i := range p.Samples {
		s := &p.Samples[i]
		w := FrameSum{Frames: s.Count, Weight: float64(s.Weight)}
		if count || !periods[s.Event] {
			w.Weight = float64(s.Count)
		}
		for _, l := range p.Stack(s.Stack) {
			locations[l].Add(w)
		}
	}
	return locations
}

// IsNamed reports whether a location of the profile has the name of a function (see
// Names.Named).
func (p *Profile) IsNamed(l LocationID) bool { return p.Names != nil && p.Names.Named(l) }

// NamedFrames sums up what WeighFrames gave: all frames, and those with the name of a
// function. Whatever prints how much is named, prints this.
func (p *Profile) NamedFrames(locations []FrameSum) (named, all FrameSum) {
	for l, w := range locations {
		all.Add(w)
		if p.IsNamed(LocationID(l)) {
			named.Add(w)
		}
	}
	return named, all
}
