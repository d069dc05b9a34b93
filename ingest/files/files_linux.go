package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"symbolize/ingest/procmaps"
)

// Born returns when a file was created; zero where the file system does not have that.
func Born(f *os.File) time.Time {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}

// MappedDevice returns the device that mapping records and /proc/PID/maps have for a file, in the
// form of st_dev. stat is stat's, which differs from it in btrfs, where each subvolume has a device
// of its own, and in overlayfs; it is returned where the file cannot be mapped, or without /proc.
func MappedDevice(f *os.File, stat uint64) uint64 {
	if unix.Major(stat) != 0 { // a disk's: such file systems have no other
		return stat
	}
	page, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return stat
	}
	defer unix.Munmap(page)
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return stat
	}
	m, ok := procmaps.FileAt(text, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(page)))))
	if !ok {
		return stat
	}
	return unix.Mkdev(m.Major, m.Minor)
}

// createUnnamed creates a file without a name in the directory of a path. ok is false where the
// file system has no such files, or /proc is absent, by which they get their names.
func createUnnamed(path string, perm fs.FileMode) (f *os.File, ok bool) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC,
		uint32(perm.Perm()))
	if err != nil {
		return nil, false
	}
	if f = os.NewFile(uintptr(fd), path); unix.Access(self(f), unix.R_OK) != nil {
		f.Close()
		return nil, false
	}
	return f, true
}

// self is the path that leads to an open file.
func self(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// link gives a file without a name a name that no file has.
func link(f *os.File, path string) error {
	return unix.Linkat(unix.AT_FDCWD, self(f), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}

// FreeBytes returns the bytes that an ordinary user may still write to the file system of a path.
func FreeBytes(path string) (int64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if err == nil {
			return int64(min(st.Bavail, 1<<40)) * st.Bsize, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return 0, err
		}
	}
}

// outsideOwner returns the user ID that a user namespace shows for owners that it does not map;
// -1 outside of user namespaces. In one even the root directory may have such an owner.
func outsideOwner() int64 {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil ||
		strings.Join(strings.Fields(string(text)), " ") == "0 0 4294967295" {
		return -1
	}
	text, err = os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return -1
	}
	uid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return -1
	}
	return int64(uid)
}

// SyncSystem syncs the whole file system of a directory to disk. done is false where that cannot be
// done by one call.
func SyncSystem(dir string) (done bool, err error) {
	f, err := OpenDir(dir)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Syncfs(int(f.Fd()))
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return false, nil
	}
	return err == nil, err
}

// ForgetMapped takes the pages of mapped files in a directory out of this process's memory: they stay
// in the system's cache, and come back when they are read. It does nothing where that is not known.
func ForgetMapped(dir string) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		at := strings.IndexByte(line, '/')
		if at < 0 || filepath.Dir(strings.TrimSuffix(line[at:], "\n")) != dir {
			continue
		}
		from, rest, _ := strings.Cut(line, "-")
		to, _, _ := strings.Cut(rest, " ")
		start, err := strconv.ParseUint(from, 16, 64)
		end, endErr := strconv.ParseUint(to, 16, 64)
		if err == nil && endErr == nil {
			unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
		}
	}
}
