package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"symbolize/store"
)

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

// needs are the parts in manifests of an object that are not here.
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

// needs compares an object's manifests with the local store.
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

// object fetches and merges the missing parts of an object.
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
	if merged > 0 && !w.id.Space().Alias() {
		p.mu.Lock()
		p.res.Changed++
		p.mu.Unlock()
	}
	return nil
}

// facts returns a manifest without sources, and without variants with lost blobs.
func facts(m *manifest, lost map[store.BlobID]bool) store.Manifest {
	f := *m.Clone()
	f.Sources = nil
	f.Variants = slices.DeleteFunc(f.Variants, func(v store.Variant) bool {
		return slices.ContainsFunc(v.Blobs(), func(id store.BlobID) bool { return lost[id] })
	})
	return f
}

// blobs fetches missing blobs, and returns the blobs that could not be fetched.
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
	held, err := p.room.Acquire(ctx, size)
	if err != nil {
		return false, err
	}
	defer p.room.Release(held)
	in := &stream{ctx: ctx, p: p, left: s.m.pieces[s.i]}
	defer func() { // of pieces that did not come
		for _, some := range in.left {
			p.meter.add(Progress{Bytes: some.size})
		}
	}()
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
		s.p.meter.add(Progress{Bytes: next.size})
	}
	n := copy(b, s.now)
	s.now = s.now[n:]
	return n, nil
}
