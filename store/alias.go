package store

import (
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
)

// Alias is the contribution that enters an object under another ID.
func Alias(alias, id buildid.ID, kind ingest.ObjectKind) *Contribution {
	return &Contribution{Manifest: Manifest{ID: alias, Kind: kind, Probable: []buildid.ID{id}}}
}

// IsAlias reports whether a manifest is no object: it has only the IDs, in Probable, of the objects
// that its own ID leads to.
func (m *Manifest) IsAlias() bool { return m.ID.Space().Alias() }

// LeadsTo reports whether a manifest is an alias of one of the objects.
func (m *Manifest) LeadsTo(objects map[buildid.ID]bool) bool {
	return m.IsAlias() && slices.ContainsFunc(m.Probable, func(id buildid.ID) bool { return objects[id] })
}

// Follow returns the objects that a manifest leads to, by a view's Find: itself unless it is an
// alias.
func Follow(m *Manifest, find func(buildid.ID) ([]*Manifest, error)) (list []*Manifest, err error) {
	if !m.IsAlias() {
		return []*Manifest{m}, nil
	}
	for _, id := range m.Probable {
		if id.Space().Alias() {
			continue // no alias leads to another
		}
		found, err := find(id)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}
