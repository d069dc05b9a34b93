package bpf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
)

// translated is sample with its BPF instructions: 6 of the first function, 4 of the second and 2 of
// the third, each with its number in its bytes.
func translated() bpfbuild.Program {
	p := sample()
	p.Funcs[1].Insn, p.Funcs[2].Insn = 6, 10
	p.Funcs[2].Lines = []bpfbuild.Line{{At: 0, Insn: 10, Line: 12, File: "a.c", Source: "{"}}
	for i := range 12 {
		p.Xlated = append(p.Xlated, code(byte(i), InsnSize)...)
	}
	return p
}

func TestInstructions(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := translated()
		p := &decodeBuilt(t, big, b)[0]
		if p.Err != nil {
			t.Fatal(p.Err)
		}
		var got strings.Builder
		for i := range p.Funcs {
			in, err := p.Instructions(i)
			if err != nil {
				t.Fatal(err)
			}
			n := len(in.Code) / InsnSize
			if want := b.Xlated[in.First*InsnSize:][:n*InsnSize]; !bytes.Equal(in.Code, want) {
				t.Errorf("function %d: other instructions", i)
			}
			fmt.Fprintf(&got, "%d+%d:", in.First, n)
			for _, r := range in.Runs {
				fmt.Fprintf(&got, " %d@%d line %d", r.Insn, r.Offset, r.Line)
			}
			got.WriteString("\n")
		}
		const want = `0+6: 0@0 line 3 2@8 line 0 3@11 line 5 4@20 line 6 5@20 line 7
6+4: 6@0 line 0 7@4 line 9
10+2: 10@0 line 12
`
		if got.String() != want {
			t.Errorf("big %v: got\n%swant\n%s", big, got.String(), want)
		}
	}
}

// TestInstructionsWithoutLines: a program without BTF is one run.
func TestInstructionsWithoutLines(t *testing.T) {
	b := translated()
	b.BTFID, b.Funcs = 0, b.Funcs[2:]
	b.Funcs[0].Lines = nil
	in, err := decodeBuilt(t, false, b)[0].Instructions(0)
	if err != nil || in.First != 0 || !bytes.Equal(in.Code, b.Xlated) || !slices.Equal(in.Runs, []Line{{}}) ||
		in.OneRun != MissingBTF {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestNoInstructions covers each reason for missing instructions.
func TestNoInstructions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bpfbuild.Program)
		want   string
	}{
		"as perf records it":    {func(p *bpfbuild.Program) { p.Xlated = nil }, MissingXlated},
		"hidden by the kernel":  {func(p *bpfbuild.Program) { p.Hide = bpfbuild.XlatedInsns }, MissingXlated},
		"left out by a program": {func(p *bpfbuild.Program) { p.Omit = bpfbuild.XlatedInsns }, MissingXlated},
		"without rights": {func(p *bpfbuild.Program) {
			p.Omit = bpfbuild.XlatedInsns
			p.Change = func(info []byte, o binary.ByteOrder) { o.PutUint32(info[20:], 0) }
		}, MissingRights},
		"outside of the data": {func(p *bpfbuild.Program) {
			p.Change = func(info []byte, o binary.ByteOrder) { o.PutUint64(info[32:], 1<<40) }
		}, MissingDamaged},
		"an odd length": {func(p *bpfbuild.Program) { p.Xlated = p.Xlated[:91] }, "91 bytes, not a multiple of 8"},
		"a function without instructions": {func(p *bpfbuild.Program) { p.Funcs[1].Insn = 0 },
			"function 0 has the instructions 0 to 0 of 12"},
		"functions out of order": {func(p *bpfbuild.Program) { p.Funcs[1].Insn = 11 },
			"function 1 has the instructions 11 to 10 of 12"},
		"a function behind the end": {func(p *bpfbuild.Program) { p.Funcs[2].Insn = 12 },
			"function 2 has the instructions 12 to 12 of 12"},
		"without func_info": {func(p *bpfbuild.Program) { p.Omit = bpfbuild.FuncInfo },
			"0 records for 3 functions"},
		"hidden addresses": {func(p *bpfbuild.Program) { p.Hide = bpfbuild.JITedLineInfo }, "one run: " + MissingHidden},
		"moved by hardening": {func(p *bpfbuild.Program) { p.Funcs[1].Lines[0].Insn = 9 },
			"one run: " + MissingMoved},
		"lines out of order": {func(p *bpfbuild.Program) { p.Funcs[0].Lines[3].Insn = 3 },
			"one run: line_info: instruction 3 follows 3"},
		"a line of another function": {func(p *bpfbuild.Program) { p.Funcs[1].Lines[1].Insn = 10 },
			"one run: line_info: records of the instructions 6 to 10, the function has 6 to 9"},
		"no line of the function": {func(p *bpfbuild.Program) { p.Funcs[2].Lines = nil },
			"one run: line_info: no record of function 2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := translated()
			c.change(&b)
			p := &decodeBuilt(t, false, b)[0]
			var texts []string
			for i := range p.Funcs {
				if in, err := p.Instructions(i); err != nil {
					texts = append(texts, err.Error())
				} else if in.OneRun != "" {
					texts = append(texts, "one run: "+in.OneRun)
				}
			}
			if got := strings.Join(texts, "\n"); !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	records := Program{Funcs: []Func{{}}, Missing: MissingGone}
	if _, err := records.Instructions(0); err == nil || err.Error() != MissingGone {
		t.Errorf("known by records only: %v", err)
	}
}

// TestInstructionsCut cuts an entry at each byte.
func TestInstructionsCut(t *testing.T) {
	p := decodeBuilt(t, false, translated())[0]
	for n := range p.Raw {
		q := p
		q.Raw = p.Raw[:n]
		for i := range q.Funcs {
			if _, err := q.Instructions(i); err == nil {
				t.Fatalf("cut at %d of %d bytes: no error", n, len(p.Raw))
			}
		}
	}
}
