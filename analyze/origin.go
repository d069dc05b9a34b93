package analyze

import (
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/local"
)

// The origins of objects that no search on this host found, see State.Origin.
const (
	originWith     = "--with"
	originCaptures = "the captures"
)

// Origin returns where the symbols of an object came from: a place of local.Place, "--with" for
// paths named for this run, "the captures" for symbols in them and in their bundles, "the store",
// "" for nowhere. An object of several origins has the one of the greatest precedence, which is
// their order here.
func (st State) Origin(o *ingest.Object) string {
	s := st.session
	if s.finder != nil {
		if s.origins == nil {
			s.origins = make(map[buildid.ID]local.Place)
		}
		found := s.finder.Objects() // each once, and more with each capture
		for ; s.placed < len(found); s.placed++ {
			s.origins[found[s.placed].ID] = found[s.placed].Place
		}
	}
	if place := s.origins[o.ID]; place > local.Known {
		return place.String()
	}
	if m, _, _ := store.FindCode(s.view, o.ID); m == nil || o.ID.IsZero() {
		return ""
	}
	here, _, _ := store.FindCode(s.overlay, o.ID)
	switch {
	case here == nil:
		return local.Known.String()
	case s.named.keys[o.ID.Key()]:
		return originWith
	}
	return originCaptures
}
