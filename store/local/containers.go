package local

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/indexer"
)

// containers returns the root directories of running processes that see other files than this
// process: /proc/PID/root of one process of each mount namespace and root directory.
func (f *Finder) containers() []string {
	if f.containerRoots != nil {
		return f.containerRoots
	}
	f.containerRoots = []string{}
	proc := cmp.Or(f.proc, "/proc")
	seen := map[string]bool{filesOf(filepath.Join(proc, "self")): true, "": true}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if key := filesOf(dir); !seen[key] {
			seen[key] = true
			f.containerRoots = append(f.containerRoots, filepath.Join(dir, "root"))
		}
	}
	return f.containerRoots
}

// filesOf identifies the files that a process sees, by its directory in /proc; "" if that is not
// known.
func filesOf(dir string) string {
	mounts, err := os.Readlink(filepath.Join(dir, "ns/mnt"))
	if err != nil {
		return ""
	}
	root, err := os.Readlink(filepath.Join(dir, "root"))
	if err != nil {
		return ""
	}
	return mounts + " " + root
}

// containerPlaces lists where an object may be in running containers.
func (f *Finder) containerPlaces(o *ingest.Object) (list []candidate) {
	if !strings.HasPrefix(o.File.Path, "/") {
		return nil
	}
	for _, root := range f.containers() {
		list = append(list, candidate{filepath.Join(root, o.File.Path), Container})
	}
	return list
}

// contained looks for an object in running containers, and there for its debug file.
func (l *look) contained(o *ingest.Object) Place {
	place := l.note(o, l.containerPlaces(o))
	if place == Nowhere {
		return Nowhere
	}
	program := l.found.programs[len(l.found.programs)-1]
	root := strings.TrimSuffix(program, filepath.Clean(o.File.Path))
	for _, p := range buildid.DebugPaths(o.ID, []string{filepath.Join(root, "usr/lib/debug")}) {
		if l.is(p, o.ID) {
			l.found.debug = append(l.found.debug, p)
		}
	}
	return place
}

// containedRow returns the row of the recorded file in running containers, by its device and inode;
// nil if none has it.
func (f *Finder) containedRow(file *ingest.FileRef) *store.PathRow {
	if file.Inode == 0 {
		return nil
	}
	for _, root := range f.containers() {
		row, err := indexer.FileRow(filepath.Join(root, file.Path), true)
		if err == nil && isRecorded(&row, file) {
			return &row
		}
	}
	return nil
}

// isRecorded reports whether the row of a file of this host is of the recorded file.
func isRecorded(row *store.PathRow, file *ingest.FileRef) bool {
	return row.Inode == file.Inode && row.Dev == buildid.Device(file.Major, file.Minor)
}

// inContainer reports whether running containers have a file at a recorded path, so that the file
// of this host need not be the one that the recorded process saw.
func (f *Finder) inContainer(file *ingest.FileRef) bool {
	if !strings.HasPrefix(file.Path, "/") {
		return false
	}
	return slices.ContainsFunc(f.containers(), func(root string) bool {
		inside, err := os.Stat(filepath.Join(root, file.Path))
		if err != nil {
			return false
		}
		here, err := os.Stat(file.Path)
		return err != nil || !os.SameFile(inside, here)
	})
}
