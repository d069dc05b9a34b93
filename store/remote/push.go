package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"symbolize/ingest/files"
	"symbolize/store"
)

// Store is the source of Push: db.Reader. Its manifests name the inputs of their sources.
type Store interface {
	// Input returns the content of an input.
	Input(id store.Digest) ([]byte, error)
	// InputSize returns the size of an input in bytes.
	InputSize(id store.Digest) (int64, error)
	// BlobInput returns the input that a blob is kept in.
	BlobInput(id store.BlobID) (store.Digest, error)
}

// PushResult counts the results of Push.
type PushResult struct {
	Objects  int   // that were to be there
	Known    int   // of these, there before with all that the store knows
	Written  int   // objects of the bucket that were written: manifests and inputs
	Replaced int   // of these, in place of damaged ones
	Bytes    int64 // of written ones
	Problems []error
	// UsesLost: a note of days of use was damaged. Until other machines push again it is not known
	// what they use, and Prune must wait.
	UsesLost bool
}

// PushOptions are for Push.
type PushOptions struct {
	Jobs int // requests at a time; 0 for DefaultJobs
	// Verify fetches the objects that are there, and replaces damaged ones.
	Verify bool
	// Used has the last days of use of objects by store.ObjectName, see db.Reader.LastUsed. They are
	// noted in the bucket for Prune.
	Used map[string]time.Time
	// Progress is called after each part, never concurrently; nil for no calls.
	Progress func(Progress)
}

// Progress is how far a Push or Pull has come. What there is to do may grow.
type Progress struct {
	Done, Objects int
	Bytes, Size   int64
}

// meter calls a function about progress.
type meter struct {
	mu   sync.Mutex
	now  Progress
	call func(Progress) // may be nil
}

// add adds to the progress.
func (m *meter) add(p Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Done += p.Done
	m.now.Objects += p.Objects
	m.now.Bytes += p.Bytes
	m.now.Size += p.Size
	if m.call != nil {
		m.call(m.now)
	}
}

// DefaultJobs is how many requests are under way at a time.
const DefaultJobs = 16

func requests(jobs int) int {
	if jobs <= 0 {
		return DefaultJobs
	}
	return jobs
}

// Push writes objects of a store to a bucket, unless the bucket lists them, which it believes
// unless Verify is set. An object that cannot be read or written is a problem, and the others go
// on; after maxFailures one after another it gives up.
func Push(ctx context.Context, from Store, objects []*store.Manifest, to Bucket, opts PushOptions) (
	*PushResult, error) {
	p := &pusher{from: from, to: to, verify: opts.Verify, res: &PushResult{},
		room: files.NewBudget(roomSize), meter: meter{call: opts.Progress}}
	for _, m := range objects {
		if !m.IsAlias() {
			p.res.Objects++
		}
		p.meter.add(Progress{Objects: 1, Size: m.Size()})
	}
	if err := p.begin(ctx); err != nil {
		return p.res, err
	}
	// First, so that a Prune meanwhile does not remove objects that Push believes to be there.
	damaged, err := noteUses(ctx, to, objects, opts.Used, requests(opts.Jobs))
	p.res.Problems, p.res.UsesLost = append(p.res.Problems, damaged...), len(damaged) > 0
	if err != nil {
		return p.res, err
	}
	err = files.Each(ctx, requests(opts.Jobs), len(objects), func(ctx context.Context, i int) error {
		err := p.object(ctx, objects[i])
		if err != nil && ctx.Err() == nil {
			return p.problem(fmt.Errorf("object %s: %w", objects[i].ID, err))
		}
		return err
	})
	return p.res, err
}

type pusher struct {
	from   Store
	to     Bucket
	verify bool
	meter  meter
	room   *files.Budget
	there  onceEach // inputs that are written

	mu     sync.Mutex
	res    *PushResult
	failed int // objects, one after another
}

// maxFailures is after how many objects that fail, one after another, the rest is given up: the
// bucket is not there.
const maxFailures = 5

// begin makes the bucket one of tables, or refuses one of a newer version.
func (p *pusher) begin(ctx context.Context) error {
	err := check(ctx, p.to)
	if errors.Is(err, ErrNoTables) {
		_, err = p.to.Put(ctx, formatKey, []byte(formatText))
	}
	return err
}

// problem notes an object that could not be pushed.
func (p *pusher) problem(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.res.Problems = append(p.res.Problems, err)
	if p.failed++; p.failed >= maxFailures {
		return fmt.Errorf("%s: given up after %d objects: %w", p.to.URL(""), p.failed, err)
	}
	return nil
}

