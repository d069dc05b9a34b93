package files

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/fixtures/must"
)

// TestMappedDevice has a file of overlayfs with two other file systems: stat has a device for the
// lower one's files that their mappings do not have. Mappings of files elsewhere have stat's.
func TestMappedDevice(t *testing.T) {
	devices := func(path string) (stat, mapped uint64) {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		return st.Dev, MappedDevice(f, st.Dev)
	}
	dir := t.TempDir()
	write := func(path string) string {
		t.Helper()
		must.Write(t, path, []byte("x"))
		return path
	}
	if stat, mapped := devices(write(filepath.Join(dir, "file"))); stat != mapped && unix.Major(stat) != 0 {
		t.Errorf("a disk's file: %#x mapped, %#x by stat", mapped, stat)
	}
	mount := func(kind, name, options string) string {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("none", at, kind, 0, options); err != nil {
			t.Skipf("SKIPPED: mount %s: %v", kind, err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		return at
	}
	low, up := mount("tmpfs", "low", ""), mount("tmpfs", "up", "")
	if stat, mapped := devices(write(filepath.Join(low, "file"))); stat != mapped {
		t.Errorf("tmpfs: %#x mapped, %#x by stat", mapped, stat)
	}
	for _, name := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(up, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	over := mount("overlay", "over", "lowerdir="+low+",upperdir="+up+"/upper,workdir="+up+"/work")
	if stat, mapped := devices(filepath.Join(over, "file")); stat == mapped {
		t.Errorf("overlayfs: mapped %#x, as stat says", mapped)
	}
}
