package merge

import (
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/intern"
)

// Restack returns the profile of the samples of p with other stacks: nodes are a tree of places from
// the outermost, and stacks has for each stack of p with samples its node. Places refer to objects,
// which begin with those of p. The profile has no names. Nodes are changed. locations are those of places in the profile.
func Restack(p *ingest.Profile, objects []ingest.Object, places []intern.Pair, nodes []intern.Node,
	stacks []uint32) (q *ingest.Profile, locations []ingest.LocationID) {
	used := make([]bool, len(objects))
	seen := make([]bool, len(places))
	for _, n := range nodes[1:] {
		seen[n.Value] = true
	}
	kept := make([]intern.Pair, 0, len(places))
	number := make([]uint32, len(places))
	for i, pl := range places {
		if seen[i] {
			number[i] = uint32(len(kept))
			kept = append(kept, pl)
			used[pl.Object] = true
		}
	}
	for i := range nodes[1:] {
		nodes[i+1].Value = number[nodes[i+1].Value]
	}
	for i := range objects {
		if used[i] && objects[i].Entry { // after the first record, see Profile.Home
			first := objects[i]
			first.Entry = false
			at := slices.IndexFunc(objects, func(o ingest.Object) bool { return ingest.CompareObjects(&o, &first) == 0 })
			used[at] = true
		}
		if k := objects[i].Kernel; used[i] && k != ingest.NoObject {
			used[k] = true
		}
	}
	q = &ingest.Profile{Strings: p.Strings, Events: p.Events, Meta: p.Meta, Stats: p.Stats}
	var numbers []ingest.ObjectID
	q.Objects, numbers = Objects(objects, used)
	for i := range q.Objects {
		if k := &q.Objects[i].Kernel; *k != ingest.NoObject {
			*k = numbers[*k]
		}
	}
	labels := make([]uint32, len(p.Samples))
	var set Numbers[Labels]
	for i := range p.Samples {
		s := &p.Samples[i]
		labels[i] = set.Number(Labels{Comm: uint32(s.Comm), PID: s.PID, TID: s.TID, CPU: s.CPU,
			Event: s.Event, Tags: uint32(s.Tags)})
	}
	rows := func(yield func(Row) bool) {
		for i := range p.Samples {
			s := &p.Samples[i]
			if !yield(Row{Stack: stacks[s.Stack], Count: s.Count, Weight: s.Weight, Label: labels[i]}) {
				return
			}
		}
	}
	same := func(code uint32) ingest.StringID { return ingest.StringID(code) }
	shard := &Shard{Objects: numbers, Comms: same, Tags: same, Places: kept,
		Stacks: []intern.Tree{intern.Pack(nodes)}, Rows: rows, Labels: set.List}
	Assemble(q, []*Shard{shard})
	locations = make([]ingest.LocationID, len(places))
	for i := range places {
		if seen[i] {
			locations[i] = shard.Location[number[i]]
		}
	}
	return q, locations
}
