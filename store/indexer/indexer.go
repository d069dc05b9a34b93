// Package indexer reads objects from files and writes their symbol tables to a
// store.Sink. It is the only place where object decoders meet the table format.
//
// Index walks paths. A directory is one task: its entries are stat'ed and compared with the path
// rows of the last run; an unchanged file costs that stat and no more. Of a new file the first
// bytes are read, and an object by its content becomes a task of its own. When the last object of a
// directory is in the sink, the directory's rows are written: a row records that everything it
// covers is stored. Nothing is written, and the sink is not even opened, while nothing has changed.
//
// Every file contributes on its own: a runtime file its layout, its .symtab, or otherwise .dynsym
// united with .gnu_debugdata, and its PLT; a debug file its .symtab; each of them its debug
// information, as a table of functions, inlined calls and lines. Without that a Go program has
// the table of its stack traces, and without .symtab a program has functions without names by
// .eh_frame. Contributions to one object are joined by the sink in any order, so the order of
// files, of workers and of runs changes no byte of a store's content.
//
// Debug information is read from mapped sections, or from files without a name where it is
// compressed, unit by unit on all cores; only the parts of the table stay in memory. It may be in
// further files: .dwo and .dwp files (split DWARF), and the one that dwz moves shared parts to.
// Where one of these is missing or damaged the table is made of the rest, with partialProducer, and
// the file's row remembers the places: when the file has come, the next run reads both, and the
// whole table wins. Addresses are relative to the object: for a kernel relative to _text, for a
// module by the loader's layout.
package indexer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/object/dwarf"
	"symbolize/store"
	"symbolize/store/calltab"
	"symbolize/store/symtab"
	"symbolize/store/typetab"
)

// Producer is the revision in rows of completely read files.
const Producer = store.Producer

// partialProducer marks a table made while parts of the debug information were missing or damaged.
// A table of all parts replaces it.
const partialProducer = Producer - 1

// namesProducer marks the row of a file of which only the symbol tables were read
// (Options.NamesOnly): enough for a run that needs no more.
const namesProducer = Producer - 2

// demangledProducer marks rows of files with names that were also kept demangled
// (Options.Demangler): enough for a run that needs less. Revisions are therefore at least two
// apart.
const demangledProducer = Producer + 1

// callsProducer marks rows of files with a table of calls (Options.Calls), of calltab.Version.
const callsProducer = Producer + 1 + calltab.Version

// typesProducer and callsTypesProducer mark rows of files with a table of types (Options.Types), of
// typetab.Version, the latter with a table of calls, too. Revisions are therefore at least seven apart.
const (
	typesProducer      = callsProducer + 1 + typetab.Version
	callsTypesProducer = typesProducer + 1
)

// noUnwindProducer and bareProducer mark rows of files read without unwind tables: everything else,
// or the symbol tables only (Options.NoUnwind).
const (
	noUnwindProducer = Producer - 3
	bareProducer     = Producer - 4
)

// defaultMaxMemory bounds the memory for concurrent decoding if Options do not.
const defaultMaxMemory = 96 << 20

