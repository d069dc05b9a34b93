// Package local finds, on this host, the files of a capture's objects, and has them indexed. A file
// is used only if its build ID is the recorded one, so that no name can be wrong:
//
//   - below the directories of Options.Roots: the recorded path, the file's name alone, trees of
//     build IDs and perf's cache (DIR/.debug);
//   - on this host (Options.Host): the recorded path, trees of build IDs (/usr/lib/debug/.build-id,
//     /usr/lib/.build-id), the recorded path in running containers, perf's cache, the cache of debuginfod's client; the running kernel's
//     symbols, modules and vdso.
//
// Of a program file that is found, the separate debug file is indexed, too, as indexer.Index finds
// it, or from the caches.
package local

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/indexer"
)

// Options are the places to search for files, and the way they are indexed.
type Options struct {
	// Roots are directories that contain the recorded paths, as perf's --symfs; they are searched
	// first.
	Roots []string
	// Host searches this host itself: recorded paths, trees of build IDs, caches, the running
	// kernel.
	Host bool

	PerfCaches []string // directories as perf's ~/.debug; with Host
	Debuginfod []string // directories as ~/.cache/debuginfod_client; with Host
	DebugRoots []string // as of indexer.Options: nil for /usr/lib/debug

	// Fits reports whether the recorded mappings of an object fit one of the layouts (PT_LOAD segments)
	// of files for a machine. A file that they do not fit is used only if there is no other; nil for
	// all.
	Fits func(o *ingest.Object, machine uint16, layouts ...[]elf.Segment) bool
	// NoKernel looks for programs and libraries only.
	NoKernel bool
	// FindOnly leaves indexing to the caller, see Finder.Found.
	FindOnly bool
	// Tables are the tables that objects are to have beyond names: objects of views that lack one are looked
	// for, too.
	Tables []store.SourceKind
	// Start is called when indexing begins. progress is indexer.Options.Progress, and done is
	// called at the end; nil for none.
	Start func() (progress func(indexer.Progress), done func())
	// Index configures indexing. Kernel, VDSO and DebugRoots of it are not read.
	Index indexer.Options
}

// Place is where an object was found.
type Place uint8

// The places, in the order in which they are reported.
const (
	Nowhere       Place = iota
	Known               // in the store, or among the files that were named
	Root                // below Options.Roots
	File                // at its recorded path, or in a tree of build IDs
	Container           // at its recorded path in a running container
	PerfCache           // in perf's ~/.debug
	DebuginfodDir       // in the cache of debuginfod's client
	RunningKernel       // in memory: the kernel, its modules and vdso
	numPlaces
)

var placeText = [numPlaces]string{
	Nowhere: "not found", Known: "the store", Root: "below --symfs", File: "local files",
	Container: "running containers",
	PerfCache: "~/.debug", DebuginfodDir: "debuginfod's cache", RunningKernel: "the running kernel",
}

// String returns the place in words, as the summary has them.
func (p Place) String() string { return placeText[p] }

// Object is an object that was looked for.
type Object struct {
	Kind  ingest.ObjectKind
	ID    buildid.ID
	Path  string // as recorded
	Place Place
}

// Found describes how many objects were found in which places, except objects from views: "2
// objects from local files, 1 from ~/.debug"; "" if none was.
func Found(objects []Object) string {
	var counts [numPlaces]int
	for i := range objects {
		counts[objects[i].Place]++
	}
	var words []string
	for p := Root; p < numPlaces; p++ {
		if counts[p] == 0 {
			continue
		}
		noun := ""
		if len(words) == 0 {
			if noun = " objects"; counts[p] == 1 {
				noun = " object"
			}
		}
		words = append(words, fmt.Sprintf("%d%s from %s", counts[p], noun, placeText[p]))
	}
	return strings.Join(words, ", ")
}

// Finder looks for the objects of captures, each once. It may be used by one goroutine at a time.
type Finder struct {
	opts    Options
	sink    store.Sink
	running *indexer.Running // nil until it is needed
	vdso    bool             // the running kernel's was merged
	hidden  error            // why the running kernel, a capture's, has no names
	asked   map[buildid.ID]bool
	objects []Object
	rows    *store.Overlay      // only path rows
	looked  map[lookedFile]bool // recorded files that AddRow has looked at
	proc    string              // in place of /proc; "" but in tests

	containerRoots []string // of containers; nil until they are needed

	found   fileSet                // to be indexed
	filesOf map[buildid.ID]fileSet // the files of each object
}

// fileSet lists the sources of an object, or of several. Program files are indexed before the debug
// files that the indexer does not find by itself.
type fileSet struct {
	programs, debug []string
	kernel          bool // the running one, too
}

func (f *fileSet) add(o fileSet) {
	f.programs = append(f.programs, o.programs...)
	f.debug = append(f.debug, o.debug...)
	f.kernel = f.kernel || o.kernel
}

// New returns a Finder that indexes objects into sink.
func New(sink store.Sink, opts Options) *Finder {
	if opts.DebugRoots == nil {
		opts.DebugRoots = []string{"/usr/lib/debug"}
	}
	return &Finder{opts: opts, sink: rowless{sink}, asked: make(map[buildid.ID]bool),
		filesOf: make(map[buildid.ID]fileSet),
		rows:    store.NewOverlay(), looked: make(map[lookedFile]bool)}
}

// Objects lists the objects that were looked for, in the order of the captures.
func (f *Finder) Objects() []Object { return f.objects }