func (p *pusher) object(ctx context.Context, m *store.Manifest) error {
	left := m.Size()
	defer func() { p.meter.add(Progress{Done: 1, Bytes: left}) }()
	encoded := store.EncodeManifest(m)
	key := manifestKey(m.ID, encoded)
	list, err := p.to.List(ctx, objectDir(m.ID))
	if err != nil {
		return err
	}
	there, isNew := slices.Contains(keysOf(list), key), len(list) == 0
	if there && !p.verify {
		p.done(!m.IsAlias())
		return nil
	}
	out, err := p.inputs(m)
	if err != nil {
		return err
	}
	out.eachInput(func(id store.Digest) {
		if err == nil {
			err = p.input(ctx, id, out.sizes[id], isNew)
		}
		some := min(left, out.sizes[id])
		left -= some
		p.meter.add(Progress{Bytes: some})
	})
	if err != nil {
		return err
	}
	if _, err := p.put(ctx, key, out.encode(encoded)); err != nil {
		return err
	}
	p.done(there && !m.IsAlias()) // by the list
	return nil
}

// done counts an object.
func (p *pusher) done(known bool) {
	p.count(func(r *PushResult) {
		if p.failed = 0; known {
			r.Known++
		}
	})
}

// fresh is the age from which on an input that is there is written again: a Prune may remove
// it, unless a manifest names it, from twice this age on.
const fresh = 12 * time.Hour

// input writes an input of an object unless it is there and fresh, once for all objects that have it.
func (p *pusher) input(ctx context.Context, id store.Digest, size int64, isNew bool) error {
	_, err := p.there.do(id, func() (bool, error) {
		err := p.content(ctx, id, size, isNew)
		return err == nil, err
	})
	return err
}

// content writes an input. It does not ask for one of an object that is new to the bucket before it
// writes.
func (p *pusher) content(ctx context.Context, id store.Digest, size int64, isNew bool) error {
	held, err := p.room.Acquire(ctx, size)
	if err != nil {
		return err
	}
	defer p.room.Release(held)
	key := contentKey(id)
	write := func(put func(ctx context.Context, key string, data []byte) (bool, error)) (bool, error) {
		data, err := p.from.Input(id)
		if err != nil {
			return false, err
		}
		return put(ctx, key, data)
	}
	if p.verify || isNew {
		if created, err := write(p.put); created || err != nil {
			return err
		}
	}
	e, err := p.to.Stat(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		_, err = write(p.put)
	case err == nil && time.Since(e.Modified) >= fresh:
		_, err = write(p.replace)
	}
	return err
}

// inputs returns a manifest of the bucket for an object of the store.
func (p *pusher) inputs(m *store.Manifest) (*manifest, error) {
	out := &manifest{m, make(map[store.Digest]int64), make(map[store.BlobID]store.Digest)}
	for _, id := range out.blobIDs() {
		in, err := p.from.BlobInput(id)
		if err != nil {
			return nil, err
		}
		out.blobs[id] = in
	}
	var err error
	out.eachInput(func(id store.Digest) {
		if err == nil {
			out.sizes[id], err = p.from.InputSize(id)
		}
	})
	if err == nil {
		err = out.complete("manifest of " + m.ID.String())
	}
	return out, err
}

// put writes an object unless it is there, or replaces a damaged one.
func (p *pusher) put(ctx context.Context, key string, data []byte) (created bool, err error) {
	if p.verify {
		old, err := p.to.Get(ctx, key, int64(len(data)))
		switch {
		case err == nil && bytes.Equal(old, data):
			return false, nil
		case err == nil, errors.Is(err, store.ErrTooLarge):
			created, err := p.replace(ctx, key, data)
			if err == nil {
				p.count(func(r *PushResult) { r.Replaced++ })
			}
			return created, err
		case !errors.Is(err, ErrNotFound):
			return false, err
		}
	}
	created, err = p.to.Put(ctx, key, data)
	if err == nil && created {
		p.wrote(len(data))
	}
	return created, err
}

// replace writes an object in place of one that is there.
func (p *pusher) replace(ctx context.Context, key string, data []byte) (bool, error) {
	err := p.to.Replace(ctx, key, data)
	if err == nil {
		p.wrote(len(data))
	}
	return err == nil, err
}

// wrote counts an object of the bucket that was written.
func (p *pusher) wrote(n int) {
	p.count(func(r *PushResult) {
		r.Written++
		r.Bytes += int64(n)
	})
}

// count changes what goroutines share.
func (p *pusher) count(change func(r *PushResult)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.res)
}
