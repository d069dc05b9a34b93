package gopclntab

import (
	"bytes"
	"debug/dwarf"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
)

// demo is a program with three levels of inlined calls and generic functions.
const demo = `package main

import (
	"fmt"
	"os"
	"strings"
)

func leaf(x int) int { return x*x + len(os.Args) }

func mid(x int) int { return leaf(x) + leaf(x+1) }

func outer(x int) int { return mid(x)*3 + leaf(x) }

//go:noinline
func gen[T any](s []T) int { return len(fmt.Sprint(s)) + outer(len(s)) }

func main() {
	fmt.Println(strings.Repeat("x", outer(len(os.Args))), gen([]int{1}), gen([]string{"b"}))
}
`

// goBuild builds demo and returns it.
func goBuild(t *testing.T, dir string, env []string, args ...string) []byte {
	t.Helper()
	out := filepath.Join(dir, "demo")
	args = append([]string{"build", "-o", out}, args...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=", "GOWORK=off"), env...)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return must.Read(t, out)
}

// demoDir returns a directory with the sources of demo.
func demoDir(t *testing.T) string {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: SYMBOLIZE_LIVE is not set: runs go build")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": demo, "go.mod": "module demo\ngo 1.18\n"} {
		must.Write(t, filepath.Join(dir, name), []byte(text))
	}
	return dir
}

// TestBuilds reads stripped programs of many kinds and machines: gen has all of outer
// inlined, at any address of the machine's code.
func TestBuilds(t *testing.T) {
	dir := demoDir(t)
	const strip = "-ldflags=-s -w"
	for _, c := range []struct {
		env, args []string
	}{
		{args: nil},
		{args: []string{strip}},
		{args: []string{"-buildmode=pie", strip}},
		{env: []string{"CGO_ENABLED=1"},
			args: []string{"-buildmode=pie", "-ldflags=-s -w -linkmode=external"}},
		{env: []string{"CGO_ENABLED=0", "GOARCH=386"}, args: []string{strip}},
		{env: []string{"CGO_ENABLED=0", "GOARCH=arm64"}, args: []string{strip}},
		{env: []string{"CGO_ENABLED=0", "GOARCH=loong64"}, args: []string{strip}},
		{env: []string{"CGO_ENABLED=0", "GOARCH=mips"}, args: []string{strip}},
		{env: []string{"CGO_ENABLED=0", "GOARCH=s390x"}, args: []string{strip}},
	} {
		t.Run(strings.Join(append(c.env, c.args...), " "), func(t *testing.T) {
			tab := find(t, "demo", goBuild(t, dir, c.env, c.args...))
			got := map[string]int{}
			lost, err := tab.Functions(func(f *Function) bool {
				for _, i := range f.Inlines {
					if !strings.HasPrefix(string(f.Name), "main.gen[") {
						continue
					}
					by := "gen"
					if i.Parent >= 0 {
						by = string(f.Inlines[i.Parent].Name)
					}
					got[fmt.Sprintf("%s %d %d in %s", i.Name, i.StartLine, i.CallLine, by)]++
				}
				return true
			})
			want := map[string]int{"main.outer 13 16 in gen": 1, "main.mid 11 13 in main.outer": 1,
				"main.leaf 9 11 in main.mid": 2}
			for k, n := range want {
				if got[k] < n { // and one for each shape of gen
					t.Errorf("%d times %q; all: %v", got[k], k, got)
				}
			}
			if lost != 0 || err != nil {
				t.Errorf("lost %d, %v", lost, err)
			}
		})
	}
}

