package annotate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/disasm"
	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// fakeCode is the CodeSource of these tests: code by the name of the function.
var sampleID = buildid.New(bytes.Repeat([]byte{1}, 20))

// failing is a closed pipe.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

type fakeCode map[string]*Code

type hintedError struct{ error }

func (hintedError) Hint() string { return "look\x1b elsewhere" }

func (c fakeCode) Code(_ *ingest.Object, f *HotFunction) (*Code, error) {
	if code := c[f.SystemName]; code != nil {
		return code, nil
	}
	return nil, hintedError{errors.New("no image: gone before it could be read")}
}

// loopCode is a small function: a loop with a call of a helper, inlined code, data next
// to it, and a byte that is no instruction.
const loopCode = "\x55" + // 0 push %rbp
	"\x48\x8b\x05\x10\x00\x00\x00" + // 1 mov 0x10(%rip),%rax
	"\xe8\xf3\x0f\x00\x00" + // 8 call +0xff3
	"\x48\xff\xc8" + // d dec %rax
	"\x75\xf6" + // 10 jne 8
	"\xe8\xe9\xff\xff\xff" + // 12 call 0
	"\x06" + // 17
	"\xc3" // 18 ret

const loopPC = 0xffffffffc0001000

func loopLines(offsets []int) []CodeLine {
	lines := make([]CodeLine, len(offsets))
	for i, at := range offsets {
		switch {
		case at < 8:
			lines[i] = CodeLine{File: "/src/loop.c", Line: 3, Source: "{\t/* \x1b[31m */"}
		case at < 0xd:
			lines[i] = CodeLine{File: "/src/inc/helper.h", Line: 7, Column: 2,
				Source: "\treturn helper();", Inlined: []string{"outer", "_ZN1a5innerEi"}}
		case at < 0x17:
			lines[i] = CodeLine{File: "/src/loop.c", Line: 5, Source: "\twhile (--n)"}
		}
	}
	return lines
}

func loopSymbols(pcs []addr.PC) []CodeSymbol {
	names := make([]CodeSymbol, len(pcs))
	for i, pc := range pcs {
		switch pc {
		case loopPC + 0x1000:
			names[i] = CodeSymbol{Name: "bpf_map_lookup_elem"}
		case loopPC + 0x18:
			names[i] = CodeSymbol{Name: "_ZN1a5tableE", Offset: 8}
		}
	}
	return names
}

func loopSource() fakeCode {
	return fakeCode{"bpf_prog_0102030405060708_loop": {
		Machine: "x86_64", PC: loopPC, Bytes: []byte(loopCode), Origin: "image of program 7",
		Notes: []string{"1 more load"}, Lines: loopLines, Symbols: loopSymbols,
	}}
}

// loopProfile has samples in a function with known code, in one without, and in a place without a
// name.
func loopProfile() *ingest.Profile {
	b := profilebuild.New(profilebuild.Clock(), ingest.Event{Name: "cycles:upp", Unit: "count"})
	prog := b.Object(ingest.Object{Kind: ingest.JIT, ID: sampleID,
		File: ingest.FileRef{Path: "bpf_prog_0102030405060708_loop"}})
	gone := b.Object(ingest.Object{Kind: ingest.JIT,
		File: ingest.FileRef{Path: "bpf_prog_1112131415161718_gone"}})
	other := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/x"}})
	place := func(o profilebuild.Object, off addr.Offset) profilebuild.Place {
		return profilebuild.Place{Object: o, Offset: off}
	}
	for _, off := range []addr.Offset{8, 0xa, 0xc, 0x10, 0x11, 0x16, 0x40} {
		b.Name(place(prog, off), uint64(off),
			profilebuild.Frame{Name: "bpf_prog_0102030405060708_loop"})
	}
	b.Name(place(gone, 4), 4, profilebuild.Frame{Name: "bpf_prog_1112131415161718_gone"})
	b.Unresolved(place(other, 9), ingest.Stripped)
	row := func(event int, count, weight uint64, stack ...profilebuild.Place) {
		b.Row(profilebuild.Row{Event: event, PID: -1, TID: -1, CPU: -1, Count: count,
			Weight: weight, Stack: stack})
	}
	// Leaves; offset 0xa is inside the call at 8, as skid of a sampler may cause.
	row(0, 4, 4000, place(prog, 8), place(prog, 0x16))
	row(0, 2, 2000, place(prog, 0xa))
	row(0, 1, 3000, place(prog, 0x10))
	row(0, 1, 1000, place(prog, 0x40)) // behind the code
	row(0, 1, 500, place(gone, 4), place(prog, 0xc), place(prog, 0x16), place(prog, 0x16))
	row(0, 3, 900, place(other, 9), place(prog, 0xc))
	row(1, 1, 10, place(prog, 0x11))
	return b.Profile()
}

