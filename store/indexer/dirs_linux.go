package indexer

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// dirHandle is an open directory.
type dirHandle struct{ fd int }

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// openDir opens a directory for reading.
func openDir(path string) (dirHandle, error) {
	var d dirHandle
	err := retry(func() (err error) {
		d.fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	return d, err
}

// close closes the directory.
func (d dirHandle) close() { unix.Close(d.fd) }

// direntHeader is the size of struct linux_dirent64 before its name.
const direntHeader = 19

// list returns the entries, sorted by name. buf is memory to read into.
func (d dirHandle) list(buf []byte) ([]dirEntry, error) {
	var entries []dirEntry
	for {
		n := 0
		err := retry(func() (err error) {
			n, err = unix.Getdents(d.fd, buf)
			return err
		})
		if err != nil {
			return entries, err
		}
		if n <= 0 {
			break
		}
		for b := buf[:n]; len(b) >= direntHeader; {
			size := int(binary.NativeEndian.Uint16(b[16:]))
			if size < direntHeader || size > len(b) {
				return entries, errors.New("malformed directory entry")
			}
			name := b[direntHeader:size]
			if i := slices.Index(name, 0); i >= 0 {
				name = name[:i]
			}
			if s := string(name); s != "." && s != ".." {
				entries = append(entries, dirEntry{s, entryKind(b[18])})
			}
			b = b[size:]
		}
	}
	slices.SortFunc(entries, func(a, b dirEntry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

func entryKind(t byte) fileKind {
	switch t {
	case unix.DT_REG:
		return kindFile
	case unix.DT_DIR:
		return kindDir
	case unix.DT_LNK:
		return kindLink
	case unix.DT_UNKNOWN:
		return kindUnknown
	}
	return kindOther
}

// stat returns the stat of an entry, following a symbolic link if asked to.
func (d dirHandle) stat(name string, follow bool) (fileStat, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if follow {
		flags = 0
	}
	return statBy(func(st *unix.Stat_t) error { return unix.Fstatat(d.fd, name, st, flags) })
}

// self returns the stat of the directory itself.
func (d dirHandle) self() (fileStat, error) {
	return statBy(func(st *unix.Stat_t) error { return unix.Fstat(d.fd, st) })
}

// head reads the first bytes of a file into buf.
func (d dirHandle) head(name string, buf []byte) (int, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	n := 0
	err = retry(func() (err error) {
		n, err = unix.Pread(fd, buf, 0)
		return err
	})
	return max(n, 0), err
}

// statFile returns the stat of the file at a path, following links.
func statFile(path string) (fileStat, error) {
	return statBy(func(st *unix.Stat_t) error { return unix.Stat(path, st) })
}

// statBy returns the result of a system call.
func statBy(call func(*unix.Stat_t) error) (fileStat, error) {
	var st unix.Stat_t
	if err := retry(func() error { return call(&st) }); err != nil {
		return fileStat{}, err
	}
	s := fileStat{
		dev: uint64(st.Dev), ino: st.Ino, size: uint64(st.Size),
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.kind = kindFile
	case unix.S_IFDIR:
		s.kind = kindDir
	case unix.S_IFLNK:
		s.kind = kindLink
	}
	return s, nil
}

// isPseudo reports whether a directory is of a file system that has no files of its own, only the
// kernel's: a walk from above does not enter it.
func (d dirHandle) isPseudo() bool {
	var st unix.Statfs_t
	if retry(func() error { return unix.Fstatfs(d.fd, &st) }) != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.CGROUP_SUPER_MAGIC,
		unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
		unix.BPF_FS_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC:
		return true
	}
	return false
}

// getVersion is FS_IOC_GETVERSION, _IOR('v', 1, long), where longs have 64 bits. Some
// machines have other bits for the direction (MIPS, Power): they do not know it, and no
// generation.
const getVersion = 0x80087601

// generation returns the generation of a file's inode, which distinguishes two files that had
// one inode number, one after the other; 0 if the file system does not report it.
func generation(f *os.File) uint64 {
	gen, err := unix.IoctlGetUint32(int(f.Fd()), getVersion)
	if err != nil {
		return 0
	}
	return uint64(gen)
}

// isMissing reports whether an error is for an absent path.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}
