package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"symbolize/ingest/files"
	"symbolize/store"
)

// Store is the source of Push: db.Reader.
type Store interface {
	// EachPart calls put with the parts of a source, see db.Reader.
	EachPart(m *store.Manifest, i int, put func(name string, b []byte) error) error
	Blob(id store.BlobID) ([]byte, error)
}

// PushResult counts the results of Push.
type PushResult struct {
	Objects  int   // that were to be there
	Known    int   // of these, there before with all that the store knows
	Written  int   // objects of the bucket that were written: manifests, pieces and blobs
	Replaced int   // of these, in place of damaged ones
	Bytes    int64 // of written ones
	Problems []error
}

// PushOptions are for Push.
type PushOptions struct {
	Jobs int // requests at a time; 0 for DefaultJobs
	// Verify fetches the objects that are there, and replaces damaged ones.
	Verify bool
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
	p := &pusher{from: from, to: to, verify: opts.Verify, res: &PushResult{}}
	for _, m := range objects {
		if !m.IsAlias() {
			p.res.Objects++
		}
	}
	if err := p.begin(ctx); err != nil {
		return p.res, err
	}
	err := files.Each(ctx, requests(opts.Jobs), len(objects), func(ctx context.Context, i int) error {
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
	encoded := store.EncodeManifest(m)
	key := manifestKey(m.ID, encoded)
	keys, err := p.to.List(ctx, objectDir(m.ID))
	if err != nil {
		return err
	}
	there, isNew := slices.Contains(keys, key), len(keys) == 0
	if there && !p.verify {
		p.done(!m.IsAlias())
		return nil
	}
	for i := range m.Variants {
		for _, id := range m.Variants[i].Blobs() {
			if err := p.blob(ctx, id, isNew); err != nil {
				return err
			}
		}
	}
	out := &manifest{m, make([][]piece, len(m.Sources))}
	for i := range m.Sources {
		if out.pieces[i], err = p.source(ctx, m, i, isNew); err != nil {
			return err
		}
	}
	if err := p.put(ctx, key, out.encode(encoded)); err != nil {
		return err
	}
	p.done(there && !m.IsAlias()) // by the list
	return nil
}

// done counts an object.
func (p *pusher) done(known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed = 0; known {
		p.res.Known++
	}
}

// blob writes a blob unless it is there. It does not ask for one of an object that is new to the
// bucket.
func (p *pusher) blob(ctx context.Context, id store.BlobID, isNew bool) error {
	key := contentKey(id.String())
	if !p.verify && !isNew {
		if there, err := p.to.Has(ctx, key); there || err != nil {
			return err
		}
	}
	data, err := p.from.Blob(id)
	if err != nil {
		return err
	}
	return p.put(ctx, key, data)
}

// source writes the pieces of a source that are not there, see blob.
func (p *pusher) source(ctx context.Context, m *store.Manifest, i int, isNew bool) (
	list []piece, err error) {
	c := &cutter{put: func(b []byte) error {
		sum := sumOf(b)
		list = append(list, piece{sum, int64(len(b))})
		if !p.verify && !isNew {
			if there, err := p.to.Has(ctx, contentKey(sum)); there || err != nil {
				return err
			}
		}
		return p.put(ctx, contentKey(sum), b)
	}}
	err = p.from.EachPart(m, i, func(name string, b []byte) error { return writePart(c, name, b) })
	if err == nil {
		err = c.flush()
	}
	return list, err
}

// put writes an object unless it is there, or replaces a damaged one.
func (p *pusher) put(ctx context.Context, key string, data []byte) error {
	damaged := false
	if p.verify {
		old, err := p.to.Get(ctx, key, int64(len(data)))
		switch {
		case err == nil && bytes.Equal(old, data):
			return nil
		case err == nil, errors.Is(err, store.ErrTooLarge):
			damaged = true
		case !errors.Is(err, ErrNotFound):
			return err
		}
	}
	var err error
	created := damaged
	if damaged {
		err = p.to.Replace(ctx, key, data)
	} else {
		created, err = p.to.Put(ctx, key, data)
	}
	if err == nil && created {
		p.wrote(len(data), damaged)
	}
	return err
}

// wrote counts an object of the bucket that was written.
func (p *pusher) wrote(n int, damaged bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.res.Written++
	p.res.Bytes += int64(n)
	if damaged {
		p.res.Replaced++
	}
}
