package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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
	"symbolize/ingest/input/pprof"
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
	Objects     int    `json:"objects"`       // with locations, each looked for once
	ObjectsKept int    `json:"objects_kept"`  // that a run before had named
	Tables      uint64 `json:"tables_opened"` // each once
	Locations   uint64 `json:"locations"`     // distinct ones
	// Incomplete: something that analyze.Options.Remote may have did not come.
	Incomplete bool `json:"incomplete,omitempty"`
	// Gained are the objects of which a run before had fewer names.
	Gained   []Gain           `json:"gained,omitempty"`
	Warnings []ingest.Warning `json:"-"`

	all bool // nothing had to be written
}

// Gain is an object that has more names than before.
type Gain struct {
	File    string `json:"file"`
	BuildID string `json:"build_id,omitempty"`
	Before  int    `json:"locations_named_before"`
	Now     int    `json:"locations_named"`
}

// add adds the figures of another part.
func (s *NameStats) add(o *NameStats) {
	s.Objects += o.Objects
	s.ObjectsKept += o.ObjectsKept
	s.Gained = append(s.Gained, o.Gained...)
	s.Tables += o.Tables
	s.Locations += o.Locations
	s.Incomplete = s.Incomplete || o.Incomplete
	s.Warnings = append(s.Warnings, o.Warnings...)
}

// NameOptions are for Name.
type NameOptions struct {
	Workers int // objects at a time; 0 for GOMAXPROCS
	Chains  Chains
}

// Name gathers the locations of a part from the collected captures, joins them with the store of a
// session, and writes the names to a file. Names that the file has already stay where neither the
// locations of an object nor its tables in the store have changed. With NameOptions.Chains it reads the
// stacks of all captures, too, and the file has the completed stacks of some of them.
func Name(ctx context.Context, s *analyze.Session, part int, collected []string, path string,
	opts NameOptions) (*NameStats, error) {
	head := namesHead{Part: part, Chains: opts.Chains}
	var err error
	if head.Inputs, head.Parts, err = inputsOf(collected); err != nil {
		return nil, err
	}
	if part >= head.Parts && len(collected) > 0 {
		return nil, fmt.Errorf("part %d: %s was collected with %d parts, from 0", part, collected[0],
			head.Parts)
	}
	c := &completer{session: s, chains: head.Chains, packs: collected, parts: head.Parts, workers: opts.Workers}
	return namePart(ctx, c, &head, path)
}

// inputsOf returns a digest of packs by the digests of their heads, and the number of their parts.
func inputsOf(packs []string) (inputs string, parts int, err error) {
	sums := make([]string, len(packs))
	for i, path := range packs {
		f, head, err := openPack(path)
		if err != nil {
			return "", 0, err
		}
		if i > 0 && head.Parts != parts {
			err = fmt.Errorf("%s was collected with %d parts, %s with %d", packs[0], parts, path, head.Parts)
		}
		e, _ := f.find(headsRecord)
		sums[i], parts = fmt.Sprintf("%x", e.Sum), head.Parts
		if err := errors.Join(err, f.Close()); err != nil {
			return "", 0, err
		}
	}
	slices.Sort(sums)
	return digest(strings.Join(sums, "\n")), parts, nil
}

// namePart is Name for the part of a head.
func namePart(ctx context.Context, c *completer, head *namesHead, path string) (*NameStats, error) {
	s := c.session
	n := &namer{session: s, made: make(map[string]*made), before: make(map[string]int)}
	if n.openOld(path, head); n.old != nil {
		defer n.old.Close()
	}
	chains, err := n.keptChains(ctx, head)
	if err != nil {
		return nil, err
	}
	if chains != nil || !head.Chains.Proven {
		if kept, err := n.isKept(ctx, head); kept || err != nil {
			return &n.stats, err
		}
	}
	if err := n.gather(ctx, c, head, chains); err != nil {
		return nil, err
	}
	n.dropOthers()
	complete, err := s.Need(ctx, n.objects())
	if err != nil {
		return nil, err
	}
	if err := n.dropChanged(ctx); err != nil {
		return nil, err
	}
	n.stats.Incomplete = !complete
	var from []string
	if head.Chains.Proven {
		from = c.packs // it has stacks of them
	}
	if n.out, err = createRecords(path, from...); err != nil {
		return nil, outputErr(err)
	}
	if err = outputErr(n.out.Put(namesRecord, pack(head))); err == nil && head.Chains.Proven {
		err = n.putChains(ctx, c, head.Part, chains)
	}
	if err == nil {
		err = n.run(ctx, c.workers)
	}
	n.stats.Warnings = append(c.newWarnings(), n.stats.Warnings...)
	if err != nil {
		return nil, errors.Join(err, n.out.Abandon())
	}
	return &n.stats, outputErr(n.out.Publish())
}

