// Package resolve is the join: the only place where locations meet tables.
//
// The Locations of a Profile are sorted by (object, offset), and so are the
// symbol tables of a store. Resolve walks each table once, in order, for all the
// locations of its object; no address is ever looked up alone.
package resolve

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// shardSize is how many locations of one object are joined at a time. It bounds
// the memory of a worker and lets two of them share a large object.
const shardSize = 8192

// maxWarnings bounds Names.Warnings.
const maxWarnings = 100

// Options are for Resolve.
type Options struct {
	Workers int // 0 for GOMAXPROCS
}

// Resolve names the locations of p by the objects of v and sets p.Names. Names
// that p has already, as those of a pprof file, stay; what has none is tried
// again. A table that cannot be read is a warning in Names, and the sources
// behind it are still used; only a cancelled ctx is an error.
func Resolve(ctx context.Context, p *ingest.Profile, v store.View, opts Options) error {
	j := newJoin(p, v)
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if err := each(ctx, workers, len(j.objects), func(_ *worker, i int) { j.find(i) }); err != nil {
		return err
	}
	shards := j.shards()
	if err := each(ctx, workers, len(shards), func(w *worker,
		i int) {
		w.join(j, shards[i])
	}); err != nil {
		return err
	}
	j.finish(shards)
	return nil
}

// each calls do for 0 ≤ i < n from several goroutines, each with a worker of its
// own, until ctx ends.
func each(ctx context.Context, workers, n int, do func(*worker, int)) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			w := new(worker)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(w, i)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// join is one run of Resolve.
type join struct {
	p       *ingest.Profile
	view    store.View
	old     *ingest.Names // what p had, or nil
	objects []object

	// By location. Shards write to disjoint ranges.
	function []uint32 // number in the shard's functions, plus one; 0 for none
	symOff   []uint64
	reasons  []ingest.Reason
}

// object is one object with locations to be named.
type object struct {
	id       ingest.ObjectID
	from, to int             // its locations
	manifest *store.Manifest // nil if there is none
	layout   *layout         // ELF and vdso
	shift    addr.Addr       // kernel: table address of the reference symbol
	reason   ingest.Reason   // why none can be named; ReasonNone if the tables decide
	found    buildid.ID      // with reason Mismatch
	warnings []ingest.Warning
}

func newJoin(p *ingest.Profile, v store.View) *join {
	n := len(p.Locations)
	j := &join{p: p, view: v, old: p.Names,
		function: make([]uint32, n), symOff: make([]uint64, n), reasons: make([]ingest.Reason, n)}
	if j.old != nil && len(j.old.FrameEnds) != n {
		j.old = nil
	}
	for from := 0; from < n; {
		to := from + 1
		for to < n && p.Locations[to].Object == p.Locations[from].Object {
			to++
		}
		j.objects = append(j.objects, object{id: p.Locations[from].Object, from: from, to: to})
		from = to
	}
	return j
}

// find gets the manifest of an object, or the reason why its locations have no
// name whatever the tables hold.
func (j *join) find(i int) {
	o := &j.objects[i]
	src := &j.p.Objects[o.id]
	switch {
	case src.Symbol != "":
		return
	case src.Reason != ingest.ReasonNone:
		o.reason = src.Reason
		return
	case src.ID.IsZero() || src.Kind.Collapsed():
		o.reason = reasonWithoutID(src.Kind)
		return
	}
	found, err := j.view.Find(src.ID)
	switch {
	case err != nil:
		o.warn("%s: build ID %s: %v", ingest.ShortName(src), src.ID, err)
		o.reason = ingest.TableDamaged
	case len(found) == 0:
		o.reason = ingest.NotIndexed
		j.findOther(o, src)
	case len(found) > 1:
		o.reason = ingest.Ambiguous
	default:
		o.manifest = found[0]
		o.place(src)
	}
}

func (o *object) warn(format string, args ...any) {
	o.warnings = append(o.warnings, ingest.Warning{
		Text:    ingest.Printable(fmt.Sprintf(format, args...)),
		Hint:    "symbolize store verify",
		Partial: true,
	})
}

