package annotate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"symbolize/analyze/disasm"
	"symbolize/fixtures/golden"
	"symbolize/ingest/texts"
)

// loopBPF is loopSource with BPF instructions: the second run has no code, the last a line of none.
func loopBPF(err error) fakeCode {
	c := loopSource()
	line := func(n uint32, text string) CodeLine {
		return CodeLine{File: "/src/loop.c", Line: n, Source: text}
	}
	c["bpf_prog_0102030405060708_loop"].BPF = func() (*BPFCode, error) {
		if err != nil {
			return nil, err
		}
		return &BPFCode{
			First: 20,
			Instructions: []disasm.BPFInst{{Index: 0, Size: 2, Text: "(18) r1 = map[id:7]"},
				{Index: 2, Size: 1, Text: "(85) call \x1b[31m#5"}, {Index: 3, Size: 1, Text: "(05) goto pc+0"},
				{Index: 4, Size: 1, Text: "(15) if r1 == 0x0 goto pc-5"}, {Index: 5, Size: 1, Text: "(95) exit"}},
			Runs: []BPFRun{{Index: 0, Offset: 0, CodeLine: line(3, "{")}, {Index: 3, Offset: 0xd, CodeLine: line(4, "\t;")},
				{Index: 4, Offset: 0xd, CodeLine: line(5, "\twhile (--n)")}, {Index: 5, Offset: 0x17}},
		}, nil
	}
	return c
}

func TestLayersGolden(t *testing.T) {
	a := New(loopProfile(), loopBPF(nil), Options{})
	for name, layers := range map[string]Layers{
		"layers.txt":        Source | BPFInstructions | MachineCode,
		"layers-source.txt": Source | BPFInstructions,
		"layers-none.txt":   DefaultLayers,
	} {
		golden.Text(t, name, func(w io.Writer) error { return a.WriteText(w, TextStyle{Layers: layers}) })
	}
	golden.Text(t, "layers.json", a.WriteJSON)
	var page bytes.Buffer
	if err := WriteHTML(&page, a); err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?s)<details.*</details>\n`).Find(page.Bytes())
	golden.Compare(t, "layers.html", part)
}

// TestLayersSum: each sample inside the code is in one run.
func TestLayersSum(t *testing.T) {
	a := New(loopProfile(), loopBPF(nil), Options{})
	f := &a.Functions[0]
	var samples uint64
	for _, r := range f.BPF.Runs {
		samples += r.Samples
	}
	if want := f.Samples - f.Outside; samples != want || f.BPF.Instructions != 6 {
		t.Errorf("%d samples in the runs of %d instructions, want %d of 6", samples, f.BPF.Instructions, want)
	}
}

// TestLayersMissing: without BPF instructions there is a reason where they were asked for.
func TestLayersMissing(t *testing.T) {
	a := New(loopProfile(), loopBPF(errors.New("gone\x1b[31m")), Options{})
	for layers, want := range map[Layers]bool{DefaultLayers: false, DefaultLayers | BPFInstructions: true} {
		var b strings.Builder
		if err := a.WriteText(&b, TextStyle{Layers: layers}); err != nil {
			t.Fatal(err)
		}
		reason := "note: no BPF instructions: " + texts.Printable("gone\x1b[31m") + "\n"
		if strings.Contains(b.String(), reason) != want || !strings.Contains(b.String(), "; loop.c:5") {
			t.Errorf("layers %b:\n%s", layers, b.String())
		}
	}
}

func TestParseLayers(t *testing.T) {
	for text, want := range map[string]Layers{"c": Source, "c,asm": DefaultLayers, "asm,bpf": BPFInstructions | MachineCode,
		"": 0, "c,": 0, "C": 0} {
		if got, err := ParseLayers(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %b, %v", text, got, err)
		}
	}
}

func TestDiffInsts(t *testing.T) {
	for _, row := range []struct{ before, after, want string }{
		{"", "", ""},
		{"exit", "exit", " 0 exit"},
		{"r1 = map[sums]", "r1 = map[id:7]", " 0 r1 = map[sums]"},
		{"call bpf_f#1|goto pc+1", "call bpf_f#912|goto pc-5", " 0 call bpf_f#912| 1 goto pc-5"},
		{"call bpf_f#1", "call bpf_g#1", "-0 call bpf_f#1|+0 call bpf_g#1"},
		{"a|b|c|d", "a|x|c|y|d", " 0 a|-1 b|+1 x| 2 c|+3 y| 4 d"},
		{"", "a", "+0 a"},
		{"a|b", "", "-0 a|-1 b"},
	} {
		split := func(text string) (list []LayerInst) {
			for i, s := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' }) {
				list = append(list, LayerInst{i, s})
			}
			return list
		}
		var got []string
		for _, x := range diffInsts(split(row.before), split(row.after)) {
			got = append(got, fmt.Sprintf("%c%d %s", x.mark, x.Index, x.Text))
		}
		if text := strings.Join(got, "|"); text != row.want {
			t.Errorf("%q, %q: %q, want %q", row.before, row.after, text, row.want)
		}
	}
	long := make([]LayerInst, 2000) // without the table: all before, then all after
	rows := diffInsts(long, long)
	if len(rows) != 4000 || rows[1999].mark != '-' || rows[2000].mark != '+' {
		t.Errorf("%d rows", len(rows))
	}
}