// namesHead describes a file of names.
type namesHead struct {
	Part, Parts int
	Inputs      string // see inputsOf
	Chains      Chains
}

// The records of a file of names, besides those of chains.go; those of objects have a colon in their
// names.
const (
	namesRecord = "names"
	madeRecord  = "made" // []made, sorted by key
)

// made has the inputs of the names of an object.
type made struct {
	Key   string
	Asked [16]byte // digest of its places
	Needs []analyze.Dependency
	// Named counts its locations that have names, of All: for an object without some of them the
	// remote is asked again.
	Named, All int
	Objects    []ingest.Object // if some have none
}

// askedOf returns made.Asked of places.
func askedOf(list []places) (sum [16]byte) {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = string(encodeRecord(&list[i]))
	}
	slices.Sort(texts) // captures come in any order
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintln(h, len(text))
		io.WriteString(h, text)
	}
	copy(sum[:], h.Sum(nil))
	return sum
}

// openOld opens the file of names that a run before wrote of the part, if there is one.
func (n *namer) openOld(path string, head *namesHead) {
	f, err := openRecords(path)
	if err != nil {
		return
	}
	var list []made
	ok1, err1 := f.Get(namesRecord, &n.oldHead)
	ok2, err2 := f.Get(madeRecord, &list)
	if !ok1 || !ok2 || errors.Join(err1, err2) != nil || n.oldHead.Part != head.Part ||
		n.oldHead.Parts != head.Parts {
		f.Close() // of another version
		return
	}
	n.old = f
	for i := range list {
		n.made[list[i].Key] = &list[i]
		n.before[list[i].Key] = list[i].Named
	}
}

// isKept reports whether the names of a run before are those of this one.
func (n *namer) isKept(ctx context.Context, head *namesHead) (bool, error) {
	if n.old == nil || n.oldHead != *head {
		return false, nil
	}
	objects := make([]ingest.Object, 0)
	for _, m := range n.made {
		if m.Named < m.All {
			objects = append(objects, m.Objects...)
		}
	}
	complete, err := n.session.Need(ctx, objects)
	if err != nil {
		return false, err
	}
	for key, m := range n.made {
		if changed, err := n.session.Changed(ctx, m.Needs); changed || err != nil {
			return false, err
		}
		if _, ok := n.old.find(key); !ok {
			return false, nil
		}
	}
	for _, m := range n.made {
		n.stats.Objects++
		n.stats.ObjectsKept++
		n.stats.Locations += uint64(m.All)
	}
	n.stats.Incomplete, n.stats.all = !complete, true
	return true, nil
}

// dropOthers forgets the names of a run before for objects with other locations now.
func (n *namer) dropOthers() {
	for key, m := range n.made {
		if list, ok := n.all[key]; !ok || askedOf(list) != m.Asked {
			delete(n.made, key)
		}
	}
}

// dropChanged forgets the names of objects of which the store has something else now.
func (n *namer) dropChanged(ctx context.Context) error {
	for key, m := range n.made {
		changed, err := n.session.Changed(ctx, m.Needs)
		if err != nil {
			return err
		}
		if changed {
			delete(n.made, key)
		}
	}
	return nil
}

// objects returns the objects that the remote is asked for: those without all names.
func (n *namer) objects() (objects []ingest.Object) {
	for key, list := range n.all {
		if m := n.made[key]; m != nil && m.Named == m.All {
			continue
		}
		for i := range list {
			objects = append(objects, list[i].Object)
		}
	}
	return objects
}

// gathered are the places of one object with the same facts, of many captures.
type gathered struct {
	places
	offsets, undecided offsetSet
}

// union returns the places.
func (g *gathered) union() *places {
	g.Offsets, g.Undecided = g.offsets.all(), g.undecided.all()
	return &g.places
}

// gathering collects places of captures, by object.
type gathering struct {
	list  []*gathered
	index map[string]*gathered // by key and facts
}

func newGathering() *gathering { return &gathering{index: make(map[string]*gathered)} }

func (all *gathering) add(list []places) {
	for i := range list {
		pl := &list[i]
		id := pl.Key + facts(&pl.Object) + "|" + pl.Object.File.Path
		g, ok := all.index[id]
		if !ok {
			g = &gathered{places: *pl}
			all.index[id] = g
			all.list = append(all.list, g)
		}
		g.offsets.add(pl.Offsets)
		g.undecided.add(pl.Undecided)
	}
}

