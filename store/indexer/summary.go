package indexer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/object/dwarf"
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
	SkipFailed      = "failed in this run"            // no space, memory or descriptors; read errors
	SkipIncomplete  = "debug information incomplete"  // names are there, some lines are not
	SkipNoObject    = "no code, no symbols, no notes" // ELF files that are nothing to us
	// SkipNoCode counts debug files that have no table of types: nothing with their build ID runs.
	SkipNoCode = "debug file without the file of its code: no table of types"
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
	Programs  uint64 // BPF programs with the source that bcc left; the caller counts them
	Demangled uint64 // files read with names kept demangled (Options.Demangler)
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
	Named bool   // the user named this path: a report is needed
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
	if src.Info.Kind.Names() { // else they are in the other tables
		s.Functions += uint64(src.Table.Funcs)
		s.Named += src.Table.Named
	}
	s.Stored += uint64(src.Table.Size())
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

// Quality is how well addresses of an object resolve.
type Quality uint8

// The qualities, the worst first.
const (
	Nothing   Quality = iota // at most stubs and functions without a name
	NamesOnly                // names of functions
	Lines                    // names, files, lines and inlined calls
)

// String returns "nothing", "names only" or "lines".
func (q Quality) String() string {
	switch q {
	case Lines:
		return "lines"
	case NamesOnly:
		return "names only"
	}
	return "nothing"
}

// qualityOf returns the quality of a source of that kind; 0 is no source.
func qualityOf(best store.SourceKind) Quality {
	switch {
	case best.Debug():
		return Lines
	case best.Symbols():
		return NamesOnly
	}
	return Nothing
}

// ObjectQuality is the quality of one object.
type ObjectQuality struct {
	ID      buildid.ID
	Path    string           // one of its files, not a debug file if there is another
	Best    store.SourceKind // its best source for lines, else for names; 0 for none
	Quality Quality
}

// objectState is the state of an object for the Summary.
type objectState struct {
	read  bool // some file of it was read in this run
	named bool // … and had a source
	best  store.SourceKind
	path  string
}

// add adds a source.
func (o *objectState) add(kind store.SourceKind) {
	if c := cmp.Compare(qualityOf(kind), qualityOf(o.best)); o.best == 0 || c > 0 ||
		c == 0 && kind < o.best {
		o.best = kind
	}
}

// seen notes an object and a file of it. The caller holds mu.
func (ix *index) seen(id buildid.ID, path string) {
	o := ix.objects[id]
	if o.path == "" || path != "" && ix.comparePaths(path, o.path) < 0 {
		o.path = path
	}
	ix.objects[id] = o
}

// comparePaths puts debug files last.
func (ix *index) comparePaths(a, b string) int {
	debug := func(p string) int {
		under := func(root string) bool { return inside(p, root) }
		if strings.HasSuffix(p, ".debug") || slices.ContainsFunc(ix.opts.DebugRoots, under) {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(debug(a), debug(b)), strings.Compare(a, b))
}

// qualities lists all objects of the run, with the store's state of them before. The
// caller holds mu.
func (ix *index) qualities() []ObjectQuality {
	list := make([]ObjectQuality, 0, len(ix.objects))
	for id, o := range ix.objects {
		known, _ := ix.view.Find(id) // an unreadable object names nothing
		for _, m := range known {
			for _, s := range m.Sources {
				if m.ID == id && s.Kind.Names() {
					o.add(s.Kind)
				}
			}
		}
		list = append(list, ObjectQuality{id, o.path, o.best, qualityOf(o.best)})
	}
	slices.SortFunc(list, func(a, b ObjectQuality) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), a.ID.Compare(b.ID))
	})
	return list
}

// runError: a file could not be read whole because this run lacked a resource (space for temporary
// files, memory, descriptors), or because its disk or network file system failed. Its content is not
// at fault: it gets no row, so that the next run reads it again.
type runError struct{ err error }

func (e *runError) Error() string {
	return "not read whole, the next run reads it again: " + e.err.Error()
}

func (e *runError) Unwrap() error { return e.err }

// ofRun returns a runError for an error that is not caused by the file, nil for others.
func ofRun(err error) *runError {
	var known *runError
	if errors.As(err, &known) {
		return known
	}
	if files.OfMachine(err) {
		return &runError{err}
	}
	return nil
}

// lacksRoom reports whether the run lacked a resource rather than an answer of the disk.
func (e *runError) lacksRoom() bool {
	for _, lack := range []error{files.ErrFull, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG,
		syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(e.err, lack) {
			return true
		}
	}
	return false
}

// failed returns why sections of a file could not be loaded, if this run lacked a
// resource.
func failed(l *dwarf.Loaded) *runError {
	if l.Failed == nil {
		return nil
	}
	return &runError{l.Failed}
}

// estimateSlack is how far the memory of a table may go beyond the estimate, which files of
// any compiler come close to (see debugEstimate). A file that needs more repeats by
// reference data that is in it once.
const estimateSlack = 4

// limitReached begins the error of a file that needs more than its size explains. Path rows keep
// texts only.
const limitReached = "limit reached: "

// leftOut notes that a table ends before its file does. One of the whole wins over it.
func (s *sources) leftOut(kind store.SourceKind, n uint64) {
	if n == 0 {
		return
	}
	s.fail(fmt.Errorf(limitReached+"%d functions or symbols of the %s table, or their lines, are "+
		"left out: they repeat or overlap more than a file of %d KiB explains, or need more "+
		"than %d MiB (--max-memory)", n, kind, s.size>>10, s.limit>>20))
	s.partial(kind)
}

// partial notes that the last table, if it is of that kind, was made of a part of the information.
func (s *sources) partial(kind store.SourceKind) {
	if n := len(s.c.Sources); n > 0 && s.c.Sources[n-1].Info.Kind == kind {
		s.c.Sources[n-1].Info.Producer = partialProducer
	}
}
