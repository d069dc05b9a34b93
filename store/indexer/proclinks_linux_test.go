package indexer

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"symbolize/fixtures/must"
)

// TestLinksOfProc: below /proc/PID/root and cwd the files of a process with other mounts are read,
// and at /proc/PID/exe the program that runs, although it was removed.
func TestLinksOfProc(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("SKIP:", err)
	}
	copies := map[string]string{"mp/svc": filepath.Join(objectsDir, "bin/fixed"),
		"c/svc": filepath.Join(objectsDir, "bin/spawn"), "c/gone": sleep}
	for to, from := range copies {
		data := must.Read(t, from)
		must.Write(t, at(to), data)
	}
	here, there := idOf(t, at("mp/svc")), idOf(t, at("c/svc"))
	program, err := FileRow(at("c/gone"), true)
	if err != nil || os.Chmod(at("c/gone"), 0o700) != nil {
		t.Fatal(err)
	}
	pid := startMounted(t, dir, "mount --bind c mp; cd mp; mv ../c/gone ../run; exec ../run 60")
	if err := os.Remove(at("run")); err != nil {
		t.Fatal(err)
	}
	proc := "/proc/" + pid
	if err := os.Symlink(proc+"/root", at("container")); err != nil {
		t.Fatal(err)
	}
	settle()
	for _, c := range []struct {
		paths []string
		want  []string
	}{
		{[]string{at("mp/svc")}, []string{here}},
		{[]string{proc + "/root" + at("mp/svc")}, []string{there}},
		{[]string{proc + "/cwd/svc"}, []string{there}},
		{[]string{proc + "/root" + at("mp")}, []string{there}},
		{[]string{at("container") + at("mp")}, []string{there}},
		{[]string{proc + "/exe"}, []string{program.ID.Hex()}},
		{[]string{dir, proc + "/root" + dir}, []string{here, there}},
		{[]string{at("mp"), proc + "/root" + at("mp"), proc + "/exe"},
			[]string{here, there, program.ID.Hex()}},
		{[]string{proc + "/root" + at("c/../mp/./svc")}, []string{there}},
		{[]string{"/proc/self/root" + at("mp/svc"), at("mp/svc")}, []string{here}},
	} {
		m := newMemory()
		sum := m.index(t, Options{}, c.paths...)
		var got []string
		for id := range m.ids {
			got = append(got, id.Hex())
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) || len(sum.Problems) != 0 {
			t.Errorf("%v: %v, %v; want %v", c.paths, got, sum.Problems, c.want)
		}
		if again := m.again(t, Options{}, c.paths...); again.Read != 0 {
			t.Errorf("%v: %d objects read again", c.paths, again.Read)
		}
	}
	sum := newMemory().index(t, Options{}, proc+"/root/../etc")
	if len(sum.Problems) != 1 {
		t.Errorf("the parent directory of another root: %v", sum.Problems)
	}
}

// startMounted starts a shell in dir that has mounts of its own, and waits until a
// program of dir runs in its place.
func startMounted(t *testing.T, dir, script string) (pid string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Start(); err != nil {
		t.Skip("SKIP: no namespaces:", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	pid = strconv.Itoa(cmd.Process.Pid)
	for range 500 {
		if exe, _ := os.Readlink("/proc/" + pid + "/exe"); strings.HasPrefix(exe, dir) {
			return pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Skip("SKIP: no mounts")
	return ""
}
