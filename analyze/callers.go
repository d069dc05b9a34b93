package analyze

import (
	"context"
	"slices"

	"symbolize/analyze/callers"
	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/indexer"
)

// completeCallers checks and completes the stacks of a capture that were made of frame pointers.
func (s *Session) completeCallers(p *ingest.Profile, whole bool) (*ingest.Profile, input.Chain) {
	return callers.Complete(p, callers.Options{Code: s.codeOf, Gaps: s.opts.Gaps, Whole: whole,
		Damaged: func(err error) { s.warnError(err, "symbolize store verify", true) }})
}

// codeOf returns the calls of an object: by the table of the session's view, else by the file of this
// host; nil if there is none.
func (s *Session) codeOf(o *ingest.Object) *callers.Code {
	m, _, _ := store.FindOne(s.view, o.ID) // what cannot be read is reported by the join
	if m != nil {
		for i := range m.Sources {
			if m.Sources[i].Kind.Format() != store.FormatCalls {
				continue
			}
			if c, err := s.storedCode(o, m, i); err != nil {
				s.warnError(err, "symbolize store verify", true)
			} else if c != nil {
				return c
			}
		}
	}
	if s.finder == nil {
		return nil
	}
	path := s.finder.Program(o)
	if path == "" {
		return nil
	}
	table, segments, err := indexer.FileCalls(path)
	if err != nil || table == nil {
		return nil
	}
	addrs, why := resolve.NewFileAddresses(o, &store.Manifest{}, segments)
	if why != ingest.ReasonNone {
		return nil
	}
	return callers.NewCode(table, addrs)
}

// storedCode returns the calls of an object by a table; nil if its addresses cannot be placed.
func (s *Session) storedCode(o *ingest.Object, m *store.Manifest, i int) (*callers.Code, error) {
	addrs, why := resolve.NewAddresses(o, m)
	if why != ingest.ReasonNone {
		return nil, nil
	}
	table, err := s.view.OpenCalls(m, i)
	if err != nil {
		return nil, err
	}
	return callers.NewCode(table, addrs), nil
}

// findRestored indexes the functions of this host's files that were restored as callers, with those
// that were found before.
func (s *Session) findRestored(ctx context.Context, p *ingest.Profile) error {
	if s.finder == nil {
		return nil
	}
	seen, more := seenIn(p), false
	for i := range seen.Objects {
		o := &seen.Objects[i]
		w := s.wanted[o.ID.Key()]
		if o.ID.IsZero() || w == nil || w.all || containsAll(w.offsets, seen.Offsets[i]) {
			continue
		}
		w.offsets = append(slices.Clone(w.offsets), seen.Offsets[i]...)
		slices.Sort(w.offsets)
		w.offsets = slices.Compact(w.offsets)
		s.finder.Again(o.ID)
		more = true
	}
	if !more {
		return nil
	}
	_, err := s.finder.Index(ctx, s.wantedAddrs) // what could not be read was reported before
	return err
}
