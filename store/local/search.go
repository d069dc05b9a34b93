package local

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
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
		for _, id := range o.ID.AsExact() { // files lie under exact ones
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
	switch {
	case o.Kind == ingest.ELF && len(m.Layout) == 0:
		return cmp.Or(l.search(o), Known)
	case o.Kind != ingest.Kernel && !hasSymbols(m):
		return cmp.Or(l.debugFile(o), Known)
	}
	return Known
}

// hasSymbols reports whether an object has more than the symbols that linkers need.
func hasSymbols(m *store.Manifest) bool {
	return slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind <= store.Pclntab || s.Kind == store.Kallsyms
	})
}

// search looks for the file that runs, and its debug file.
func (l *look) search(o *ingest.Object) Place {
	if place := l.take(o, l.rootPlaces(o)); place != Nowhere {
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
	place := l.take(o, l.hostPlaces(o))
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

// take notes the first candidate that is the object's file; Nowhere for none.
func (l *look) take(o *ingest.Object, list []candidate) Place {
	for _, c := range list {
		if c.path == "" || !l.is(c.path, o.ID) {
			continue
		}
		l.found.programs = append(l.found.programs, c.path)
		if o.Kind == ingest.ELF {
			l.cachedDebug(o.ID)
		}
		return c.place
	}
	return Nowhere
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
