package indexer

import (
	"bytes"
	"context"
	stdelf "debug/elf"
	"encoding/binary"
	"fmt"
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
	"symbolize/store/typetab"
)

const typesProgram = "../../fixtures/types/access"

// truth reads what gcc says that instructions access.
func truth(t *testing.T, program string) (addrs []addr.Addr, members []string) {
	t.Helper()
	text, err := os.ReadFile(program + ".truth")
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

// TestTypesAgree compares the members of each instruction of a program for x86-64 and for ARM64 with gcc's.
func TestTypesAgree(t *testing.T) {
	for _, program := range []string{typesProgram, typesProgram + "-arm64"} {
		t.Run(filepath.Base(program), func(t *testing.T) { typesAgree(t, program) })
	}
}

func typesAgree(t *testing.T, program string) {
	addrs, members := truth(t, program)
	table, err := FileTypes(context.Background(), program, program, addrs)
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
		for _, leaf := range layouts.Leaves(&x) {
			paths = append(paths, strings.ReplaceAll(leaf.Path, "[]", ""))
		}
		// gcc does not print unnamed members, and names the outer ones only where it knows them.
		for want := range strings.SplitSeq(members[i], "|") {
			if x.Reason != flow.Known || !slices.ContainsFunc(paths, func(p string) bool { return endsWith(p, want) }) {
				t.Errorf("%#x: %s of %s (%s), want %s", uint64(a), paths, types.TypeName(x.Type), x.Reason, members[i])
			}
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
	addrs, _ := truth(t, typesProgram)
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

// tableOf indexes a file and returns its table of types.
func tableOf(t *testing.T, path string) *typetab.Table {
	t.Helper()
	sink := store.NewOverlay()
	open := func() (store.Sink, error) { return sink, nil }
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := Index(context.Background(), []string{path}, nil, open, Options{Types: true})
	if err != nil || len(sum.Problems) > 0 {
		t.Fatal(err, sum)
	}
	for _, m := range sink.Objects {
		i := slices.IndexFunc(m.Sources, func(s store.SourceInfo) bool { return s.Kind == store.Types })
		if m.IsAlias() || i < 0 {
			continue
		}
		table, err := sink.OpenTypes(m, i)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	t.Fatal("no table of types")
	return nil
}

// TestIndexTypes indexes a program with Options.Types.
func TestIndexTypes(t *testing.T) {
	table := tableOf(t, typesProgram)
	if table.NumFuncs() < 10 || table.NumRows() < 100 {
		t.Errorf("%d functions, %d rows", table.NumFuncs(), table.NumRows())
	}
	addrs, _ := truth(t, typesProgram)
	for _, a := range addrs {
		if x, err := table.At(a); err != nil || x.Reason != flow.Known {
			t.Errorf("%#x: %+v, %v", uint64(a), x, err)
		}
	}
}

// accesses prints what the instructions of a range access by a table.
func accesses(t *testing.T, table *typetab.Table, r addr.Range) string {
	t.Helper()
	types, err := table.Types()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	layouts := flow.NewLayouts(types)
	for a := r.Start; a < r.End; a++ {
		x, err := table.At(a)
		if err != nil {
			t.Fatal(err)
		}
		if x.Reason == flow.NoMemory {
			continue
		}
		fmt.Fprintf(&b, "%#x %s %s+%d %d %v %v", uint64(a), x.Reason, types.TypeName(x.Type), x.Offset, x.Size, x.Write, x.Sure)
		for _, leaf := range layouts.Leaves(&x) {
			fmt.Fprintf(&b, " %s", leaf.Path)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestTypesOnDemand analyzes each function alone: the result is as in the table of all.
func TestTypesOnDemand(t *testing.T) {
	f, err := stdelf.Open(typesProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	whole := tableOf(t, typesProgram)
	functions := 0
	for _, s := range symbols {
		r := addr.Range{Start: addr.Addr(s.Value), End: addr.Addr(s.Value + s.Size)}
		want := accesses(t, whole, r)
		if stdelf.ST_TYPE(s.Info) != stdelf.STT_FUNC || strings.Contains(want, flow.NoDebugInfo.String()) || want == "" {
			continue
		}
		functions++
		alone, err := FileTypes(context.Background(), typesProgram, typesProgram, []addr.Addr{r.Start})
		if err != nil {
			t.Fatal(err)
		}
		if got := accesses(t, alone, r); got != want {
			t.Errorf("%s alone:\n%swith all others:\n%s", s.Name, got, want)
		}
	}
	if functions < 10 {
		t.Errorf("%d functions", functions)
	}
}

// split writes a program as strip and objcopy --only-keep-debug do: one file without debug information and
// symbols, one without code.
func split(t *testing.T, program, stripped, debug string) {
	t.Helper()
	whole, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	f, err := stdelf.NewFile(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	header := int(binary.LittleEndian.Uint64(whole[0x28:]))
	without := func(drop func(s *stdelf.Section) bool, as stdelf.SectionType) []byte {
		b := bytes.Clone(whole)
		for i, s := range f.Sections {
			if drop(s) {
				binary.LittleEndian.PutUint32(b[header+64*i+4:], uint32(as))
				if as == stdelf.SHT_NULL {
					binary.LittleEndian.PutUint32(b[header+64*i:], 0) // the name
				}
			}
		}
		return b
	}
	extra := func(s *stdelf.Section) bool {
		return strings.HasPrefix(s.Name, ".debug") || s.Type == stdelf.SHT_SYMTAB
	}
	code := func(s *stdelf.Section) bool { return s.Flags&stdelf.SHF_ALLOC != 0 && s.Type != stdelf.SHT_NOTE }
	for path, b := range map[string][]byte{stripped: without(extra, stdelf.SHT_NULL), debug: without(code, stdelf.SHT_NOBITS)} {
		if err := os.WriteFile(path, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTypesOfPairs indexes a stripped program and its debug file, which nothing but the build ID joins, in one
// run or two.
func TestTypesOfPairs(t *testing.T) {
	dir := t.TempDir()
	stripped, debug := filepath.Join(dir, "app"), filepath.Join(dir, "other.dbg")
	split(t, typesProgram, stripped, debug)
	addrs, _ := truth(t, typesProgram)
	for _, c := range []struct {
		name    string
		runs    [][]string
		skipped uint64 // debug files without code, in all runs
		none    bool
	}{
		{name: "one run", runs: [][]string{{stripped, debug}}},
		{name: "a directory", runs: [][]string{{dir}}},
		{name: "the program first", runs: [][]string{{stripped}, {debug}}},
		{name: "the debug file first", runs: [][]string{{debug}, {stripped}}, skipped: 1},
		{name: "the debug file alone", runs: [][]string{{debug}}, skipped: 1, none: true},
		{name: "the program alone", runs: [][]string{{stripped}}, none: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := store.NewOverlay()
			open := func() (store.Sink, error) { return sink, nil }
			skipped := uint64(0)
			for _, paths := range c.runs {
				sum, err := Index(context.Background(), paths, sink, open, Options{Types: true, DebugRoots: []string{}})
				if err != nil || len(sum.Problems) > 0 {
					t.Fatal(err, sum.Problems)
				}
				skipped += sum.Skipped[SkipNoCode]
			}
			if skipped != c.skipped {
				t.Errorf("%d debug files without code, want %d", skipped, c.skipped)
			}
			tables := 0
			for _, m := range sink.Objects {
				for i := range m.Sources {
					if m.IsAlias() || m.Sources[i].Kind != store.Types {
						continue
					}
					tables++
					table, err := sink.OpenTypes(m, i)
					if err != nil {
						t.Fatal(err)
					}
					for _, a := range addrs {
						if x, err := table.At(a); err != nil || x.Reason != flow.Known {
							t.Errorf("%#x: %+v, %v", uint64(a), x, err)
						}
					}
				}
			}
			if tables != 1 && !c.none || tables != 0 && c.none {
				t.Errorf("%d tables of types", tables)
			}
		})
	}
	alone, err := FileTypes(context.Background(), stripped, debug, addrs)
	if err != nil || alone == nil {
		t.Fatal(alone, err)
	}
	whole := tableOf(t, typesProgram)
	for _, a := range addrs {
		r := addr.Range{Start: a, End: a + 1}
		if got, want := accesses(t, alone, r), accesses(t, whole, r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