// Options configure an index run. The zero value indexes only the paths.
type Options struct {
	Workers   int   // 0 for GOMAXPROCS
	MaxMemory int64 // bytes for objects in work, an estimate; 0 for 96 MiB

	// DebugRoots are the directories of separate debug files; nil for /usr/lib/debug, empty for no
	// directory.
	DebugRoots []string
	// NamesOnly reads only symbol tables: no lines, no inlined calls, no tables of Go,
	// no functions by unwind tables. A later run without it reads the files again.
	NamesOnly bool
	// NoUnwind leaves out the rules that unwind copied stacks. A later run without it reads the
	// files again.
	NoUnwind bool
	// UnwindOnly makes nothing but these rules, and looks for no debug files: for one run, no
	// store.
	UnwindOnly bool
	// Calls adds tables of calls: of large stripped files they need twice the space and four times the
	// time of all other tables together.
	Calls bool
	// Types adds tables of what instructions access, of files with debug information of types.
	Types bool
	// Again reads all files, whatever the store remembers of them.
	Again bool
	// Kernel adds the running kernel, its modules and its vdso.
	Kernel bool
	// VDSO adds only the running kernel's vdso; Kernel includes it.
	VDSO bool
	// Hosts adds the kernels of capture bundles, their modules and vdsos.
	Hosts []*Host
	// Bundled adds code from capture bundles that processes compiled at run time.
	Bundled []*BundledFile
	// Quality lists all objects in Summary.Quality.
	Quality bool
	// KallsymsID is the build ID of kallsyms texts among the paths, if their directory does not
	// name it.
	KallsymsID buildid.ID
	// KallsymsForced uses KallsymsID also if the directory, or the notes in it, name another one.
	KallsymsForced bool

	// Demangler also keeps the names of debug information in demangled form, for look-ups; nil for
	// no. A later run with it reads files again that were read without it, but not files with names
	// that another revision of it demangled.
	Demangler *symtab.Demangler
	// DemangleOnly limits Demangler to some objects; nil for all.
	DemangleOnly func(id buildid.ID) bool
	// Columns keeps the columns of lines and calls, which make tables larger and which
	// only lookup prints in full.
	Columns bool
	// Relocatable adds files that no profile names: relocatable files that are not modules, laid
	// out like modules (.o files, also of BPF programs, with all functions in one object), and
	// debug files without a build ID, under the hash of their content.
	Relocatable bool

	// Only returns the addresses, ascending, that will be looked up in an object, by the facts
	// of its file; all is set if they are not known. Tables then hold no others: they
	// serve one run, and belong into no store. It is called by several goroutines; nil is all.
	Only func(m *store.Manifest) (addrs []addr.Addr, all bool)

	// Units is called for each unit of debug information of a file as it is read, in order; of several
	// files by several goroutines. Its error ends the reading of the file; nil for no calls.
	Units func(*dwarf.Unit) error

	// Progress is called periodically, never concurrently, and once at the end; nil for no calls.
	Progress func(Progress)

	sys    sysRoot                         // where /proc and /sys are; "" for the real ones
	faulty func(r io.ReaderAt) io.ReaderAt // what files are read by in tests; nil for themselves
}

// Progress is how far an Index has come.
type Progress struct {
	Dirs    uint64 // directories read
	Files   uint64 // files seen
	Objects uint64 // objects found so far that had to be read
	Done    uint64 // … the finished ones
	Size    uint64 // bytes of the files that had to be read
	Bytes   uint64 // … of them read: a large file moves it while it is read
}

// index is the state of one Index.
type index struct {
	ctx    context.Context
	opts   Options
	view   store.View // never nil
	budget *files.Budget
	search
	output
	results
}

// search is what files and their debug files are found with.
type search struct {
	queue   *queue
	claims  claims
	absent  absent
	devices devices
	alts    altFiles
	visited visited
	pairs   typePairs
	trees   []string // directories to be walked, without links; set before the run
	named   []string // files that were named, likewise
}

// output is where contributions are written. An error ends the run.
type output struct {
	cancel   context.CancelCauseFunc
	open     func() (store.Sink, error)
	sinkOnce sync.Once
	sink     store.Sink
	sinkErr  error
}

// results are what the Summary and the Progress are made of.
type results struct {
	mu      sync.Mutex // guards all other fields
	sum     Summary
	objects map[buildid.ID]objectState
	// completed are the files that were incomplete at first, but not when they were read
	// as debug files.
	completed map[string]bool
	prog      Progress
	lastCB    time.Time
}

func newResults() results {
	return results{sum: Summary{Skipped: make(map[string]uint64)},
		objects: make(map[buildid.ID]objectState), completed: make(map[string]bool)}
}

