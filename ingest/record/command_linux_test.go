package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestAbandonedGroups: the group of a killed recorder is removed after its processes have ended;
// groups of live recorders, and other groups, stay.
func TestAbandonedGroups(t *testing.T) {
	parent := t.TempDir()
	alive, err := makeGroup(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.file.Close()
	killed, err := makeGroup(parent)
	if err != nil {
		t.Fatal(err)
	}
	killed.file.Close()
	used, err := makeGroup(parent)
	if err != nil {
		t.Fatal(err)
	}
	used.file.Close()
	for _, dir := range []string{used.dir + "/process", parent + "/other-1"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeAbandoned(parent)
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	want := []string{alive.dir, used.dir, filepath.Join(parent, "other-1")}
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("%q, want %q", left, want)
	}
	if f, err := lockGroup(alive.dir); err == nil {
		f.Close()
		t.Error("the group of a recorder that lives can be locked")
	}
}

// TestGroupOf: the directory of a process's group in cgroup v2, by its mounts and groups.
func TestGroupOf(t *testing.T) {
	const v1 = "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	const v2 = "31 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	for _, tc := range []struct{ name, mounts, groups, want string }{
		{name: "cgroup v2", mounts: v2, groups: "0::/user.slice\n", want: "/sys/fs/cgroup/user.slice"},
		{name: "both versions", mounts: v1 + v2, groups: "4:cpu:/a\n0::/b\n", want: "/sys/fs/cgroup/b"},
		{name: "the root", mounts: v2, groups: "0::/\n", want: "/sys/fs/cgroup"},
		{name: "not mounted", mounts: v1, groups: "0::/b\n"},
		{name: "in no group", mounts: v2, groups: "4:cpu:/a\n"},
		{name: "damaged mounts", mounts: "31 23 - cgroup2 cgroup2 rw\n", groups: "0::/b\n"},
		{name: "no groups", mounts: v2},
		{name: "no mounts", groups: "0::/b\n"},
	} {
		r := newTestRoot(t)
		if tc.mounts != "" {
			r.write("proc/self/mountinfo", tc.mounts)
		}
		if tc.groups != "" {
			r.write("proc/self/cgroup", tc.groups)
		}
		got, err := groupOf(filepath.Join(r.dir, "proc/self"))
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
	}
}

// TestCommandLeavesGroup: a command that moves itself to another group is no longer sampled.
func TestCommandLeavesGroup(t *testing.T) {
	needLive(t)
	g, err := newOwnGroup()
	if err != nil {
		t.Skip(err)
	}
	defer g.close()
	other, err := newOwnGroup()
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	for _, tc := range []struct{ script, want string }{
		{"true", ""},
		{"mkdir $OWN/below; echo $$ >$OWN/below/cgroup.procs", ""},
		{"echo $$ >$OTHER/cgroup.procs", filepath.Base(other.dir)},
	} {
		c := exec.Command("sh", "-c", tc.script)
		c.Env = append(os.Environ(), "OWN="+g.dir, "OTHER="+other.dir)
		c.SysProcAttr = g.attributes()
		if err := c.Start(); err != nil {
			t.Skip(err)
		}
		left := g.leftFor(c.Process.Pid)
		if err := c.Wait(); err != nil || filepath.Base(left) != filepath.Base(tc.want) {
			t.Errorf("%s: %q, %v, want %q", tc.script, left, err, tc.want)
		}
	}
	_ = os.Remove(filepath.Join(g.dir, "below"))
}
