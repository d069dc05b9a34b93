package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/store"
	"symbolize/store/db"
)

// PruneOptions are for Prune.
type PruneOptions struct {
	// Before is the beginning of the day, UTC, from which objects count as used.
	Before time.Time
	// Now is the time of the clock by which Before was chosen. If the bucket's clock is another day,
	// nothing is removed: ErrClock. The zero time is not compared.
	Now time.Time
	// Used has the last days of use of objects here, as in PushOptions.
	Used   map[string]time.Time
	DryRun bool // removes nothing
	Jobs   int  // requests at a time; 0 for DefaultJobs
}

// PruneResult counts the results of Prune.
type PruneResult struct {
	Objects int       // that stay
	Gone    []db.Gone // removed objects, sorted by build ID
	Removed int       // objects of the bucket that were removed: manifests and inputs
	Bytes   int64     // of removed ones
	// Problems are manifests of objects that stay and cannot be read, as long as there is one of
	// which no inputs are removed; and damaged notes, which are removed, and nothing else with them.
	Problems []error
}

// Prune removes the objects from a bucket that no machine has pushed or used since a time, and
// inputs that were written before it and that no manifest names. Objects are removed as a
// whole: manifests first, so that a Prune that was interrupted leaves no object without its tables.
// A note of uses of a newer version is an error. Where a note is damaged, nothing but this note is
// removed: until other machines push again it is not known what they use.
func Prune(ctx context.Context, b Bucket, opts PruneOptions) (*PruneResult, error) {
	opts.Jobs = requests(opts.Jobs)
	p := &pruner{in: b, opts: opts, res: &PruneResult{}, read: make(map[string]*manifest),
		stayed: make(map[buildid.ID]bool)}
	if err := check(ctx, b); err != nil {
		return p.res, err
	}
	if err := p.checkClock(ctx); err != nil {
		return p.res, err
	}
	list, err := p.manifests(ctx)
	if err != nil {
		return p.res, err
	}
	if err := p.readUses(ctx); err != nil {
		return p.res, err
	}
	if p.res.Problems = append(p.res.Problems, p.uses.damaged...); len(p.uses.damaged) > 0 {
		p.res.Objects = countObjects(list)
		if opts.DryRun {
			return p.res, nil
		}
		return p.res, p.uses.write(ctx, b, p.uses.last, p.uses.keys)
	}
	gone := p.choose(list)
	for _, e := range gone {
		if err := p.remove(ctx, e, p.usedAgain); err != nil {
			return p.res, err
		}
	}
	p.res.Gone = slices.DeleteFunc(p.res.Gone, func(g db.Gone) bool { return p.stayed[g.Manifest.ID] })
	p.res.Objects += len(p.stayed)
	if err := p.sweep(ctx, gone); err != nil || opts.DryRun {
		return p.res, err
	}
	return p.res, p.join(ctx)
}

// ErrClock is wrapped by the error of Prune where this machine's clock is not the bucket's.
var ErrClock = errors.New("the clock is wrong")

// clockKey is an object that is written to see the bucket's time, and removed.
const clockKey = "v2/clock"

// checkClock compares Now with the time at which the bucket says that an object was written.
func (p *pruner) checkClock(ctx context.Context) error {
	const most = 24 * time.Hour
	if p.opts.Now.IsZero() || p.opts.DryRun {
		return nil
	}
	if err := p.in.Replace(ctx, clockKey, []byte("symbolize clock\n")); err != nil {
		return err
	}
	e, err := p.in.Stat(ctx, clockKey)
	if err = errors.Join(err, p.in.Remove(ctx, clockKey)); err != nil {
		return err
	}
	if ahead := p.opts.Now.Sub(e.Modified); ahead.Abs() > most {
		return fmt.Errorf("%s: %w: it is %s here, and %s there", p.in.URL(""), ErrClock,
			p.opts.Now.UTC().Format(time.DateOnly), e.Modified.UTC().Format(time.DateOnly))
	}
	return nil
}

// pruner is one Prune.
type pruner struct {
	in   Bucket
	opts PruneOptions
	uses *uses
	// stayed are objects to be removed that were used meanwhile.
	stayed map[buildid.ID]bool

	mu   sync.Mutex
	res  *PruneResult
	read map[string]*manifest // manifests by key; nil for one that cannot be read
}

// manifests lists the manifests of the bucket, and reads those that were not read before.
func (p *pruner) manifests(ctx context.Context) ([]Entry, error) {
	list, err := p.in.List(ctx, manifestDir)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e Entry) bool {
		_, _, ok := parseKey(e.Key)
		return !ok
	})
	return list, files.Each(ctx, p.opts.Jobs, len(list), func(ctx context.Context, i int) error {
		key := list[i].Key
		p.mu.Lock()
		_, known := p.read[key]
		p.mu.Unlock()
		if known {
			return nil
		}
		var m *manifest
		b, err := p.in.Get(ctx, key, maxManifest)
		if err == nil {
			m, err = decodeManifest(b, key, p.in.URL(key))
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.read[key] = m
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDamaged) {
			return err
		}
		return nil
	})
}

// countObjects returns how many objects manifests are of.
func countObjects(list []Entry) int {
	ids := make(map[buildid.ID]bool)
	for _, e := range list {
		if id, _, _ := parseKey(e.Key); !id.Space().Alias() {
			ids[id] = true
		}
	}
	return len(ids)
}

