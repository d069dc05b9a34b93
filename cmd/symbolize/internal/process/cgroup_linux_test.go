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
		{name: "none", want: math.MaxInt64},
		{name: "version 2", self: "0::/a/b\n", files: map[string]string{"a/b/memory.max": "max\n",
			"a/memory.max": "1048576\n"}, want: 1 << 20},
		{name: "version 1", self: "4:memory:/a\n3:cpu:/b\n0::/\n", files: map[string]string{
			"memory/a/memory.limit_in_bytes": "2097152\n",
			"memory/memory.limit_in_bytes":   "9223372036854771712\n"}, want: 2 << 20},
		{name: "no limit", self: "0::/a\n", files: map[string]string{"a/memory.max": "max\n"},
			want: math.MaxInt64},
		{name: "a path that leads up", self: "0::/../../a\n",
			files: map[string]string{"a/memory.max": "5\n"}, want: 5},
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
