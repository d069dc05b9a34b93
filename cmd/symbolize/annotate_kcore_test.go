package main

import (
	stdelf "debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/perfbuild"
)

// TestAnnotateKcore: the code of the kernel is that which perf record --kcore copied, also beside a
// vmlinux, and where it ran elsewhere than it was linked to. A copy that cannot be read is a note
// or, alone, the reason.
func TestAnnotateKcore(t *testing.T) {
	dir := t.TempDir()
	id := slices.Repeat([]byte{7}, 20)
	f := perfbuild.New()
	f.KernelMap2("_text", runText, runText, 0x10000000, id)
	f.Comm(7, 7, "app", true, perfbuild.At{Time: 1})
	for range 2 {
		f.Sample(perfbuild.Sample{PID: 7, Time: 3,
			Chain: []uint64{perfbuild.ContextKernel, runText + 0x106}})
	}
	recording := filepath.Join(dir, "rec")
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	vmlinux := write("vmlinux", kernelImage(id).Bytes())
	write("rec/data", f.Bytes())
	var list strings.Builder
	for _, s := range []string{"000 T _text", "000 T _stext", "100 T do_work", "110 T helper",
		"111 T _etext"} {
		fmt.Fprintf(&list, "%x%s\n", uint64(runText)>>12, s)
	}
	write("rec/kcore_dir/kallsyms", []byte(list.String()))
	patched := []byte(caller)
	copy(patched[1:6], "\x0f\x1f\x44\x00\x00") // as the kernel patches a call out
	code := append(slices.Repeat([]byte{0x90}, 0x100), patched...)
	core := (&elfbuild.File{Type: stdelf.ET_CORE, NoHeaders: true,
		Sections: []elfbuild.Section{{Name: ".text", Addr: runText, Data: code, Align: 4096,
			Congruent: true}},
		Segments: []elfbuild.Segment{{Flags: stdelf.PF_R | stdelf.PF_X, From: ".text", To: ".text"}},
	}).Bytes()
	kcore := write("rec/kcore_dir/kcore", core)

	run := func(status int, args ...string) string {
		t.Helper()
		env, stdout, stderr := inProcess(append([]string{"--store", filepath.Join(dir, "none"),
			"annotate", "-q", recording, "do_work"}, args...)...)
		if got := Main(t.Context(), env); got != status {
			t.Errorf("%q: status %d, want %d: %s", args, got, status, stderr)
		}
		return stdout.String()
	}
	copied := []string{"  code: " + kcore + ", 16 bytes at 0xffffffff9a200100\n",
		"     0.00 |      1 |    nopl   0x0(%rax,%rax,1)\n", ">  100.00 |      6 |    pop    %rbp\n"}
	ofFile := []string{"  code: " + vmlinux + ", 8 bytes at 0xffffffff81000100\n",
		"  note: not the code of the recording: ", kcore + ": offset", "call   ffffffff81000110 <helper>\n"}
	check := func(out string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(out, text) {
				t.Errorf("no %q in\n%s", text, out)
			}
		}
	}
	out := run(cli.OK)
	check(out, copied...)
	if strings.Contains(out, "note:") {
		t.Errorf("a note:\n%s", out)
	}
	check(run(cli.OK, "--vmlinux", vmlinux), copied[0][:20], "nopl   0x0(%rax,%rax,1)\n")
	for _, cut := range []int{0, 10, 70} { // no file, no header, no segments
		write("rec/kcore_dir/kcore", core[:cut])
		check(run(cli.Failed), "without code:\n", kcore+": offset")
		check(run(cli.OK, "--vmlinux", vmlinux), ofFile...)
	}
}
