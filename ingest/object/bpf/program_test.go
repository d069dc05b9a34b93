package bpf

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/fixtures/golden"
)

func TestDecodePrograms(t *testing.T) {
	for _, big := range []bool{false, true} {
		t.Run(fmt.Sprintf("big=%v", big), func(t *testing.T) {
			p := &decodeBuilt(t, big, sample())[0]
			if p.Err != nil || p.Missing != "" || p.BTF == nil || p.BigEndian != big {
				t.Errorf("err %v, missing %q, BTF %v, big %v", p.Err, p.Missing, p.BTF, p.BigEndian)
			}
			if p.Type != 17 || p.ID != 9 || p.BTFID != 4 || p.UID != 1000 || p.Tag != tagOf(0xaa) ||
				p.Name != "a_program_of_so" || p.LoadTime != 123456789 || p.JITedLen != 80 ||
				p.XlatedLen != 344 || p.RunTime != 55 || p.RunCount != 5 || len(p.Funcs) != 3 {
				t.Errorf("program %+v", p)
			}
			want := sample()
			for i := range p.Funcs {
				f, w := &p.Funcs[i], &want.Funcs[i]
				if f.Name != w.Name || f.Tag != w.Tag || uint64(f.Start) != w.Start ||
					int(f.Length) != len(w.Code) || !bytes.Equal(f.Image, w.Code) {
					t.Errorf("function %d: %+v", i, f)
				}
			}
			wantLines := [][]Line{
				{{0, 0, 3, 0, "src/a.bpf.c", "int a(void *ctx)"}, {11, 3, 5, 7, "src/a.bpf.c", "	return x;"},
					{20, 5, 7, 1023, "inc.h", "	return x;"}},
				{{0, 7, 9, 2, "src/a.bpf.c", "	return x;"}},
				nil,
			}
			for i := range p.Funcs {
				if !reflect.DeepEqual(p.Funcs[i].Lines, wantLines[i]) {
					t.Errorf("function %d: lines %+v", i, p.Funcs[i].Lines)
				}
			}
		})
	}
}

func TestLineAt(t *testing.T) {
	f := &decodeBuilt(t, false, sample())[0].Funcs[0]
	for offset, want := range map[uint32]uint32{0: 3, 10: 3, 11: 5, 19: 5, 20: 7, 39: 7, 1 << 31: 7} {
		if l := f.LineAt(offset); l == nil || l.Line != want {
			t.Errorf("offset %d: %+v, want line %d", offset, l, want)
		}
	}
	if l := new(Func).LineAt(0); l != nil {
		t.Errorf("a function without lines has %+v", l)
	}
}

func TestSymbols(t *testing.T) {
	without := sample()
	without.BTFID = 0
	bare := bpfbuild.Program{ID: 1, Tag: tagOf(7), Funcs: []bpfbuild.Func{{Tag: tagOf(7),
		Start: 0x1000, Code: code(1, 4)}}}
	one := bare
	one.Name = "one"
	const a, s0, s1, s2 = "bpf_prog_aaaaaaaaaaaaaaaa", "bpf_prog_1010101010101010",
		"bpf_prog_1111111111111111", "bpf_prog_1212121212121212"
	for name, c := range map[string]struct {
		program      bpfbuild.Program
		kernel, perf []string
	}{
		"with BTF": {program: sample(),
			kernel: []string{a + "_a_program_of_some_length", s1 + "_helper", s2 + "_other"},
			perf:   []string{s0 + "_a_program_of_some_length", s1 + "_helper", s2 + "_other"}},
		"without BTF": {program: without,
			kernel: []string{a + "_a_program_of_so", s1 + "_F", s2 + "_F"},
			perf:   []string{s0 + "_F", s1 + "_F", s2 + "_F"}},
		"without a name": {program: bare, kernel: []string{"bpf_prog_0707070707070707"},
			perf: []string{"bpf_prog_0707070707070707"}},
		"one function": {program: one, kernel: []string{"bpf_prog_0707070707070707_one"},
			perf: []string{"bpf_prog_0707070707070707_one"}},
	} {
		p := &decodeBuilt(t, false, c.program)[0]
		for i := range p.Funcs {
			if got := p.Symbol(i); got != c.kernel[i] {
				t.Errorf("%s: function %d is %s, want %s", name, i, got, c.kernel[i])
			}
			if got := p.PerfSymbol(i); got != c.perf[i] {
				t.Errorf("%s: perf calls function %d %s, want %s", name, i, got, c.perf[i])
			}
		}
	}
}

func TestSplitSymbol(t *testing.T) {
	const tag = "0123456789abcdef"
	for symbol, want := range map[string]string{
		"bpf_prog_" + tag + "_on_write": tag + " on_write",
		"bpf_prog_" + tag:               tag + " ",
		"bpf_prog_" + tag + "_":         tag + " ",
		"bpf_prog_" + tag + "X":         "",
		"bpf_prog_xyz":                  "",
		"bpf_prog_0123456789ABCDEF_x":   "",
		"bpf_prog_0123456789abcdeg_x":   "",
		"bpf_trampoline_6442":           "",
		"":                              "",
	} {
		got := ""
		if tag, name, ok := SplitSymbol(symbol); ok {
			got = tag.String() + " " + name
		}
		if got != want {
			t.Errorf("%q: %q, want %q", symbol, got, want)
		}
	}
}

