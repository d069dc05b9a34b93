package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// openNoFollow is openBeneath for systems without openat2: it checks that no directory of the name
// is a link, then opens the last part without following links.
func openNoFollow(dir, name string, flag int, perm fs.FileMode) (*os.File, error) {
	path := filepath.Join(dir, name)
	parts := strings.Split(filepath.ToSlash(name), "/")
	for i := range parts {
		at := filepath.Join(dir, filepath.Join(parts[:i+1]...))
		if parts[i] == ".." || filepath.IsAbs(name) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EXDEV}
		}
		if i == len(parts)-1 {
			break
		}
		info, err := os.Lstat(at)
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, &fs.PathError{Op: "open", Path: at, Err: syscall.ELOOP}
		}
	}
	return os.OpenFile(path, flag|openNoLink, perm)
}
