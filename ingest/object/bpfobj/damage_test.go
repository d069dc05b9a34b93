package bpfobj

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/ingest/object/elf"
)

// TestProblems: damage in one function costs that one.
func TestProblems(t *testing.T) {
	code := slices.Concat(insn(opCall, 0, srcCall, 0xffffffff), exit())
	for _, c := range []struct {
		name    string
		section section
		want    string // in the error
		left    int    // functions
	}{
		{name: "beyond the section",
			section: section{name: "xdp", code: code, funcs: []symbol{{name: "a", start: 0,
				end: 24}, {name: "b", start: 8, end: 16}}},
			want: "function a: 24 bytes at 0x0 of section xdp, which has 16", left: 1},
		{name: "between instructions",
			section: section{name: "xdp", code: code, funcs: []symbol{{name: "a", start: 4,
				end: 12}}},
			want: "function a: 8 bytes at 0x4", left: 0},
		{name: "empty", section: section{name: "xdp", code: code, funcs: []symbol{{name: "a",
			start: 8, end: 8}}},
			want: "function a: 0 bytes", left: 0},
		{name: "call of nothing",
			section: section{name: "xdp", code: slices.Concat(insn(opCall, 0, srcCall, 77), exit())},
			want:    "instruction 0 refers to no function of section xdp", left: 1},
		{name: "call before the section",
			section: section{name: "xdp", code: slices.Concat(insn(opCall, 0, srcCall, 0x80000000), exit())},
			want:    "instruction 0 refers to no function", left: 1},
		{name: "relocation of no symbol",
			section: section{name: "xdp", code: code, relocs: []elfbuild.Reloc{
				{Offset: 0, Symbol: 9, Type: reloc6432}}},
			want: "relocation of symbol 9 at 0x0 is outside", left: 1},
		{name: "relocation of no instruction",
			section: section{name: "xdp", code: code, relocs: []elfbuild.Reloc{
				{Offset: 16, Symbol: 1, Type: reloc6432}}},
			want: "relocation of symbol 1 at 0x10 is outside", left: 1},
	} {
		o, err := readBytes(t, object(false, c.section))
		if err == nil || !strings.Contains(err.Error(), c.want) || len(o.Functions) != c.left {
			t.Errorf("%s: %d functions, error %v, want %q", c.name, len(o.Functions), err, c.want)
		}
	}
}

// TestNoObject: other files are refused.
func TestNoObject(t *testing.T) {
	b := elfbuild.Lib([]byte("0123456789"), 0x1000).Bytes()
	f, err := elf.Open("lib.so", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(f); err == nil || Is(f) {
		t.Errorf("a library is taken for a BPF object: %v", err)
	}
}

// TestCircle: recursive functions end.
func TestCircle(t *testing.T) {
	two := section{name: textSection, code: slices.Concat(calls(1), calls(1)),
		funcs: []symbol{{name: "a", start: 0, end: 16}, {name: "b", start: 16, end: 32}},
		relocs: []elfbuild.Reloc{{Offset: 0, Symbol: 2, Type: reloc6432},
			{Offset: 16, Symbol: 1, Type: reloc6432}}}
	main := section{name: "xdp", code: calls(1),
		relocs: []elfbuild.Reloc{{Offset: 0, Symbol: 1, Type: reloc6432}}}
	o, err := readBytes(t, object(false, two, main))
	if err != nil {
		t.Fatal(err)
	}
	if f := o.named(t, "f1"); f.Count != 6 || len(f.Tags) != 2 || !f.Program {
		t.Errorf("%+v", f)
	}
	if f := o.named(t, "a"); f.Program || f.Tags != nil {
		t.Errorf("%+v", f)
	}
}

// TestLimits: programs that all call the same large subprogram are not all assembled.
func TestLimits(t *testing.T) {
	large := section{name: textSection, code: make([]byte, (maxProgram-2)*insnSize)}
	tooLarge := section{name: "xdp", code: slices.Concat(make([]byte, 8), calls(1)),
		relocs: []elfbuild.Reloc{{Offset: 8, Symbol: 1, Type: reloc6432}}}
	o, err := readBytes(t, object(false, large, tooLarge))
	if err == nil || !strings.Contains(err.Error(), "program f1: more than 1048576 instructions") {
		t.Errorf("error %v", err)
	}
	if f := o.named(t, "f1"); f.Tags != nil || f.Count != 0 {
		t.Errorf("%+v", f)
	}
	sections := []section{large}
	for range maxLinked/maxProgram + 2 {
		sections = append(sections, section{name: "xdp", code: calls(1),
			relocs: []elfbuild.Reloc{{Offset: 0, Symbol: 1, Type: reloc6432}}})
	}
	if _, err = readBytes(t, object(false, sections...)); err == nil ||
		!strings.Contains(err.Error(), "of all programs with their subprograms") {
		t.Errorf("error %v", err)
	}
}

// TestTruncated reads every prefix of an object.
func TestTruncated(t *testing.T) {
	b := must.Read(t, "testdata/shapes.bpf.o")
	for n := range b {
		f, err := elf.Open("test.o", bytes.NewReader(b[:n]), int64(n))
		if err == nil && Is(f) {
			o, _ := Read(f)
			check(t, o)
		}
	}
}

// check checks the invariants of any object.
func check(t *testing.T, o *Object) {
	t.Helper()
	for i := range o.Functions {
		f := &o.Functions[i]
		if f.Length == 0 || f.Length%insnSize != 0 || len(f.Tags) > 4 || (f.Count > 0) != (f.Tags != nil) ||
			!f.Program && f.Count > 0 {
			t.Fatalf("%+v", f)
		}
		for k, l := range f.Lines {
			if l.Offset >= f.Length || k == 0 && l.Offset != 0 || l.Line == 0 ||
				k > 0 && l.Offset <= f.Lines[k-1].Offset {
				t.Fatalf("%s: line %d is %+v", f.Name, k, l)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"shapes.bpf.o", "count.bpf.o"} {
		b := must.Read(f, "testdata/"+name)
		f.Add(b)
	}
	f.Add(object(true, section{name: "xdp", code: calls(1),
		relocs: []elfbuild.Reloc{{Offset: 0, Symbol: 1, Type: reloc6432}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := elf.Open("fuzz.o", bytes.NewReader(b), int64(len(b)))
		if err != nil || !Is(file) {
			return
		}
		o, err := Read(file)
		check(t, o)
		again, _ := Read(file)
		if o.text() != again.text() {
			t.Fatal("read twice, it differs")
		}
		if err == nil && len(o.Functions) > len(b) {
			t.Fatalf("%d functions in %d bytes", len(o.Functions), len(b))
		}
	})
}

func BenchmarkRead(b *testing.B) {
	data := must.Read(b, "testdata/shapes.bpf.o")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := elf.Open("shapes.bpf.o", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Read(f); err != nil {
			b.Fatal(err)
		}
	}
}
