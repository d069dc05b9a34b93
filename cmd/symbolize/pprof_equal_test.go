package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/analyze/calls"
	"symbolize/fixtures/pprofrun"
)

// TestEqualToPprof: top of three recorded captures, by function and line and under filters, has
// the rows of `pprof -top` on the file that resolve writes of them.
func TestEqualToPprof(t *testing.T) {
	const fixtures = "../../fixtures"
	store := t.TempDir()
	run := func(args ...string) []byte {
		env, stdout, stderr := inProcess(append([]string{"-q", "--store", store}, args...)...)
		if code := Main(t.Context(), env); code != exitOK {
			t.Fatalf("%v: status %d: %s", args, code, stderr)
		}
		return stdout.Bytes()
	}
	run("index", filepath.Join(fixtures, "objects"))
	compared := 0
	for _, capture := range []string{"mixed.data", "bpf.data", "events.data"} {
		file := filepath.Join(t.TempDir(), "x.pb.gz")
		run("resolve", "-o", file, filepath.Join(fixtures, "captures", capture))
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		prof, err := profile.Parse(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range [][]string{
			{"--by=line"},
			{"--by=line", "--focus=main|entry"},
			{"--by=line", "--ignore=collatz"},
			{"--by=line", "--hide=fixed|kernel"},
			{"--by=line", "--show-from=^main$"},
			// Without unresolved frames, which top adds up by object.
			{"--by=function", `--hide=\+0x[0-9a-f]+\]$`},
			{"--by=function", `--hide=\+0x[0-9a-f]+\]$`, "--focus=c"},
			{"--by=function", "--show=main|collatz|bpf_prog"},
		} {
			var top calls.Top
			err := json.Unmarshal(run(append([]string{"top", "-n", "0", "--format=json", file},
				tt...)...), &top)
			if err != nil {
				t.Fatal(err)
			}
			compared += comparePprof(t, capture, tt, prof, &top)
		}
	}
	if compared < 200 {
		t.Errorf("only %d rows were compared", compared)
	}
}

// comparePprof compares a table with pprof's. Functions of one name in several objects are one
// row of pprof: their flat values are summed up, and their cumulative ones not compared.
func comparePprof(t *testing.T, capture string, flags []string, prof *profile.Profile,
	top *calls.Top) (compared int) {
	t.Helper()
	args := []string{"-functions", "-sample_index=" + prof.DefaultSampleType}
	for _, f := range flags {
		if by, ok := strings.CutPrefix(f, "--by="); ok {
			args[0] = "-" + by + "s"
			continue
		}
		args = append(args, strings.ReplaceAll(f[1:], "-from", "_from"))
	}
	type sums struct {
		ours, theirs [2]int64
		rows         int
	}
	names := make(map[string]*sums)
	of := func(name string) *sums {
		if names[name] == nil {
			names[name] = &sums{}
		}
		return names[name]
	}
	for i := range top.Rows {
		s := of(top.Rows[i].Name)
		s.rows++
		s.ours[0] += int64(top.Rows[i].Flat)
		s.ours[1] += int64(top.Rows[i].Cum)
	}
	for _, r := range pprofrun.Top(t, []*profile.Profile{prof}, args...) {
		s := of(r.Name)
		s.theirs[0] += r.Flat
		s.theirs[1] += r.Cum
	}
	for name, s := range names {
		if s.ours[0] != s.theirs[0] || s.rows == 1 && s.ours[1] != s.theirs[1] {
			t.Errorf("%s %v: %s has %v in %d rows, pprof has %v", capture, flags, name, s.ours,
				s.rows, s.theirs)
		}
	}
	return len(names)
}
