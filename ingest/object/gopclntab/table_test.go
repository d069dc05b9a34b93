package gopclntab

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// sample has the functions of a typical program: one with nested calls and code in pieces, plain
// ones, one without a table of lines, one of a generic type.
func sample() []fn {
	return []fn{
		{name: "main.main", start: 10, size: 0x40, pad: 0x10, code: []code{
			{size: 0x08, file: "main.go", line: 11, call: 0},
			{size: 0x04, file: "a.go", line: 20, call: 1},
			{size: 0x04, file: "b.go", line: 30, call: 2},
			{size: 0x04, file: "a.go", line: 21, call: 1},
			{size: 0x0c, file: "main.go", line: 12, call: 0},
			{size: 0x04, file: "c.go", line: 40, call: 3},
			{size: 0x08, file: "main.go", line: 13, call: 0},
			{size: 0x08, file: "b.go", line: 31, call: 2},
			{size: 0x0c, file: "main.go", line: 14, call: 0},
		}, calls: []inlinedCall{
			{name: "pkg.a", start: 19, parent: -1, file: "main.go", line: 11, parentPC: 0x04},
			{name: "pkg.b", start: 29, parent: 0, file: "a.go", line: 20, parentPC: 0x08},
			{name: "pkg.c", start: 39, parent: -1, file: "main.go", line: 12, parentPC: 0x15},
		}},
		{name: "main.plain", start: 50, size: 0x20, code: []code{{size: 0x20, file: "main.go",
			line: 51, call: 0}}},
		{name: "runtime.asm", size: 0x10},
		{name: "main.gen[...]", start: 60, size: 0x18, code: []code{
			{size: 0x08, file: "main.go", line: 61, call: 0}, {size: 0x08, file: "a.go", line: 22,
				call: 1}, {size: 0x08, line: 0, call: 0},
		}, calls: []inlinedCall{{name: "pkg.a", start: 19, parent: -1, file: "main.go", line: 61,
			parentPC: 0}}},
	}
}

const wantSample = `main.main 401000-401040 main.go:10
  pkg.a a.go:19 at main.go:11, parent -1, depth 1: 401008-401014 40102c-401034
    pkg.b b.go:29 at a.go:20, parent 0, depth 2: 40100c-401010 40102c-401034
  pkg.c c.go:39 at main.go:12, parent -1, depth 1: 401020-401024
  401000 main.go:11
  401008 a.go:20
  40100c b.go:30
  401010 a.go:21
  401014 main.go:12
  401020 c.go:40
  401024 main.go:13
  40102c b.go:31
  401034 main.go:14
main.plain 401050-401070 main.go:50
  401050 main.go:51
runtime.asm 401070-401080 ?:0
  401070 ?:0
main.gen[...] 401080-401098 main.go:60
  pkg.a a.go:19 at main.go:61, parent -1, depth 1: 401088-401090
  401080 main.go:61
  401088 a.go:22
  401090 ?:0
`