// Index reads the files under paths (files, directories, .build-id trees, perf's
// ~/.debug, debuginfod's cache, archives of `perf archive`) and merges it into the sink that open
// returns. open is called at most once, and only when there is something to write. view, which
// may be nil, holds the path rows of the last run; view and sink may be one thing.
//
// Errors of single files are in the Summary, which is never nil and only depends on the files, not
// on the workers. The error is the sink's or the context's; objects merged before it stay merged.
func Index(ctx context.Context, paths []string, view store.View,
	open func() (store.Sink, error), opts Options) (*Summary, error) {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.MaxMemory <= 0 {
		opts.MaxMemory = defaultMaxMemory
	}
	if opts.DebugRoots == nil {
		opts.DebugRoots = []string{"/usr/lib/debug"}
	}
	opts.DebugRoots = slices.Clone(opts.DebugRoots)
	for i, root := range opts.DebugRoots { // rows keep the places
		if abs, err := filepath.Abs(root); err == nil {
			opts.DebugRoots[i] = abs
		}
	}
	if view == nil {
		view = store.NewOverlay()
	}
	var unpacked archives
	paths, problems := unpacked.unpack(ctx, paths)
	if unpacked.dir != "" {
		open = unpacked.sink(open)
	}
	sum, err := indexPaths(ctx, paths, view, open, opts)
	for i := range sum.Problems {
		p := &sum.Problems[i]
		p.Path, _ = unpacked.origin(p.Path)
	}
	sum.Problems = append(sum.Problems, problems...)
	return sum, errors.Join(err, unpacked.close())
}

// indexPaths is Index with all options set and without archives.
func indexPaths(ctx context.Context, paths []string, view store.View,
	open func() (store.Sink, error), opts Options) (*Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ix := &index{
		ctx: ctx, opts: opts, view: view, budget: files.NewBudget(opts.MaxMemory),
		search:  search{queue: newQueue()},
		output:  output{cancel: cancel, open: open},
		results: newResults(),
	}
	ix.addRoots(paths)
	if ix.opts.Kernel {
		ix.queue.pushObject(0, func(w *fileReader) { w.liveKernel() })
	}
	if ix.opts.VDSO && !ix.opts.Kernel {
		ix.queue.pushObject(0, func(w *fileReader) { w.liveVDSO() })
	}
	for _, h := range ix.opts.Hosts {
		ix.queue.pushObject(0, func(w *fileReader) { w.host(h) })
	}
	for _, f := range ix.opts.Bundled {
		ix.queue.pushObject(uint64(f.Size), func(w *fileReader) { w.bundled(f) })
	}
	ix.run()
	ix.pairs.push(ctx, ix.queue, ix.view, ix.sum.Skipped, ix.merge, ix.unreadable)
	ix.run()
	ix.alts.close()
	return ix.finish()
}

func (s *search) pushDir(dir, mounts string) {
	s.queue.pushDir(func(w *fileReader) { w.scanDir(dir, mounts, 0) })
}

// run works until the queue is empty or the context ends.
func (ix *index) run() {
	stop := context.AfterFunc(ix.ctx, ix.queue.stop)
	defer stop()
	var wg sync.WaitGroup
	for range ix.opts.Workers {
		wg.Go(func() {
			w := newFileReader(ix)
			for {
				task, ok := ix.queue.pop()
				if !ok {
					return
				}
				task(w)
				ix.queue.done()
			}
		})
	}
	wg.Wait()
}

// dropCompleted removes the reports on files that turned out to be complete. Each was counted once,
// by its first reader.
func (r *results) dropCompleted() {
	counted := make(map[string]bool)
	r.sum.Problems = slices.DeleteFunc(r.sum.Problems, func(p Problem) bool {
		if !r.completed[p.Path] || damageKind(p.Err.Error()) != SkipIncomplete {
			return false
		}
		if !counted[p.Path] {
			counted[p.Path] = true
			r.sum.Skipped[SkipIncomplete]--
		}
		return true
	})
}

