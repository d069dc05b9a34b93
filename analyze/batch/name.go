package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"symbolize/analyze"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/format/pprof"
	"symbolize/store"
)

// answer holds the names of one object's locations.
type answer struct {
	Object ingest.Object // of the captures, as bare returns it
	// Exact lists undecided addresses proved not to be return addresses, ascending.
	Exact   []addr.Offset
	Offsets []addr.Offset // of the locations, ascending
	Names   ingest.Names  // of them, in this order
	// Mismatch has for recorded paths the build ID of the file that is known there, which is not
	// the recorded one.
	Mismatch map[string]buildid.ID
	Segments []pprof.Segment
	Shift    addr.Offset // of the reference symbol, see pprof.WriteOptions
	Shifted  bool
}

// answers has the names for an object key; a record of the file that Name writes.
type answers []answer

// NameStats are the figures of Name.
type NameStats struct {
	Objects   int    `json:"objects"`       // with locations, each looked for once
	Tables    uint64 `json:"tables_opened"` // each once
	Locations uint64 `json:"locations"`     // distinct ones
	// Incomplete: something that analyze.Options.Remote may have did not come.
	Incomplete bool             `json:"incomplete,omitempty"`
	Warnings   []ingest.Warning `json:"-"`
}

// add adds the figures of another part.
func (s *NameStats) add(o *NameStats) {
	s.Objects += o.Objects
	s.Tables += o.Tables
	s.Locations += o.Locations
	s.Incomplete = s.Incomplete || o.Incomplete
	s.Warnings = append(s.Warnings, o.Warnings...)
}

// Name gathers the locations of a part from the collected captures, joins them with the store of a
// session, and writes the names to a file.
func Name(ctx context.Context, s *analyze.Session, part int, collected []string, path string,
	workers int) (*NameStats, error) {
	head := namesHead{Part: part}
	for _, path := range collected[:min(1, len(collected))] {
		h, err := ReadHead(path)
		if err != nil {
			return nil, err
		}
		if head.Parts = h.Parts; part >= h.Parts {
			return nil, fmt.Errorf("part %d: %s was collected with %d parts, from 0", part, path, h.Parts)
		}
	}
	all, err := gather(ctx, part, collected)
	if err != nil {
		return nil, err
	}
	if head.Complete, err = s.Need(ctx, objectsOf(all)); err != nil {
		return nil, err
	}
	return nameAll(ctx, s.View(), all, path, &head, workers)
}

// namesHead describes a file of names.
type namesHead struct {
	Part, Parts int
	Complete    bool // all that analyze.Options.Remote may have came
}

// namesRecord is the name of its record; names of objects' records have a colon.
const namesRecord = "names"

// objectsOf returns the objects of places.
func objectsOf(all map[string][]places) (objects []ingest.Object) {
	for _, list := range all {
		for i := range list {
			objects = append(objects, list[i].Object)
		}
	}
	return objects
}

// incompleteName is the end of the name of a file that is not to be used by another run.
const incompleteName = "-incomplete"

// nameAll names locations and writes the names to a file.
func nameAll(ctx context.Context, v store.View, all map[string][]places, path string,
	head *namesHead, workers int) (*NameStats, error) {
	w, err := createRecords(path)
	if err != nil {
		return nil, outputErr(err)
	}
	n := &namer{view: v, all: all, out: w}
	n.stats.Incomplete = !head.Complete
	if err = outputErr(w.Put(namesRecord, pack(head))); err == nil {
		err = n.run(ctx, workers)
	}
	if err != nil {
		return nil, errors.Join(err, w.Abandon())
	}
	return &n.stats, outputErr(w.Publish())
}

// gathered are the places of one object with the same facts, of many captures.
type gathered struct {
	places
	offsets, undecided offsetSet
}

// gather reads the locations of a part, by object key.
func gather(ctx context.Context, part int, collected []string) (map[string][]places, error) {
	var list []*gathered
	index := make(map[string]*gathered) // by key and facts
	for _, path := range collected {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some, err := readPart(part, path)
		if err != nil {
			return nil, err
		}
		for _, pl := range some {
			id := pl.Key + facts(&pl.Object) + "|" + pl.Object.File.Path
			g, ok := index[id]
			if !ok {
				g = &gathered{places: pl}
				index[id] = g
				list = append(list, g)
			}
			g.offsets.add(pl.Offsets)
			g.undecided.add(pl.Undecided)
		}
	}
	all := make(map[string][]places)
	for _, g := range list {
		g.Offsets, g.Undecided = g.offsets.all(), g.undecided.all()
		all[g.Key] = append(all[g.Key], g.places)
	}
	return all, nil
}

// readPart reads the places of a part of one collected capture.
func readPart(part int, path string) (list []places, err error) {
	f, err := openRecords(path)
	if err != nil {
		return nil, err
	}
	_, err = f.Get(partName(part), &list)
	return list, errors.Join(err, f.Close())
}

// namer is one run of Name.
type namer struct {
	view store.View
	all  map[string][]places

	mu    sync.Mutex
	out   *recordWriter
	stats NameStats
}

// batchOf is how many objects are named before their records are written.
const batchOf = 256

