// Package merge makes one Profile from many parts: the results of one capture's workers (Assemble),
// or the Profiles of several captures (Profiles). Everything is numbered in sorted order, so that
// equal inputs give equal bytes for any division of work.
package merge

import (
	"slices"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/intern"
)

// Shard is a set of folded samples with numbers of its own: the result of one worker, or a profile
// to merge. Assemble makes one Profile of many, in an order that depends only on the contents.
type Shard struct {
	Places []intern.Pair           // by local location: number in objects, and offset
	Parts  [NumRoles]*intern.Lists // lists of local locations; 0 is the empty list
	Rows   [][]Row                 // in several lists
	// Counts replaces the counts of the rows, which are in one list, if they can exceed the field
	// of a Row; nil otherwise.
	Counts []uint64
	Labels []Labels
	// Objects maps the shard's object numbers to objects of the profile.
	Objects []ingest.ObjectID
	// Comms maps a comm of the shard's rows to a string of the profile.
	Comms func(code uint32) ingest.StringID
	// Tags maps the tags of the shard's rows to a string of the profile; nil without tags.
	Tags func(code uint32) ingest.StringID
	// Events maps the shard's events to the profile's; nil if they are the same.
	Events []uint16

	// Assemble sets the location in the profile of each local location, and the rank of each
	// part among the profile's parts.
	Location []ingest.LocationID
	Rank     [NumRoles][]uint32
}

// The two roles of a part: a stack is a kernel part, then a user part.
const (
	KernelRole = iota
	UserRole
	NumRoles
)

// Assemble fills Locations, Stacks and Samples of p, which has its final Objects, Strings and
// Events, and numbers the parts in all shards.
func Assemble(p *ingest.Profile, shards []*Shard) {
	p.Locations = joinLocations(shards)
	var roles [NumRoles]partList
	var wg sync.WaitGroup
	for role := range roles {
		wg.Go(func() { roles[role].collect(shards, role) })
	}
	wg.Wait()
	a := stackAssembler{p: p, shards: shards, roles: &roles}
	a.assemble()
}

// localPlace is a location of one shard, by its object in the profile.
type localPlace struct {
	ingest.Location
	local uint32
}

// joinLocations numbers the locations of all shards in the order of (object, offset).
func joinLocations(shards []*Shard) []ingest.Location {
	sorted := make([][]localPlace, len(shards))
	var wg sync.WaitGroup
	for i, s := range shards {
		wg.Go(func() {
			list := make([]localPlace, len(s.Places))
			for n := range list {
				pl := s.Places[n]
				list[n] = localPlace{ingest.Location{Object: s.Objects[pl.Object],
					Offset: addr.Offset(pl.Offset)}, uint32(n)}
			}
			slices.SortFunc(list, func(a, b localPlace) int {
				return ingest.CompareLocations(a.Location,
					b.Location)
			})
			s.Location = make([]ingest.LocationID, len(list))
			sorted[i] = list
		})
	}
	wg.Wait()
	most := 0
	for _, list := range sorted {
		most = max(most, len(list))
	}
	out := make([]ingest.Location, 0, most+most/4)
	for {
		least := -1 // the shard with the smallest next location
		for i, list := range sorted {
			if len(list) > 0 && (least < 0 || ingest.CompareLocations(list[0].Location,
				sorted[least][0].Location) < 0) {
				least = i
			}
		}
		if least < 0 {
			return slices.Clip(out)
		}
		next := sorted[least][0]
		sorted[least] = sorted[least][1:]
		if n := len(out); n == 0 || out[n-1] != next.Location {
			out = append(out, next.Location)
		}
		shards[least].Location[next.local] = ingest.LocationID(len(out) - 1)
	}
}

// partList holds the distinct parts of one role from all shards, sorted.
type partList struct {
	locs  []ingest.LocationID // locations of all parts, one after another
	parts []partRef
	last  []uint32 // by part: the last part with this prefix
}

type partRef struct {
	at, n  uint32 // in locs
	source uint32 // during sorting: the target of the part's rank
}

func (l *partList) list(i uint32) []ingest.LocationID {
	r := l.parts[i]
	return l.locs[r.at : r.at+r.n]
}

