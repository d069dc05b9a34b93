package bpf

import (
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
)

// hardened is sample as the kernel has it with bpf_jit_harden 2, as measured on Linux 6.18: line
// info of the first function is outside it, and the others' line info begins later than they do.
func hardened() bpfbuild.Program {
	p := sample()
	p.Funcs = append([]bpfbuild.Func(nil), p.Funcs...)
	p.Funcs[1].Insn, p.Funcs[2].Insn = 6, 9
	p.Funcs[0].Lines = []bpfbuild.Line{{At: 0, Insn: 0, Line: 3, File: "src/a.bpf.c"},
		{At: 1 << 30, Insn: 25, Line: 5, File: "src/a.bpf.c"}}
	p.Funcs[1].Lines = []bpfbuild.Line{{At: 0, Insn: 17, Line: 9, File: "src/a.bpf.c"},
		{At: 4, Insn: 18, Line: 10, File: "src/a.bpf.c"}}
	return p
}

// TestMovedLines: lines that hardening has moved are not used, except the starts of
// functions.
func TestMovedLines(t *testing.T) {
	for _, big := range []bool{false, true} {
		p := &decodeBuilt(t, big, hardened())[0]
		for i, line := range []uint32{3, 9, 0} {
			f := &p.Funcs[i]
			if len(f.Lines) > 0 || f.Begin.Line != line || p.NoLines(i) != MissingMoved ||
				line > 0 && f.Begin.File != "src/a.bpf.c" {
				t.Errorf("function %d: %+v, %q", i, f, p.NoLines(i))
			}
		}
		if p.Err != nil || p.Note == nil ||
			!strings.Contains(p.Note.Error(), "net.core.bpf_jit_harden") {
			t.Errorf("%v, %v", p.Err, p.Note)
		}
		b := hardened() // the same numbers, where they belong
		b.Funcs[1].Insn = 17
		b.Funcs[0].Lines = b.Funcs[0].Lines[:1]
		if p = &decodeBuilt(t, big, b)[0]; len(p.Funcs[1].Lines) != 2 || p.Err != nil || p.Note != nil ||
			p.Funcs[1].Begin.Line != 0 {
			t.Errorf("%+v, %v", p.Funcs[1], p.Err)
		}
	}
}