func TestAnnotateGolden(t *testing.T) {
	p := loopProfile()
	text := func(opts Options, style TextStyle) func(io.Writer) error {
		return func(w io.Writer) error {
			return New(p, loopSource(), opts).WriteText(w, style)
		}
	}
	golden.Text(t, "annotate.txt", text(Options{}, TextStyle{}))
	golden.Text(t, "annotate-addresses.txt", text(Options{Count: true},
		TextStyle{Addresses: true, Bytes: true}))
	golden.Text(t, "annotate-children.txt", text(Options{Children: true}, TextStyle{}))
	golden.Text(t, "annotate-intel.txt", text(Options{Syntax: disasm.Intel, Limit: 1},
		TextStyle{}))
	golden.Text(t, "annotate-precise.txt", text(Options{Event: 1}, TextStyle{}))
	golden.Text(t, "annotate.json", func(w io.Writer) error {
		return New(p, loopSource(), Options{}).WriteJSON(w)
	})
}

// TestAnnotateCounts: each sample is counted in one instruction or outside, percentages are of the
// function, and with Children a call counts its callees, recursion once.
func TestAnnotateCounts(t *testing.T) {
	p := loopProfile()
	for _, tt := range []struct {
		opts    Options
		samples uint64
		weight  uint64
		counts  map[int]uint64 // by offset, samples
		outside uint64
	}{
		{opts: Options{}, samples: 8, weight: 10000, counts: map[int]uint64{8: 6, 0x10: 1},
			outside: 1},
		{opts: Options{Event: 1}, samples: 1, weight: 10, counts: map[int]uint64{0x10: 1},
			outside: 0},
		// A sample counts once for the function, and once for each of its places there.
		{opts: Options{Children: true}, samples: 12, weight: 11400,
			counts: map[int]uint64{8: 10, 0x10: 1, 0x12: 5}, outside: 1},
	} {
		a := New(p, loopSource(), tt.opts)
		if len(a.Functions) != 1 {
			t.Fatalf("%+v: %d functions", tt.opts, len(a.Functions))
		}
		f := &a.Functions[0]
		if f.Samples != tt.samples || f.Weight != tt.weight || f.Outside != tt.outside {
			t.Errorf("%+v: %d samples, weight %d, %d outside", tt.opts, f.Samples, f.Weight,
				f.Outside)
		}
		bytes, percent := 0, 0.0
		for _, in := range f.Instructions {
			bytes += len(in.Bytes) / 2
			percent += in.Percent
			if in.Samples != tt.counts[in.Offset] {
				t.Errorf("%+v: %d samples at %#x, want %d", tt.opts, in.Samples, in.Offset,
					tt.counts[in.Offset])
			}
		}
		if bytes != len(loopCode) || percent > 100.001 && !tt.opts.Children {
			t.Errorf("%+v: %d bytes, %.2f%%", tt.opts, bytes, percent)
		}
	}
}

