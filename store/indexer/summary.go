package indexer

import (
	"cmp"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/symtab"
)

// Reasons for which a file is left out without being damaged. They are the keys of
// Summary.Skipped.
const (
	SkipRelocatable = "relocatable object"            // .o files, crt1.o
	SkipCore        = "core dump"                     // ET_CORE
	SkipDebugNoID   = "debug file without build ID"   // nothing to file it under
	SkipKallsymsNo  = "kallsyms without build ID"     // the same
	SkipUnreadable  = "unreadable"                    // permission and the like
	SkipDamaged     = "damaged"                       // looks like an object and is none
	SkipDuplicate   = "read already by another path"  // hard links
	SkipTooLarge    = "too large for the store"       // an object with hundreds of sources
	SkipChanged     = "changed while it was read"     // read again by the next run
	SkipLimit       = "limit reached"                 // it needs more than its size explains
	SkipFailed      = "failed in this run"            // no space, memory or descriptors
	SkipIncomplete  = "debug information incomplete"  // names are there, some lines are not
	SkipNoObject    = "no code, no symbols, no notes" // ELF files that are nothing to us
)

// Summary counts and lists the results of an Index.
type Summary struct {
	Dirs      uint64 // directories read
	Files     uint64 // regular files seen
	ELF       uint64 // … that are ELF files (plain or packed kernel modules), known ones included
	Unchanged uint64 // … known by their path rows: not opened
	Read      uint64 // objects and debug files that were read
	Objects   uint64 // distinct objects seen, by build ID
	Nameless  uint64 // objects with only files without any symbol
	NoBuildID uint64 // files with an object keyed by content
	Debug     uint64 // separate debug files read
	Modules   uint64 // kernel modules read, running ones included
	Kernels   uint64 // kernels read
	JIT       uint64 // perf maps and jitdump files read
	Functions uint64 // in the tables that were made
	Named     uint64 // bytes of code with a name, in those tables
	Stored    uint64 // bytes of those tables
	Raw       uint64 // bytes of files read

	Debugs  symtab.Losses   // data that tables of debug information could not hold
	Quality []ObjectQuality // by path, with Options.Quality
	Seen    []buildid.ID    // the distinct objects, sorted

	Sources  map[string]uint64 // tables made, by kind: "symtab", "dynsym", …
	Skipped  map[string]uint64 // files left out, by reason
	Problems []Problem         // sorted by path
}

// Problem is one thing that could not be read.
type Problem struct {
	Path  string
	Err   error
	Hint  string // the remedy, or ""
	Named bool   // the user named this path: not to be passed over in silence
	Run   bool   // the run failed at it, not the file: the next one reads it again
	Kept  bool   // its readable parts were used
}

// Error returns "PATH: REASON".
func (p Problem) Error() string {
	return p.Path + ": " + p.reason()
}

// reason is the error without the path, which decoders put in front of it.
func (p Problem) reason() string { return strings.ReplaceAll(p.Err.Error(), p.Path+": ", "") }

// Unwrap returns Err.
func (p Problem) Unwrap() error { return p.Err }

func compareProblems(a, b Problem) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Err.Error(), b.Err.Error()))
}

// countSource counts a table that was merged.
func (s *Summary) countSource(src store.NewSource) {
	if s.Sources == nil {
		s.Sources = make(map[string]uint64)
	}
	s.Sources[src.Info.Kind.String()]++
	if src.Info.Kind != store.Unwind { // else they are in the other tables
		s.Functions += uint64(src.Table.Funcs)
		s.Named += src.Table.Named
	}
	s.Stored += uint64(src.Table.Size)
}

// countKind counts an object that was read.
func (s *Summary) countKind(kind ingest.ObjectKind) {
	switch kind {
	case ingest.Kernel:
		s.Kernels++
	case ingest.Module:
		s.Modules++
	}
}
