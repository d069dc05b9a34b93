package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// CheckTrust refuses a store that another user could replace, or with files that another user could
// replace, while it is written. Each directory of its path must belong to the caller or to root.
// Other users must not be able to write in root's directories, unless the sticky bit (as of /tmp)
// keeps them from replacing the next part of the path. The caller may share their own directories
// with anyone. Missing directories are no error.
func CheckTrust(path string) error {
	w := trustWalk{path: path, uid: uint32(os.Geteuid()), outside: outsideOwner()}
	return w.check()
}

// trustWalk follows the path of a store, one part at a time.
type trustWalk struct {
	path    string // of the store, for messages
	uid     uint32
	outside int64 // user ID of owners that the user namespace does not map, or -1
}

func (w *trustWalk) check() error {
	abs, err := filepath.Abs(w.path)
	if err != nil {
		return err
	}
	return w.walk(strings.Split(abs, string(filepath.Separator)))
}

func (w *trustWalk) walk(parts []string) error {
	dir, links := string(filepath.Separator), 0
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	for len(parts) > 0 {
		if err := w.parent(dir, info); err != nil {
			return err
		}
		name := parts[0]
		parts = parts[1:]
		at := filepath.Join(dir, name) // also of ".." and "": dir has no links
		next, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.owner(at, next); err != nil {
			return err
		}
		if next.Mode()&fs.ModeSymlink == 0 {
			dir, info = at, next
			continue
		}
		target, err := os.Readlink(at)
		if links++; err == nil && links > maxLinks {
			err = &fs.PathError{Op: "open", Path: at, Err: syscall.ELOOP}
		}
		if err != nil {
			return err
		}
		if filepath.IsAbs(target) {
			dir = string(filepath.Separator)
			if info, err = os.Lstat(dir); err != nil {
				return err
			}
		}
		parts = append(strings.Split(target, string(filepath.Separator)), parts...)
	}
	return w.alone(dir, info)
}

// owner refuses paths that belong neither to the caller nor to root: the owner can change them, or
// redirect them.
func (w *trustWalk) owner(at string, info fs.FileInfo) error {
	uid, ok := OwnerOf(info)
	if !ok || uid == w.uid || uid == 0 || int64(uid) == w.outside {
		return nil
	}
	return w.refuse(at, fmt.Sprintf("belongs to user %d, not to you (user %d)", uid, w.uid))
}

// parent refuses a directory in which other users may replace the next part of the path. With the
// sticky bit they cannot: owner checks the owner of that part.
func (w *trustWalk) parent(at string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	return w.alone(at, info)
}

// alone refuses a directory in which others may write, unless the caller owns it.
func (w *trustWalk) alone(at string, info fs.FileInfo) error {
	uid, ok := OwnerOf(info)
	if !ok || uid == w.uid || info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return w.refuse(at, fmt.Sprintf("belongs to user %d and others may write in it (%s)", uid,
		info.Mode()))
}

func (w *trustWalk) refuse(at, why string) error {
	if filepath.Clean(w.path) == at {
		return refused("%s %s", at, why)
	}
	return refused("%s: %s %s", w.path, at, why)
}
