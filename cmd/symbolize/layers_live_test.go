//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"symbolize/analyze/annotate"
)

// loadEach loads the programs of an object one by one. Those that the kernel refuses are logged and
// left out.
func loadEach(t *testing.T, object string) map[string]*ebpf.Program {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		t.Fatal(err)
	}
	loaded := make(map[string]*ebpf.Program)
	names := slices.Sorted(maps.Keys(spec.Programs))
	slices.SortStableFunc(names, func(a, b string) int { // what replaces a function comes after its program
		return cmp.Compare(spec.Programs[a].AttachTo, spec.Programs[b].AttachTo)
	})
	for _, name := range names {
		one := spec.Copy()
		maps.DeleteFunc(one.Programs, func(other string, _ *ebpf.ProgramSpec) bool { return other != name })
		maps.DeleteFunc(one.Maps, func(_ string, m *ebpf.MapSpec) bool { return m.Type == ebpf.StructOpsMap })
		if p := one.Programs[name]; p.Type == ebpf.Extension {
			p.AttachTarget = loaded["global_call"]
		}
		c, err := ebpf.NewCollection(one)
		if err != nil {
			text, _, _ := strings.Cut(errors.Unwrap(err).Error(), "\n")
			t.Logf("SKIPPED: %s: the kernel refuses it: %s", name, text)
			continue
		}
		t.Cleanup(c.Close)
		loaded[name] = c.Programs[name]
	}
	return loaded
}

// translated is a BPF instruction as bpftool or annotate prints it, with the line record that begins
// there.
type translated struct {
	index int
	text  string
	line  string // "12", or "" where no record begins
}

var (
	xlatedLine = regexp.MustCompile(`^; .* \[file:.* line_num:([0-9]+) line_col:[0-9]+\]$`)
	xlatedInsn = regexp.MustCompile(`^ *([0-9]+): (\([0-9a-f]{2}\) .*)$`)
	perCPU     = regexp.MustCompile(`^\(bf\) (r[0-9]) = &\(void __percpu \*\)\((r[0-9])\)$`)
)

// parseXlated reads the output of `bpftool prog dump xlated linum`.
func parseXlated(t *testing.T, text string) (list []translated) {
	t.Helper()
	line := ""
	for row := range strings.Lines(text) {
		row = strings.TrimRight(row, "\n")
		if m := xlatedLine.FindStringSubmatch(row); m != nil {
			line = m[1]
		} else if m := xlatedInsn.FindStringSubmatch(row); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, translated{n, m[2], line})
			line = ""
		}
	}
	return list
}

// compileLayers makes the object file of the programs.
func compileLayers(t *testing.T, object string) { compileBPF(t, "layers/layers.bpf.c", object) }

// compileBPF compiles a file of fixtures/src.
func compileBPF(t *testing.T, name, object string) {
	t.Helper()
	source, err := filepath.Abs("../../fixtures/src/" + name)
	if err != nil {
		t.Fatal(err)
	}
	include := "/usr/include/" + strings.TrimSpace(command(t, ".", "uname", "-m")) + "-linux-gnu"
	command(t, ".", "clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-I"+include, "-c", source, "-o", object)
}

