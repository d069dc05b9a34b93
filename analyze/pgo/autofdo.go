package pgo

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"symbolize/ingest"
)

// autoFDO writes the branches in one object, for AutoFDO's create_llvm_prof and create_gcov with
// --profiler=text (TextSampleReaderWriter in sample_reader.cc of github.com/google/autofdo). The
// profile comes from input.BranchRuns.
//
// The text has three lists, each after a line with its length, sorted by address: code that ran
// between two branches, "first-last:count"; sampled addresses, "address:count"; branches,
// "source->target:count". Addresses are offsets in the file, in hexadecimal without 0x; counts are
// decimal.
func (t *Profile) autoFDO(w io.Writer, object int) (stats Stats, err error) {
	lists := map[string]map[[2]uint64]uint64{ingest.BranchRun: {}, ingest.BranchSampled: {},
		ingest.BranchTaken: {}}
	for s := range t.samples() {
		part := t.source.Tag(s, ingest.BranchTag)
		key, ok := t.offsetsIn(s, object)
		switch {
		case part == ingest.BranchBogus:
			stats.Bogus += s.Count
		case ok && lists[part] != nil:
			lists[part][key] += s.Count
		case part != ingest.BranchSampled:
			stats.Others += s.Count
		}
	}
	taken := make(map[[2]uint64]uint64, len(lists[ingest.BranchTaken]))
	for k, n := range lists[ingest.BranchTaken] {
		taken[[2]uint64{k[1], k[0]}] = n // the source is its caller in the stack
		stats.Traces += n
	}
	if stats.Traces == 0 {
		return stats, ErrNoCounts
	}
	out := bufio.NewWriter(w)
	writeCounts(out, lists[ingest.BranchRun], func(k [2]uint64) string { return fmt.Sprintf("%x-%x", k[0], k[1]) })
	writeCounts(out, lists[ingest.BranchSampled], func(k [2]uint64) string { return fmt.Sprintf("%x", k[0]) })
	writeCounts(out, taken, func(k [2]uint64) string { return fmt.Sprintf("%x->%x", k[0], k[1]) })
	return stats, out.Flush()
}

// offsetsIn returns the offsets of a sample's locations, if all are in an object.
func (t *Profile) offsetsIn(s *ingest.Sample, object int) (key [2]uint64, ok bool) {
	stack := t.source.Stack(nil, s.Stack)
	if len(stack) == 0 || len(stack) > len(key) {
		return key, false
	}
	for i, l := range stack {
		if t.places[l].object != object {
			return key, false
		}
		key[i] = uint64(t.source.Locations[l].Offset)
	}
	return key, true
}

// writeCounts writes a list.
func writeCounts(w io.Writer, list map[[2]uint64]uint64, text func([2]uint64) string) {
	keys := sorted(list, func(a, b [2]uint64) int { return slices.Compare(a[:], b[:]) })
	fmt.Fprintf(w, "%d\n", len(keys))
	for _, k := range keys {
		fmt.Fprintf(w, "%s:%d\n", text(k), list[k])
	}
}
