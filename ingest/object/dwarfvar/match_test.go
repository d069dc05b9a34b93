package dwarfvar

import "testing"

func TestCalled(t *testing.T) {
	for _, c := range []struct {
		qualified, linkage, name string
		want                     bool
	}{
		{"app::run", "_ZN3app3runEv", "run", true},
		{"app::run", "_ZN3app3runEv", "app::run", true},
		{"app::run", "_ZN3app3runEv", "_ZN3app3runEv", true},
		{"app::run", "_ZN3app3runEv", "un", false},
		{"app::run", "", "", false},
		{"vfs_read", "", "vfs_*", true},
		{"vfs_read", "", "*_read", true},
		{"vfs_read", "", "v*_r?ad", true},
		{"vfs_read", "", "*", true},
		{"vfs_read", "", "v*x*d", false},
		{"vfs_read", "", "vfs_rea?d", false},
		{"aab", "", "*ab", true},
		{"", "", "*", false},
	} {
		if got := Called(c.qualified, c.linkage, c.name); got != c.want {
			t.Errorf("%q, %q called %q: %v", c.qualified, c.linkage, c.name, got)
		}
		set := newNameSet([]string{"other", c.name})
		if got := set.has(c.qualified, c.linkage); got != c.want {
			t.Errorf("%q, %q in a set with %q: %v", c.qualified, c.linkage, c.name, got)
		}
	}
}

func TestSamePath(t *testing.T) {
	for _, c := range []struct {
		path, end string
		want      bool
	}{
		{"/src/dir/a.c", "a.c", true}, {"/src/dir/a.c", "dir/a.c", true}, {"/src/dir/a.c", "./dir/a.c", true},
		{"/src/dir/a.c", "/src/dir/a.c", true}, {"/src/dir/data.c", "a.c", false}, {"a.c", "a.c", true}, {"", "a.c", false},
		{"/src/dir/a.c", "b/a.c", false}, {"a.c", "src/a.c", false},
	} {
		if got := SamePath(c.path, c.end); got != c.want {
			t.Errorf("%q ends with %q: %v", c.path, c.end, got)
		}
	}
}
