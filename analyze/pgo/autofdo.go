package pgo

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"symbolize/ingest"
)

// AutoFDOStats are the counts of a result of AutoFDO.
type AutoFDOStats struct {
	Object   *ingest.Object
	Branches uint64   // in the object
	Others   uint64   // branches and code of other objects, or between two
	Bogus    uint64   // code between two branches that cannot be any: backwards, or longer than 1 MiB
	Objects  []string // objects with more than a hundredth of all branches, the most first
}

// ErrNoObject is the error of AutoFDO for an object without branches.
var ErrNoObject = errors.New("no branch in it")

// AutoFDO writes the branches in one object, for AutoFDO's create_llvm_prof and create_gcov with
// --profiler=text (TextSampleReaderWriter in sample_reader.cc of github.com/google/autofdo). The
// profile comes from input.Selection.Runs. Object is the base name, the path or the build ID of
// one; "" for that with most branches.
//
// The text has three lists, each after a line with its length, sorted by address: code that ran
// between two branches, "first-last:count"; sampled addresses, "address:count"; branches,
// "source->target:count". Addresses are offsets in the file, in hexadecimal without 0x; counts are
// decimal.
func AutoFDO(w io.Writer, p *ingest.Profile, object string) (*AutoFDOStats, error) {
	stats, chosen, err := chooseObject(p, object)
	if err != nil {
		return stats, err
	}
	lists := map[string]map[[2]uint64]uint64{ingest.BranchRun: {}, ingest.BranchSampled: {},
		ingest.BranchTaken: {}}
	for i := range p.Samples {
		s := &p.Samples[i]
		part := p.Tag(s, ingest.BranchTag)
		if part == ingest.BranchBogus {
			stats.Bogus += s.Count
			continue
		}
		key, ok := placesIn(p, s, chosen)
		switch {
		case ok && lists[part] != nil:
			lists[part][key] += s.Count
		case part != ingest.BranchSampled:
			stats.Others += s.Count
		}
	}
	out := bufio.NewWriter(w)
	writeCounts(out, lists[ingest.BranchRun], func(k [2]uint64) string { return fmt.Sprintf("%x-%x", k[0], k[1]) })
	writeCounts(out, lists[ingest.BranchSampled], func(k [2]uint64) string { return fmt.Sprintf("%x", k[0]) })
	taken := make(map[[2]uint64]uint64, len(lists[ingest.BranchTaken]))
	for k, n := range lists[ingest.BranchTaken] {
		taken[[2]uint64{k[1], k[0]}] = n // the source is its caller in the stack
		stats.Branches += n
	}
	writeCounts(out, taken, func(k [2]uint64) string { return fmt.Sprintf("%x->%x", k[0], k[1]) })
	return stats, out.Flush()
}

// placesIn returns the offsets of a sample's locations, if all are in an object.
func placesIn(p *ingest.Profile, s *ingest.Sample, object ingest.ObjectID) (key [2]uint64, ok bool) {
	stack := p.Stack(nil, s.Stack)
	if len(stack) == 0 || len(stack) > len(key) {
		return key, false
	}
	for i, l := range stack {
		if p.Locations[l].Object != object {
			return key, false
		}
		key[i] = uint64(p.Locations[l].Offset)
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

// chooseObject finds the object with a name, or with most branches.
func chooseObject(p *ingest.Profile, name string) (*AutoFDOStats, ingest.ObjectID, error) {
	counts, total := make([]uint64, len(p.Objects)), uint64(0)
	for i := range p.Samples {
		s := &p.Samples[i]
		if p.Tag(s, ingest.BranchTag) != ingest.BranchTaken || s.Stack == 0 {
			continue
		}
		o := p.Locations[p.Leaves[s.Stack]].Object
		if _, ok := placesIn(p, s, o); ok && p.Objects[o].Kind == ingest.ELF {
			counts[o] += s.Count
			total += s.Count
		}
	}
	order := make([]ingest.ObjectID, 0, len(counts))
	for o, n := range counts {
		if n > 0 {
			order = append(order, ingest.ObjectID(o))
		}
	}
	slices.SortStableFunc(order, func(a, b ingest.ObjectID) int { return cmp.Compare(counts[b], counts[a]) })
	stats := &AutoFDOStats{}
	for _, o := range order {
		if counts[o] > total/100 {
			stats.Objects = append(stats.Objects, p.Objects[o].File.Path)
		}
	}
	for _, o := range order {
		x := &p.Objects[o]
		if name == "" || isNamed(x, name) {
			stats.Object = x
			return stats, o, nil
		}
	}
	if name == "" {
		return stats, 0, fmt.Errorf("of all programs and libraries: %w", ErrNoObject)
	}
	return stats, 0, fmt.Errorf("%s: %w", name, ErrNoObject)
}
