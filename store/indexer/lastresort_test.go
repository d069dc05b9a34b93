package indexer

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
	"symbolize/store"
)

// TestUnwindTable has the functions of a stripped program by address: as .symtab of its debug file
// lists them.
func TestUnwindTable(t *testing.T) {
	root, m, id := realDir(t), newMemory(), mixedID(t)
	must.Write(t, filepath.Join(root, "mixed"), fixture(t, "bin/mixed"))
	if sum := m.index(t, Options{}, root); len(sum.Problems) != 0 {
		t.Errorf("problems %v", sum.Problems)
	}
	got := m.names(t, id, store.EhFrame)
	for _, want := range []string{"b29", "b3a", "bb2", "cc0", "cf8", "d44"} {
		if !slices.Contains(got, "fun_"+want) {
			t.Errorf("no fun_%s among %q", want, got)
		}
	}
	if slices.Contains(got, "fun_df8") { // _fini has no entry
		t.Errorf("%q", got)
	}
	// PLT stubs have names already.
	for _, name := range m.names(t, id, store.PLT) {
		if !strings.HasSuffix(name, "@plt") {
			t.Errorf("PLT has %q", name)
		}
	}
	for _, name := range got {
		var at uint64
		if _, err := fmt.Sscanf(name, "fun_%x", &at); err != nil || at < 0xa40 {
			t.Errorf("%s lies among the stubs (%v)", name, err)
		}
	}
}

// TestNoUnwindTableWithSymbols has programs with a complete .symtab.
func TestNoUnwindTableWithSymbols(t *testing.T) {
	m := newMemory()
	sum := m.index(t, Options{}, filepath.Join(objectsDir, "bin/spawn"),
		filepath.Join(objectsDir, "lib"))
	if sum.Sources["symtab"] != 2 || sum.Sources["eh_frame"] != 0 {
		t.Errorf("sources %v", sum.Sources)
	}
}

func TestOverlaps(t *testing.T) {
	all := addr.AppendUnion(nil, []addr.Range{{Start: 10, End: 20}, {Start: 15, End: 18}, {Start: 20, End: 30},
		{Start: 40, End: 50}})
	if len(all) != 2 {
		t.Fatalf("united to %v", all)
	}
	for _, tt := range []struct {
		r    addr.Range
		want bool
	}{
		{r: addr.Range{Start: 0, End: 10}}, {r: addr.Range{Start: 0, End: 11}, want: true},
		{r: addr.Range{Start: 29, End: 31}, want: true}, {r: addr.Range{Start: 30, End: 40}},
		{r: addr.Range{Start: 35, End: 60}, want: true}, {r: addr.Range{Start: 50, End: 60}},
	} {
		if got := overlaps(all, tt.r); got != tt.want {
			t.Errorf("%v: %v", tt.r, got)
		}
	}
}

func inlinedPC(pcs []uintptr) int { return runtime.Callers(1, pcs) }

//go:noinline
func callerPC(pcs []uintptr) int { return inlinedPC(pcs) }

// TestGoProgram indexes this very program, which has a table for its own stack traces
// and, as `go test` links it, nothing else.
func TestGoProgram(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("programs lie where the linker put them on linux/amd64 only")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := newMemory()
	sum := m.index(t, Options{}, exe)
	if sum.Sources["pclntab"]+sum.Sources["dwarf"] != 1 {
		t.Fatalf("summary %+v", sum)
	}
	pcs := make([]uintptr, 8)
	pcs = pcs[:callerPC(pcs)]
	var want []string
	frames := runtime.CallersFrames(pcs)
	for range 2 {
		f, _ := frames.Next()
		want = append(want, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
	}
	if !strings.Contains(want[0], "inlinedPC") || !strings.Contains(want[1], "callerPC") {
		t.Fatalf("stack is %q", want)
	}
	for id := range m.ids {
		kind := m.object(t, id).Quality()
		if got := m.frames(t, id, kind, uint64(pcs[0])-1); got != strings.Join(want, " < ") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
