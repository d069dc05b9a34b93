package input

import (
	"encoding/binary"
	"fmt"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
)

// Flags of an entry of a branch stack (struct perf_branch_entry).
const (
	branchMispredicted = 1 << 0
	branchPredicted    = 1 << 1

	branchSpecShift = 24 // PERF_BR_SPEC_…
	branchSpecMask  = 3
	branchWrongPath = 1 // it was speculated, and not taken
)

// branchReader makes samples of the entries of branch stacks: each is one whose stack is the
// target of the branch, called by its source.
type branchReader struct {
	left  []byte // entries of the present sample that are still to be delivered
	flags uint64 // of the present one
	words []byte

	parts []branchPart // of Options.Runs, still to be delivered, the last first
	part  string       // of the present one
}

// branchPart is a sample that Options.Runs makes; its stack is pcs, as far as they are not 0.
type branchPart struct {
	part string
	pcs  [2]uint64
}

// The values of the tag for the prediction of a branch; 0 where the processor reports none.
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
	if c.opts.Runs {
		c.sources = append(c.sources, tagSource{key: ingest.BranchTag,
			value: func(r *reader) uint64 { return uint64(slices.Index(branchParts[:], r.branches.part)) },
			text:  func(_ *reader, v uint64) string { return branchParts[v] }})
		return nil
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

// branchParts are the values of ingest.BranchTag; 0 is none.
var branchParts = [...]string{"", ingest.BranchSampled, ingest.BranchTaken, ingest.BranchRun,
	ingest.BranchBogus}

// startBranches takes the branch stack of a sample, and reports whether anything is to be delivered.
func (r *reader) startBranches(s *perfdata.Sample) bool {
	b := &r.branches
	if !r.c.opts.Runs {
		b.left = s.Branches
		return len(s.Branches) > 0
	}
	b.parts = b.parts[:0]
	if s.IP != 0 {
		b.parts = append(b.parts, branchPart{ingest.BranchSampled, [2]uint64{s.IP}})
	}
	b.addRuns(s.Branches)
	return len(b.parts) > 0
}

// Bounds of code between two branches, bytes; that of a loop which is the newest branch, and which
// a processor has recorded twice, is the lower.
const (
	longestRun  = 1 << 20
	longestLoop = 1 << 12
)

// addRuns adds the branches of a stack, the newest first, and the code that ran between two. It
// decides as AutoFDO does (PerfDataSampleReader::Append in sample_reader.cc), but for code between
// branches of which one was only speculated: that is of the branches around it.
func (b *branchReader) addRuns(entries []byte) {
	le := binary.LittleEndian
	var newer [2]uint64 // source and target of the branch after this one; 0 for none
	for n := 0; len(entries) >= perfdata.BranchSize; entries = entries[perfdata.BranchSize:] {
		from, to, flags := le.Uint64(entries), le.Uint64(entries[8:]), le.Uint64(entries[16:])
		if from == 0 && to == 0 || from >= contextMax || to >= contextMax ||
			flags>>branchSpecShift&branchSpecMask == branchWrongPath {
			continue
		}
		// Code that enters or leaves the kernel is none between two branches.
		if n++; n > 1 && (to < kernelHalf) == (newer[0] < kernelHalf) {
			part := branchPart{ingest.BranchRun, [2]uint64{to, newer[0]}}
			twice := n == 2 && newer == [2]uint64{from, to}
			if end := newer[0]; end < to || end-to > longestRun || twice && end-to > longestLoop {
				part.part = ingest.BranchBogus
			}
			b.parts = append(b.parts, part)
			if part.part == ingest.BranchBogus {
				newer = [2]uint64{from, to}
				continue
			}
		}
		b.parts = append(b.parts, branchPart{ingest.BranchTaken, [2]uint64{to, from}})
		newer = [2]uint64{from, to}
	}
}

// nextPart makes the next part the reader's present sample; false if there is none.
func (r *reader) nextPart() bool {
	b := &r.branches
	n := len(b.parts) - 1
	if n < 0 {
		return false
	}
	p := &b.parts[n]
	b.parts, b.part, b.words = b.parts[:n], p.part, b.words[:0]
	for _, pc := range p.pcs {
		if pc != 0 {
			b.addWord(pc)
		}
	}
	r.kpart, r.part, r.cut = nil, b.words, false
	return true
}

// addWord adds an address to the chain at hand, an exact one of its mode.
func (b *branchReader) addWord(pc uint64) {
	mode := uint64(contextUser)
	if pc >= kernelHalf {
		mode = contextKernel
	}
	b.words = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b.words, mode), pc)
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
		b.addWord(to)
		b.addWord(from)
		r.kpart, r.part, r.cut = nil, b.words, false
		return true
	}
	return false
}
