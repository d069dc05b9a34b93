package lookup

import (
	"fmt"
	"iter"
	"strings"

	"symbolize/analyze/inspect"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
)

// Store is a store.View that lists its objects, as db.Reader does.
type Store interface {
	store.View
	Objects() iter.Seq2[*store.Manifest, error]
}

// FindObject returns the only object with a build ID that begins with prefix.
func FindObject(r Store, prefix string) (*store.Manifest, error) {
	if id, err := buildid.Parse(prefix); err == nil {
		if m, _, _ := store.FindOne(r, id); m != nil {
			return m, nil
		}
	}
	var found []*store.Manifest
	for m, err := range r.Objects() {
		if err == nil && !m.IsAlias() && strings.HasPrefix(m.ID.String(), strings.ToLower(prefix)) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return nil, ingest.WithHint(fmt.Errorf("no object %s in the store", prefix),
			"`symbolize store ls` lists them")
	case 1:
		return found[0], nil
	}
	return nil, &PrefixError{prefix, found}
}

// PrefixError reports that build IDs of several objects begin alike.
type PrefixError struct {
	prefix string
	found  []*store.Manifest // at least two
}

// Error implements error.
func (e *PrefixError) Error() string {
	return fmt.Sprintf("%d objects have a build ID that begins with %s", len(e.found), e.prefix)
}

// Hint lists the objects.
func (e *PrefixError) Hint() string {
	var names []string
	for _, m := range e.found[:min(len(e.found), maxListed)] {
		names = append(names, strings.TrimSpace(m.ID.String()+" "+inspect.NewStored(m).Path))
	}
	if more := len(e.found) - maxListed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// maxListed bounds the objects that an error lists.
const maxListed = 10
