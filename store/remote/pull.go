package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"symbolize/buildid"
	"symbolize/store"
)

// PullOptions are for Pull.
type PullOptions struct {
	// View has what is here. Pull asks it again when Open has returned another.
	View store.View
	// Open is called once, before the first object is fetched, and not where nothing is missing here.
	// It returns where objects are put, and a View of it.
	Open func(ctx context.Context) (store.Sink, store.View, error)
	// Notes returns a directory for manifests, which a later Pull need not fetch again; "" for none.
	Notes func() string
	Jobs  int // requests at a time; 0 for DefaultJobs
}

// PullResult counts the results of Pull.
type PullResult struct {
	Asked   int   `json:"asked"`   // objects; 0 for all
	Found   int   `json:"found"`   // objects that are in the bucket
	Changed int   `json:"changed"` // objects that got something
	Tables  int   `json:"tables"`  // that came
	Fetched int   `json:"fetched"` // objects of the bucket that were fetched: manifests, pieces and blobs
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

// Pull takes objects from a bucket to a store: those that the IDs match, and those that they lead
// to (Manifest.Probable), or all for nil. An object that does not come whole is a problem, and the
// others go on. The bucket's objects that are here are not fetched.
func Pull(ctx context.Context, from Bucket, ids []buildid.ID, opts PullOptions) (*PullResult, error) {
	p := &puller{from: from, opts: opts, view: opts.View, res: &PullResult{Asked: len(ids)},
		seen: make(map[buildid.ID]bool), room: newRoom(roomSize)}
	err := p.some(ctx, ids)
	if err == nil && p.res.Found == 0 && len(p.res.Problems) == 0 {
		if err = check(ctx, from); err != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return p.res, err
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
	view store.View
	sink store.Sink          // nil until Open was called
	seen map[buildid.ID]bool // objects and IDs that were asked for
	room *room

	mu     sync.Mutex
	res    *PullResult
	failed int // requests, one after another
}

// all pulls all objects of the bucket.
func (p *puller) all(ctx context.Context) error {
	keys, err := p.from.List(ctx, manifestDir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
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

// list returns the keys of the manifests of objects, sorted.
func (p *puller) list(ctx context.Context, ids []buildid.ID) ([]string, error) {
	found := make([][]string, len(ids))
	for _, id := range ids {
		p.seen[id] = true
	}
	err := parallel(ctx, p.opts.Jobs, len(ids), func(ctx context.Context, i int) error {
		keys, err := p.from.List(ctx, objectPrefix(ids[i]))
		if err != nil {
			return p.problem(ctx, err)
		}
		found[i] = slices.DeleteFunc(keys, func(key string) bool {
			id, _, ok := parseKey(key)
			return !ok || !id.Matches(ids[i])
		})
		return nil
	})
	keys := slices.Concat(found...)
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// problem notes what did not come. It returns an error if the bucket seems to be away.
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

// wanted is an object whose manifests, or some of them, have more than is here.
type wanted struct {
	id        buildid.ID
	keys      []string          // of manifests that are neither those here nor in the notes
	manifests []*manifest       // that are not those here
	fetched   map[string][]byte // of these, by key
}

// group pulls the objects of some manifests, and returns the IDs that they lead to.
func (p *puller) group(ctx context.Context, keys []string) ([]buildid.ID, error) {
	list, err := p.compare(keys)
	if err != nil {
		return nil, err
	}
	p.res.Found += len(list)
	missing, next, err := p.missing(list)
	if err != nil || len(missing) == 0 {
		return next, err
	}
	if p.sink == nil {
		if p.sink, p.view, err = p.opts.Open(ctx); err != nil {
			return nil, err
		}
		// Another process may have fetched them before that.
		if list, err = p.compare(keys); err != nil {
			return nil, err
		}
	}
	if err := p.readManifests(ctx, list); err != nil {
		return nil, err
	}
	defer p.note(list)
	if missing, next, err = p.missing(list); err != nil {
		return nil, err
	}
	return next, parallel(ctx, p.opts.Jobs, len(missing), func(ctx context.Context, i int) error {
		return p.object(ctx, missing[i])
	})
}

// missing returns the objects of which the bucket has, or may have, more than is here, and the IDs
// that all lead to.
func (p *puller) missing(list []*wanted) (missing []*wanted, next []buildid.ID, err error) {
	for _, w := range list {
		for _, m := range w.manifests {
			next = append(next, m.Probable...)
		}
		needs, err := p.needs(w)
		if err != nil {
			return nil, nil, err
		}
		if !needs.empty() || len(w.keys) > 0 {
			missing = append(missing, w)
		}
	}
	return missing, next, nil
}

// compare makes a list of the objects of keys, without the manifests that are those here.
func (p *puller) compare(keys []string) (list []*wanted, err error) {
	for _, key := range keys {
		id, _, ok := parseKey(key)
		if !ok {
			continue // no manifest's
		}
		if n := len(list); n > 0 && list[n-1].id == id {
			list[n-1].keys = append(list[n-1].keys, key)
			continue
		}
		list = append(list, &wanted{id: id, keys: []string{key}})
	}
	notes := p.opts.Notes()
	for _, w := range list {
		p.seen[w.id] = true
		have, err := p.here(w.id)
		if err != nil {
			return nil, err
		}
		if have != nil {
			key := manifestKey(w.id, store.EncodeManifest(have))
			w.keys = slices.DeleteFunc(w.keys, func(k string) bool { return k == key })
		}
		if notes != "" {
			w.keys = slices.DeleteFunc(w.keys, func(k string) bool { return w.readNote(OpenDir(notes), k) })
		}
	}
	return list, nil
}

// here returns the manifest of an object that is here; nil if there is none.
func (p *puller) here(id buildid.ID) (*store.Manifest, error) {
	found, err := p.view.Find(id)
	if err != nil && !errors.Is(err, store.ErrDamaged) { // which is written anew
		return nil, err
	}
	for _, m := range found {
		if m.ID == id {
			return m, nil
		}
	}
	return nil, nil
}

// readNote reads a manifest that was noted; false if it was not.
func (w *wanted) readNote(notes *Dir, key string) bool {
	b, err := notes.Get(context.Background(), key, maxManifest)
	if err != nil {
		return false
	}
	m, err := decodeManifest(b, key, notes.URL(key))
	if err == nil {
		w.manifests = append(w.manifests, m)
	}
	return err == nil
}

// readManifests fetches the manifests that are neither those here nor in the notes. keys is then of
// those that did not come.
func (p *puller) readManifests(ctx context.Context, list []*wanted) error {
	return parallel(ctx, p.opts.Jobs, len(list), func(ctx context.Context, i int) error {
		w := list[i]
		keys := w.keys
		w.keys, w.fetched = nil, make(map[string][]byte)
		for _, key := range keys {
			b, err := p.get(ctx, key, maxManifest)
			if err == nil {
				var m *manifest
				if m, err = decodeManifest(b, key, p.from.URL(key)); err == nil {
					w.manifests, w.fetched[key] = append(w.manifests, m), b
					continue
				}
			}
			if err := p.problem(ctx, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// note keeps the manifests that were fetched. One that cannot be kept is fetched again.
func (p *puller) note(list []*wanted) {
	dir := p.opts.Notes() // of a store that may be new
	if dir == "" {
		return
	}
	for _, w := range list {
		for key, b := range w.fetched {
			_ = OpenDir(dir).write(key, b)
		}
	}
}

// get fetches an object of the bucket.
func (p *puller) get(ctx context.Context, key string, limit int64) ([]byte, error) {
	b, err := p.from.Get(ctx, key, limit)
	if err == nil {
		p.mu.Lock()
		p.res.Fetched++
		p.res.Bytes += int64(len(b))
		p.failed = 0
		p.mu.Unlock()
	}
	return b, err
}

// getContent fetches a piece or a blob and checks it.
func (p *puller) getContent(ctx context.Context, sum string, limit int64) ([]byte, error) {
	b, err := p.get(ctx, contentKey(sum), limit)
	if err == nil && sumOf(b) != sum {
		err = damagef("%s: %d bytes of another content", p.from.URL(contentKey(sum)), len(b))
	}
	return b, err
}

// needs are what manifests have of an object that is not here.
type needs struct {
	facts   bool           // more than sources
	blobs   []store.BlobID // of new variants
	sources []sourceOf
}

// sourceOf is a source of a manifest.
type sourceOf struct {
	m *manifest
	i int
}

func (n *needs) empty() bool { return !n.facts && len(n.sources) == 0 }

// needs compares an object's manifests with what is here.
func (p *puller) needs(w *wanted) (*needs, error) {
	have, err := p.here(w.id)
	if err != nil {
		return nil, err
	}
	if have == nil {
		have = &store.Manifest{ID: w.id}
	}
	n := &needs{}
	sources, all := slices.Clone(have.Sources), *have
	for _, m := range w.manifests {
		for i := range m.Sources {
			s := &m.Sources[i]
			if slices.ContainsFunc(sources, func(o store.SourceInfo) bool {
				return o.Kind == s.Kind && o.Digest == s.Digest && o.RawSize >= s.RawSize
			}) {
				continue
			}
			sources = append(sources, *s)
			n.sources = append(n.sources, sourceOf{m, i})
		}
		for _, v := range store.NewVariants(m.Variants, all.Variants) {
			n.blobs = append(n.blobs, v.Blobs()...)
		}
		all = store.MergeFacts(&all, m.Manifest)
	}
	before, after := *have, all
	before.Sources, after.Sources = nil, nil
	n.facts = !bytes.Equal(store.EncodeManifest(&before), store.EncodeManifest(&after))
	return n, nil
}

// object fetches what an object lacks and merges it.
func (p *puller) object(ctx context.Context, w *wanted) error {
	n, err := p.needs(w) // another process may have been faster before Open
	if err != nil || n.empty() {
		return err
	}
	lost, err := p.blobs(ctx, n.blobs)
	if err != nil {
		return err
	}
	merged := 0
	for _, s := range n.sources {
		ok, err := p.source(ctx, s, lost)
		if err != nil {
			return err
		}
		if ok {
			merged++
		}
	}
	for _, m := range w.manifests {
		// Without any of its tables an object would be known and not indexed.
		if merged == 0 && len(n.sources) > 0 {
			break
		}
		if err := p.sink.Merge(ctx, &store.Contribution{Manifest: facts(m, lost)}); err != nil {
			return err
		}
		merged++
	}
	if merged > 0 {
		p.mu.Lock()
		p.res.Changed++
		p.mu.Unlock()
	}
	return nil
}

// facts returns a manifest without sources, and without the variants whose blobs did not come.
func facts(m *manifest, lost map[store.BlobID]bool) store.Manifest {
	f := *m.Clone()
	f.Sources = nil
	f.Variants = slices.DeleteFunc(f.Variants, func(v store.Variant) bool {
		return slices.ContainsFunc(v.Blobs(), func(id store.BlobID) bool { return lost[id] })
	})
	return f
}

// blobs fetches blobs that are not here, and returns those that did not come.
func (p *puller) blobs(ctx context.Context, ids []store.BlobID) (lost map[store.BlobID]bool, err error) {
	lost = make(map[store.BlobID]bool)
	for _, id := range ids {
		if _, err := p.view.Blob(id); err == nil {
			continue
		}
		b, err := p.getContent(ctx, id.String(), maxContent)
		if err != nil {
			lost[id] = true
			if err := p.problem(ctx, err); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := p.sink.PutBlob(ctx, b); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// source fetches a source and merges it; false if it did not come.
func (p *puller) source(ctx context.Context, s sourceOf, lost map[store.BlobID]bool) (bool, error) {
	size := s.m.size(s.i)
	give := p.room.take(size)
	defer give()
	in := &stream{ctx: ctx, p: p, left: s.m.pieces[s.i]}
	src, err := readSource(in, size, &s.m.Sources[s.i])
	if err != nil {
		if in.err == nil {
			err = fmt.Errorf("%s: %s of %s: %w", p.from.URL(""), s.m.Sources[s.i].Kind, s.m.ID, err)
		}
		return false, p.problem(ctx, err)
	}
	c := &store.Contribution{Manifest: facts(s.m, lost), Sources: []store.NewSource{*src}}
	if err := p.sink.Merge(ctx, c); err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.res.Tables++
	return true, nil
}

// stream reads the pieces of a source, one after another.
type stream struct {
	ctx  context.Context
	p    *puller
	left []piece
	now  []byte
	err  error // of a piece
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	for len(s.now) == 0 {
		if len(s.left) == 0 {
			return 0, errors.New("pieces end before their source")
		}
		next := s.left[0]
		now, err := s.p.getContent(s.ctx, next.content, next.size)
		if err == nil && int64(len(now)) != next.size {
			err = damagef("%s: %d bytes", s.p.from.URL(contentKey(next.content)), len(now))
		}
		if err != nil {
			s.err = err
			return 0, err
		}
		s.now, s.left = now, s.left[1:]
	}
	n := copy(b, s.now)
	s.now = s.now[n:]
	return n, nil
}
