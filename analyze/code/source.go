package code

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"symbolize/ingest/regular"
)

// maxSource bounds a source file that is read, in bytes.
const maxSource = 32 << 20

// sourceDirs are the directories of --source-dir.
type sourceDirs struct {
	dirs  []string
	roots []*os.Root // of dirs; nil for those that cannot be opened, or were not tried
	tried bool
	files map[string][][]byte // lines by recorded path; nil if there is no such file
}

func newSourceDirs(dirs []string) *sourceDirs {
	return &sourceDirs{dirs: dirs, files: make(map[string][][]byte)}
}

// Close closes the directories.
func (s *sourceDirs) Close() error {
	var err error
	for _, r := range s.roots {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
	}
	return err
}

// line returns the text of a line, "" if it cannot be had, and how many lines its file has.
func (s *sourceDirs) line(file string, line uint32) (text string, of int) {
	if len(s.dirs) == 0 || file == "" || line == 0 {
		return "", 0
	}
	lines, ok := s.files[file]
	if !ok {
		lines = s.read(file)
		s.files[file] = lines
	}
	if uint64(line) > uint64(len(lines)) {
		return "", len(lines)
	}
	return string(lines[line-1]), len(lines)
}

// read looks a file up by its recorded path, then by ever shorter ends of that, in each
// directory. Paths come from captures and debug information: os.Root keeps them, and
// symbolic links, from leaving the directories that the user named.
func (s *sourceDirs) read(file string) [][]byte {
	if !s.tried {
		s.tried = true
		for _, dir := range s.dirs {
			root, _ := os.OpenRoot(dir)
			s.roots = append(s.roots, root)
		}
	}
	rest := strings.TrimPrefix(path.Clean("/"+file), "/")
	for rest != "" {
		for _, root := range s.roots {
			if root == nil {
				continue
			}
			if data, err := readSource(root, rest); err == nil {
				return bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
			}
		}
		_, rest, _ = strings.Cut(rest, "/")
	}
	return nil
}

func readSource(root *os.Root, name string) ([]byte, error) {
	f, err := regular.OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if fi.Size() > maxSource {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, maxSource))
}
