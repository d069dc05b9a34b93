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
	if len(p.Callers) == 0 || len(p.Leaves) != len(p.Callers) {
		return fmt.Errorf("%d stacks with %d frames", len(p.Callers), len(p.Leaves))
	}
	for i := 1; i < len(p.Callers); i++ {
		if int(p.Callers[i]) >= i || int(p.Leaves[i]) >= len(p.Locations) {
			return fmt.Errorf("stack %d: no stack %d or no location %d", i, p.Callers[i], p.Leaves[i])
		}
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		if int(s.Stack) >= len(p.Callers) || int(s.Event) >= len(p.Events) ||
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