// TestLiveLayers compares the BPF instructions of programs of many kinds, as they come from a bundle
// after the programs are gone, with bpftool's: texts, and where each line record begins.
func TestLiveLayers(t *testing.T) {
	needLive(t, "clang", "bpftool")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	compileLayers(t, in("layers.o"))
	loaded := loadEach(t, in("layers.o"))
	runMain(t, "capture", "-o", in("bundle"), "--duration", "1ms")
	runtime.KeepAlive(loaded)
	same, others, changed, records := 0, 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(loaded)) {
		info, err := loaded[name].Info()
		if err != nil {
			t.Fatal(err)
		}
		id, _ := info.ID()
		want := parseXlated(t, command(t, dir, "bpftool", "prog", "dump", "xlated", "id", fmt.Sprint(id), "linum"))
		var an annotate.Annotation
		text := runMain(t, "--store", in("none"), "annotate", "-q", "--format", "json", "--with", in("layers.o"),
			in("bundle"), fmt.Sprintf("id:%d", id))
		if err := json.Unmarshal([]byte(text), &an); err != nil {
			t.Fatal(err)
		}
		records += compareRecords(t, name, info, an.Functions)
		var got []translated
		for i := range an.Functions {
			f := &an.Functions[i]
			if f.BPF == nil {
				t.Errorf("%s: %s: no BPF instructions: %s", name, f.Name, f.NoBPF)
				continue
			}
			if f.BPF.Object != in("layers.o") {
				t.Errorf("%s: %s: its object file is not found", name, f.Name)
			}
			for _, r := range f.BPF.Runs {
				changed += min(len(r.Original), 1) + len(r.Removed)
				line := strconv.Itoa(int(r.Line))
				for _, x := range r.Instructions {
					got = append(got, translated{x.Index, x.Text, line})
					line = ""
				}
			}
		}
		slices.SortStableFunc(got, func(a, b translated) int { return a.index - b.index })
		if len(got) != len(want) {
			t.Errorf("%s: %d instructions, bpftool has %d", name, len(got), len(want))
			continue
		}
		noLines := !slices.ContainsFunc(want, func(x translated) bool { return x.line != "" })
		nameMaps(t, info, want)
		for i, g := range got {
			w := want[i]
			if noLines { // bpftool refuses line info with the overwritten addresses of a handler
				g.line = ""
			}
			// bpftool before 6.10 does not know the addresses of variables of a CPU.
			if m := perCPU.FindStringSubmatch(g.text); m != nil && w.text == "(bf) "+m[1]+" = "+m[2] {
				g.text = w.text
				others++
			}
			if g != w {
				t.Errorf("%s: %+v, bpftool %+v", name, g, w)
			} else {
				same++
			}
		}
	}
	t.Logf("%d programs: %d instructions equal, %d of them printed otherwise; the verifier changed %d runs; "+
		"%d line records at the kernel's addresses", len(loaded), same, others, changed, records)
	if same < 300 || records < 200 {
		t.Error("too few to say anything")
	}
}

// nameMaps gives the maps in the texts the kernel's names, in place of their IDs.
func nameMaps(t *testing.T, info *ebpf.ProgramInfo, list []translated) {
	t.Helper()
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			t.Fatal(err)
		}
		about, err := m.Info()
		if err := errors.Join(err, m.Close()); err != nil {
			t.Fatal(err)
		}
		for i := range list {
			list[i].text = strings.Replace(list[i].text, fmt.Sprintf("map[id:%d]", id), "map["+about.Name+"]", 1)
		}
	}
}

// compareRecords compares where the runs of a program's functions begin, and their lines, with the
// kernel's line records and their addresses, as another decoder reads them from the kernel.
func compareRecords(t *testing.T, name string, info *ebpf.ProgramInfo, functions []annotate.Function) (same int) {
	t.Helper()
	lines, err := info.LineInfos()
	addresses, ok := info.JitedLineInfos()
	starts, isStarts := info.JitedKsymAddrs()
	lengths, isLengths := info.JitedFuncLens()
	if err != nil || !ok || !isStarts || !isLengths || len(lines) != len(addresses) || len(starts) != len(lengths) {
		t.Errorf("%s: the kernel has %d lines, %d addresses, %d functions: %v", name, len(lines), len(addresses),
			len(starts), err)
		return 0
	}
	type record struct {
		insn     int
		address  uint64
		line     uint32
		function uint64
	}
	var want, got []record
	for i := range lines {
		r := record{insn: int(lines[i].Offset), address: addresses[i], line: lines[i].Line.LineNumber()}
		for k, start := range starts {
			if at := uint64(start); r.address >= at && r.address < at+uint64(lengths[k]) {
				r.function = at
			}
		}
		if i == 0 && r.function == 0 { // a handler of exceptions has the address: it is at the program's start
			r.function = uint64(starts[0])
		}
		if r.function != 0 {
			want = append(want, r)
		}
	}
	for i := range functions {
		f := &functions[i]
		start, err := strconv.ParseUint(f.Address, 0, 64)
		if err != nil {
			t.Fatalf("%s: address of %s: %v", name, f.Name, err)
		}
		if f.BPF == nil {
			continue
		}
		for _, r := range f.BPF.Runs {
			got = append(got, record{r.Instructions[0].Index, start + uint64(r.Offset), r.Line, start})
		}
	}
	byInsn := func(a, b record) int { return cmp.Compare(a.insn, b.insn) }
	slices.SortFunc(want, byInsn)
	slices.SortFunc(got, byInsn)
	for i := range min(len(want), len(got)) {
		w, g := want[i], got[i]
		if g.address == g.function { // the prologue belongs to the first record
			w.address = g.address
		}
		if g != w {
			t.Errorf("%s: record %+v, the kernel's is %+v", name, g, w)
		} else {
			same++
		}
	}
	if len(want) != len(got) {
		t.Errorf("%s: %d records, the kernel has %d", name, len(got), len(want))
	}
	return same
}

