package analyze

import (
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/store/local"
	"symbolize/store/remote"
)

// State has the facts about the reads of a session so far.
type State struct {
	// Partial: something could not be read or was damaged, and results lack it.
	Partial bool
	// Bundles are the open bundles that serve captures. The session closes them.
	Bundles []*input.Capture
	// Used are the objects of the store that were needed, sorted.
	Used []buildid.ID
	// Tables is how many symbol tables were opened, each counted once.
	Tables uint64
	// StoreIdentity differs between stores of different content, except for objects that came from
	// Options.Remote; "" without a store.
	StoreIdentity string
	// Pulled has the figures of the tables that came from Options.Remote.
	Pulled remote.PullResult
	// Programs are the build IDs of the files in Options.With, sorted, until a capture is read.
	Programs []buildid.ID
	// JITFiles are the perf maps and jitdump files that named functions of captures.
	JITFiles []JITLink
	// Local are the objects of captures, and where they were found; nil without Options.Local.
	Local []local.Object
	// Found are the results of Local.FindOnly.
	Found LocalFiles
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
		Pulled: s.pulling.sum, JITFiles: s.jitFiles}
	if s.reader != nil {
		st.Used, st.StoreIdentity = s.reader.Used(), s.reader.Identity()
	}
	for _, m := range s.overlay.Objects {
		if m.Kind == ingest.ELF {
			st.Programs = append(st.Programs, m.ID)
		}
	}
	slices.SortFunc(st.Programs, buildid.ID.Compare)
	if s.finder != nil {
		st.Local = s.finder.Objects()
		if s.opts.Local.FindOnly {
			st.Found.Paths, st.Found.Kernel = s.finder.Found()
			st.Found.DebugRoots = s.finder.DebugRoots()
		}
	}
	return st
}
