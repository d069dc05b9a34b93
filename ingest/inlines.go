package ingest

// WithoutInlines returns names in which each location has only the frame of its physical
// function. They are n itself if it has no inlined frames; else they share all but FrameEnds
// and Frames with n.
func (n *Names) WithoutInlines() *Names {
	physical := 0
	for i := range n.Frames {
		if !n.Frames[i].Inlined {
			physical++
		}
	}
	if physical == len(n.Frames) {
		return n
	}
	out := *n
	out.Frames = make([]Frame, 0, physical)
	out.FrameEnds = make([]uint32, len(n.FrameEnds))
	for l := range n.FrameEnds {
		for _, f := range n.At(LocationID(l)) {
			if !f.Inlined {
				out.Frames = append(out.Frames, f)
			}
		}
		out.FrameEnds[l] = uint32(len(out.Frames))
	}
	return &out
}
