package local

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/indexer"
)

// look is the search for one object.
type look struct {
	*Finder
	found fileSet
}

// find looks for one object, and notes its files.
func (l *look) find(o *ingest.Object, view store.View) Place {
	m, _, err := store.FindCode(view, o.ID)
	if m == nil || err != nil {
		for _, id := range o.ID.AsExact() { // paths of files have exact ones
			exact := *o
			exact.ID = id
			if place := l.search(&exact); place != Nowhere {
				return place
			}
		}
		return Nowhere
	}
	if !o.ID.Exact() {
		exact := *o
		exact.ID = m.ID
		o = &exact
	}
	layouts := append(m.OtherSegments(), m.Layout)
	switch {
	case o.Kind == ingest.ELF && (len(m.Layout) == 0 || !l.fits(o, m.Machine, layouts...)):
		return cmp.Or(l.search(o), Known)
	case o.Kind != ingest.Kernel && !hasSymbols(m):
		return cmp.Or(l.debugFile(o), Known)
	case slices.ContainsFunc(l.opts.Tables, func(k store.SourceKind) bool { return !hasTable(m, k) }):
		return cmp.Or(l.search(o), Known)
	}
	return Known
}

// hasTable reports whether an object has a table of a kind.
func hasTable(m *store.Manifest, kind store.SourceKind) bool {
	return slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool { return s.Kind == kind })
}

// hasSymbols reports whether an object has more than the symbols that linkers need.
func hasSymbols(m *store.Manifest) bool {
	return slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind.Whole()
	})
}

// search looks for the file that runs, and its debug file.
func (l *look) search(o *ingest.Object) Place {
	if place := l.note(o, l.rootPlaces(o)); place != Nowhere {
		return place
	}
	if !l.opts.Host {
		return Nowhere
	}
	if l.runningKernel().Has(o) {
		if l.hidden = l.running.NamesErr(); l.hidden == nil {
			l.found.kernel = true
			return RunningKernel
		}
	}
	place := l.note(o, l.hostPlaces(o))
	if o.Kind == ingest.ELF || o.Kind == ingest.Kernel {
		place = cmp.Or(place, l.debugFile(o))
	}
	return place
}

// candidate is a file that may be an object's.
type candidate struct {
	path  string
	place Place
}

// note notes the first candidate that is the object's file, one that its mappings fit if there is
// one; Nowhere for none.
func (l *look) note(o *ingest.Object, list []candidate) Place {
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.path == "" || !l.is(c.path, o.ID) })
	if len(list) == 0 {
		return Nowhere
	}
	at := max(0, slices.IndexFunc(list, func(c candidate) bool { return l.fileFits(c.path, o) }))
	l.found.programs = append(l.found.programs, list[at].path)
	if o.Kind == ingest.ELF {
		l.cachedDebug(o.ID)
	}
	return list[at].place
}

// fileFits reports whether the mappings of an object fit the layout of a file.
func (f *Finder) fileFits(path string, o *ingest.Object) bool {
	if f.opts.Fits == nil || o.Kind != ingest.ELF || len(o.Segments) == 0 {
		return true
	}
	segments, machine, err := indexer.FileSegments(path)
	return err != nil || f.opts.Fits(o, machine, segments)
}

func (f *Finder) fits(o *ingest.Object, machine uint16, layouts ...[]elf.Segment) bool {
	return f.opts.Fits == nil || f.opts.Fits(o, machine, layouts...)
}

// is reports whether the file at path has the build ID. A kallsyms text has it from its directory.
func (f *Finder) is(path string, id buildid.ID) bool {
	if filepath.Base(path) == "kallsyms" {
		return exists(path)
	}
	row, err := indexer.FileRow(path, id.Space() == buildid.Content)
	return err == nil && row.ID.Matches(id)
}

// rootPlaces lists where an object may be below Options.Roots.
func (f *Finder) rootPlaces(o *ingest.Object) (list []candidate) {
	for _, root := range f.opts.Roots {
		if path := o.File.Path; strings.HasPrefix(path, "/") {
			list = append(list, candidate{filepath.Join(root, path), Root},
				candidate{filepath.Join(root, filepath.Base(path)), Root})
		}
		for _, p := range buildid.RuntimePaths(o.ID,
			[]string{root, filepath.Join(root, "usr/lib/debug"), filepath.Join(root, "usr/lib")}) {
			list = append(list, candidate{p, Root})
		}
		list = append(list, perfCache(o, filepath.Join(root, ".debug"), Root)...)
	}
	return list
}

// hostPlaces lists where an object may be on this host.
func (f *Finder) hostPlaces(o *ingest.Object) (list []candidate) {
	if path := o.File.Path; strings.HasPrefix(path, "/") {
		list = append(list, candidate{path, File})
	}
	trees := append(slices.Clip(f.opts.DebugRoots), "/usr/lib")
	for _, p := range buildid.RuntimePaths(o.ID, trees) {
		list = append(list, candidate{p, File})
	}
	for _, dir := range f.opts.PerfCaches {
		list = append(list, perfCache(o, dir, PerfCache)...)
	}
	for _, dir := range f.opts.Debuginfod {
		path := buildid.DebuginfodPath(o.ID, dir, "executable")
		list = append(list, candidate{path, DebuginfodDir})
	}
	return list
}

