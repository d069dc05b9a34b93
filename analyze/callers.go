package analyze

import (
	"context"
	"errors"

	"symbolize/analyze/callers"
	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/indexer"
)

// completeCallers checks and completes the stacks of a capture that were made of frame pointers.
func (s *Session) completeCallers(p *ingest.Profile, whole bool) (*ingest.Profile, input.Chain) {
	return callers.Complete(p, callers.Options{Code: s.codeOf, Gaps: s.opts.Gaps, Likely: s.opts.Likely, Whole: whole,
		Optional: s.opts.Callers == StoredCallers, Damaged: s.damagedCalls})
}

// damagedCalls passes on the error of a table of calls.
func (s *Session) damagedCalls(err error) { s.warnError(err, DamagedHint(err), true) }

// DamagedHint returns the hint for a table of the store that could not be read.
func DamagedHint(err error) string {
	var outdated *outdatedError
	if errors.As(err, &outdated) {
		return "symbolize index --calls " + texts.ShellWord(outdated.path)
	}
	return "symbolize store verify"
}

// CompleteCallers checks and completes the stacks of a profile that were made of frame pointers, as
// Naming.Callers does with those of captures, by the tables of the store alone, and notes the questions
// to it. whole reports that all mappings are known. damaged gets the errors of tables that could not be
// read, as of code that is not known. It may be called from several goroutines.
func (t *Trace) CompleteCallers(p *ingest.Profile, whole, gaps bool, damaged func(error)) *ingest.Profile {
	view := t.view(store.FormatCalls)
	p, _ = callers.Complete(p, callers.Options{
		Code: func(o *ingest.Object) *callers.Code { return codeIn(view, o, damaged) },
		Gaps: gaps, Whole: whole, Damaged: damaged})
	return p
}

// codeIn returns the calls of an object by a table of a view; nil if there is none.
func codeIn(view store.View, o *ingest.Object, damaged func(error)) *callers.Code {
	m, _, _ := store.FindOne(view, o.ID) // what cannot be read is reported by the join
	if m == nil {
		return nil
	}
	outdated := false
	for i := range m.Sources {
		if m.Sources[i].Kind.Format() != store.FormatCalls {
			continue
		}
		if m.Sources[i].Outdated() {
			outdated = true
		} else if c, err := storedCode(view, o, m, i); err != nil {
			damaged(err)
		} else if c != nil {
			return c
		}
	}
	if outdated {
		damaged(&outdatedError{o.File.Path})
	}
	return nil
}

// outdatedError is a table of calls that this program reads no more, of a file.
type outdatedError struct{ path string }

func (e *outdatedError) Error() string {
	return e.path + ": its table of calls is of an older version"
}

// codeOf returns the calls of an object: by the table of the session's view, else with AllCallers by
// the file of this host; nil if there is none.
func (s *Session) codeOf(o *ingest.Object) *callers.Code {
	if c := codeIn(s.view, o, s.damagedCalls); c != nil || s.finder == nil || s.opts.Callers != AllCallers {
		return c
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
func storedCode(view store.View, o *ingest.Object, m *store.Manifest, i int) (*callers.Code, error) {
	addrs, why := resolve.NewAddresses(o, m)
	if why != ingest.ReasonNone {
		return nil, nil
	}
	table, err := view.OpenCalls(m, i)
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
		if o := &seen.Objects[i]; s.wanted.extend(o, seen.Offsets[i]) {
			s.finder.Again(o.ID)
			more = true
		}
	}
	if !more {
		return nil
	}
	_, err := s.finder.Index(ctx, s.wantedAddrs) // what could not be read was reported before
	return err
}
