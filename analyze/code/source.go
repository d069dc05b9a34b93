package code

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"symbolize/ingest/files"
)

// maxSource bounds a source file that is read, in bytes.
const maxSource = 32 << 20

// sourceDirs are the directories of --source-dir.
type sourceDirs struct {
	dirs  []string
	roots []*os.Root // of dirs; nil if it cannot be opened, or was not tried
	tried bool
	// recorded: files at their recorded paths are used, too.
	recorded bool
	files    map[sourceKey][][]byte // their lines; nil if there is no such file
	newer    []newerSource
}

// sourceKey is a source file of an object: by its recorded path, and the path of the object.
type sourceKey struct{ file, object string }

func newSourceDirs(dirs []string, recorded bool) *sourceDirs {
	return &sourceDirs{dirs: dirs, recorded: recorded, files: make(map[sourceKey][][]byte)}
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

// line returns the text of a line of the source of an object, "" if it cannot be had, and how many
// lines its file has. built is when the object was written, zero if that is not known.
func (s *sourceDirs) line(file string, line uint32, object string, built time.Time) (
	text string, of int) {
	if len(s.dirs) == 0 && !s.recorded || file == "" || line == 0 {
		return "", 0
	}
	key := sourceKey{file, object}
	lines, ok := s.files[key]
	if !ok {
		lines = s.read(file)
		if lines == nil && s.recorded {
			lines = s.recordedSource(file, object, built)
		}
		s.files[key] = lines
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
				return splitLines(data)
			}
		}
		_, rest, _ = strings.Cut(rest, "/")
	}
	return nil
}

func readSource(root *os.Root, name string) ([]byte, error) {
	f, err := files.OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

// readAll reads a source file of bounded size.
func readAll(f *os.File) ([]byte, error) {
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if fi.Size() > maxSource {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, maxSource))
}

func splitLines(data []byte) [][]byte {
	return bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
}
