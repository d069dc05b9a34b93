package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// add adds an input unless it is there.
func add(list []inputOf, m *manifest, id store.Digest) []inputOf {
	if id == (store.Digest{}) || slices.ContainsFunc(list, func(in inputOf) bool { return in.id == id }) {
		return list
	}
	return append(list, inputOf{m, id})
}

// complete compares an object's manifests with the local store.
func (p *puller) complete(w *wanted) error {
	have, err := p.here(w.id)
	if err != nil {
		return err
	}
	if have == nil {
		have = &store.Manifest{ID: w.id}
	}
	sources, all := slices.Clone(have.Sources), *have
	for _, m := range w.manifests {
		for i := range m.Sources {
			s := &m.Sources[i]
			if s.Check() != nil || slices.ContainsFunc(sources, func(o store.SourceInfo) bool {
				return o.Kind == s.Kind && o.Digest == s.Digest && o.RawSize >= s.RawSize
			}) {
				continue
			}
			sources = append(sources, *s)
			w.tables = add(add(w.tables, m, s.Input), m, s.RawInput)
		}
		for _, v := range store.NewVariants(m.Variants, all.Variants) {
			for _, id := range v.Blobs() {
				if _, err := p.to.View.Blob(id); err != nil {
					w.blobs = add(w.blobs, m, m.blobs[id])
				}
			}
		}
		all = store.MergeFacts(&all, m.Manifest)
	}
	before, after := *have, all
	before.Sources, after.Sources = nil, nil
	w.facts = !bytes.Equal(store.EncodeManifest(&before), store.EncodeManifest(&after))
	return nil
}

// object fetches and merges the missing parts of an object.
func (p *puller) object(ctx context.Context, w *wanted) error {
	came, lost := make(map[store.Digest]bool), false
	for _, in := range w.inputs() {
		ok, err := p.input(ctx, in)
		if err != nil {
			return err
		}
		came[in.id], lost = ok, lost || !ok
	}
	// Without any of its tables an object would be known and not indexed.
	some := slices.ContainsFunc(w.tables, func(in inputOf) bool { return came[in.id] })
	if some || w.facts && len(w.tables) == 0 {
		if err := p.merge(ctx, w, came); err != nil {
			return err
		}
	}
	if lost {
		return nil
	}
	return p.note(w)
}

// merge merges the manifests of an object, without the tables that are here or did not come. came has
// the inputs that were to come.
func (p *puller) merge(ctx context.Context, w *wanted, came map[store.Digest]bool) error {
	tables := 0
	for _, m := range w.manifests {
		part := m.Clone()
		part.Sources = slices.DeleteFunc(part.Sources, func(s store.SourceInfo) bool {
			return !came[s.Input] || s.RawSize > 0 && !came[s.RawInput] || s.Check() != nil
		})
		part.Variants = slices.DeleteFunc(part.Variants, func(v store.Variant) bool {
			return slices.ContainsFunc(v.Blobs(), func(id store.BlobID) bool {
				here, asked := came[m.blobs[id]]
				return asked && !here
			})
		})
		err := p.to.Sink.MergeObject(ctx, part)
		if errors.Is(err, store.ErrDamaged) {
			err = p.problem(ctx, fmt.Errorf("%s: %w", p.from.URL(objectDir(m.ID)), err))
		}
		if err != nil {
			return err
		}
		tables += len(part.Sources)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.res.Tables += tables; !w.id.Space().Alias() {
		p.res.Changed++
	}
	return nil
}

// input fetches an input and keeps it, once for all objects that have it; false if it did not come.
func (p *puller) input(ctx context.Context, of inputOf) (came bool, err error) {
	return p.inputs.do(of.id, func() (bool, error) {
		problem, err := p.fetch(ctx, of)
		if problem != nil {
			err = p.problem(ctx, problem)
		}
		return problem == nil, err
	})
}

// fetch fetches an input and keeps it. problem is an error of the bucket, err one of this machine.
func (p *puller) fetch(ctx context.Context, of inputOf) (problem, err error) {
	key, size := contentKey(of.id), of.m.sizes[of.id]
	held, err := p.room.Acquire(ctx, size)
	if err != nil {
		return nil, err
	}
	defer p.room.Release(held)
	defer p.meter.add(Progress{Bytes: size})
	b, err := p.get(ctx, key, size)
	if err == nil && (sha256.Sum256(b) != of.id || int64(len(b)) != size) {
		err = damagef("%s: %d bytes of another content", p.from.URL(key), len(b))
	}
	if err != nil {
		return err, nil
	}
	err = p.to.Sink.PutInput(ctx, of.id, b)
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrTooLarge) {
		return fmt.Errorf("%s: %w", p.from.URL(key), err), nil
	}
	return nil, err
}
