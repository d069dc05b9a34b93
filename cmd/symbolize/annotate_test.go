package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/analyze/report"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
)

func TestParsePattern(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no []string
	}{
		{"main", []string{"main"}, []string{"main.main", "domain", ""}},
		{"bpf_prog_.*", []string{"bpf_prog_0102_x", "bpf_prog_"}, []string{"xbpf_prog_1"}},
		{"sum_*", []string{"sum_", "sum_window", "sum_a/b"}, []string{"a_sum_"}},
		{"a|b", []string{"a", "b", "a|b"}, []string{"ab", "ax", "xb"}},
		{"encoding/json.*", []string{"encoding/json.Marshal"}, []string{"json.Marshal"}},
		{"operator*", []string{"operator new", "operator["}, []string{"an operator"}},
		{"std::vector<(int|char)>::.*", []string{"std::vector<int>::push_back"}, nil},
	} {
		p, err := parsePattern(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for _, name := range tt.yes {
			if !p.name(name) {
				t.Errorf("%s does not match %s", tt.pattern, name)
			}
		}
		for _, name := range tt.no {
			if p.name(name) {
				t.Errorf("%s matches %s", tt.pattern, name)
			}
		}
	}
	for _, text := range []string{"id:", "id:-1", "id:4294967296", "tag:", "tag:12", "tag:zz",
		"tag:01020304050607080", "f["} {
		if _, err := parsePattern(text); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func TestPatternProgram(t *testing.T) {
	prog := &bpf.Program{ID: 7, Tag: bpf.Tag{1}, Funcs: []bpf.Func{{Tag: bpf.Tag{2}},
		{Tag: bpf.Tag{3}}}}
	for text, want := range map[string][2]bool{
		"id:7": {true, true}, "id:8": {}, "7": {true, true}, "8": {}, "07x": {},
		"tag:0100000000000000": {true, true}, "0100000000000000": {true, true},
		"0300000000000000": {false, true}, "01000000000000000": {},
		"tag:0300000000000000": {false, true}, "TAG": {}, "tag:0A00000000000000": {},
	} {
		p, err := parsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{p.program(prog, 0), p.program(prog, 1)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestCaptureArgs: the first argument is a capture, and so are those behind it that are
// files, up to the first that is none.
func TestCaptureArgs(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.data", "b.data"} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("main", 0o777); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{"": 0, "x": 1, "x a.data": 2, "a.data b.data main": 2,
		"a.data main b.data": 1, "a.data": 1} {
		if got := captureArgs(strings.Fields(args)); got != want {
			t.Errorf("%q: %d captures, want %d", args, got, want)
		}
	}
}

// TestInlined: a pattern that means an inlined function leads to the one with its code.
func TestInlined(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	place := profilebuild.Place{Object: b.Object(ingest.Object{})}
	b.Name(place, 0, profilebuild.Frame{Name: "_ZN1a4leafEv", Inlined: true},
		profilebuild.Frame{Name: "middle", Inlined: true}, profilebuild.Frame{Name: "outer"})
	b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
		Stack: []profilebuild.Place{place}})
	for text, want := range map[string][2]string{"middle": {"middle", "outer"},
		"a::leaf": {"_ZN1a4leafEv", "outer"}, "outer": {}, "other": {}} {
		p, err := parsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		o := &annotateOptions{patterns: []functionPattern{p}}
		inner, outer := o.inlined(b.Profile(), report.NewDemangler(report.Simple))
		if got := [2]string{inner, outer}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestSourceDirs: recorded paths are looked up whole, then by their ends, and never lead
// out of the directories.
func TestSourceDirs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret.c": "secret\n", "src/srv/app/a.c": "whole\ntwo", "src/a.c": "end\n",
		"src/lib/b.c": "b\n", "more/c.c": "c\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.c", filepath.Join(dir, "src", "link.c")); err != nil {
		t.Fatal(err)
	}
	s := newSourceDirs([]string{filepath.Join(dir, "none"), filepath.Join(dir, "src"),
		filepath.Join(dir, "more")})
	defer s.Close()
	for _, tt := range []struct {
		file string
		line uint32
		want string
	}{
		{"/srv/app/a.c", 1, "whole"}, {"/srv/app/a.c", 2, "two"}, {"/srv/app/a.c", 3, ""},
		{"/other/a.c", 1, "end"}, {"/x/lib/b.c", 1, "b"}, {"lib/b.c", 1, "b"}, {"c.c", 1, "c"},
		{"/srv/app/a.c", 0, ""}, {"", 1, ""}, {"/none.c", 1, ""}, {"/", 1, ""},
		{"../secret.c", 1, ""}, {"/../../secret.c", 1, ""}, {"/x/link.c", 1, ""}, {"lib", 1, ""},
	} {
		if got := s.line(tt.file, tt.line); got != tt.want {
			t.Errorf("%s:%d is %q, want %q", tt.file, tt.line, got, tt.want)
		}
	}
	if got := newSourceDirs(nil).line("/etc/passwd", 1); got != "" {
		t.Errorf("without --source-dir: %q", got)
	}
}
