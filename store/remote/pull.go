package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/store"
)

// Target is where Pull puts objects.
type Target struct {
	Sink store.InputSink
	View store.View // of what is in Sink
	// Note notes a manifest that was merged, by its SUM, and Noted reports whether it was noted: then it
	// need not be fetched again. They are nil where nothing is noted.
	Note  func(sum store.Digest) error
	Noted func(sum store.Digest) bool
}

// PullOptions are for Pull.
type PullOptions struct {
	// Here has the objects that are here; Sink and Note are not used.
	Here Target
	// Open is called once, before the first object is fetched, and not where nothing is missing
	// here. It returns where objects are put.
	Open func(ctx context.Context) (Target, error)
	Jobs int // requests at a time; 0 for DefaultJobs
	// Progress is called after each part, never concurrently; nil for no calls.
	Progress func(Progress)
	// Checked: the bucket is known to be of this version, by Check.
	Checked bool
}

// PullResult counts the results of Pull.
type PullResult struct {
	Asked   int   `json:"asked"`   // objects; 0 for all
	Found   int   `json:"found"`   // objects that are in the bucket
	Changed int   `json:"changed"` // objects that got something
	Tables  int   `json:"tables"`  // that came
	Fetched int   `json:"fetched"` // objects of the bucket that were fetched: manifests and inputs
	Bytes   int64 `json:"bytes"`
	// Problems are objects of the bucket that are damaged, or did not come.
	Problems []error `json:"-"`
}

// Add adds the figures of another Pull, without its problems.
func (r *PullResult) Add(o *PullResult) {
	r.Asked += o.Asked
	r.Found += o.Found
	r.Changed += o.Changed
	r.Tables += o.Tables
	r.Fetched += o.Fetched
	r.Bytes += o.Bytes
}

// groupSize is how many objects' manifests are in memory at a time.
const groupSize = 256

// roomSize is how many bytes of tables are in memory at a time, besides one that is larger.
const roomSize = 64 << 20

// Pull copies objects from a bucket to a store: objects that match the IDs, and objects that these
// name (Manifest.Probable); all objects if ids is nil. An incomplete object is a problem, and the
// others are still copied. Objects that the store already has are not fetched.
func Pull(ctx context.Context, from Bucket, ids []buildid.ID, opts PullOptions) (*PullResult, error) {
	opts.Jobs = requests(opts.Jobs)
	p := &puller{from: from, opts: opts, to: opts.Here, res: &PullResult{Asked: len(ids)},
		seen: make(map[buildid.ID]bool), room: files.NewBudget(roomSize),
		meter: meter{call: opts.Progress}}
	if !opts.Checked {
		if err := Check(ctx, from); err != nil {
			return p.res, err
		}
	}
	return p.res, p.some(ctx, ids)
}

// Check refuses a bucket without tables, and one of a newer version, in which other things may have
// the names of ours. The error wraps ErrUnavailable.
func Check(ctx context.Context, b Bucket) error {
	if err := check(ctx, b); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// some pulls the objects that IDs match; all for nil.
func (p *puller) some(ctx context.Context, ids []buildid.ID) error {
	if ids == nil {
		return p.all(ctx)
	}
	for len(ids) > 0 {
		var next []buildid.ID
		for some := range slices.Chunk(ids, groupSize) {
			keys, err := p.list(ctx, some)
			if err != nil {
				return err
			}
			more, err := p.group(ctx, keys)
			if err != nil {
				return err
			}
			next = append(next, more...)
		}
		ids = slices.DeleteFunc(next, func(id buildid.ID) bool { return p.seen[id] })
	}
	return nil
}

// puller is one Pull.
type puller struct {
	from Bucket
	opts PullOptions
	to   Target
	open bool                // to is what Open has returned
	seen map[buildid.ID]bool // requested objects and IDs
	room *files.Budget

	inputs onceEach // that were fetched
	meter  meter

	mu     sync.Mutex
	res    *PullResult
	failed int // requests, one after another
}

// all pulls all objects of the bucket.
func (p *puller) all(ctx context.Context) error {
	list, err := p.from.List(ctx, manifestDir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	keys := keysOf(list)
	for len(keys) > 0 {
		n := min(groupSize, len(keys))
		for n < len(keys) { // an object's manifests are one group's
			a, _, _ := parseKey(keys[n-1])
			if b, _, _ := parseKey(keys[n]); a != b {
				break
			}
			n++
		}
		if _, err := p.group(ctx, keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

func keysOf(list []Entry) []string {
	keys := make([]string, len(list))
	for i := range list {
		keys[i] = list[i].Key
	}
	return keys
}

// list returns the keys of the manifests of objects, sorted.
func (p *puller) list(ctx context.Context, ids []buildid.ID) ([]string, error) {
	found := make([][]string, len(ids))
	for _, id := range ids {
		p.seen[id] = true
	}
	err := files.Each(ctx, p.opts.Jobs, len(ids), func(ctx context.Context, i int) error {
		list, err := p.from.List(ctx, objectPrefix(ids[i]))
		if err != nil {
			return p.problem(ctx, err)
		}
		found[i] = slices.DeleteFunc(keysOf(list), func(key string) bool {
			id, _, ok := parseKey(key)
			return !ok || !id.Matches(ids[i])
		})
		return nil
	})
	keys := slices.Concat(found...)
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// problem notes a part that did not come. It returns an error if the bucket seems to be away.
func (p *puller) problem(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.res.Problems = append(p.res.Problems, err)
	if errors.Is(err, ErrDamaged) || errors.Is(err, store.ErrDamaged) || errors.Is(err, ErrNotFound) {
		return nil
	}
	if p.failed++; p.failed >= maxFailures {
		return fmt.Errorf("%w: %s: given up after %d failures", ErrUnavailable, p.from.URL(""), p.failed)
	}
	return nil
}

// group pulls the objects of some manifests, and returns the IDs that they lead to.
func (p *puller) group(ctx context.Context, keys []string) ([]buildid.ID, error) {
	list, err := p.compare(keys)
	if err != nil {
		return nil, err
	}
	for _, w := range list {
		if !w.id.Space().Alias() {
			p.res.Found++
		}
	}
	if !slices.ContainsFunc(list, func(w *wanted) bool { return len(w.keys) > 0 }) {
		return leads(list), nil
	}
	if !p.open {
		if p.to, err = p.opts.Open(ctx); err != nil {
			return nil, err
		}
		p.open = true
		// Another process may have fetched them before that.
		if list, err = p.compare(keys); err != nil {
			return nil, err
		}
	}
	if err := p.readManifests(ctx, list); err != nil {
		return nil, err
	}
	var missing []*wanted
	for _, w := range list {
		if len(w.manifests) == 0 {
			continue
		}
		if err := p.complete(w); err != nil {
			return nil, err
		}
		var size int64
		for _, in := range w.inputs() {
			size += in.m.sizes[in.id]
		}
		missing = append(missing, w)
		p.meter.add(Progress{Objects: 1, Size: size})
	}
	return leads(list), files.Each(ctx, p.opts.Jobs, len(missing), func(ctx context.Context, i int) error {
		defer p.meter.add(Progress{Done: 1})
		return p.object(ctx, missing[i])
	})
}

// leads returns the objects that others name.
func leads(list []*wanted) (ids []buildid.ID) {
	for _, w := range list {
		ids = append(ids, w.leads...)
		for _, m := range w.manifests {
			ids = append(ids, m.Probable...)
		}
	}
	return ids
}
