package code

import (
	"testing"

	"symbolize/ingest/format/bpf"
)

func TestParsePattern(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no []string
	}{
		{pattern: "main", yes: []string{"main"}, no: []string{"main.main", "domain", ""}},
		{pattern: "bpf_prog_.*", yes: []string{"bpf_prog_0102_x", "bpf_prog_"},
			no: []string{"xbpf_prog_1"}},
		{pattern: "sum_*", yes: []string{"sum_", "sum_window", "sum_a/b"}, no: []string{"a_sum_"}},
		{pattern: "a|b", yes: []string{"a", "b", "a|b"}, no: []string{"ab", "ax", "xb"}},
		{pattern: "encoding/json.*", yes: []string{"encoding/json.Marshal"},
			no: []string{"json.Marshal"}},
		{pattern: "operator*", yes: []string{"operator new", "operator["},
			no: []string{"an operator"}},
		{pattern: "std::vector<(int|char)>::.*", yes: []string{"std::vector<int>::push_back"}},
	} {
		p, err := ParsePattern(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for _, name := range tt.yes {
			if !p.Name(name) {
				t.Errorf("%s does not match %s", tt.pattern, name)
			}
		}
		for _, name := range tt.no {
			if p.Name(name) {
				t.Errorf("%s matches %s", tt.pattern, name)
			}
		}
	}
	for _, text := range []string{"id:", "id:-1", "id:4294967296", "tag:", "tag:12", "tag:zz",
		"tag:01020304050607080", "f["} {
		if _, err := ParsePattern(text); err == nil {
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
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{p.program(prog, 0), p.program(prog, 1)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