func TestAnnotateChoice(t *testing.T) {
	p := loopProfile()
	a := New(p, fakeCode{}, Options{})
	if len(a.Functions) != 0 || len(a.Missing) != 2 ||
		a.Missing[0].Name != "bpf_prog_0102030405060708_loop" || a.Missing[0].Weight != 10000 ||
		a.Missing[0].Hint != "look? elsewhere" {
		t.Errorf("without code: %+v", a)
	}
	a = New(p, loopSource(), Options{Choose: func(list []HotFunction) []HotFunction {
		return slices.DeleteFunc(list, func(f HotFunction) bool {
			return !strings.HasSuffix(f.SystemName, "gone")
		})
	}})
	if len(a.Functions) != 0 || len(a.Missing) != 1 || a.Missing[0].Samples != 1 {
		t.Errorf("one of them: %+v", a)
	}
	a = New(p, loopSource(), Options{Limit: 1})
	if len(a.Functions) != 1 || a.Left != 1 {
		t.Errorf("limit: %d functions, %d left", len(a.Functions), a.Left)
	}
	unknown := loopSource()
	unknown["bpf_prog_0102030405060708_loop"].Machine = "riscv64"
	if a = New(p, unknown, Options{}); len(a.Missing) != 2 ||
		!strings.Contains(a.Missing[0].Reason, disasm.ErrMachine.Error()) {
		t.Errorf("another machine: %+v", a.Missing)
	}
	huge := loopSource()
	huge["bpf_prog_0102030405060708_loop"].Bytes = make([]byte, MaxCode+1)
	if a = New(p, huge, Options{}); len(a.Missing) != 2 ||
		!strings.Contains(a.Missing[0].Reason, "over the limit of 4 MiB") {
		t.Errorf("too large: %+v", a.Missing)
	}
	p.Names = nil
	if a = New(p, loopSource(), Options{}); len(a.Functions)+len(a.Missing) != 0 {
		t.Errorf("without names: %+v", a)
	}
}

// TestAnnotateManyWithout: functions without code are listed under their reason, once, and the
// tail of a long list is a sum.
func TestAnnotateManyWithout(t *testing.T) {
	for n, tail := range map[int]string{
		missingRows + 3: "     7.45%  f09 ([kernel.kallsyms])\n    21.85%  3 functions more\n",
		missingRows + 1: "     8.71%  f09 ([kernel.kallsyms])\n     8.61%  1 function more\n",
		missingRows:     "     9.53%  f09 ([kernel.kallsyms])\n",
	} {
		b := profilebuild.New(profilebuild.Clock())
		o := b.Object(ingest.Object{Kind: ingest.Kernel,
			File: ingest.FileRef{Path: "[kernel.kallsyms]"}})
		for i := range n {
			place := profilebuild.Place{Object: o, Offset: addr.Offset(i) * 16}
			b.Name(place, 0, profilebuild.Frame{Name: fmt.Sprintf("f%02d", i)})
			b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 100 - uint64(i),
				Stack: []profilebuild.Place{place}})
		}
		var out bytes.Buffer
		if err := New(b.Profile(), fakeCode{}, Options{}).WriteText(&out,
			TextStyle{}); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if strings.Count(text, "gone before") != 1 || strings.Count(text, "elsewhere") != 1 ||
			strings.Contains(text, "f10") || !strings.HasSuffix(text, tail) {
			t.Errorf("%d functions:\n%s", n, text)
		}
	}
}

