package analyze

import (
	"context"

	"symbolize/analyze/unwind"
	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/indexer"
)

// unwindTables returns the tables that unwind the copied stacks of all captures: tables of the
// session's view, else with Options.Local of files of this host.
func (s *Session) unwindTables() *unwind.Tables {
	if s.tables == nil {
		var local func(*ingest.Object) store.View
		switch {
		case s.opts.Remote != nil:
			local = s.foundUnwind
		case s.finder != nil:
			local = s.localUnwind
		}
		s.tables = unwind.NewTables(s.unwinding(), local, func(err error) {
			s.unwindMu.Lock()
			s.unwindErrs = append(s.unwindErrs, err)
			s.unwindMu.Unlock()
		})
	}
	return s.tables
}

// unwinding returns the session's view for tables of unwinding.
func (s *Session) unwinding() store.View {
	if s.trace == nil {
		return s.view
	}
	return s.trace.view(store.FormatUnwind)
}

// foundUnwind looks for the unwind table of an object in Options.Remote, and then on this host.
func (s *Session) foundUnwind(o *ingest.Object) store.View {
	if v := s.remoteUnwind(o); v != nil {
		return v
	}
	if s.finder == nil {
		return nil
	}
	return s.localUnwind(o)
}

// localUnwind makes the unwind table of an object from a file of this host, in an overlay of its
// own: whether the object's names are needed from here is decided later, when the places of its
// samples are known.
func (s *Session) localUnwind(o *ingest.Object) store.View {
	path := s.finder.Program(o)
	if path == "" {
		return nil
	}
	overlay := store.NewOverlay()
	_, err := indexer.Index(context.Background(), []string{path}, nil,
		func() (store.Sink, error) { return overlay, nil },
		indexer.Options{Workers: 1, MaxMemory: s.opts.MaxMemory, UnwindOnly: true,
			DebugRoots: []string{}})
	if err != nil {
		return nil // its frames have the reason
	}
	return overlay
}

// unwindWarnings passes on the errors of unwind tables.
func (s *Session) unwindWarnings() {
	s.unwindMu.Lock()
	errs := s.unwindErrs
	s.unwindErrs = nil
	s.unwindMu.Unlock()
	for _, err := range errs {
		s.trace.Spoil()
		s.warnError(err, "", true)
	}
}
