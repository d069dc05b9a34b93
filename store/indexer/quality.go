package indexer

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/store"
)

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
	switch best {
	case store.DWARF, store.Pclntab:
		return Lines
	case store.Symtab, store.Dynsym, store.Kallsyms:
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

// take notes a source.
func (o *objectState) take(kind store.SourceKind) {
	if c := cmp.Compare(qualityOf(kind), qualityOf(o.best)); o.best == 0 || c > 0 ||
		c == 0 && kind < o.best {
		o.best = kind
	}
}

// seen notes an object and a file of it. The caller holds mu.
func (ix *index) seen(id buildid.ID, path string) {
	key := id.String()
	o := ix.objects[key]
	if o.path == "" || path != "" && ix.comparePaths(path, o.path) < 0 {
		o.path = path
	}
	ix.objects[key] = o
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
	for key, o := range ix.objects {
		id, err := buildid.Parse(key)
		if err != nil {
			continue
		}
		known, _ := ix.view.Find(id) // an unreadable object names nothing
		for _, m := range known {
			for _, s := range m.Sources {
				if m.ID == id && s.Kind != store.Unwind {
					o.take(s.Kind)
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
