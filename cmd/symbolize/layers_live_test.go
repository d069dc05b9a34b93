package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		one := spec.Copy()
		maps.DeleteFunc(one.Programs, func(other string, _ *ebpf.ProgramSpec) bool { return other != name })
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

// TestLiveLayers compares the BPF instructions of programs of many kinds, as they come from a bundle
// after the programs are gone, with bpftool's: texts, and where each line record begins.
func TestLiveLayers(t *testing.T) {
	needLive(t, "clang", "bpftool")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	source, err := filepath.Abs("../../fixtures/src/layers/layers.bpf.c")
	if err != nil {
		t.Fatal(err)
	}
	include := "/usr/include/" + strings.TrimSpace(command(t, dir, "uname", "-m")) + "-linux-gnu"
	command(t, dir, "clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-I"+include, "-c", source, "-o", in("layers.o"))
	loaded := loadEach(t, in("layers.o"))
	runMain(t, "capture", "-o", in("bundle"), "--duration", "1ms")
	runtime.KeepAlive(loaded)
	same, others, changed := 0, 0, 0
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
	t.Logf("%d programs: %d instructions equal, %d of them printed otherwise; the verifier changed %d runs",
		len(loaded), same, others, changed)
	if same < 300 {
		t.Error("too few to say anything")
	}
}