// wantOf returns the part of wantSample that a release has.
func wantOf(r release) string {
	want := wantSample
	if r.version < go120 {
		for _, n := range []string{"10", "19", "29", "39", "50", "60"} {
			want = strings.ReplaceAll(want, "go:"+n+"\n", "go:0\n")
			want = strings.ReplaceAll(want, "go:"+n+" at", "go:0 at")
		}
	}
	if r.trees {
		return want
	}
	var lines []string
	for l := range strings.Lines(want) {
		if !strings.Contains(l, " at ") {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "")
}

func TestReleases(t *testing.T) {
	for _, r := range releases {
		for _, m := range targets {
			t.Run(r.name+"/"+m.String(), func(t *testing.T) {
				tab, err := New(build(r, m, sample()...).input())
				if err != nil {
					t.Fatal(err)
				}
				if tab.version != r.version || tab.numFuncs != 4 {
					t.Errorf("version %v, %d functions", tab.version, tab.numFuncs)
				}
				if (tab.trees.base != nil) != r.trees || r.trees && tab.trees.form != r.form {
					t.Errorf("form %+v, want %+v", tab.trees.form, r.form)
				}
				if got, want := show(t, tab), wantOf(r); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

var latest = releases[len(releases)-1]

// openTable decodes a table that must be valid.
func openTable(t testing.TB, in Input) *Table {
	t.Helper()
	tab, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// TestTreesInTable has the trees behind the functions, as Go 1.26 does.
func TestTreesInTable(t *testing.T) {
	b := build(latest, targets[0], sample()...)
	in := b.input()
	in.FuncData = []addr.Addr{tableAddr + addr.Addr(len(b.data))}
	in.Data = append(b.data, b.trees...)
	in.Memory = nil
	if got := show(t, openTable(t, in)); got != wantSample {
		t.Errorf("got\n%s", got)
	}
}

// TestNoTrees checks that functions and lines do not need the trees.
func TestNoTrees(t *testing.T) {
	in := build(latest, targets[0], sample()...).input()
	in.FuncData = []addr.Addr{treeAddr + 4, treeAddr + 16}
	tab := openTable(t, in)
	if tab.trees.base != nil {
		t.Fatalf("trees found where there are none: %+v", tab.trees.form)
	}
	if got, want := show(t, tab), wantOf(release{version: go120}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStop(t *testing.T) {
	tab := openTable(t, build(latest, targets[0], sample()...).input())
	n := 0
	lost, err := tab.Functions(func(*Function) bool { n++; return n < 2 })
	if n != 2 || lost != 0 || err != nil {
		t.Errorf("%d visited, lost %d, %v", n, lost, err)
	}
}

// TestCircle has one tree among valid ones whose calls are each other's callers: that
// cycle is broken, and the function's other calls are unchanged.
func TestCircle(t *testing.T) {
	good := sample()[0]
	// a and b are each their own caller, by their parentPc; d is in b, c in the function.
	circle := fn{name: "main.circle", size: 32, code: []code{
		{size: 8, file: "main.go", line: 1, call: 1}, {size: 8, file: "main.go", line: 2, call: 2}, {size: 8,
			file: "main.go", line: 3, call: 3}, {size: 4, file: "main.go", line: 4, call: 4},
		{size: 4, file: "main.go", line: 5, call: 0},
	}, calls: []inlinedCall{
		{name: "pkg.a", start: 19, parent: -1, file: "main.go", line: 11, parentPC: 8},
		{name: "pkg.b", start: 29, parent: -1, file: "main.go", line: 11, parentPC: 4},
		{name: "pkg.c", start: 39, parent: -1, file: "main.go", line: 11, parentPC: 31},
		{name: "pkg.d", start: 49, parent: -1, file: "main.go", line: 11, parentPC: 8},
	}}
	funcs := []fn{circle}
	for range 2 * wrongTrees {
		funcs = append(funcs, good)
	}
	tab := openTable(t, build(latest, targets[0], funcs...).input())
	seen := 0
	lost, err := tab.Functions(func(f *Function) bool {
		seen++
		if string(f.Name) != "main.circle" {
			if len(f.Inlines) != 3 {
				t.Errorf("%s has %d calls", f.Name, len(f.Inlines))
			}
			return true
		}
		got := ""
		for _, in := range f.Inlines {
			got += fmt.Sprintf(" %s<%d", in.Name, in.Parent)
		}
		if want := " pkg.a<-1 pkg.b<0 pkg.d<1 pkg.c<-1"; got != want {
			t.Errorf("calls%s, want%s", got, want)
		}
		return true
	})
	var de *decode.Error
	if lost != 1 || !errors.As(err, &de) || !strings.Contains(err.Error(), "own callers") {
		t.Errorf("lost %d, %v", lost, err)
	}
	if seen != len(funcs) {
		t.Errorf("%d functions of %d", seen, len(funcs))
	}
}

// TestUnmarked has calls without a parentPc in a function that begins with inlined code, as the
// compiler makes of initializers: they are right in the function, called from an unknown line,
// and nothing is damaged.
func TestUnmarked(t *testing.T) {
	f := fn{name: "main.init", size: 24, code: []code{
		{size: 8, file: "main.go", line: 1, call: 2}, {size: 8, file: "main.go", line: 2, call: 3}, {size: 8,
			file: "main.go", line: 3, call: 0},
	}, calls: []inlinedCall{
		{name: "pkg.outer", start: 19, parent: -1, file: "main.go", line: 11, parentPC: 0},
		{name: "pkg.a", start: 29, parent: -1, file: "main.go", line: 11, parentPC: 0},
		{name: "pkg.b", start: 39, parent: -1, file: "main.go", line: 11, parentPC: 0},
	}}
	lost, err := openTable(t, build(latest, targets[0], f).input()).Functions(
		func(f *Function) bool {
			got := ""
			for _, in := range f.Inlines {
				got += fmt.Sprintf(" %s<%d at %d:%d", in.Name, in.Parent, in.CallFile, in.CallLine)
			}
			if want := fmt.Sprintf(" pkg.a<-1 at %d:0 pkg.b<-1 at %[1]d:0", NoFile); got != want {
				t.Errorf("calls%s, want%s", got, want)
			}
			return true
		})
	if lost != 0 || err != nil {
		t.Errorf("lost %d, %v", lost, err)
	}
}

// TestDeep nests calls to the limit, and one level deeper.
func TestDeep(t *testing.T) {
	for _, depth := range []int{maxDepth, maxDepth + 1} {
		f := fn{name: "main.deep", size: uint64(depth) + 1, code: []code{{size: 1,
			file: "main.go", line: 1, call: 0}}}
		for i := range depth {
			f.code = append(f.code, code{1, "main.go", int32(i + 2), i + 1})
			f.calls = append(f.calls,
				inlinedCall{"pkg.a", 1, int32(i - 1), "main.go", 1, uint32(i)})
		}
		tab := openTable(t, build(latest, targets[0], f).input())
		lost, err := tab.Functions(func(f *Function) bool {
			if depth == maxDepth && (len(f.Inlines) != depth ||
				f.Inlines[depth-1].Depth != uint32(depth)) {
				t.Errorf("%d calls", len(f.Inlines))
			}
			return true
		})
		if (lost == 0) != (depth == maxDepth) {
			t.Errorf("depth %d: lost %d, %v", depth, lost, err)
		}
	}
}

// TestShared has functions that all use one long name and one long table, which costs
// more than a table of that size may.
func TestShared(t *testing.T) {
	f := fn{name: strings.Repeat("x", maxName), size: 1, code: []code{{size: 1, file: "main.go",
		line: 1, call: 0}}}
	funcs := make([]fn, 4000)
	for i := range funcs {
		funcs[i] = f
	}
	tab := openTable(t, build(latest, targets[0], funcs...).input())
	n := 0
	lost, err := tab.Functions(func(*Function) bool { n++; return true })
	if lost == 0 || lost+n != len(funcs) || err == nil ||
		!strings.Contains(err.Error(), "share more") {
		t.Errorf("%d functions, lost %d, %v", n, lost, err)
	}
}

func TestHeaderErrors(t *testing.T) {
	b := build(latest, targets[0], sample()...)
	old := build(releases[0], targets[0], sample()...)
	set := func(d []byte, at int, v byte) []byte {
		d = append([]byte(nil), d...)
		for i := range 4 {
			d[at+i] = v
		}
		return d
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{want: "unknown header"},
		{data: []byte("\xf1\xff\xff\xff\x00\x00\x03\x08"), want: "unknown header"},
		{data: b.data[:40], want: "header is cut off"},
		{data: set(b.data, 8, 0xff), want: "functions do not fit"},
		{data: set(b.data, 16, 0xff), want: "files do not fit"},
		{data: set(b.data, 32, 0xff), want: "part 0"},
		{data: set(b.data, 40, 0), want: "part 1"},
		{data: set(old.data, 8, 0xff), want: "functions do not fit"},
		{data: set(old.data, 16+9*8, 0xff), want: "file table lies outside"},
	} {
		in := b.input()
		in.Data = c.data
		_, err := New(in)
		var de *decode.Error
		if !errors.As(err, &de) || !strings.Contains(err.Error(), c.want) || de.Offset < 0x100 {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