// choose returns the manifests of unused objects, and of aliases that lead to none that stays.
func (p *pruner) choose(list []Entry) (gone []Entry) {
	stays, aliases := make(map[buildid.ID]bool), []Entry(nil)
	for len(list) > 0 {
		id, _, _ := parseKey(list[0].Key)
		n := 1
		for n < len(list) {
			if next, _, _ := parseKey(list[n].Key); next != id {
				break
			}
			n++
		}
		some := list[:n]
		list = list[n:]
		switch {
		case id.Space().Alias():
			aliases = append(aliases, some...)
		case p.unused(id, some):
			gone = append(gone, some...)
			p.res.Gone = append(p.res.Gone, p.describe(id, some))
		default:
			stays[id] = true
			p.res.Objects++
		}
	}
	slices.SortFunc(p.res.Gone, func(a, b db.Gone) int { return a.Manifest.ID.Compare(b.Manifest.ID) })
	for _, e := range aliases {
		if m := p.read[e.Key]; m != nil && e.Modified.Before(p.opts.Before) && !m.LeadsTo(stays) {
			gone = append(gone, e)
		}
	}
	return gone
}

// readUses reads the notes, and adds the days of opts.
func (p *pruner) readUses(ctx context.Context) (err error) {
	if p.uses, err = readUses(ctx, p.in, p.opts.Jobs); err != nil {
		return err
	}
	for object, day := range p.opts.Used {
		p.uses.note(object, day.UTC().Format(time.DateOnly))
	}
	return nil
}

// usedAgain reports whether a Push has noted meanwhile that an object of a manifest is used: it
// believes that the manifest stays.
func (p *pruner) usedAgain(ctx context.Context, e Entry) (bool, error) {
	list, err := p.in.List(ctx, usesDir)
	if err != nil {
		return false, err
	}
	if !slices.Equal(keysOf(list), p.uses.keys) {
		if err := p.readUses(ctx); err != nil {
			return false, err
		}
	}
	id, _, _ := parseKey(e.Key)
	of := []buildid.ID{id}
	if id.Space().Alias() {
		of = p.read[e.Key].Probable
	}
	used := slices.ContainsFunc(of, func(id buildid.ID) bool { return !p.unused(id, nil) })
	if used && !id.Space().Alias() {
		p.stayed[id] = true
	}
	return used, nil
}

// lastUse is the last day of an object's use, or the time of its last push if that is later.
func (p *pruner) lastUse(id buildid.ID, manifests []Entry) time.Time {
	last, _ := time.Parse(time.DateOnly, p.uses.last[store.ObjectName(id)]) // zero without one
	for _, e := range manifests {
		if e.Modified.After(last) {
			last = e.Modified
		}
	}
	return last.UTC()
}

func (p *pruner) unused(id buildid.ID, manifests []Entry) bool {
	return p.lastUse(id, manifests).Before(p.opts.Before)
}

// describe joins the manifests of an object that goes.
func (p *pruner) describe(id buildid.ID, manifests []Entry) db.Gone {
	all := &store.Manifest{ID: id}
	for _, e := range manifests {
		m := p.read[e.Key]
		if m == nil {
			continue
		}
		sources := append(all.Sources, m.Sources...)
		*all = store.MergeFacts(all, m.Manifest)
		slices.SortFunc(sources, store.CompareSources)
		all.Sources = slices.CompactFunc(sources, func(a, b store.SourceInfo) bool {
			return a.Kind == b.Kind && a.Digest == b.Digest
		})
	}
	return db.Gone{Manifest: all, LastUsed: p.lastUse(id, manifests)}
}

// remove removes an object of the bucket, unless it was written anew since it was listed, or is used:
// nil for one that is not.
func (p *pruner) remove(ctx context.Context, e Entry,
	used func(context.Context, Entry) (bool, error)) error {
	if !p.opts.DryRun {
		now, err := p.in.Stat(ctx, e.Key)
		if errors.Is(err, ErrNotFound) || err == nil && !now.Modified.Before(p.opts.Before) {
			return nil
		}
		if err == nil && used != nil {
			var stays bool
			if stays, err = used(ctx, e); stays {
				return err
			}
		}
		if err == nil {
			err = p.in.Remove(ctx, e.Key)
		}
		if err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.res.Removed++
	p.res.Bytes += e.Size
	return nil
}

// sweep removes inputs that are old and that no manifest names besides those that go.
func (p *pruner) sweep(ctx context.Context, gone []Entry) error {
	list, err := p.manifests(ctx) // pushed meanwhile
	if err != nil {
		return err
	}
	goes := make(map[string]bool)
	if p.opts.DryRun {
		for _, e := range gone {
			goes[e.Key] = true
		}
	}
	needed := make(map[string]bool)
	for _, e := range list {
		m := p.read[e.Key]
		switch {
		case goes[e.Key]:
		case m == nil:
			p.res.Problems = append(p.res.Problems, fmt.Errorf("%s: its tables are not known, and so no "+
				"tables are removed: %w", p.in.URL(e.Key), ErrDamaged))
		default:
			m.eachInput(func(id store.Digest) { needed[contentKey(id)] = true })
		}
	}
	if len(p.res.Problems) > 0 {
		return nil
	}
	content, err := p.in.List(ctx, contentDir)
	if err != nil {
		return err
	}
	content = slices.DeleteFunc(content, func(e Entry) bool {
		return needed[e.Key] || !e.Modified.Before(p.opts.Before)
	})
	return files.Each(ctx, p.opts.Jobs, len(content), func(ctx context.Context, i int) error {
		return p.remove(ctx, content[i], nil)
	})
}

// join makes one note of all days that count. Objects with earlier days are gone, or were pushed
// later.
func (p *pruner) join(ctx context.Context) error {
	first := p.opts.Before.UTC().Format(time.DateOnly)
	maps.DeleteFunc(p.uses.last, func(_, day string) bool { return day < first })
	return p.uses.write(ctx, p.in, p.uses.last, p.uses.keys)
}