// reasonWithoutID is why an object without a build ID has no names.
func reasonWithoutID(k ingest.ObjectKind) ingest.Reason {
	switch k {
	case ingest.JIT:
		return ingest.ImageNotCaptured
	case ingest.PerfMap, ingest.Anonymous:
		return ingest.AnonymousMemory
	case ingest.Unmapped:
		return ingest.OutsideMapping
	case ingest.Guest:
		return ingest.GuestCode
	case ingest.Hypervisor:
		return ingest.HypervisorCode
	case ingest.NoStack:
		return ingest.StackNotUnwound
	}
	return ingest.NoBuildID
}

// findOther looks whether the file at the recorded path is known as another
// object: then it was replaced since, and must not be used.
func (j *join) findOther(o *object, src *ingest.Object) {
	row := rowOf(j.view, src.File.Path)
	if row != nil && !row.ID.IsZero() && !row.ID.Matches(src.ID) {
		o.reason, o.found = ingest.Mismatch, row.ID
	}
}

// place prepares the way from Offsets to table addresses.
func (o *object) place(src *ingest.Object) {
	switch src.Kind {
	case ingest.ELF, ingest.VDSO:
		o.layout = newLayout(o.manifest.Layout)
		if o.layout == nil {
			o.reason = ingest.LayoutUnknown
		}
	case ingest.Kernel:
		name := cmp.Or(src.RefSymbol, "_text") // pprof files may not say
		ref, ok := o.manifest.RefSymbol(name)
		if !ok {
			o.reason = ingest.LayoutUnknown
		}
		o.shift = ref
	}
}

// shard is a run of locations of one object, and the functions found for them.
type shard struct {
	object    *object
	from, to  int
	functions []ingest.Function
	warnings  []ingest.Warning
}

// shards cuts the objects into pieces, in the order of locations.
func (j *join) shards() []*shard {
	var list []*shard
	for i := range j.objects {
		o := &j.objects[i]
		for from := o.from; from < o.to; from += shardSize {
			list = append(list, &shard{object: o, from: from, to: min(from+shardSize, o.to)})
		}
	}
	return list
}

// worker holds the buffers of one goroutine.
type worker struct {
	todo  []todo
	addrs []addr.Addr
	hits  []symtab.Hit
}

// todo is a location that has no name yet.
type todo struct {
	addr addr.Addr
	loc  uint32
}

// join names the locations of one shard.
func (w *worker) join(j *join, s *shard) {
	src := &j.p.Objects[s.object.id]
	if src.Symbol != "" {
		j.nameAll(s, src)
		return
	}
	w.gather(j, s, src)
	if len(w.todo) == 0 {
		return
	}
	damaged := false
	m := s.object.manifest
	for i := range m.Sources {
		if len(w.todo) == 0 {
			break
		}
		if err := w.source(j, s, i); err != nil {
			damaged = true
			s.warnings = append(s.warnings, ingest.Warning{
				Text: ingest.Printable(fmt.Sprintf("%s: %s of %s: %v", ingest.ShortName(src),
					m.Sources[i].Kind, m.ID, err)),
				Hint:    "symbolize store verify",
				Partial: true,
			})
		}
	}
	reason := ingest.Stripped
	if damaged {
		reason = ingest.TableDamaged
	}
	for _, t := range w.todo {
		j.reasons[t.loc] = reason
	}
}

// nameAll gives all locations the name that the capture itself has for the whole
// object.
func (j *join) nameAll(s *shard, src *ingest.Object) {
	s.functions = append(s.functions, ingest.Function{Object: s.object.id, SystemName: src.Symbol})
	for l := s.from; l < s.to; l++ {
		if !j.kept(l) {
			j.function[l] = 1
			j.symOff[l] = uint64(j.p.Locations[l].Offset)
		}
	}
}

// kept reports whether a location has a name from before.
func (j *join) kept(l int) bool {
	return j.old != nil && len(j.old.At(ingest.LocationID(l))) > 0
}

