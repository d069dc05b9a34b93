package batch

import (
	"fmt"

	"symbolize/ingest"
)

// check refuses a profile with references to entries that do not exist.
func check(p *ingest.Profile) error {
	for i := range p.Objects {
		if k := p.Objects[i].Kernel; k != ingest.NoObject && int(k) >= len(p.Objects) {
			return fmt.Errorf("object %d: no kernel %d", i, k)
		}
	}
	for i, l := range p.Locations {
		if int(l.Object) >= len(p.Objects) {
			return fmt.Errorf("location %d: no object %d", i, l.Object)
		}
	}
	before := uint32(0)
	for i, end := range p.StackEnds {
		if end < before || int(end) > len(p.StackLocs) {
			return fmt.Errorf("stack %d ends at %d", i, end)
		}
		before = end
	}
	for i, l := range p.StackLocs {
		if int(l) >= len(p.Locations) {
			return fmt.Errorf("word %d of the stacks: no location %d", i, l)
		}
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		if int(s.Stack) >= len(p.StackEnds) || int(s.Event) >= len(p.Events) ||
			int(s.Comm) >= len(p.Strings) {
			return fmt.Errorf("sample %d refers to what is not there", i)
		}
	}
	return checkNames(p)
}

func checkNames(p *ingest.Profile) error {
	n := p.Names
	if n == nil {
		return nil
	}
	if len(n.FrameEnds) != len(p.Locations) || len(n.Reasons) != len(p.Locations) ||
		len(n.SymOff) != len(p.Locations) {
		return fmt.Errorf("names of other locations")
	}
	before := uint32(0)
	for i, end := range n.FrameEnds {
		if end < before || int(end) > len(n.Frames) {
			return fmt.Errorf("frames of location %d end at %d", i, end)
		}
		before = end
	}
	for i, f := range n.Frames {
		if int(f.Func) >= len(n.Functions) {
			return fmt.Errorf("frame %d: no function %d", i, f.Func)
		}
	}
	for i, f := range n.Functions {
		if int(f.Object) >= len(p.Objects) {
			return fmt.Errorf("function %d: no object %d", i, f.Object)
		}
	}
	return nil
}