// TestDWARF compares inlined calls with DWARF's, at the start of each row of its line table.
func TestDWARF(t *testing.T) {
	b := goBuild(t, demoDir(t), nil)
	tab := find(t, "demo", b)
	var funcs []Function
	tab.Functions(func(f *Function) bool {
		c := *f
		c.Lines = slices.Clone(f.Lines)
		c.Inlines = slices.Clone(f.Inlines)
		for i := range c.Inlines {
			c.Inlines[i].Ranges = slices.Clone(c.Inlines[i].Ranges)
		}
		funcs = append(funcs, c)
		return true
	})
	std, err := stdelf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	d, err := std.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	compared, inlined, differ := 0, 0, map[string]int{}
	for _, u := range dwarfUnits(t, d) {
		for _, a := range u.rows {
			i, ok := slices.BinarySearchFunc(funcs, addr.Addr(a), compareFunction)
			if !ok {
				differ["no function"]++
				continue
			}
			want := u.stack(a)
			if len(want) == 0 {
				continue // assembly
			}
			var got []string
			for _, fr := range stackAt(tab, &funcs[i], addr.Addr(a)) {
				got = append(got, fr.Function)
			}
			compared++
			inlined += len(want) - 1
			if !slices.Equal(got, want) {
				if differ["stack"]++; differ["stack"] < 10 {
					t.Logf("%x: %v, DWARF %v", a, got, want)
				}
			}
		}
	}
	t.Logf("%d stacks with %d inlined calls compared, differ: %v", compared, inlined, differ)
	if compared < 20000 || inlined < 5000 || differ["stack"]*1000 > compared {
		t.Error("we do not agree with DWARF")
	}
}

// compareFunction compares the range of a function with an address.
func compareFunction(f Function, a addr.Addr) int {
	switch {
	case f.End <= a:
		return -1
	case f.Start > a:
		return 1
	}
	return 0
}

// dwarfUnit is a unit of DWARF: where its rows begin, and its functions.
type dwarfUnit struct {
	rows  []uint64
	scope []dwarfScope
}

// dwarfScope is a function or an inlined call.
type dwarfScope struct {
	name   string
	depth  int
	ranges [][2]uint64
}

// stack returns the names of the functions at an address, innermost first.
func (u *dwarfUnit) stack(a uint64) (names []string) {
	depth := -1
	for _, s := range u.scope {
		in := slices.ContainsFunc(s.ranges, func(r [2]uint64) bool { return a >= r[0] && a < r[1] })
		if in && s.depth > depth {
			names, depth = append(names, s.name), s.depth
		}
	}
	slices.Reverse(names)
	return names
}

func dwarfUnits(t *testing.T, d *dwarf.Data) (units []*dwarfUnit) {
	t.Helper()
	var u *dwarfUnit
	depth := 0
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return units
		}
		switch e.Tag {
		case 0:
			depth--
		case dwarf.TagCompileUnit:
			u = &dwarfUnit{rows: dwarfRows(t, d, e)}
			units = append(units, u)
			depth = 0
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			ranges, err := d.Ranges(e)
			if err != nil {
				t.Fatal(err)
			}
			if len(ranges) > 0 {
				u.scope = append(u.scope, dwarfScope{dwarfName(t, d, e), depth, ranges})
			}
		}
		if e.Children && e.Tag != dwarf.TagCompileUnit {
			depth++
		}
	}
}

func dwarfRows(t *testing.T, d *dwarf.Data, unit *dwarf.Entry) (rows []uint64) {
	t.Helper()
	lr, err := d.LineReader(unit)
	if err != nil {
		t.Fatal(err)
	}
	if lr == nil {
		return nil
	}
	for {
		var e dwarf.LineEntry
		if err := lr.Next(&e); errors.Is(err, io.EOF) {
			return rows
		} else if err != nil {
			t.Fatal(err)
		}
		if !e.EndSequence {
			rows = append(rows, e.Address)
		}
	}
}

func dwarfName(t *testing.T, d *dwarf.Data, e *dwarf.Entry) string {
	t.Helper()
	if origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset); ok {
		r := d.Reader()
		r.Seek(origin)
		var err error
		if e, err = r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	name, _ := e.Val(dwarf.AttrName).(string)
	return name
}
