package process

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestCgroupMemory(t *testing.T) {
	for _, tc := range []struct {
		name, self string
		files      map[string]string
		want       int64
	}{
		{"none", "", nil, math.MaxInt64},
		{"version 2", "0::/a/b\n", map[string]string{"a/b/memory.max": "max\n",
			"a/memory.max": "1048576\n"}, 1 << 20},
		{"version 1", "4:memory:/a\n3:cpu:/b\n0::/\n", map[string]string{
			"memory/a/memory.limit_in_bytes": "2097152\n",
			"memory/memory.limit_in_bytes":   "9223372036854771712\n"}, 2 << 20},
		{"no limit", "0::/a\n", map[string]string{"a/memory.max": "max\n"}, math.MaxInt64},
		{"a path that leads up", "0::/../../a\n", map[string]string{"a/memory.max": "5\n"}, 5},
	} {
		proc, sys := t.TempDir(), t.TempDir()
		put := func(path, text string) {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
				os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		put(filepath.Join(proc, "self", "cgroup"), tc.self)
		for name, text := range tc.files {
			put(filepath.Join(sys, "fs", "cgroup", name), text)
		}
		if got := cgroupMemory(proc, sys); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}