// gather reads the locations of a part from packs, by object key, with those of completed stacks.
func (n *namer) gather(ctx context.Context, c *completer, head *namesHead, chains *chainsMade) error {
	all := newGathering()
	for _, path := range c.packs {
		if err := ctx.Err(); err != nil {
			return err
		}
		some, err := readPart(head.Part, path)
		if err != nil {
			return err
		}
		all.add(some)
	}
	if head.Chains.Proven && chains == nil {
		if err := c.find(ctx); err != nil {
			return err
		}
		chains = &c.made[head.Part]
	}
	if chains != nil {
		all.add(chains.More)
	}
	n.all = make(map[string][]places)
	for _, g := range all.list {
		n.all[g.Key] = append(n.all[g.Key], *g.union())
	}
	return nil
}

// readPart reads the places of a part of a pack.
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
	session *analyze.Session
	all     map[string][]places
	old     *recordFile // of a run before; nil for none
	oldHead namesHead
	before  map[string]int // locations named by it

	mu    sync.Mutex
	made  map[string]*made // kept or named
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
			packed[i], err = n.name(ctx, some[i])
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
	list := make([]made, len(keys))
	for i, key := range keys {
		list[i] = *n.made[key]
	}
	return outputErr(n.out.Put(madeRecord, pack(&list)))
}

// name returns the record of one object key.
func (n *namer) name(ctx context.Context, key string) ([]byte, error) {
	if packed := n.kept(key); packed != nil {
		return packed, nil
	}
	view, trace := n.session.Trace()
	v := &countedView{View: view, tables: make(map[string]opened)}
	found, err := nameObject(ctx, v, trace, n.all[key])
	if err != nil {
		return nil, err
	}
	m := &made{Key: key, Asked: askedOf(n.all[key]), All: len(found[0].Offsets)}
	for i := range found[0].Names.Reasons {
		if found[0].Names.Reasons[i] == ingest.ReasonNone {
			m.Named++
		}
	}
	if m.Named < m.All {
		for i := range found {
			m.Objects = append(m.Objects, found[i].Object)
		}
	}
	record := answers(found)
	m.Needs = trace.Dependencies()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made[key] = m
	n.stats.Objects++
	n.stats.Tables += uint64(len(v.tables))
	n.stats.Locations += uint64(m.All)
	for i := range found {
		n.stats.Warnings = append(n.stats.Warnings, found[i].Names.Warnings...)
	}
	if before, ok := n.before[key]; ok && m.Named > before {
		o := &found[0].Object
		n.stats.Gained = append(n.stats.Gained, Gain{o.File.Path, o.ID.String(), before, m.Named})
	}
	return pack(&record), nil
}

// kept returns the record of an object key of a run before; nil if there is none to be used.
func (n *namer) kept(key string) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.made[key]
	if m == nil {
		return nil
	}
	e, ok := n.old.find(key)
	if !ok {
		return nil
	}
	packed, err := n.old.packed(e)
	if err != nil {
		return nil // damaged: it is named again
	}
	n.stats.Objects++
	n.stats.ObjectsKept++
	n.stats.Locations += uint64(m.All)
	return packed
}

// nameObject names the locations of an object of which captures may have different facts: each
// record of it gets the names of all locations, as captures of one group become one profile. The
// trace is of the view.
func nameObject(ctx context.Context, v store.View, trace *analyze.Trace, list []places) (
	[]answer, error) {
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
		a, err := nameRecord(ctx, v, trace, list[i:same], offsets, undecided)
		if err != nil {
			return nil, err
		}
		out = append(out, *a)
		i = same
	}
	return out, nil
}

// nameRecord names the locations of records of an object that only differ in the path.
func nameRecord(ctx context.Context, v store.View, trace *analyze.Trace, list []places,
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
	if slices.Contains(a.Names.Reasons, ingest.TableDamaged) ||
		slices.ContainsFunc(a.Names.Warnings, func(w ingest.Warning) bool { return w.Partial }) {
		trace.Spoil()
	}
	opts := resolve.Layout(v, p)
	a.Segments = opts.Layout(0)
	a.Shift, a.Shifted = opts.RefShift(0)
	return a, a.findOthers(ctx, v, trace, list)
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
func (a *answer) findOthers(ctx context.Context, v store.View, trace *analyze.Trace,
	list []places) error {
	a.Names.Found = nil
	unknown := slices.ContainsFunc(a.Names.Reasons, func(r ingest.Reason) bool {
		return r == ingest.Mismatch || r == ingest.NotIndexed
	})
	for i := 0; i < len(list) && unknown; i++ {
		o := list[i].Object
		trace.NotePath(o.File.Path)
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
