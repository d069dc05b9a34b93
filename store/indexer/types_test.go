package indexer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/datatype"
	"symbolize/ingest/object/flow"
	"symbolize/store"
)

const typesProgram = "../../fixtures/types/access"

// truth reads what gcc says that instructions access.
func truth(t *testing.T) (addrs []addr.Addr, members []string) {
	text, err := os.ReadFile(typesProgram + ".truth")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		a, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil || len(f) != 3 {
			t.Fatalf("%q", line)
		}
		addrs, members = append(addrs, addr.Addr(a)), append(members, f[1])
	}
	if len(addrs) < 30 {
		t.Fatalf("%d instructions", len(addrs))
	}
	return addrs, members
}

// TestTypesAgree compares the member of each instruction of a program with gcc's.
func TestTypesAgree(t *testing.T) {
	addrs, members := truth(t)
	table, err := FileTypes(context.Background(), typesProgram, typesProgram, addrs)
	if err != nil {
		t.Fatal(err)
	}
	types, err := table.Types()
	if err != nil {
		t.Fatal(err)
	}
	if table.Source() != datatype.FromDWARF {
		t.Errorf("types from %s", table.Source())
	}
	layouts := flow.NewLayouts(types)
	for i, a := range addrs {
		x, err := table.At(a)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, leaf := range layouts.Leaves(x.Type, x.Offset, int64(x.Size)) {
			paths = append(paths, strings.ReplaceAll(leaf.Path, "[]", ""))
		}
		// gcc does not print unnamed members, and names the outer ones only where it knows them.
		if x.Reason != flow.Known || !slices.ContainsFunc(paths, func(p string) bool { return endsWith(p, members[i]) }) {
			t.Errorf("%#x: %s of %s (%s), want %s", uint64(a), paths, types.TypeName(x.Type), x.Reason, members[i])
		}
	}
}

// endsWith reports whether a path ends with the last names of another.
func endsWith(path, want string) bool {
	a, b := strings.Split(path, "."), strings.Split(want, ".")
	n := min(len(a), len(b))
	return slices.Equal(a[len(a)-n:], b[len(b)-n:])
}

// TestTypesOfPart asks for one function: others are not in the table.
func TestTypesOfPart(t *testing.T) {
	addrs, _ := truth(t)
	last := addrs[len(addrs)-1]
	table, err := FileTypes(context.Background(), typesProgram, typesProgram, []addr.Addr{last})
	if err != nil {
		t.Fatal(err)
	}
	if x, err := table.At(addrs[0]); err != nil || x.Reason != flow.NoDebugInfo {
		t.Errorf("another function: %+v, %v", x, err)
	}
	if x, err := table.At(last); err != nil || x.Reason != flow.Known {
		t.Errorf("the function: %+v, %v", x, err)
	}
	if table.NumFuncs() != 1 {
		t.Errorf("%d functions", table.NumFuncs())
	}
}

// TestIndexTypes indexes a program with Options.Types.
func TestIndexTypes(t *testing.T) {
	sink := store.NewOverlay()
	open := func() (store.Sink, error) { return sink, nil }
	path, err := filepath.Abs(typesProgram)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := Index(context.Background(), []string{path}, nil, open, Options{Types: true})
	if err != nil || len(sum.Problems) > 0 {
		t.Fatal(err, sum)
	}
	for _, m := range sink.Objects {
		if m.IsAlias() {
			continue
		}
		i := slices.IndexFunc(m.Sources, func(s store.SourceInfo) bool { return s.Kind == store.Types })
		if i < 0 {
			t.Fatalf("no table of types: %+v", m.Sources)
		}
		table, err := sink.OpenTypes(m, i)
		if err != nil {
			t.Fatal(err)
		}
		if table.NumFuncs() < 10 || table.NumRows() < 100 {
			t.Errorf("%d functions, %d rows", table.NumFuncs(), table.NumRows())
		}
		addrs, _ := truth(t)
		for _, a := range addrs {
			if x, err := table.At(a); err != nil || x.Reason != flow.Known {
				t.Errorf("%#x: %+v, %v", uint64(a), x, err)
			}
		}
	}
}