// TestAnnotateHottest: the first of those with most samples is the hottest, instruction and
// line, anywhere in the listing.
func TestAnnotateHottest(t *testing.T) {
	for weights, want := range map[[3]uint64]int{{9, 1, 2}: 0, {1, 9, 2}: 1, {1, 2, 9}: 2,
		{5, 5, 5}: 0, {0, 4, 4}: 1, {}: -1} {
		b := profilebuild.New(profilebuild.Clock())
		o := b.Object(ingest.Object{Kind: ingest.JIT, ID: sampleID})
		for i, w := range weights {
			place := profilebuild.Place{Object: o, Offset: addr.Offset(i)}
			b.Name(place, uint64(i), profilebuild.Frame{Name: "f"})
			if w > 0 {
				b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: w,
					Stack: []profilebuild.Place{place}})
			}
		}
		outside := profilebuild.Place{Object: o, Offset: 3} // behind the code
		b.Name(outside, 3, profilebuild.Frame{Name: "f"})
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 20,
			Stack: []profilebuild.Place{outside}})
		source := fakeCode{"f": {Machine: "x86_64", Bytes: []byte("\x90\x90\x90"),
			Lines: func(offsets []int) []CodeLine {
				lines := make([]CodeLine, len(offsets))
				for i := range lines {
					lines[i] = CodeLine{File: "f.c", Line: uint32(1 + i)}
				}
				return lines
			}}}
		f := &New(b.Profile(), source, Options{}).Functions[0]
		for i := range f.Instructions {
			if f.Instructions[i].Hottest != (i == want) {
				t.Errorf("%v: instruction %d: hottest %v", weights, i, f.Instructions[i].Hottest)
			}
		}
		for i := range f.Lines {
			if l := &f.Lines[i]; l.Hottest != (int(l.Line) == want+1) {
				t.Errorf("%v: line %d: hottest %v", weights, l.Line, l.Hottest)
			}
		}
	}
}

// TestAnnotateJSON: the golden file is valid JSON, with lists where others would have null, and
// without control characters.
func TestAnnotateJSON(t *testing.T) {
	for _, p := range []*ingest.Profile{loopProfile(), {}} {
		var out bytes.Buffer
		if err := New(p, loopSource(), Options{}).WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		var v struct {
			Functions []struct {
				Instructions []map[string]any
				Lines        []map[string]any
			}
		}
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if v.Functions == nil || bytes.ContainsAny(out.Bytes(), "\x1b") ||
			strings.Contains(out.String(), `\u001b`) {
			t.Errorf("%s", out.Bytes())
		}
	}
	if err := New(loopProfile(), loopSource(), Options{}).WriteText(failing{},
		TextStyle{}); err == nil {
		t.Error("no error from a writer that fails")
	}
}

// TestAnnotateColour: without its colours a coloured listing is the plain one.
func TestAnnotateColour(t *testing.T) {
	a := New(loopProfile(), loopSource(), Options{})
	var plain, coloured bytes.Buffer
	if err := errors.Join(a.WriteText(&plain, TextStyle{}),
		a.WriteText(&coloured, TextStyle{Colour: true})); err != nil {
		t.Fatal(err)
	}
	paint := table.Style{Color: true}.Paint
	for _, want := range []string{paint(table.Red, "   60.00"), "\x1b[34m; helper.h:7",
		"\x1b[1m-> call"} {
		if !strings.Contains(coloured.String(), want) {
			t.Errorf("no %q in %q", want, coloured.String())
		}
	}
	text := coloured.String()
	for _, c := range []string{"0", "1", "31", "32", "34"} {
		text = strings.ReplaceAll(text, "\x1b["+c+"m", "")
	}
	if text != plain.String() {
		t.Errorf("%s\nis not\n%s", text, plain.String())
	}
}

func TestPrecise(t *testing.T) {
	for event, want := range map[string]bool{"cycles": false, "cycles:u": false, "cycles:pp": true,
		"cycles:uppp": true, "cycles:p": false, "cycles:P": true, "sched:sched_switch": false,
		"cpu/event=0xc0/pp": false, "instructions:ppk": true} {
		if got := precise(event); got != want {
			t.Errorf("%s: %v", event, got)
		}
	}
}

func BenchmarkAnnotate(b *testing.B) {
	p := loopProfile()
	source := loopSource()
	code := source["bpf_prog_0102030405060708_loop"]
	code.Bytes = bytes.Repeat(code.Bytes, 200)
	b.SetBytes(int64(len(code.Bytes)))
	b.ReportAllocs()
	for b.Loop() {
		if err := New(p, source, Options{}).WriteText(io.Discard,
			TextStyle{}); err != nil {
			b.Fatal(err)
		}
	}
}
