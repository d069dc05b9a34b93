package analyze

import (
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/local"
	"symbolize/store/remote"
)

// State has the facts about the reads of a session so far.
type State struct {
	// Partial: something could not be read or was damaged, and results lack it.
	Partial bool
	// Bundles are the open bundles that serve captures. The session closes them.
	Bundles []*input.Capture
	// Tables is how many symbol tables were opened, each counted once.
	Tables uint64
	// Pulled has the figures of the tables that came from Options.Remote.
	Pulled remote.PullResult
	// JITFiles are the perf maps and jitdump files that named functions of captures.
	JITFiles []JITLink
	// Unmatched is set if Options.With has objects, and no capture has one of them.
	Unmatched bool
	// Named are the uses of files of Options.With for mappings without a build ID, in words; Refused
	// the reasons why they were not used.
	Named, Refused []string
	// Local are the objects of captures, and where they were found; nil without Options.Local.
	Local []local.Object
	// Found are the results of Local.FindOnly.
	Found LocalFiles

	session *Session
}

// LocalFiles are files of this host that have symbols of captures' objects.
type LocalFiles struct {
	Paths      []string
	Kernel     bool     // the running kernel is among the objects
	DebugRoots []string // directories of separate debug files
}

// State returns the facts about the reads of the session so far.
func (s *Session) State() State {
	st := State{Partial: s.partial, Bundles: s.bundles, Tables: s.counted.Tables(),
		Pulled: s.pulling.sum, JITFiles: s.jitFiles, session: s,
		Unmatched: s.named.unmatched()}
	for i := range s.named.files {
		st.Named = append(st.Named, s.named.files[i].used...)
		st.Refused = append(st.Refused, s.named.files[i].refused...)
	}
	if s.finder != nil {
		st.Local = s.finder.Objects()
		if s.opts.Local.FindOnly {
			st.Found.Paths, st.Found.Kernel = s.finder.Found()
			st.Found.DebugRoots = s.finder.DebugRoots()
		}
	}
	return st
}

// Traced returns the questions that the session asked of the store, with Options.Undecided.
func (st State) Traced() *Trace { return st.session.trace }

// Used returns the objects of the store that the session has needed so far, sorted. Many sessions
// share a store and read other facts of their State: the list is made on request.
func (st State) Used() []buildid.ID {
	if st.session.reader == nil {
		return nil
	}
	return st.session.reader.Used()
}

// Has reports whether a capture of the session, or Options.With, has symbols of an object.
func (st State) Has(id buildid.ID) bool {
	m, _, err := store.FindOne(st.session.overlay, id)
	return m != nil && err == nil
}

// Programs returns the build IDs of the files in Options.With, sorted, until a capture is read.
func (st State) Programs() (ids []buildid.ID) {
	for _, m := range st.session.overlay.Objects {
		if m.IsAlias() {
			continue
		}
		if m.Kind == ingest.ELF {
			ids = append(ids, m.ID)
		}
	}
	slices.SortFunc(ids, buildid.ID.Compare)
	return ids
}
