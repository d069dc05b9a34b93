//go:build linux

package db

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"symbolize/fixtures/tracerun"
)

// inode names a file or directory of the traced store for its whole life: numbers are used
// again, so the time of birth is part of the name.
type inode struct {
	dev, ino uint64
	born     int64
}

// pageSize is the unit in which a power failure loses unsynced data.
const pageSize = 4096

// content is a file's content. Pages of zeros are left out.
type content struct {
	size  int64
	pages map[int64][]byte
}

// listing is the directories of a store with their entries.
type listing map[inode]map[string]inode

// disk is the known state of the traced store: the content now is in the file system; the part
// surely on disk was synced.
type disk struct {
	root     string
	top      inode
	isDir    map[inode]bool
	paths    map[inode]string // newest path
	listings []listing        // after each change of a directory
	synced   map[inode]int    // directories: index of the listing that was synced
	durable  map[inode]content
}

func newDisk(root string) (*disk, error) {
	d := &disk{root: root, isDir: make(map[inode]bool), paths: make(map[inode]string),
		synced: make(map[inode]int), durable: make(map[inode]content)}
	if err := d.list(); err != nil {
		return nil, err
	}
	// Earlier data is on disk.
	for id, path := range d.paths {
		if d.isDir[id] {
			continue
		}
		c, err := readContent(path)
		if err != nil {
			return nil, err
		}
		d.durable[id] = c
	}
	for dir := range d.listings[0] {
		d.synced[dir] = 0
	}
	return d, nil
}

func inodeOf(path string) (id inode, dir bool, err error) {
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW,
		unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	id = inode{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino,
		st.Btime.Sec*1e9 + int64(st.Btime.Nsec)}
	return id, st.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

// list notes the directories as they are, if they have changed.
func (d *disk) list() error {
	l := make(listing)
	var walk func(path string, id inode) error
	walk = func(path string, id inode) error {
		l[id] = make(map[string]inode)
		entries, err := os.ReadDir(path)
		if err != nil {
			return skipMissing(err)
		}
		for _, e := range entries {
			at := filepath.Join(path, e.Name())
			child, dir, err := inodeOf(at)
			if err != nil {
				if skipMissing(err) == nil {
					continue
				}
				return err
			}
			l[id][e.Name()], d.isDir[child], d.paths[child] = child, dir, at
			if dir {
				if err := walk(at, child); err != nil {
					return err
				}
			}
		}
		return nil
	}
	id, _, err := inodeOf(d.root)
	if err != nil {
		return err
	}
	d.top, d.isDir[id], d.paths[id] = id, true, d.root
	if err := walk(d.root, id); err != nil {
		return err
	}
	if n := len(d.listings); n == 0 || !sameListing(d.listings[n-1], l) {
		d.listings = append(d.listings, l)
	}
	return nil
}

func sameListing(a, b listing) bool {
	if len(a) != len(b) {
		return false
	}
	for dir, entries := range a {
		other, ok := b[dir]
		if !ok || len(other) != len(entries) {
			return false
		}
		for name, id := range entries {
			if other[name] != id {
				return false
			}
		}
	}
	return true
}

// readContent reads a file without its holes.
func readContent(path string) (content, error) {
	c := content{pages: make(map[int64][]byte)}
	f, err := os.Open(path)
	if err != nil {
		return c, skipMissing(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	c.size = info.Size()
	zero := make([]byte, pageSize)
	for at := int64(0); at < c.size; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err != nil {
			return c, nil // a hole up to the end
		}
		if at, err = unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE); err != nil {
			return c, err
		}
		for page := data / pageSize; page*pageSize < at; page++ {
			b := make([]byte, pageSize)
			n, err := f.ReadAt(b, page*pageSize)
			if err != nil && err != io.EOF {
				return c, err
			}
			if n > 0 && string(b) != string(zero) {
				c.pages[page] = b
			}
		}
	}
	return c, nil
}

// tracee is a writer that runs under ptrace.
type tracee struct {
	disk    *disk
	cmd     *exec.Cmd
	pending map[int]func() // by thread: the effect of its call when it has succeeded
	stops   int            // ends of calls that change the store
	atStop  func(stop int) error
}

// traced runs a command under ptrace and calls atStop after each system call that changes a
// store. The command is killed if atStop fails.
func traced(cmd *exec.Cmd, d *disk, atStop func(stop int) error) (*tracee, error) {
	t := &tracee{disk: d, cmd: cmd, atStop: atStop, pending: make(map[int]func())}
	return t, tracerun.Run(cmd, t.syscall)
}

// syscall looks at the begin or the end of a system call.
func (t *tracee) syscall(c *tracerun.Call) error {
	if c.Begins {
		delete(t.pending, c.Thread)
		return t.enter(c)
	}
	if done := t.pending[c.Thread]; done != nil && !c.Failed {
		done()
	}
	delete(t.pending, c.Thread)
	if !c.Changes() {
		return nil
	}
	if err := t.disk.list(); err != nil {
		return err
	}
	t.stops++
	return t.atStop(t.stops)
}

// enter notes the data that a sync will have put on disk once it has returned: all data when it
// began.
func (t *tracee) enter(c *tracerun.Call) error {
	var paths []string
	switch c.Number {
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.cmd.Process.Pid, c.First))
		if err != nil {
			return nil
		}
		paths = append(paths, path)
	case unix.SYS_MSYNC:
		paths = t.mapped(c.First, c.First+c.Then)
	case unix.SYS_SYNCFS:
		return t.enterAll(c)
	}
	for _, path := range paths {
		if path != t.disk.root && !strings.HasPrefix(path, t.disk.root+"/") {
			continue
		}
		id, dir, err := inodeOf(path)
		if err != nil {
			continue // removed: there is nothing to keep
		}
		if dir {
			if err := t.disk.list(); err != nil {
				return err
			}
			at := len(t.disk.listings) - 1
			t.pending[c.Thread] = func() { t.disk.synced[id] = at }
			continue
		}
		now, err := readContent(path)
		if err != nil {
			return err
		}
		t.pending[c.Thread] = func() { t.disk.durable[id] = now }
	}
	return nil
}

// enterAll is enter for a call that syncs the whole file system.
func (t *tracee) enterAll(c *tracerun.Call) error {
	if err := t.disk.list(); err != nil {
		return err
	}
	at := len(t.disk.listings) - 1
	now := make(map[inode]content)
	for _, entries := range t.disk.listings[at] {
		for _, id := range entries {
			if t.disk.isDir[id] {
				continue
			}
			data, err := readContent(t.disk.paths[id])
			if err != nil {
				return err
			}
			now[id] = data
		}
	}
	t.pending[c.Thread] = func() {
		for dir := range t.disk.listings[at] {
			t.disk.synced[dir] = at
		}
		maps.Copy(t.disk.durable, now)
	}
	return nil
}

// mapped returns the files that are mapped in a range of the tracee's memory.
func (t *tracee) mapped(start, end uint64) (paths []string) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", t.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		lo, hi, _ := strings.Cut(fields[0], "-")
		from, _ := strconv.ParseUint(lo, 16, 64)
		to, _ := strconv.ParseUint(hi, 16, 64)
		if from < end && start < to && len(fields) > 5 {
			paths = append(paths, strings.Join(fields[5:], " "))
		}
	}
	return paths
}