// gather lists the locations of a shard that the tables shall name, by table
// address, and gives all others their reason.
func (w *worker) gather(j *join, s *shard, src *ingest.Object) {
	w.todo = w.todo[:0]
	o := s.object
	sorted := true
	for l := s.from; l < s.to; l++ {
		if j.kept(l) {
			continue
		}
		if o.reason != ingest.ReasonNone {
			j.reasons[l] = o.reason
			continue
		}
		off := j.p.Locations[l].Offset
		at := addr.Addr(off)
		switch {
		case o.layout != nil:
			var ok bool
			if at, ok = o.layout.addr(off); !ok {
				j.reasons[l] = ingest.OutsideObject
				continue
			}
		case src.Kind == ingest.Kernel:
			at += o.shift // may wrap: offsets before the reference symbol are negative
		}
		n := len(w.todo)
		sorted = sorted && (n == 0 || w.todo[n-1].addr <= at)
		w.todo = append(w.todo, todo{addr: at, loc: uint32(l)})
	}
	if !sorted {
		slices.SortFunc(w.todo, func(a, b todo) int {
			return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.loc, b.loc))
		})
	}
}

// source joins what is still unnamed with one table and keeps in w.todo what
// stays unnamed. After an error what could be read counts.
func (w *worker) source(j *join, s *shard, i int) error {
	table, err := j.view.Open(s.object.manifest, i)
	if err != nil {
		return err
	}
	n := len(w.todo)
	w.addrs = slices.Grow(w.addrs[:0], n)[:n]
	w.hits = slices.Grow(w.hits[:0], n)[:n]
	for k, t := range w.todo {
		w.addrs[k] = t.addr
	}
	err = table.Join(w.addrs, w.hits)
	left := w.todo[:0]
	last := ^uint32(0) // function that was named last
	for k, t := range w.todo {
		h := &w.hits[k]
		if !h.OK {
			left = append(left, t)
			continue
		}
		if h.Func != last {
			name, nameErr := table.Name(h.Name)
			if nameErr != nil {
				err = nameErr
				left = append(left, t)
				continue
			}
			last = h.Func
			s.functions = append(s.functions, ingest.Function{Object: s.object.id,
				SystemName: name})
		}
		j.function[t.loc] = uint32(len(s.functions))
		j.symOff[t.loc] = uint64(t.addr - h.Start)
	}
	w.todo = left
	return err
}

// finish puts the parts together in the order of locations, so that the result
// does not depend on which worker came first.
func (j *join) finish(shards []*shard) {
	n := &ingest.Names{
		FrameEnds: make([]uint32, len(j.p.Locations)),
		Frames:    make([]ingest.Frame, 0, len(j.p.Locations)),
		Reasons:   j.reasons,
		SymOff:    j.symOff,
	}
	var funcs []ingest.Function
	if j.old != nil {
		funcs = slices.Clone(j.old.Functions)
	}
	for _, s := range shards {
		base := len(funcs)
		funcs = append(funcs, s.functions...)
		for l := s.from; l < s.to; l++ {
			switch {
			case j.function[l] > 0:
				n.Frames = append(n.Frames,
					ingest.Frame{Func: ingest.FuncID(base) + ingest.FuncID(j.function[l]-1)})
			case j.kept(l):
				n.Frames = append(n.Frames, j.old.At(ingest.LocationID(l))...)
				n.SymOff[l] = j.old.SymOff[l]
			}
			n.FrameEnds[l] = uint32(len(n.Frames))
		}
	}
	n.Functions = ingest.SortFunctions(funcs, n.Frames)
	j.report(n, shards)
	j.p.Names = n
}

// report fills in what is said of whole objects.
func (j *join) report(n *ingest.Names, shards []*shard) {
	var warnings []ingest.Warning
	for i := range j.objects {
		o := &j.objects[i]
		if !o.found.IsZero() {
			if n.Found == nil {
				n.Found = make(map[ingest.ObjectID]buildid.ID)
			}
			n.Found[o.id] = o.found
		}
		warnings = append(warnings, o.warnings...)
	}
	for _, s := range shards {
		warnings = append(warnings, s.warnings...)
	}
	for _, w := range warnings { // the shards of one object find the same
		if len(n.Warnings) < maxWarnings && !slices.Contains(n.Warnings, w) {
			n.Warnings = append(n.Warnings, w)
		}
	}
}
