package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Real returns the absolute path of a file without symbolic links, as filepath.EvalSymlinks does,
// except for links of /proc that lead elsewhere than their text reads: /proc/PID/root and cwd of a
// process with other mounts, /proc/PID/exe of a deleted program. Such a link remains a part of the
// path, so that the file at the result is the file that path opens.
func Real(path string) (string, error) {
	dir := string(filepath.Separator)
	if !filepath.IsAbs(path) {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return "", err
		}
	}
	parts, links, kept := strings.Split(path, "/"), 0, false // kept: dir is a link of /proc
	for len(parts) > 0 {
		name := parts[0]
		parts = parts[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && kept:
			return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("\"..\" follows " + dir)}
		case name == "..":
			dir = filepath.Dir(dir)
			continue
		}
		at := filepath.Join(dir, name)
		fi, err := os.Lstat(at)
		if err != nil {
			return "", asOpen(path, err)
		}
		if kept = false; fi.Mode()&fs.ModeSymlink == 0 {
			dir = at
			continue
		}
		text, err := os.Readlink(at)
		if links++; err == nil && links > maxLinks {
			err = syscall.ELOOP
		}
		if err == nil {
			kept, err = leadsElsewhere(at, text)
		}
		switch {
		case err != nil:
			return "", asOpen(path, &fs.PathError{Op: "open", Path: path, Err: err})
		case kept:
			dir = at
			continue
		case filepath.IsAbs(text):
			dir = string(filepath.Separator)
		}
		parts = append(strings.Split(text, "/"), parts...)
	}
	return dir, nil
}

// leadsElsewhere reports whether the kernel opens another file through a link than the file that the
// link's text names. Only links of /proc do that. A directory has the same inode in each mount
// namespace although other file systems are mounted below it: its mount is compared, too.
func leadsElsewhere(link, text string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(link), &st); err != nil || st.Type != unix.PROC_SUPER_MAGIC {
		return false, err
	}
	opened, err := placeOf(link)
	if err != nil {
		return false, err
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(link), text)
	}
	named, err := placeOf(text)
	return err != nil || named != opened || opened.mount == 0, nil
}

// place identifies a file and the mount through which it is reached; 0 if the kernel does not tell.
type place struct{ dev, ino, mount uint64 }

// placeOf returns the place of the file that a path opens.
func placeOf(path string) (place, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_MNT_ID, &st)
	if err != nil {
		return place{}, err
	}
	p := place{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		p.mount = st.Mnt_id
	}
	return p, nil
}
