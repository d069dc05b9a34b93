package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

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

// needs are the parts in manifests of an object that are not here.
type needs struct {
	facts  bool // more than sources
	blobs  []inputOf
	inputs []inputOf // of sources
}

// inputOf is an input of a manifest.
type inputOf struct {
	m  *manifest
	id store.Digest
}

func (n *needs) empty() bool { return !n.facts && len(n.inputs) == 0 }

// add adds an input unless it is there.
func add(list []inputOf, m *manifest, id store.Digest) []inputOf {
	if id == (store.Digest{}) || slices.ContainsFunc(list, func(in inputOf) bool { return in.id == id }) {
		return list
	}
	return append(list, inputOf{m, id})
}

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
			if s.Check() != nil || slices.ContainsFunc(sources, func(o store.SourceInfo) bool {
				return o.Kind == s.Kind && o.Digest == s.Digest && o.RawSize >= s.RawSize
			}) {
				continue
			}
			sources = append(sources, *s)
			n.inputs = add(add(n.inputs, m, s.Input), m, s.RawInput)
		}
		for _, v := range store.NewVariants(m.Variants, all.Variants) {
			for _, id := range v.Blobs() {
				if _, err := p.to.View.Blob(id); err != nil {
					n.blobs = add(n.blobs, m, m.blobs[id])
				}
			}
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
	if err != nil {
		return err
	}
	came := make(map[store.Digest]bool)
	for _, in := range slices.Concat(n.blobs, n.inputs) {
		if came[in.id], err = p.input(ctx, in); err != nil {
			return err
		}
	}
	lost := func(in inputOf) bool { return !came[in.id] }
	// Without any of its tables an object would be known and not indexed.
	if some := slices.DeleteFunc(slices.Clone(n.inputs), lost); len(some) == 0 && len(n.inputs) > 0 {
		return nil
	}
	if !n.empty() {
		if err := p.merge(ctx, w, came); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(slices.Concat(n.blobs, n.inputs), lost) {
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
	p.mu.Lock()
	once := p.inputs[of.id]
	if once == nil {
		once = sync.OnceValues(func() (bool, error) {
			problem, err := p.fetch(ctx, of)
			if problem != nil {
				err = p.problem(ctx, problem)
			}
			return problem == nil, err
		})
		p.inputs[of.id] = once
	}
	p.mu.Unlock()
	return once()
}

// fetch fetches an input and keeps it. problem is an error of the bucket, err one of this machine.
func (p *puller) fetch(ctx context.Context, of inputOf) (problem, err error) {
	in := of.m.input(of.id)
	held, err := p.room.Acquire(ctx, in.size)
	if err != nil {
		return nil, err
	}
	defer p.room.Release(held)
	defer p.meter.add(Progress{Bytes: in.size})
	b, err := p.get(ctx, contentKey(in.content), in.size)
	if err == nil && (sumOf(b) != in.content || int64(len(b)) != in.size) {
		err = damagef("%s: %d bytes of another content", p.from.URL(contentKey(in.content)), len(b))
	}
	if err != nil {
		return err, nil
	}
	err = p.to.Sink.PutInput(ctx, of.id, b)
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrTooLarge) {
		return fmt.Errorf("%s: %w", p.from.URL(contentKey(in.content)), err), nil
	}
	return nil, err
}