// TestIdentity: the identity of a function does not depend on its address, bytes and
// number, and depends on everything else.
func TestIdentity(t *testing.T) {
	p := &decodeBuilt(t, false, sample())[0]
	id := p.Identity(0, "x86_64")
	if want := "jit:0321aed128ec60e4d54bbe1f3ff9ff9f914bbfa7"; id.String() != want {
		t.Errorf("ID %s, want %s: those in stores and captures no longer match", id, want)
	}
	same := func(name string, change func(*bpfbuild.Program)) {
		c := sample()
		c.Funcs = append([]bpfbuild.Func(nil), c.Funcs...)
		c.Funcs[0].Lines = append([]bpfbuild.Line(nil), c.Funcs[0].Lines...)
		change(&c)
		for _, big := range []bool{false, true} {
			if got := decodeBuilt(t, big, c)[0].Identity(0, "x86_64"); got != id {
				t.Errorf("%s: another ID", name)
			}
		}
	}
	same("another load", func(c *bpfbuild.Program) { c.ID, c.LoadTime = 10, 5 })
	same("another address", func(c *bpfbuild.Program) { c.Funcs[0].Start += 0x1234 })
	same("other bytes", func(c *bpfbuild.Program) { c.Funcs[0].Code = code(9, 40) })
	same("other tags", func(c *bpfbuild.Program) { c.Tag, c.Funcs[0].Tag = tagOf(1), tagOf(2) })
	same("a line told twice", func(c *bpfbuild.Program) {
		l := c.Funcs[0].Lines
		again := l[2]
		again.At = 15
		c.Funcs[0].Lines = append(append(append([]bpfbuild.Line(nil), l[:3]...), again), l[3:]...)
	})
	differs := func(name string, change func(*bpfbuild.Program)) {
		c := sample()
		c.Funcs = append([]bpfbuild.Func(nil), c.Funcs...)
		c.Funcs[0].Lines = append([]bpfbuild.Line(nil), c.Funcs[0].Lines...)
		change(&c)
		if got := decodeBuilt(t, false, c)[0].Identity(0, "x86_64"); got == id {
			t.Errorf("%s: the same ID", name)
		}
	}
	differs("another name", func(c *bpfbuild.Program) { c.Funcs[0].Name = "b" })
	differs("another length", func(c *bpfbuild.Program) { c.Funcs[0].Code = code(1, 41) })
	differs("another line", func(c *bpfbuild.Program) { c.Funcs[0].Lines[2].Line++ })
	differs("another column", func(c *bpfbuild.Program) { c.Funcs[0].Lines[2].Column++ })
	differs("another file", func(c *bpfbuild.Program) { c.Funcs[0].Lines[2].File = "b.c" })
	differs("another offset", func(c *bpfbuild.Program) { c.Funcs[0].Lines[2].At++ })
	differs("no lines", func(c *bpfbuild.Program) { c.Funcs[0].Lines = nil })
	if p.Identity(0, "aarch64") == id {
		t.Error("another machine: the same ID")
	}
	if got, want := p.Identity(2, "x86_64"), SymbolIdentity("x86_64", p.Symbol(2), 7); got != want {
		t.Errorf("a function without lines is %s, by its symbol %s", got, want)
	}
}

// text prints programs.
func text(programs []Program) string {
	var b strings.Builder
	for i := range programs {
		p := &programs[i]
		fmt.Fprintf(&b, "program %d type %d tag %s name %q jited %d xlated %d btf %d missing %q err %v\n",
			p.ID, p.Type, p.Tag, p.Name, p.JITedLen, p.XlatedLen, p.BTFID, p.Missing, p.Err)
		for k := range p.Funcs {
			f := &p.Funcs[k]
			fmt.Fprintf(&b, " %s %#x+%d image %d %s\n", p.Symbol(k), uint64(f.Start), f.Length,
				len(f.Image), p.Identity(k, "x86_64"))
			for _, l := range f.Lines {
				fmt.Fprintf(&b, "  %d insn %d %s:%d:%d %s\n", l.Offset, l.Insn, l.File, l.Line, l.Column,
					strings.TrimSpace(l.Source))
			}
		}
	}
	return b.String()
}

// TestRecorded decodes programs recorded by perf. (TestLivePrograms of ingest compares the
// same programs, while they are loaded, with another decoder.)
func TestRecorded(t *testing.T) {
	for _, name := range []string{"bpf", "bpf-lines", "bpf-before", "bpf-hidden"} {
		got := text(decodeRecorded(t, name))
		golden.Compare(t, name+".golden", []byte(got))
	}
}
