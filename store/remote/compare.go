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
	keys      []string     // of manifests that are neither those here nor noted
	manifests []*manifest  // that were fetched
	fetched   []string     // keys of these
	leads     []buildid.ID // objects that noted manifests name

	// What of the manifests is not here.
	facts  bool // more than sources
	blobs  []inputOf
	tables []inputOf // inputs of sources
}

// inputOf is an input of a manifest.
type inputOf struct {
	m  *manifest
	id store.Digest
}

func (w *wanted) inputs() []inputOf { return slices.Concat(w.blobs, w.tables) }

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
	for _, w := range list {
		p.seen[w.id] = true
		have, err := p.here(w.id)
		if err != nil {
			return nil, err
		}
		if have == nil {
			continue
		}
		same := manifestKey(w.id, store.EncodeManifest(have))
		w.keys = slices.DeleteFunc(w.keys, func(key string) bool {
			_, sum, _ := parseKey(key)
			id, _ := store.ParseDigest(sum)
			noted := key != same && p.to.Noted != nil && p.to.Noted(id)
			if noted {
				w.leads = have.Probable
			}
			return noted || key == same
		})
	}
	return list, nil
}

// here returns the local manifest of an object; nil if there is none.
func (p *puller) here(id buildid.ID) (*store.Manifest, error) {
	found, err := p.to.View.Find(id)
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

// readManifests fetches the manifests that are neither here nor noted, and empties keys.
// Manifests that do not come are problems.
func (p *puller) readManifests(ctx context.Context, list []*wanted) error {
	return files.Each(ctx, p.opts.Jobs, len(list), func(ctx context.Context, i int) error {
		w := list[i]
		keys := w.keys
		w.keys = nil
		for _, key := range keys {
			var m *manifest
			b, err := p.get(ctx, key, maxManifest)
			if err == nil {
				m, err = decodeManifest(b, key, p.from.URL(key))
			}
			if err == nil {
				w.manifests = append(w.manifests, m)
				err = m.check(p.from.URL(key))
			}
			if err == nil {
				w.fetched = append(w.fetched, key)
			} else if err := p.problem(ctx, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// note notes the manifests of an object of which all is here, unless the local one is the same: they are
// not fetched again.
func (p *puller) note(w *wanted) error {
	have, err := p.here(w.id)
	if err != nil || have == nil || p.to.Note == nil {
		return err
	}
	same := manifestKey(w.id, store.EncodeManifest(have))
	for _, key := range w.fetched {
		if _, sum, _ := parseKey(key); key != same {
			id, _ := store.ParseDigest(sum)
			if err := p.to.Note(id); err != nil {
				return err
			}
		}
	}
	return nil
}
