package batch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

func TestTaskIndex(t *testing.T) {
	for _, tt := range []struct {
		name         string
		env          map[string]string
		index, count int
		ok           bool
	}{
		{name: "none", index: 0, count: 0},
		{name: "Slurm from 1",
			env: map[string]string{"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "1",
				"SLURM_ARRAY_TASK_COUNT": "5"}, index: 2, count: 5, ok: true},
		{name: "Kubernetes", env: map[string]string{"JOB_COMPLETION_INDEX": "4"}, index: 4,
			count: 0, ok: true},
		{name: "AWS Batch", env: map[string]string{"AWS_BATCH_JOB_ARRAY_INDEX": "0",
			"AWS_BATCH_JOB_ARRAY_SIZE": "9"}, index: 0, count: 9, ok: true},
		{name: "Cloud Run",
			env:   map[string]string{"CLOUD_RUN_TASK_INDEX": "1", "CLOUD_RUN_TASK_COUNT": "2"},
			index: 1, count: 2, ok: true},
		{name: "Nomad", env: map[string]string{"NOMAD_ALLOC_INDEX": "7"}, index: 7, count: 0,
			ok: true},
		{name: "not a number", env: map[string]string{"JOB_COMPLETION_INDEX": "x"}, index: 0,
			count: 0},
	} {
		index, count, ok := TaskIndex(func(name string) string { return tt.env[name] })
		if index != tt.index || count != tt.count || ok != tt.ok {
			t.Errorf("%s: %d of %d, %t", tt.name, index, count, ok)
		}
	}
}

func TestParseShard(t *testing.T) {
	list := []string{"a", "b", "c", "d", "e"}
	var all []string
	for _, text := range []string{"0/2", "1/2"} {
		s, err := ParseShard(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Of(s, list)...)
	}
	if slices.Sort(all); !slices.Equal(all, list) {
		t.Errorf("the shares have %q", all)
	}
	for _, text := range []string{"", "1", "2/2", "-1/2", "x/2", "0/0", "1/2/3"} {
		if s, err := ParseShard(text); err == nil {
			t.Errorf("%q: %v", text, s)
		}
	}
}

// TestCaptures: files below directories are listed once, without hidden ones, and a recording that
// is a directory is one capture. A link that is named is followed.
func TestCaptures(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/1.data", "a/.hidden", ".batch/x", "b/rec/data", "b/rec/other", "2.data"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		must.Write(t, path, nil)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(dir, "a"), link); err != nil {
		t.Fatal(err)
	}
	got, err := Captures([]string{dir, filepath.Join(dir, "a"), link})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i] = strings.TrimPrefix(strings.TrimPrefix(got[i], dir+"/"), filepath.Dir(link)+"/")
	}
	if want := []string{"2.data", "a/1.data", "b/rec", "link/1.data"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := Captures([]string{filepath.Join(dir, "absent")}); err == nil {
		t.Error("a path that is not there is no error")
	}
}