// TestLiveHardenedLayers compares the BPF instructions of hardened programs with bpftool's: those of
// several functions, of which the kernel moved the line records, are one run for each function, and begin
// where the kernel's func_info says.
func TestLiveHardenedLayers(t *testing.T) {
	needLive(t, "clang", "bpftool")
	const setting = "/proc/sys/net/core/bpf_jit_harden"
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	compileLayers(t, in("layers.o"))
	restore := restoreLater(t, setting, string(before))
	if err := os.WriteFile(setting, []byte("2"), 0); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	loaded := loadEach(t, in("layers.o"))
	restore()
	runMain(t, "capture", "-o", in("bundle"), "--duration", "1ms")
	same, moved := 0, 0
	for _, name := range slices.Sorted(maps.Keys(loaded)) {
		info, err := loaded[name].Info()
		if err != nil {
			t.Fatal(err)
		}
		id, _ := info.ID()
		functions, err := info.FuncInfos()
		if err != nil {
			t.Fatal(err)
		}
		want := parseXlated(t, command(t, dir, "bpftool", "prog", "dump", "xlated", "id", fmt.Sprint(id)))
		var an annotate.Annotation
		text := runMain(t, "--store", in("none"), "annotate", "-q", "--format", "json", in("bundle"),
			fmt.Sprintf("id:%d", id))
		if err := json.Unmarshal([]byte(text), &an); err != nil {
			t.Fatal(err)
		}
		var got []translated
		begins := make(map[int]bool)
		for i := range an.Functions {
			f := &an.Functions[i]
			if f.BPF == nil {
				t.Errorf("%s: %s: no BPF instructions: %s", name, f.Name, f.NoBPF)
				continue
			}
			begins[f.BPF.Runs[0].Instructions[0].Index] = true
			if f.BPF.OneRun != "" {
				moved++
				if len(f.BPF.Runs) != 1 || len(functions) == 1 {
					t.Errorf("%s: %s: %d runs: %s", name, f.Name, len(f.BPF.Runs), f.BPF.OneRun)
				}
			}
			for _, r := range f.BPF.Runs {
				for _, x := range r.Instructions {
					got = append(got, translated{index: x.Index, text: x.Text})
				}
			}
		}
		for _, f := range functions {
			if !begins[int(f.Offset)] {
				t.Errorf("%s: no function begins at instruction %d, as the kernel's do", name, f.Offset)
			}
		}
		slices.SortStableFunc(got, func(a, b translated) int { return a.index - b.index })
		if len(got) != len(want) {
			t.Errorf("%s: %d instructions, bpftool has %d", name, len(got), len(want))
			continue
		}
		nameMaps(t, info, want)
		for i, g := range got {
			if m := perCPU.FindStringSubmatch(g.text); m != nil {
				g.text = "(bf) " + m[1] + " = " + m[2]
			}
			if g != want[i] {
				t.Errorf("%s: %+v, bpftool %+v", name, g, want[i])
			} else {
				same++
			}
		}
	}
	t.Logf("%d programs: %d instructions equal; %d functions are one run", len(loaded), same, moved)
	if same < 300 || moved < 10 {
		t.Error("too few to say anything")
	}
}
