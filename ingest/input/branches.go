package input

import (
	"encoding/binary"
	"fmt"

	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
)

// Flags of an entry of a branch stack (struct perf_branch_entry).
const (
	branchMispredicted = 1 << 0
	branchPredicted    = 1 << 1
)

// branchReader makes samples of the entries of branch stacks: each is one whose stack is the
// target of the branch, called by its source.
type branchReader struct {
	left  []byte // entries of the present sample that are still to be delivered
	flags uint64 // of the present one
	words []byte
}

// The values of the tag that says how a branch was predicted; 0 where the processor does not.
const (
	wasPredicted uint64 = 1 + iota
	wasMispredicted
)

// chooseBranches prepares Options.Branches.
func (c *collector) chooseBranches() error {
	if !c.opts.Branches {
		return nil
	}
	file := c.Records.File
	if !c.anyHas(perfdata.SampleBranchStack) {
		return ingest.WithHint(fmt.Errorf("%s: its samples have no branch stacks", file.Name),
			"record them with `perf record -b`, on a processor that has them")
	}
	for i := range c.events {
		c.events[i].Unit, c.events[i].Period = "count", 0
	}
	c.sources = append(c.sources, tagSource{key: ingest.PredictionTag,
		value: func(r *reader) uint64 {
			switch {
			case r.branches.flags&branchMispredicted != 0:
				return wasMispredicted
			case r.branches.flags&branchPredicted != 0:
				return wasPredicted
			}
			return 0
		},
		text: func(_ *reader, v uint64) string {
			if v == wasMispredicted {
				return ingest.Mispredicted
			}
			return ingest.Predicted
		}})
	return nil
}

// nextBranch makes the next entry of the branch stack the reader's present sample; false if
// there is none. Entries that were never filled are none.
func (r *reader) nextBranch() bool {
	b := &r.branches
	le := binary.LittleEndian
	for len(b.left) >= perfdata.BranchSize {
		from, to, flags := le.Uint64(b.left), le.Uint64(b.left[8:]), le.Uint64(b.left[16:])
		b.left = b.left[perfdata.BranchSize:]
		if from == 0 && to == 0 || from >= contextMax || to >= contextMax {
			continue
		}
		b.flags = flags
		b.words = b.words[:0]
		for _, pc := range [...]uint64{to, from} {
			mode := uint64(contextUser)
			if pc >= kernelHalf {
				mode = contextKernel
			}
			b.words = le.AppendUint64(le.AppendUint64(b.words, mode), pc)
		}
		r.kpart, r.part, r.cut = nil, b.words, false
		return true
	}
	return false
}
