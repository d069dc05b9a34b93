package remote

import (
	"bytes"
	"context"
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

// getInput fetches an input and checks it.
func (p *puller) getInput(ctx context.Context, in input) ([]byte, error) {
	defer p.meter.add(Progress{Bytes: in.size})
	b, err := p.get(ctx, contentKey(in.content), in.size)
	if err == nil && (sumOf(b) != in.content || int64(len(b)) != in.size) {
		err = damagef("%s: %d bytes of another content", p.from.URL(contentKey(in.content)), len(b))
	}
	return b, err
}

// needs are the parts in manifests of an object that are not here.
type needs struct {
	facts  bool // more than sources
	blobs  []blobOf
	inputs []inputOf // of sources
}

// inputOf is an input of a manifest.
type inputOf struct {
	m  *manifest
	id store.Digest
}

// blobOf is a blob of a manifest's variants.
type blobOf struct {
	m  *manifest
	id store.BlobID
}

func (n *needs) empty() bool { return !n.facts && len(n.inputs) == 0 }

// add adds an input unless it is there.
func (n *needs) add(m *manifest, id store.Digest) {
	if id != (store.Digest{}) && !slices.ContainsFunc(n.inputs, func(in inputOf) bool { return in.id == id }) {
		n.inputs = append(n.inputs, inputOf{m, id})
	}
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
			if slices.ContainsFunc(sources, func(o store.SourceInfo) bool {
				return o.Kind == s.Kind && o.Digest == s.Digest && o.RawSize >= s.RawSize
			}) {
				continue
			}
			sources = append(sources, *s)
			n.add(m, s.Input)
			n.add(m, s.RawInput)
		}
		for _, v := range store.NewVariants(m.Variants, all.Variants) {
			for _, id := range v.Blobs() {
				n.blobs = append(n.blobs, blobOf{m, id})
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
	if err != nil || n.empty() {
		return err
	}
	lost, err := p.blobs(ctx, n.blobs)
	if err != nil {
		return err
	}
	merged := 0
	for _, in := range n.inputs {
		ok, err := p.input(ctx, in, lost)
		if err != nil {
			return err
		}
		if ok {
			merged++
		}
	}
	for _, m := range w.manifests {
		// Without any of its tables an object would be known and not indexed.
		if merged == 0 && len(n.inputs) > 0 {
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
func (p *puller) blobs(ctx context.Context, list []blobOf) (lost map[store.BlobID]bool, err error) {
	lost = make(map[store.BlobID]bool)
	for _, blob := range list {
		if _, err := p.view.Blob(blob.id); err == nil || lost[blob.id] {
			continue
		}
		data, err := p.blob(ctx, blob)
		if err != nil {
			lost[blob.id] = true
			if err := p.problem(ctx, err); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := p.sink.PutBlob(ctx, data); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// blob fetches a blob.
func (p *puller) blob(ctx context.Context, blob blobOf) ([]byte, error) {
	in := blob.m.input(blob.m.blobs[blob.id])
	b, err := p.getInput(ctx, in)
	if err != nil {
		return nil, err
	}
	data, err := unpackBlob(b, blob)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.from.URL(contentKey(in.content)), err)
	}
	return data, nil
}

// unpackBlob returns the blob in an input.
func unpackBlob(b []byte, blob blobOf) ([]byte, error) {
	r := bytes.NewReader(b)
	in, err := store.ReadInput(blob.m.blobs[blob.id], r, r.Size())
	if err != nil {
		return nil, err
	}
	s, err := in.Source(0, blob.id)
	if err != nil {
		return nil, err
	}
	if s.RawSize > store.MaxBlob {
		return nil, store.ErrTooLarge
	}
	data, err := in.UnpackRaw(r, s)
	if err == nil && store.NewBlobID(data) != blob.id {
		err = store.Damagef("it is not blob %s", blob.id)
	}
	return data, err
}

// input fetches an input and merges its sources; false if they did not come.
func (p *puller) input(ctx context.Context, of inputOf, lost map[store.BlobID]bool) (bool, error) {
	held, err := p.room.Acquire(ctx, of.m.sizes[of.id])
	if err != nil {
		return false, err
	}
	defer p.room.Release(held)
	b, err := p.getInput(ctx, of.m.input(of.id))
	if err != nil {
		return false, p.problem(ctx, err)
	}
	c := &store.Contribution{Manifest: facts(of.m, lost)}
	if c.Sources, err = sourcesOf(b, of); err != nil {
		err = fmt.Errorf("%s: tables of %s: %w", p.from.URL(contentKey(of.id.String())), of.m.ID, err)
		return false, p.problem(ctx, err)
	}
	if err := p.sink.Merge(ctx, c); err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.res.Tables += len(c.Sources)
	return true, nil
}

// sourcesOf returns the sources of a manifest that are in an input, after checking them.
func sourcesOf(b []byte, of inputOf) (list []store.NewSource, err error) {
	r := bytes.NewReader(b)
	in, err := store.ReadInput(of.id, r, r.Size())
	if err != nil {
		return nil, err
	}
	for i := range in.Sources { // in its order, so that it is made again as it is
		have := &in.Sources[i]
		at := store.FindSource(of.m.Sources, &store.SourceInfo{Kind: have.Kind, Digest: have.Digest})
		if at < 0 {
			continue
		}
		src, err := in.NewSource(r, &of.m.Sources[at])
		if err != nil {
			return nil, err
		}
		list = append(list, *src)
	}
	return list, nil
}
