// Package resolve is the join: the only place where locations meet tables.
//
// The Locations of a Profile are sorted by (object, offset), and so are the symbol tables of a
// store. Resolve walks each table once, in order, for all the locations of its object; no address
// is looked up by itself.
package resolve

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// shardSize is how many locations of one object are joined at a time. It bounds the memory of a
// worker and lets two of them share a large object.
const shardSize = 8192

// maxWarnings bounds Names.Warnings.
const maxWarnings = 100

// Options are for Resolve.
type Options struct {
	Workers   int // 0 for GOMAXPROCS
	Names     NamePolicy
	NoInlines bool // leave out inlined calls; lines are then the lines of the calls
}

// Resolve names the locations of p by the objects of v and sets p.Names. Names that p already has,
// for example from a pprof file, are kept; unnamed locations are tried again. An unreadable table
// is a warning in Names, and the next sources are still used; only a cancelled ctx is an error.
func Resolve(ctx context.Context, p *ingest.Profile, v store.View, opts Options) error {
	j := newJoin(p, v, opts)
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	_, err := each(ctx, workers, len(j.objects), func(_ *shardNamer, i int) { j.find(i) })
	if err != nil {
		return err
	}
	shards := j.shards()
	ws, err := each(ctx, workers, len(shards), func(w *shardNamer, i int) { w.join(j, shards[i]) })
	if err != nil {
		return err
	}
	j.finish(shards, ws)
	return nil
}

// each calls do for 0 ≤ i < n from several goroutines, each with a worker of its own, until ctx
// ends. It returns the workers.
func each(ctx context.Context, workers, n int, do func(*shardNamer, int)) ([]*shardNamer, error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	ws := make([]*shardNamer, min(workers, n))
	for i := range ws {
		w := &shardNamer{index: make(map[funcKey]uint32)}
		ws[i] = w
		wg.Go(func() {
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
	return ws, ctx.Err()
}

// join is one run of Resolve.
type join struct {
	p       *ingest.Profile
	view    store.View
	opts    Options
	old     *ingest.Names // the Names of p before, or nil
	objects []object

	// By location. Shards write to disjoint ranges.
	first   []uint32 // its first frame among the shard's
	depth   []uint16 // how many it has; 0 for none
	symOff  []uint64
	reasons []ingest.Reason
}

// object is one object with locations to be named.
type object struct {
	id       ingest.ObjectID
	from, to int             // its locations
	manifest *store.Manifest // nil if there is none
	addrs    Addresses
	reason   ingest.Reason // why none can be named; ReasonNone if the tables decide
	found    buildid.ID    // with reason Mismatch
	probable buildid.ID    // the object whose table is used instead, see findJIT
	noImage  bool          // the code was not captured: named, and missing all the same
	declared Declared      // where the source of a function without lines is
	warnings []ingest.Warning
}

func newJoin(p *ingest.Profile, v store.View, opts Options) *join {
	n := len(p.Locations)
	j := &join{p: p, view: v, opts: opts, old: p.Names,
		first: make([]uint32, n), depth: make([]uint16, n),
		symOff: make([]uint64, n), reasons: make([]ingest.Reason, n)}
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

// find gets the manifest of an object, or the reason why its locations have no name with any
// tables.
func (j *join) find(i int) {
	o := &j.objects[i]
	src := &j.p.Objects[o.id]
	switch {
	case src.Symbol != "":
		j.findJIT(o, src)
		return
	case src.Reason != ingest.ReasonNone:
		o.reason = src.Reason
		return
	case src.ID.IsZero() || src.Kind.Collapsed():
		o.reason = ingest.ReasonWithoutID(src.Kind)
		return
	}
	var err error
	if o.manifest, o.reason, err = store.FindCode(j.view, src.ID); err != nil {
		o.warn("%s: build ID %s: %v", ingest.ShortName(src), src.ID, err)
	}
	switch {
	case o.manifest != nil:
		o.addrs, o.reason = NewAddresses(src, o.manifest)
	case o.reason == ingest.NotIndexed:
		// A file at the recorded path that is known as another object replaced this one since, and
		// must not be used.
		if id := PathID(j.view, src.File.Path); !id.IsZero() && !id.Matches(src.ID) {
			o.reason, o.found = ingest.Mismatch, id
		}
	}
}

func (o *object) warn(format string, args ...any) {
	o.warnings = append(o.warnings, damageWarning(format, args...))
}

// damageWarning is the warning about a part of the store that cannot be read.
func damageWarning(format string, args ...any) ingest.Warning {
	return ingest.Warning{Text: texts.Printable(fmt.Sprintf(format, args...)),
		Hint: "symbolize store verify", Partial: true}
}

// finish puts the parts together in the order of locations, so that the result does not depend on
// which worker came first.
func (j *join) finish(shards []*shard, ws []*shardNamer) {
	total := 0
	for _, d := range j.depth {
		total += int(d)
	}
	n := &ingest.Names{
		FrameEnds: make([]uint32, len(j.p.Locations)),
		Frames:    make([]ingest.Frame, 0, total),
		Reasons:   j.reasons,
		SymOff:    j.symOff,
	}
	var funcs []ingest.Function
	if j.old != nil {
		funcs = slices.Clone(j.old.Functions)
	}
	for _, w := range ws {
		w.base = uint32(len(funcs))
		funcs = append(funcs, w.funcs...)
	}
	for _, s := range shards {
		for l := s.from; l < s.to; l++ {
			switch {
			case j.depth[l] > 0:
				for _, f := range s.frames[j.first[l]:][:j.depth[l]] {
					f.Func += ingest.FuncID(s.by.base)
					n.Frames = append(n.Frames, f)
				}
			case j.kept(l):
				n.Frames = append(n.Frames, j.old.At(ingest.LocationID(l))...)
				n.SymOff[l] = j.old.SymOff[l]
			}
			n.FrameEnds[l] = uint32(len(n.Frames))
		}
	}
	n.Functions = ingest.SortFunctions(funcs, n.Frames)
	j.report(n, shards)
	j.warnPadding(n)
	j.p.Names = n
	merge.TrimWaits(j.p)
}

// report fills in the results for whole objects.
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
		if !o.probable.IsZero() {
			if n.Probable == nil {
				n.Probable = make(map[ingest.ObjectID]buildid.ID)
			}
			n.Probable[o.id] = o.probable
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
