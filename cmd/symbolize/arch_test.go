package main

import (
	"bytes"
	"cmp"
	"os"
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/fixtures/perfbuild"
)

// foreignCapture is a perf.data of another machine with two samples in a BPF program,
// the second in its subprogram.
func foreignCapture(arch string, big bool, text uint64, code []byte) []byte {
	f := perfbuild.NewOrder(big)
	f.FeatureString(perfbuild.FeatureArch, arch)
	f.KernelMap("_text", text, text, 0x1000000)
	p := bpfbuild.Program{Type: 17, ID: 7, BTFID: 3, Name: "on_enter",
		Tag: [8]byte(bytes.Repeat([]byte{0xa0}, 8))}
	for i, name := range []string{"on_enter", "count_call"} {
		p.Funcs = append(p.Funcs, bpfbuild.Func{Name: name, Code: code,
			Tag:   [8]byte(bytes.Repeat([]byte{0xa1 + byte(i)}, 8)),
			Start: text + 0x2000000 + uint64(i)*0x1000,
			Lines: []bpfbuild.Line{{Line: uint32(10 * (i + 1)), File: "prog.bpf.c", Source: "{"},
				{At: 4, Insn: 2, Line: uint32(10*(i+1)) + 1, File: "prog.bpf.c", Source: "x++;"}}})
	}
	info, blobs := bpfbuild.Sections(big, p)
	f.Feature(perfbuild.FeatureBPFProgInfo, info)
	f.Feature(perfbuild.FeatureBPFBTF, blobs)
	where := perfbuild.At{PID: 9, TID: 9, Time: 2}
	for i, symbol := range []string{"bpf_prog_a0a0a0a0a0a0a0a0_on_enter",
		"bpf_prog_a2a2a2a2a2a2a2a2_count_call"} {
		f.KSymbol(p.Funcs[i].Start, uint32(len(code)), 1, false, symbol, where)
	}
	f.BPFEvent(1, p.ID, p.Tag, where)
	f.Comm(9, 9, "app", true, perfbuild.At{Time: 1})
	f.Sample(perfbuild.Sample{PID: 9, Time: 3, Chain: []uint64{perfbuild.ContextKernel,
		p.Funcs[0].Start + 4}})
	f.Sample(perfbuild.Sample{PID: 9, Time: 4, Chain: []uint64{perfbuild.ContextKernel,
		p.Funcs[1].Start, p.Funcs[0].Start + 8}})
	return f.Bytes()
}

// TestForeignMachines: captures of other machines and byte orders have the names and lines
// of their BPF programs; annotate has the instructions where it knows the machine, and reports
// where it does not.
func TestForeignMachines(t *testing.T) {
	const main, sub = "bpf_prog_a0a0a0a0a0a0a0a0_on_enter", "bpf_prog_a2a2a2a2a2a2a2a2_count_call"
	for _, m := range []struct {
		arch string
		big  bool
		text uint64
		nop  string // "" where annotate does not know the machine
	}{
		{arch: "aarch64", text: 0xffff800080000000, nop: "\x1f\x20\x03\xd5"},
		{arch: "loongarch64", text: 0x9000000000200000, nop: "\x00\x00\x40\x03"},
		{arch: "s390x", big: true, text: 0x100000},
		{arch: "ppc64le", text: 0xc000000000000000},
		{arch: "armv7l", text: 0x80000000},
	} {
		t.Run(m.arch, func(t *testing.T) {
			t.Chdir(t.TempDir())
			code := []byte(strings.Repeat(cmp.Or(m.nop, "\x07\x07\x07\x07"), 16))
			b := foreignCapture(m.arch, m.big, m.text, code)
			if err := os.WriteFile("perf.data", b, 0o666); err != nil {
				t.Fatal(err)
			}
			out := runMain(t, "--store", "none", "resolve", "-q", "--format", "json", "perf.data",
				"-o", "-")
			for _, frame := range []string{
				`"FunctionName":"` + main + `","FileName":"prog.bpf.c","Line":11,"StartLine":10,`,
				`"FunctionName":"` + sub + `","FileName":"prog.bpf.c","Line":20,"StartLine":20,`,
			} {
				if !strings.Contains(out, frame) {
					t.Errorf("no %s in\n%s", frame, out)
				}
			}
			env, stdout, stderr := inProcess("--store", "none", "annotate", "-q", "perf.data", "id:7")
			status, want := Main(t.Context(), env), ">  100.00 |      4 |    nop\n"
			if m.nop == "" {
				want = `error: ` + main + `: no disassembler for this machine: "` + m.arch + `"`
			}
			if text := stdout.String() + stderr.String(); !strings.Contains(text, want) ||
				(status == 0) != (m.nop != "") {
				t.Errorf("exit status %d, no %q in\n%s", status, want, text)
			}
		})
	}
}
