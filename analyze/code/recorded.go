package code

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

// sourceNames are the extensions that files of source code have. Debug information may be
// anybody's, and could have any file of the user printed: others are not opened.
var sourceNames = strings.Fields(`.c .h .i .cc .cp .cpp .cxx .c++ .C .CPP .hh .hp .hpp .hxx .h++ .H .inl .ipp
	.tcc .tpp .ixx .cppm .m .mm .cu .cuh .s .S .asm .inc .go .rs .zig .d .f .F .for .f77 .f90 .F90 .f95
	.f03 .f08 .ada .adb .ads .pas .pp .ml .mli .hs .nim .cr .swift .v .vala .y .yy .l .ll .re .def .tbl .td`)

// newerSource is a source file that was changed after the file with the code.
type newerSource struct {
	source, object     string
	changed, wasLinked time.Time
}

// recordedSource returns the lines of a source file at its recorded path, nil if the file is newer
// than the object compiled from it. built is the time of the object.
func (s *sourceDirs) recordedSource(file, object string, built time.Time) [][]byte {
	if built.IsZero() || !path.IsAbs(file) || !isSource(file) {
		return nil
	}
	// A link may lead to a file that is no source file.
	if real, err := filepath.EvalSymlinks(file); err != nil || !isSource(real) {
		return nil
	}
	f, err := files.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil
	}
	if fi.ModTime().After(built) {
		s.newer = append(s.newer, newerSource{file, object, fi.ModTime(), built})
		return nil
	}
	data, err := readAll(f)
	if err != nil {
		return nil
	}
	return splitLines(data)
}

func isSource(file string) bool { return slices.Contains(sourceNames, path.Ext(file)) }

// Newer describes the source files at recorded paths that were not used, because they are younger
// than the code: their lines may be others.
func (c *Finder) Newer() []string {
	var list []string
	for _, n := range c.sources.newer {
		list = append(list, fmt.Sprintf("no source of %s: it was changed at %s, and %s was written at %s",
			texts.Printable(n.source), n.changed.UTC().Format(time.DateTime),
			texts.Printable(n.object), n.wasLinked.UTC().Format(time.DateTime)))
	}
	slices.Sort(list)
	return slices.Compact(list)
}
