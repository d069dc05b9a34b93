package code

import (
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/annotate"
	"symbolize/analyze/demangle"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
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
		{pattern: "std::map::operator[]", yes: []string{"std::map::operator[]"},
			no: []string{"operator[]", "std::map::operator"}},
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
		"tag:01020304050607080"} {
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

// TestChooser: whole names come before ends of names, these before parts of names, of which only the
// hottest function is chosen. A function is chosen with all places where it was inlined.
func TestChooser(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	object := b.Object(ingest.Object{})
	sample := func(offset addr.Offset, count uint64, names ...string) {
		place := profilebuild.Place{Object: object, Offset: offset}
		var frames []profilebuild.Frame
		for i, n := range names {
			frames = append(frames, profilebuild.Frame{Name: n, Inlined: i < len(names)-1})
		}
		b.Name(place, 0, frames...)
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: count, Weight: count,
			Stack: []profilebuild.Place{place}})
	}
	sample(1, 5, "_ZN1a4leafEv", "middle", "outer")
	sample(2, 6, "_ZN1a4leafEv", "other")
	sample(3, 8, "overleaf")
	sample(4, 1, "middle")
	p := b.Profile()
	for _, tt := range []struct {
		pattern, want, others string
		names                 int
	}{
		{pattern: "outer", want: "outer"},
		{pattern: "o.*", want: "other outer overleaf"},
		{pattern: "middle", want: "middle in outer, middle"},
		{pattern: "a::leaf", want: "_ZN1a4leafEv in other, _ZN1a4leafEv in outer"},
		{pattern: "leaf", want: "_ZN1a4leafEv in other, _ZN1a4leafEv in outer"},
		{pattern: "eaf", want: "_ZN1a4leafEv in other, _ZN1a4leafEv in outer", others: "overleaf",
			names: 1},
		{pattern: "verl|midd", want: "overleaf", others: "middle", names: 1},
		{pattern: "verl|midd", want: "overleaf, middle in outer, middle", names: 0},
		{pattern: "(", want: ""},
	} {
		pattern, err := ParsePattern(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		c := (&Finder{}).Chooser(p, []Pattern{pattern}, demangle.New(demangle.Simple))
		c.Names = tt.names
		list, _, _ := annotate.HotFunctions(p, &annotate.Options{Choose: c.Choose})
		var got []string
		for i := range list {
			text := list[i].Name()
			if list[i].Inlined != "" {
				text += " in " + list[i].SystemName
			}
			got = append(got, text)
		}
		text := strings.Join(got, ", ")
		if strings.Contains(tt.pattern, ".*") { // in any order
			slices.Sort(got)
			text = strings.Join(got, " ")
		}
		if others := strings.Join(c.Others, ", "); text != tt.want || others != tt.others {
			t.Errorf("%s: %q and %q, want %q and %q", tt.pattern, text, others, tt.want, tt.others)
		}
	}
}
