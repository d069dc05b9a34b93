package store

import (
	"symbolize/buildid"
	"symbolize/ingest"
)

// FindOne returns the one object that id matches. Where there is not exactly one it returns
// nil and the reason: NoBuildID, NotIndexed, Ambiguous, or TableDamaged with the error.
func FindOne(v View, id buildid.ID) (*Manifest, ingest.Reason, error) {
	if id.IsZero() {
		return nil, ingest.NoBuildID, nil
	}
	found, err := v.Find(id)
	switch {
	case err != nil:
		return nil, ingest.TableDamaged, err
	case len(found) == 0:
		return nil, ingest.NotIndexed, nil
	case len(found) > 1:
		return nil, ingest.Ambiguous, nil
	}
	return found[0], ingest.ReasonNone, nil
}

// FindCode is FindOne for look-ups of addresses: a kernel is not indexed if the store has only the
// build IDs of its vdsos.
func FindCode(v View, id buildid.ID) (*Manifest, ingest.Reason, error) {
	m, reason, err := FindOne(v, id)
	if m != nil && m.OnlyVDSO() {
		return nil, ingest.NotIndexed, nil
	}
	return m, reason, err
}
