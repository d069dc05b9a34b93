package remote

import (
	"context"
	"errors"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/store"
)

// wanted is an object with manifests that have more than the local store.
type wanted struct {
	id        buildid.ID
	keys      []string          // of manifests that are neither those here nor in the notes
	manifests []*manifest       // that are not those here
	fetched   map[string][]byte // of these, by key
	size      int64             // bytes of the sources that are not here
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

// here returns the local manifest of an object; nil if there is none.
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
	if len(found) == 0 || !id.Space().Alias() {
		return nil, nil
	}
	alias := &store.Alias(id, found[0].ID, found[0].Kind).Manifest
	for _, m := range found[1:] {
		alias.Probable = append(alias.Probable, m.ID)
	}
	return alias, nil
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

// readManifests fetches the manifests that are neither here nor in the notes, and empties keys.
// Manifests that do not come are problems.
func (p *puller) readManifests(ctx context.Context, list []*wanted) error {
	return files.Each(ctx, p.opts.Jobs, len(list), func(ctx context.Context, i int) error {
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