// collect gathers and sorts the parts, and sets the ranks in the shards.
func (l *partList) collect(shards []*Shard, role int) {
	total, words := 0, 0
	for _, s := range shards {
		total += s.Parts[role].Len()
		words += s.Parts[role].Words()
	}
	l.locs = make([]ingest.LocationID, 0, words)
	l.parts = make([]partRef, 0, total)
	for _, s := range shards {
		for n := range uint32(s.Parts[role].Len()) {
			at := uint32(len(l.locs))
			for _, loc := range s.Parts[role].At(n) {
				l.locs = append(l.locs, s.Location[loc])
			}
			l.parts = append(l.parts, partRef{at, uint32(len(l.locs)) - at, uint32(len(l.parts))})
		}
	}
	sortParts(l.locs, l.parts, 0, nil)
	ranks := make([]uint32, total)
	out := l.parts[:0]
	for i := range l.parts {
		r := l.parts[i]
		if n := len(out); n == 0 || !slices.Equal(l.locs[out[n-1].at:out[n-1].at+out[n-1].n],
			l.locs[r.at:r.at+r.n]) {
			out = append(out, r)
		}
		ranks[r.source] = uint32(len(out) - 1)
	}
	l.parts = out
	for _, s := range shards {
		n := s.Parts[role].Len()
		s.Rank[role], ranks = ranks[:n:n], ranks[n:]
		s.Parts[role] = nil // no longer needed, and large
	}
	l.findLast()
}

// findLast finds for each part the last part that begins with it; in sorted order these follow it
// without a gap.
func (l *partList) findLast() {
	l.last = make([]uint32, len(l.parts))
	var open []uint32 // prefixes of the current part, shortest first
	closeFrom := func(k, end int) {
		for _, p := range open[k:] {
			l.last[p] = uint32(end - 1)
		}
		open = open[:k]
	}
	for i := range l.parts {
		list := l.list(uint32(i))
		k := len(open)
		for k > 0 && !hasPrefix(list, l.list(open[k-1])) {
			k--
		}
		closeFrom(k, i)
		open = append(open, uint32(i))
	}
	closeFrom(0, len(l.parts))
}

func hasPrefix(list, prefix []ingest.LocationID) bool {
	return len(list) >= len(prefix) && slices.Equal(list[:len(prefix)], prefix)
}

// parallelSort is the number of parts from which sorting on another goroutine pays off.
const parallelSort = 1 << 13

// sortParts sorts parts by their location lists, which are equal up to depth: a multikey quicksort
// (Bentley and Sedgewick), which compares each location few times, while a comparison sort would
// compare long common prefixes repeatedly. wg is nil except in recursive calls.
func sortParts(locs []ingest.LocationID, parts []partRef, depth uint32, wg *sync.WaitGroup) {
	if wg == nil {
		wg = new(sync.WaitGroup)
		defer wg.Wait()
	}
	key := func(r *partRef) uint64 { // 0 after the end
		if depth >= r.n {
			return 0
		}
		return uint64(locs[r.at+depth]) + 1
	}
	for len(parts) > 16 {
		pivot := median(key(&parts[0]), key(&parts[len(parts)/2]), key(&parts[len(parts)-1]))
		lt, i, gt := 0, 0, len(parts)
		for i < gt {
			switch k := key(&parts[i]); {
			case k < pivot:
				parts[lt], parts[i] = parts[i], parts[lt]
				lt++
				i++
			case k > pivot:
				gt--
				parts[gt], parts[i] = parts[i], parts[gt]
			default:
				i++
			}
		}
		below, above, depthHere := parts[:lt], parts[gt:], depth
		if len(below) > parallelSort {
			wg.Go(func() { sortParts(locs, below, depthHere, wg) })
		} else {
			sortParts(locs, below, depth, wg)
		}
		sortParts(locs, above, depth, wg)
		if pivot == 0 {
			return
		}
		parts = parts[lt:gt]
		depth++
	}
	slices.SortFunc(parts, func(a, b partRef) int {
		return slices.Compare(locs[min(a.at+depth, a.at+a.n):a.at+a.n],
			locs[min(b.at+depth, b.at+b.n):b.at+b.n])
	})
}

func median(a, b, c uint64) uint64 { return max(min(a, b), min(max(a, b), c)) }
