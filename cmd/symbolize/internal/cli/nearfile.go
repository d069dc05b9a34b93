package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/cmd/symbolize/internal/suggest"
	"symbolize/ingest/texts"
)

// captureEndings are those of the files that profilers write.
var captureEndings = []string{".data", ".pb.gz", ".pprof", ".prof", ".tar"}

// nearFile is the hint for a file that does not exist: files with a similar name in its directory,
// otherwise one of this name below or above it, otherwise the captures there. It is "" if there are
// none, or err is another error.
func nearFile(err error) string {
	var pe *fs.PathError
	if !errors.As(err, &pe) || !errors.Is(err, fs.ErrNotExist) || pe.Path == "" {
		return ""
	}
	dir, name := filepath.Split(pe.Path)
	entries, listErr := os.ReadDir(filepath.Clean(dir))
	if listErr != nil {
		if dir != "" && filepath.Clean(dir) != filepath.Clean(pe.Path) && errors.Is(listErr, fs.ErrNotExist) {
			return "there is no directory " + filepath.Clean(dir)
		}
		return ""
	}
	var files, captures, others []string
	for _, e := range entries {
		path := dir + e.Name()
		if e.IsDir() {
			if below := filepath.Join(path, name); IsFile(below) {
				others = append(others, texts.ShellWord(below))
			}
			continue
		}
		files = append(files, e.Name())
		if slices.ContainsFunc(captureEndings, func(end string) bool {
			return strings.HasSuffix(e.Name(), end)
		}) {
			captures = append(captures, texts.ShellWord(path))
		}
	}
	if above := filepath.Join(dir, "..", name); IsFile(above) {
		others = append(others, texts.ShellWord(above))
	}
	near := suggest.Nearest(name, files)
	for i := range near {
		near[i] = texts.ShellWord(dir + near[i])
	}
	switch {
	case len(near) > 0:
		return "did you mean " + Some(near) + "?"
	case len(others) > 0:
		return "did you mean " + Some(others) + "?"
	case len(captures) > 0:
		return "in " + filepath.Clean(dir) + " there are " + Some(captures)
	}
	return ""
}

// IsFile reports whether there is a regular file at a path.
func IsFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}
