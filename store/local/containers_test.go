//go:build unix

package local

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/store"
)

// TestContainers: objects are found in running processes that see other files than this one, by build
// ID, and files without one by device and inode.
func TestContainers(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		must.Write(t, path, b)
		return path
	}
	link := func(name, to string) {
		t.Helper()
		path := filepath.Join(dir, "proc", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	id := func(b byte) buildid.ID { return buildid.New(bytes.Repeat([]byte{b}, 20)) }
	program := func(b byte) []byte {
		return elfbuild.Lib(id(b).Bytes(), 0x100, elfbuild.Func{Name: "f", Size: 0x100}).Bytes()
	}
	for process, mounts := range map[string]string{"self": "mnt:[1]", "7": "mnt:[1]", "8": "mnt:[2]", "9": "mnt:[2]", "12": "mnt:[3]"} {
		link(process+"/ns/mnt", mounts)
	}
	for process, root := range map[string]string{"self": "", "7": "", "8": "c", "9": "c", "12": "d"} {
		link(process+"/root", filepath.Join(dir, root))
	}
	write("proc/version", nil)
	path := write("bin/svc", program(1))
	path = strings.TrimPrefix(path, dir)
	contained := write("c"+path, program(2))
	write("c/usr/lib/debug/.build-id/02/"+strings.Repeat("02", 19)+".debug", program(2))
	write("d"+path, elfbuild.Lib(nil, 0x200).Bytes())
	find := func(o ingest.Object, here bool) (*Finder, *store.Overlay) {
		f := New(store.NewOverlay(), Options{Host: true, FindOnly: true, DebugRoots: []string{}})
		f.proc = filepath.Join(dir, "proc")
		rows := store.NewOverlay()
		f.Find([]ingest.Object{o}, rows, here)
		return f, rows
	}
	for _, tc := range []struct {
		name string
		id   byte
		path string
		here bool
		want string
	}{
		{name: "in a container", id: 2, path: path, here: true, want: "running containers: 8/root" + path +
			" 8/root/usr/lib/debug/.build-id/02/" + strings.Repeat("02", 19) + ".debug"},
		{name: "of another host", id: 2, path: path, want: "not found: "},
		{name: "of an ended container", id: 3, path: path, here: true, want: "not found: "},
	} {
		f, _ := find(ingest.Object{ID: id(tc.id), File: ingest.FileRef{Path: tc.path}}, tc.here)
		paths, _ := f.Found()
		for i, p := range paths {
			paths[i] = strings.TrimPrefix(p, f.proc+"/")
		}
		if got := f.Objects()[0].Place.String() + ": " + strings.Join(paths, " "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		if rows, _, err := f.Rows().Dir(filepath.Dir(tc.path)); err != nil || len(rows) > 0 {
			t.Errorf("%s: the file of this host is said to be the one that ran: %v, %v", tc.name, rows, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(contained, &st); err != nil {
		t.Fatal(err)
	}
	f, _ := find(ingest.Object{}, true)
	for inode, want := range map[uint64]bool{uint64(st.Ino): true, uint64(st.Ino) + 1<<40: false} {
		file := ingest.FileRef{Path: path, Major: unix.Major(uint64(st.Dev)), Minor: unix.Minor(uint64(st.Dev)), Inode: inode}
		f.AddRow(&file, true)
		rows, _, err := f.Rows().Dir(filepath.Dir(path))
		if row := rows.Find(filepath.Base(path)); err != nil || (row != nil && row.ID.Matches(id(2))) != want {
			t.Errorf("inode %d: row %+v, %v", inode, row, err)
		}
		f, _ = find(ingest.Object{}, true)
	}
}
