package input

import (
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
)

// framePointers implements framePointerSource. Not made of frame pointers are stacks that were unwound
// from copies (--call-graph dwarf), branch stacks (lbr), and deferred ones, of which the kernel may have
// used other tables. With registers, as of arm64, the innermost caller is the link register's.
func (s *perfSource) framePointers(p *ingest.Profile) (all, whole bool) {
	if s.opts.Branches != NoBranches || s.opts.WakerDepth > 0 || p.Stats.NoReturns ||
		p.Stats.RecordTypes[perfdata.TypeCallchainDeferred.String()] > 0 {
		return false, false
	}
	for i := range s.data.Events {
		a := &s.data.Events[i].Attr
		if a.SampleType&(perfdata.SampleRegsUser|perfdata.SampleStackUser) != 0 ||
			a.BranchSampleType&perfdata.BranchCallStack != 0 {
			return false, false
		}
	}
	return true, p.Stats.Lost == 0
}

// framePointers implements framePointerSource.
func (s *stackSource) framePointers(*ingest.Profile) (all, whole bool) {
	return s.set.Form.FramePointers(), false
}

// framePointers implements framePointerSource: the kernel made the stacks.
func (s *bundleSource) framePointers(p *ingest.Profile) (all, whole bool) {
	return true, s.sideBand != nil && p.Stats.Lost == 0
}
