package record

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"symbolize/ingest/format/bundle"
)

// maxRecordings bounds the list in a manifest.
const maxRecordings = 16

// recordings returns the perf.data files that a command has written since a time, in a directory or
// where its words name them, sorted by path: perf record writes perf.data or the file of -o, also
// behind sudo, nice or in the text of sh -c.
func recordings(command []string, dir string, since time.Time) (list []bundle.Recording) {
	names := []string{"perf.data"}
	for _, word := range command {
		for _, w := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\n;&|'\"", r) }) {
			names = append(names, w, strings.TrimPrefix(w, "-o"))
			if _, value, ok := strings.Cut(w, "="); ok {
				names = append(names, value)
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		r, modified, ok := bundle.RecordingAt(name)
		if ok && !modified.Before(since) && len(list) < maxRecordings && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}