// run names the objects in order of their keys, from several goroutines, and writes them in it.
func (n *namer) run(ctx context.Context, workers int) error {
	keys := slices.Sorted(maps.Keys(n.all))
	packed := make([][]byte, batchOf)
	for some := range slices.Chunk(keys, batchOf) {
		err := files.Each(ctx, workers, len(some), func(ctx context.Context, i int) (err error) {
			packed[i], err = n.name(ctx, n.all[some[i]])
			return err
		})
		if err != nil {
			return err
		}
		for i, key := range some {
			if err := n.out.Put(key, packed[i]); err != nil {
				return outputErr(err)
			}
		}
	}
	return nil
}

// name returns the record of one object key.
func (n *namer) name(ctx context.Context, list []places) ([]byte, error) {
	v := &countedView{View: n.view, tables: make(map[string]opened)}
	found, err := nameObject(ctx, v, list)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stats.Objects++
	n.stats.Tables += uint64(len(v.tables))
	n.stats.Locations += uint64(len(found[0].Offsets))
	for i := range found {
		n.stats.Warnings = append(n.stats.Warnings, found[i].Names.Warnings...)
	}
	record := answers(found)
	return pack(&record), nil
}

// nameObject names the locations of an object of which captures may have different facts: each
// record of it gets the names of all locations, as captures of one group become one profile.
func nameObject(ctx context.Context, v store.View, list []places) ([]answer, error) {
	texts := make([]string, len(list))
	order := make([]int, len(list))
	for i := range list {
		texts[i], order[i] = facts(&list[i].Object), i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(strings.Compare(texts[a], texts[b]),
			strings.Compare(list[a].Object.File.Path, list[b].Object.File.Path))
	})
	sorted := make([]places, len(list))
	for i, n := range order {
		sorted[i] = list[n]
	}
	list = sorted
	var offsets, undecided []addr.Offset
	for i := range list {
		offsets = sortedUnion(offsets, list[i].Offsets)
		undecided = sortedUnion(undecided, list[i].Undecided)
	}
	var out []answer
	for i := 0; i < len(list); {
		same := i + 1
		for same < len(list) && texts[order[same]] == texts[order[i]] {
			same++
		}
		a, err := nameRecord(ctx, v, list[i:same], offsets, undecided)
		if err != nil {
			return nil, err
		}
		out = append(out, *a)
		i = same
	}
	return out, nil
}

// nameRecord names the locations of records of an object that only differ in the path.
func nameRecord(ctx context.Context, v store.View, list []places,
	offsets, undecided []addr.Offset) (*answer, error) {
	o := list[0].Object
	a := &answer{Object: o}
	behind := make([]addr.Offset, len(undecided))
	for i, off := range undecided {
		behind[i] = addr.Return(off, true)
	}
	a.Exact = resolve.Exact(v)(&o, behind)
	a.Offsets = sortedUnion(offsets, decided(undecided, a.Exact))
	p := profileOf(&o, a.Offsets)
	if err := resolve.Resolve(ctx, p, v, resolve.Options{Workers: 1}); err != nil {
		return nil, err
	}
	a.Names = *p.Names
	opts := resolve.Layout(v, p)
	a.Segments = opts.Layout(0)
	a.Shift, a.Shifted = opts.RefShift(0)
	return a, a.findOthers(ctx, v, list)
}

// decided returns the offsets of addresses by which of them are no return addresses.
func decided(undecided, exact []addr.Offset) []addr.Offset {
	out := make([]addr.Offset, len(undecided))
	for i, off := range undecided {
		out[i] = decide(off, exact)
	}
	return out
}

// decide returns the offset of an address; off is the offset of the byte before it.
func decide(off addr.Offset, exact []addr.Offset) addr.Offset {
	if _, ok := slices.BinarySearch(exact, addr.Return(off, true)); ok {
		return addr.Return(off, true)
	}
	return off
}

// findOthers looks which of the recorded paths have another file now.
func (a *answer) findOthers(ctx context.Context, v store.View, list []places) error {
	a.Names.Found = nil
	unknown := slices.ContainsFunc(a.Names.Reasons, func(r ingest.Reason) bool {
		return r == ingest.Mismatch || r == ingest.NotIndexed
	})
	for i := 0; i < len(list) && unknown; i++ {
		o := list[i].Object
		p := profileOf(&o, a.Offsets[:min(1, len(a.Offsets))])
		if err := resolve.Resolve(ctx, p, v, resolve.Options{Workers: 1}); err != nil {
			return err
		}
		if id, ok := p.Names.Found[0]; ok {
			if a.Mismatch == nil {
				a.Mismatch = make(map[string]buildid.ID)
			}
			a.Mismatch[o.File.Path] = id
		}
	}
	for l, r := range a.Names.Reasons {
		if r == ingest.Mismatch { // the path decides, in group.names
			a.Names.Reasons[l] = ingest.NotIndexed
		}
	}
	return nil
}

// profileOf returns a profile with locations of one object.
func profileOf(o *ingest.Object, offsets []addr.Offset) *ingest.Profile {
	p := &ingest.Profile{Objects: []ingest.Object{*o}}
	for _, off := range offsets {
		p.Locations = append(p.Locations, ingest.Location{Offset: off})
	}
	return p
}
