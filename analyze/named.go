package analyze

import (
	"fmt"
	"path/filepath"
	"slices"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// namedFile is a file, not a directory, that Options.With names.
type namedFile struct {
	path     string   // as named
	places   []string // absolute, as named and without links
	manifest *store.Manifest
	// used and refused are texts of what came of it, for mappings without a build ID.
	used, refused []string
}

// namedObjects are the objects of Options.With, and whether captures have them.
type namedObjects struct {
	keys     map[buildid.Key]bool // see State.Origin
	files    []namedFile
	compared bool // a profile was compared with them
	matched  bool // one of them is in a profile
}

// newNamedObjects returns the objects in an overlay, and the files among paths that they come from.
func newNamedObjects(overlay *store.Overlay, paths []string) *namedObjects {
	n := &namedObjects{keys: make(map[buildid.Key]bool)}
	for _, m := range overlay.Objects {
		n.keys[m.ID.Key()] = true
	}
	for _, p := range paths {
		n.addFile(overlay, p)
	}
	return n
}

// addFile adds a path if it is a file's.
func (n *namedObjects) addFile(overlay *store.Overlay, path string) {
	real, err := files.Real(path)
	if err != nil {
		return
	}
	places := []string{real}
	if abs, err := filepath.Abs(path); err == nil {
		places = append(places, abs)
	}
	for _, m := range overlay.Objects {
		if m.Kind == ingest.ELF && slices.ContainsFunc(m.Sources, func(src store.SourceInfo) bool { return src.Path == real }) {
			n.files = append(n.files, namedFile{path: path, places: places, manifest: m})
		}
	}
}

// compare notes whether objects of a profile are among them.
func (n *namedObjects) compare(p *ingest.Profile) {
	n.compared = true
	for i := range p.Objects {
		id := p.Objects[i].ID
		n.matched = n.matched || n.keys[id.Key()]
		for _, exact := range id.AsExact() {
			n.matched = n.matched || n.keys[exact.Key()]
		}
	}
}

// unmatched reports whether there are objects, and no compared profile has one of them.
func (n *namedObjects) unmatched() bool { return n.compared && !n.matched && len(n.keys) > 0 }

// identify adds the files to an identification: a mapping without a build ID in
// the capture is the file of its path or, if all files of its name in the capture are one, of its
// name, if the file has the recorded layout.
func (n *namedObjects) identify(known identification) identification {
	if len(n.files) == 0 {
		return known
	}
	return func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		id, source := known(q)
		if source != ingest.IDNone || q.Kind != ingest.ELF || !q.ByPath.IsZero() {
			return id, source
		}
		i := slices.IndexFunc(n.files, func(f namedFile) bool { return slices.Contains(f.places, q.File.Path) })
		byPath := i >= 0
		if !byPath {
			name := ingest.BaseName(q.File.Path)
			i = slices.IndexFunc(n.files, func(f namedFile) bool { return filepath.Base(f.path) == name })
		}
		if i < 0 {
			return id, source
		}
		f := &n.files[i]
		what := texts.Printable(q.File.Path) + ", which has no build ID in the captures"
		if reason := f.refuses(&q, byPath); reason != "" {
			addText(&f.refused, "%s was not used for %s: %s", texts.Printable(f.path), what, reason)
			return id, source
		}
		if !byPath {
			addText(&f.used, "%s names %s: name and layout are the same", texts.Printable(f.path), what)
		}
		return f.manifest.ID, ingest.IDNamed
	}
}

// refuses returns why a file is not used for a mapping; "" if it is.
func (f *namedFile) refuses(q *sideband.ObjectQuery, byPath bool) string {
	m := f.manifest
	switch {
	case q.Shared, q.Namesakes && !byPath:
		return "they have several files of this name"
	case len(m.Layout) == 0:
		return "it is a debug file; name the program or library, too"
	case !resolve.FitsExactly(q.Segments, m.Machine, m.Layout):
		return "its code has another place or size in the file"
	}
	return ""
}

// maxNamedTexts bounds the texts about one file.
const maxNamedTexts = 8

// addText adds a text once.
func addText(list *[]string, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(*list, text) && len(*list) < maxNamedTexts {
		*list = append(*list, text)
	}
}