// perfCache lists the files of an object in a cache of perf.
func perfCache(o *ingest.Object, dir string, place Place) (list []candidate) {
	for _, name := range []string{"elf", "kallsyms", "vdso"} {
		if p := buildid.PerfPath(o.ID, dir, name); p != "" {
			list = append(list, candidate{p, place})
		}
	}
	return list
}

// cachedDebug notes the debug file of an object in a cache, which the indexer does not look into.
func (l *look) cachedDebug(id buildid.ID) Place {
	if !l.opts.Host {
		return Nowhere
	}
	for _, dir := range l.opts.PerfCaches {
		if p := buildid.PerfPath(id, dir, "debug"); p != "" && l.is(p, id) {
			l.found.debug = append(l.found.debug, p)
			return PerfCache
		}
	}
	for _, dir := range l.opts.Debuginfod {
		if p := buildid.DebuginfodPath(id, dir, "debuginfo"); p != "" && l.is(p, id) {
			l.found.debug = append(l.found.debug, p)
			return DebuginfodDir
		}
	}
	return Nowhere
}

// debugFile notes only an object's debug file.
func (l *look) debugFile(o *ingest.Object) Place {
	for _, p := range buildid.DebugPaths(o.ID, l.DebugRoots()) {
		if l.is(p, o.ID) {
			l.found.debug = append(l.found.debug, p)
			return File
		}
	}
	return l.cachedDebug(o.ID)
}

// searching is a View that looks for the objects which the view after it lacks.
type searching struct {
	store.View
	ctx     context.Context
	finder  *Finder
	problem func(error)

	mu sync.Mutex // of finder
}

// Searching returns a View of view that looks for an object on this host when its build ID is
// asked for and view lacks it, or its symbols, and has it indexed whole. view must have the objects
// of the Finder's sink. Files that could not be read are passed to problem.
func (f *Finder) Searching(ctx context.Context, view store.View, problem func(error)) store.View {
	return &searching{View: view, ctx: ctx, finder: f, problem: problem}
}

// Find implements store.View.
func (v *searching) Find(id buildid.ID) ([]*store.Manifest, error) {
	if err := v.search(id); err != nil {
		return nil, err
	}
	return v.View.Find(id)
}

func (v *searching) search(id buildid.ID) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if id.IsZero() || !v.finder.findID(id, v.View) {
		return nil
	}
	sum, err := v.finder.Index(v.ctx, nil)
	if err != nil {
		return err
	}
	for _, p := range sum.Problems {
		v.problem(p)
	}
	return nil
}

// findID looks for an object of which nothing is known but the build ID, and reports whether there
// is something to be indexed.
func (f *Finder) findID(id buildid.ID, view store.View) bool {
	if f.asked[id] {
		return false
	}
	f.asked[id] = true
	for _, kind := range []ingest.ObjectKind{ingest.ELF, ingest.Kernel} {
		l := look{Finder: f}
		place := l.find(&ingest.Object{Kind: kind, ID: id}, view)
		if place == Nowhere {
			continue
		}
		f.objects = append(f.objects, Object{kind, id, "", place})
		f.found.add(l.found)
		return len(slices.Concat(l.found.programs, l.found.debug)) > 0 || l.found.kernel
	}
	return false
}

// rowless is a Sink that keeps no path rows: the rows of Finder.Rows are kept apart, so that they
// hide no row that a store has of an earlier state of a file.
type rowless struct{ store.Sink }

// PutDir implements store.Sink.
func (rowless) PutDir(string, store.DirRows) error { return nil }

// Rows returns the path rows that AddRow has read.
func (f *Finder) Rows() store.View { return f.rows }

// AddRow reads the path row of the file that is now at a recorded path, which may prove that the
// file is the recorded one, or that it is another: below Options.Roots, otherwise on this host if
// here is set, that the capture was made on it.
func (f *Finder) AddRow(file *ingest.FileRef, here bool) {
	path := filepath.Clean(file.Path)
	key := lookedFile{path, file.Major, file.Minor, file.Inode}
	if f.looked[key] || !strings.HasPrefix(path, "/") {
		return
	}
	f.looked[key] = true
	row := f.row(path, here)
	if here && f.opts.Host && (row == nil || !isRecorded(row, file)) {
		row = cmp.Or(f.containedRow(file), row)
	}
	if row == nil {
		return
	}
	row.Name = filepath.Base(path) // not of the link's target
	dir := filepath.Dir(path)
	if rows, _, err := f.rows.Dir(dir); err == nil {
		f.rows.PutDir(dir, append(store.DirRows{*row}, rows...).Sort()) // an Overlay's cannot fail
	}
}

// row reads the row of a recorded path; nil if no file is there.
func (f *Finder) row(path string, here bool) *store.PathRow {
	for _, root := range f.opts.Roots {
		if row, err := indexer.FileRow(filepath.Join(root, path), true); err == nil {
			row.Inode = 0 // a copy: neither the recorded file nor one that replaced it
			return &row
		}
	}
	if !here || !f.opts.Host {
		return nil
	}
	row, err := indexer.FileRow(path, true)
	if err != nil {
		return nil
	}
	return &row
}

// lookedFile identifies a recorded file.
type lookedFile struct {
	path         string
	major, minor uint32
	inode        uint64
}

// exists reports whether a regular file is there.
func exists(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}
