package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/fixtures/perfbuild"
)

// linelessProgram is a program with a main function that calls its subprogram, with lines.
func linelessProgram() bpfbuild.Program {
	const sub = moduleAddr + 0x40
	code := []byte(caller)[:8]
	code[2] = byte(sub - (moduleAddr + 6)) // the call's distance
	return bpfbuild.Program{Type: 17, ID: 7, BTFID: 3, Tag: [8]byte{0xa0}, Name: "on_enter",
		Funcs: []bpfbuild.Func{
			{Name: "on_enter", Tag: [8]byte{0xa1}, Start: moduleAddr, Code: code,
				Lines: []bpfbuild.Line{{Line: 3, File: "/src/p.c", Source: "int on_enter()"}}},
			{Name: "count", Tag: [8]byte{0xa2}, Start: sub, Code: []byte("\x55\x90\x5d\xc3"),
				Lines: []bpfbuild.Line{{Line: 9, File: "/src/p.c", Source: "int count()"}}},
		}}
}

// linelessCapture is a perf.data with three samples in a program, two in its subprogram.
func linelessCapture(t *testing.T, p bpfbuild.Program, withBTF bool) {
	t.Helper()
	f := perfbuild.New()
	f.FeatureString(perfbuild.FeatureArch, "x86_64")
	f.KernelMap("_text", linkedText, linkedText, 0x1000000)
	info, blobs := bpfbuild.Sections(false, p)
	f.Feature(perfbuild.FeatureBPFProgInfo, info)
	if withBTF {
		f.Feature(perfbuild.FeatureBPFBTF, blobs)
	}
	where := perfbuild.At{PID: 9, TID: 9, Time: 2}
	symbols := []string{"bpf_prog_a000000000000000_on_enter", "bpf_prog_a200000000000000_count"}
	if p.BTFID == 0 {
		symbols[1] = "bpf_prog_a200000000000000_F"
	}
	for i, symbol := range symbols {
		f.KSymbol(p.Funcs[i].Start, uint32(len(p.Funcs[i].Code)), 1, false, symbol, where)
	}
	f.BPFEvent(1, p.ID, p.Tag, where)
	f.Comm(9, 9, "app", true, perfbuild.At{Time: 1})
	for _, pc := range []uint64{p.Funcs[0].Start + 6, p.Funcs[1].Start + 1, p.Funcs[1].Start + 1} {
		f.Sample(perfbuild.Sample{PID: 9, Time: 3, Chain: []uint64{perfbuild.ContextKernel, pc}})
	}
	if err := os.WriteFile("perf.data", f.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestAnnotateWithoutLines: functions of BPF programs of which no source is known, main
// ones and subprograms, have their instructions with their samples and named targets, and
// the reason why there are no lines.
func TestAnnotateWithoutLines(t *testing.T) {
	bare := func(p *bpfbuild.Program) {
		for i := range p.Funcs {
			p.Funcs[i].Lines = nil
		}
	}
	for name, c := range map[string]struct {
		change func(*bpfbuild.Program)
		sub    string // name of the subprogram, behind its tag
		note   string
		noBTF  bool // in the capture
		lines  []string
	}{
		"no BTF": {change: func(p *bpfbuild.Program) { p.BTFID = 0; bare(p) }, sub: "F",
			note: "no source lines: it was loaded without BTF"},
		"no line info": {change: bare, sub: "count",
			note: "no source lines: it was loaded without line info"},
		"lines left out": {change: func(p *bpfbuild.Program) { p.Omit = bpfbuild.LineInfo },
			sub: "count", note: "no source lines: left out by the recorder"},
		"BTF not recorded": {change: func(*bpfbuild.Program) {}, sub: "count", noBTF: true,
			note:  "no files and no text of the lines: the capture lacks the program's BTF",
			lines: []string{"    100.00  line 9\n", " | ; line 9   <-- hottest line, 100.00%\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			p := linelessProgram()
			c.change(&p)
			linelessCapture(t, p, !c.noBTF)
			sub := "bpf_prog_a200000000000000_" + c.sub
			for _, pattern := range []string{"id:7", "bpf_prog_.*", "tag:a000000000000000"} {
				out := runMain(t, "--store", "none", "annotate", "-q", "perf.data", pattern)
				for _, text := range slices.Concat(c.lines, []string{
					"  note: " + c.note + "\n",
					"\nbpf_prog_a000000000000000_on_enter: 33.33% of ",
					" call   ffffffffc0400040 <" + sub + ">\n",
					">  100.00 |      6 |    pop    %rbp\n",
					"\n" + sub + ": 66.67% of ",
					">  100.00 |      1 |    nop\n",
				}) {
					if !strings.Contains(out, text) {
						t.Errorf("%s: no %q in\n%s", pattern, text, out)
					}
				}
				if len(c.lines) == 0 && strings.Contains(out, "hottest line") {
					t.Errorf("%s: lines of a function without any:\n%s", pattern, out)
				}
			}
			var an annotated
			text := runMain(t, "--store", "none", "annotate", "-q", "--format", "json", "perf.data",
				sub)
			if err := json.Unmarshal([]byte(text), &an); err != nil {
				t.Fatal(err)
			}
			if len(an.Functions) != 1 || an.Functions[0].Samples != 2 ||
				!strings.Contains(text, `"`+c.note+`"`) ||
				strings.Contains(text, `"lines"`) != (len(c.lines) > 0) {
				t.Errorf("JSON of %s:\n%s", sub, text)
			}
		})
	}
}