// Find looks for those objects that view lacks. here: the capture was made on this host, so that its
// processes may still run in containers, and another file at a recorded path has replaced the object
// unless containers have files of their own there.
func (f *Finder) Find(objects []ingest.Object, view store.View, here bool) {
	for i := range objects {
		o := &objects[i]
		if o.Kind > ingest.Module || f.opts.NoKernel && o.Kind != ingest.ELF || o.Symbol != "" || o.ID.IsZero() || f.asked[o.ID] {
			continue
		}
		f.asked[o.ID] = true
		l := look{Finder: f}
		place := l.find(o, view)
		if place == Nowhere && here && f.opts.Host {
			place = l.contained(o)
		}
		f.filesOf[o.ID] = l.found
		f.found.add(l.found)
		if place == Nowhere && !(here && f.opts.Host && f.inContainer(&o.File)) {
			f.AddRow(&o.File, here)
		}
		f.objects = append(f.objects, Object{o.Kind, o.ID, o.File.Path, place})
	}
}

// Program returns the file that an object ran from, if this host has one with its build ID;
// otherwise "". Nothing is noted.
func (f *Finder) Program(o *ingest.Object) string {
	l := look{Finder: f}
	if l.note(o, l.rootPlaces(o)) == Nowhere && f.opts.Host && l.note(o, l.hostPlaces(o)) == Nowhere {
		l.contained(o)
	}
	if len(l.found.programs) == 0 {
		return ""
	}
	return l.found.programs[0]
}

// Again adds the files of an object once more to the files to be indexed.
func (f *Finder) Again(id buildid.ID) { f.found.add(f.filesOf[id]) }

// Found returns the files that were found and are not yet indexed, and whether the running kernel
// is among the objects.
func (f *Finder) Found() (paths []string, kernel bool) {
	return slices.Concat(f.found.programs, f.found.debug), f.found.kernel
}

// Index indexes the results of Found, limited by only, which is as of indexer.Options.
func (f *Finder) Index(ctx context.Context,
	only func(*store.Manifest) (addrs []addr.Addr, all bool)) (*indexer.Summary, error) {
	sum := &indexer.Summary{}
	if f.opts.FindOnly {
		return sum, ctx.Err()
	}
	found := f.found
	f.found = fileSet{}
	if len(found.programs)+len(found.debug) == 0 && !found.kernel {
		return sum, ctx.Err()
	}
	var progress func(indexer.Progress)
	if f.opts.Start != nil {
		var done func()
		progress, done = f.opts.Start()
		defer done()
	}
	for i, paths := range [][]string{found.programs, found.debug} {
		opts := f.opts.Index
		opts.Progress = progress
		opts.Only, opts.Kernel = only, found.kernel && i == 0
		if len(paths) == 0 && !opts.Kernel {
			continue
		}
		part, err := f.index(ctx, paths, opts)
		if err != nil {
			return sum, err
		}
		sum.Problems = append(sum.Problems, part.Problems...)
	}
	return sum, ctx.Err()
}

// AddVDSO indexes the vdso of the running kernel, if that is the one of a capture. It is then
// known which vdso belongs to that kernel.
func (f *Finder) AddVDSO(ctx context.Context, kernel buildid.ID) error {
	if f.vdso || !f.opts.Host || !f.runningKernel().Kernel(kernel) {
		return nil
	}
	f.vdso = true
	opts := f.opts.Index
	opts.VDSO = true
	_, err := f.index(ctx, nil, opts)
	return err
}

func (f *Finder) index(ctx context.Context, paths []string, opts indexer.Options) (
	*indexer.Summary, error) {
	opts.DebugRoots = f.DebugRoots()
	return indexer.Index(ctx, paths, nil, func() (store.Sink, error) { return f.sink, nil }, opts)
}

// KernelErr returns why the symbols of the running kernel are not used although a capture needs
// them, nil if it does not, or if they are.
func (f *Finder) KernelErr() error { return f.hidden }

// Kernel returns the running kernel's build ID if a recording of this host is proven to be of it.
func (f *Finder) Kernel(rec indexer.Recorded) buildid.ID {
	if !f.opts.Host {
		return buildid.ID{}
	}
	return f.runningKernel().Proves(rec)
}

// KernelOfRelease returns the running kernel's build ID if it has this release; otherwise, and
// without Options.Host, the zero ID.
func (f *Finder) KernelOfRelease(release string) buildid.ID {
	if !f.opts.Host {
		return buildid.ID{}
	}
	return f.runningKernel().OfRelease(release)
}

func (f *Finder) runningKernel() *indexer.Running {
	if f.running == nil {
		f.running = indexer.OpenRunning()
	}
	return f.running
}

// DebugRoots are the directories of separate debug files: below Options.Roots, then the host's.
func (f *Finder) DebugRoots() []string {
	roots := []string{}
	for _, r := range f.opts.Roots {
		roots = append(roots, filepath.Join(r, "usr/lib/debug"), r)
	}
	if f.opts.Host {
		roots = append(roots, f.opts.DebugRoots...)
	}
	return roots
}

// Replaced reports whether another file is now at an object's path on this host, so that indexing
// it would not help.
func Replaced(o *ingest.Object) bool {
	if o.Kind != ingest.ELF || !strings.HasPrefix(o.File.Path, "/") || o.ID.IsZero() {
		return false
	}
	row, err := indexer.FileRow(o.File.Path, o.ID.Space() == buildid.Content)
	return err == nil && !row.ID.Matches(o.ID)
}