// finish makes the Summary.
func (ix *index) finish() (*Summary, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	sum := &ix.sum
	sum.Seen = make([]buildid.ID, 0, len(ix.objects))
	for id, o := range ix.objects {
		sum.Objects++
		sum.Seen = append(sum.Seen, id)
		if o.read && !o.named {
			sum.Nameless++
		}
	}
	if ix.opts.Quality {
		sum.Quality = ix.qualities()
	}
	ix.dropCompleted()
	slices.SortFunc(sum.Seen, buildid.ID.Compare)
	slices.SortFunc(sum.Problems, compareProblems)
	if ix.opts.Progress != nil {
		ix.opts.Progress(ix.prog)
	}
	if ix.ctx.Err() != nil {
		return sum, context.Cause(ix.ctx)
	}
	return sum, nil
}

// producer is the revision that rows of this run get, and have to have, by the object of the file,
// which is the zero ID until it is known.
func (ix *index) producer(id buildid.ID) uint32 {
	switch {
	case ix.opts.NamesOnly && ix.opts.NoUnwind:
		return bareProducer
	case ix.opts.NamesOnly:
		return namesProducer
	case ix.opts.NoUnwind:
		return noUnwindProducer
	case ix.opts.Types && ix.opts.Calls:
		return callsTypesProducer
	case ix.opts.Types:
		return typesProducer
	case ix.opts.Calls:
		return callsProducer
	case ix.demangler(id) != nil:
		return demangledProducer
	}
	return Producer
}

// demangler returns the demangler for the names of an object, nil for none.
func (ix *index) demangler(id buildid.ID) *symtab.Demangler {
	if only := ix.opts.DemangleOnly; only != nil && !only(id) {
		return nil
	}
	return ix.opts.Demangler
}

// openSink returns the sink; the first call opens it. An error ends the run.
func (o *output) openSink() (store.Sink, error) {
	o.sinkOnce.Do(func() {
		if o.sink, o.sinkErr = o.open(); o.sinkErr != nil {
			o.cancel(o.sinkErr)
		}
	})
	return o.sink, o.sinkErr
}

// write merges one contribution into the sink. An error ends the run, unless only this object is
// too large for the store.
func (ix *index) write(c *store.Contribution) error {
	sink, err := ix.openSink()
	if err != nil {
		return err
	}
	err = sink.Merge(ix.ctx, c)
	if err != nil && !errors.Is(err, store.ErrTooLarge) {
		ix.cancel(err)
	}
	return err
}

// merge writes one contribution, see merged.
func (ix *index) merge(c *store.Contribution, count bool) error {
	if err := ix.write(c); err != nil {
		return err
	}
	ix.merged(c, count)
	return nil
}

// merged notes a written contribution, and with count adds it to the Summary.
func (r *results) merged(c *store.Contribution, count bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[c.Manifest.ID]
	o.read = true
	for _, s := range c.Sources {
		if s.Info.Kind.Names() {
			o.named = true
			o.add(s.Info.Kind)
		}
		if count {
			r.sum.countSource(s)
		}
	}
	r.objects[c.Manifest.ID] = o
}

// putDir writes the path rows of a directory.
func (ix *index) putDir(dir string, rows store.DirRows) {
	sink, err := ix.openSink()
	if err == nil {
		err = sink.PutDir(dir, rows)
	}
	switch {
	case errors.Is(err, store.ErrTooLarge): // its files are read again each time
		ix.problem(Problem{Path: dir, Err: err})
	case err != nil:
		ix.cancel(err)
	}
}

// count changes the Summary.
func (r *results) count(change func(s *Summary)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.sum)
}

func (r *results) problem(p Problem) {
	r.count(func(s *Summary) { s.Problems = append(s.Problems, p) })
}

// progressEvery is how often the callback is called at most.
const progressEvery = 100 * time.Millisecond

// progress changes the counts and calls the callback if it is time.
func (ix *index) progress(change func(p *Progress)) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	change(&ix.prog)
	if ix.opts.Progress == nil {
		return
	}
	if now := time.Now(); now.Sub(ix.lastCB) >= progressEvery {
		ix.lastCB = now
		ix.opts.Progress(ix.prog)
	}
}

// pathReason removes the path from an error because the caller names it again.
func pathReason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
