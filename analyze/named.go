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
	at       []string // absolute, as named and without links
	manifest *store.Manifest
	// used and refused are texts of what came of it, for mappings without a build ID.
	used, refused []string
}

// noteFiles remembers the files among paths of Options.With.
func (s *Session) noteFiles(paths []string) {
	for _, p := range paths {
		real, err := files.Real(p)
		if err != nil {
			continue
		}
		at := []string{real}
		if abs, err := filepath.Abs(p); err == nil {
			at = append(at, abs)
		}
		for _, m := range s.overlay.Objects {
			if m.Kind == ingest.ELF && slices.ContainsFunc(m.Sources, func(src store.SourceInfo) bool { return src.Path == real }) {
				s.files = append(s.files, namedFile{path: p, at: at, manifest: m})
			}
		}
	}
}

// byNamedFile adds the files of Options.With to an identification: a mapping without a build ID in
// the capture is the file of its path or, if all files of its name in the capture are one, of its
// name, if the file has the recorded layout.
func (s *Session) byNamedFile(known identification) identification {
	if len(s.files) == 0 {
		return known
	}
	return func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		id, source := known(q)
		if source != ingest.IDNone || q.Kind != ingest.ELF || !q.ByPath.IsZero() {
			return id, source
		}
		i := slices.IndexFunc(s.files, func(f namedFile) bool { return slices.Contains(f.at, q.File.Path) })
		byPath := i >= 0
		if !byPath {
			name := ingest.BaseName(q.File.Path)
			i = slices.IndexFunc(s.files, func(f namedFile) bool { return filepath.Base(f.path) == name })
		}
		if i < 0 {
			return id, source
		}
		f := &s.files[i]
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
