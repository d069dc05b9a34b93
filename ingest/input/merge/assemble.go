// Package merge makes one Profile from many parts: the results of one capture's workers (Assemble),
// or the Profiles of several captures (Profiles). Everything is numbered in sorted order, so that
// equal inputs give equal bytes for any division of work.
package merge

import (
	"iter"
	"runtime"
	"slices"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/intern"
)

// Shard is a set of folded samples with numbers of its own: the result of one worker, or a profile
// to merge. Assemble makes one Profile of many, in an order that depends only on the contents.
type Shard struct {
	Places []intern.Pair // by local location: number in objects, and offset
	// Stacks are trees of local locations, from the outermost, as of an intern.Forest.
	Stacks []intern.Tree
	Rows   iter.Seq[Row] // may be read repeatedly
	Labels []Labels
	// Objects maps the shard's object numbers to objects of the profile.
	Objects []ingest.ObjectID
	// Comms maps a comm of the shard's rows to a string of the profile.
	Comms func(code uint32) ingest.StringID
	// Tags maps the tags of the shard's rows to a string of the profile; nil without tags.
	Tags func(code uint32) ingest.StringID
	// Events maps the shard's events to the profile's; nil if they are the same.
	Events []uint16

	// Location is set by Assemble: the location in the profile of each local location.
	Location []ingest.LocationID
}

// Assemble fills Locations, Stacks and Samples of p, which has its final Objects, Strings and
// Events. It releases the stacks and rows of the shards.
func Assemble(p *ingest.Profile, shards []*Shard) {
	p.Locations = joinLocations(shards)
	labels, rank := rankLabels(shards)
	n := 0
	for _, s := range shards {
		for range s.Rows {
			n++
		}
	}
	rows := make([]Row, 0, n)
	var parts []*folded
	for i, s := range shards {
		first := len(rows)
		rows, parts = split(rows, parts, s.Rows, s.Stacks, s.Location)
		for k := range rows[first:] {
			label := &rows[first+k].Label
			*label = rank[i][*label]
		}
		s.Rows, s.Stacks = nil, nil
	}
	if n >= manyRows {
		runtime.GC() // milliseconds, as next to no pointers are there; frees about a third
	}
	p.Callers, p.Leaves = joinStacks(parts)
	p.Samples = makeSamples(rows, labels)
}

// Count is Assemble for a profile without stacks: it has their number, and a sample for each
// combination of labels.
func Count(p *ingest.Profile, shards []*Shard) {
	p.Locations = joinLocations(shards)
	labels, rank := rankLabels(shards)
	sums := make([]Row, len(labels))
	var trees []countedTree
	for i, s := range shards {
		n := 0
		for k := range s.Stacks {
			n += s.Stacks[k].Len()
		}
		sampled := make([]bool, n)
		for r := range s.Rows {
			sampled[r.Stack] = true
			sum := &sums[rank[i][r.Label]]
			sum.Count, sum.Weight = sum.Count+r.Count, sum.Weight+r.Weight
		}
		for _, t := range s.Stacks {
			trees = append(trees, countedTree{t, s.Location, sampled[:t.Len()]})
			sampled = sampled[t.Len():]
		}
		s.Rows, s.Stacks = nil, nil
	}
	p.Stacks = countStacks(trees)
	for label, sum := range sums {
		if sum.Count > 0 {
			sm := labels[label]
			sm.Count, sm.Weight = sum.Count, sum.Weight
			p.Samples = append(p.Samples, sm)
		}
	}
}

// manyRows is the number of rows from which the tables of the shards are collected at once: some 10
// MB. With fewer a collection costs more than everything else.
const manyRows = 64 << 10

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
