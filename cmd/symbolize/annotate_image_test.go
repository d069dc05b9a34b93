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

// TestAnnotateImage: the code of a trampoline is that which perf record --kcore copied, up to the
// program after it in its page; without a copy the reason is that nothing else has it.
func TestAnnotateImage(t *testing.T) {
	const page, name = 0xffffffffc0025000, "bpf_trampoline_6442"
	dir := t.TempDir()
	f := perfbuild.New()
	f.FeatureString(perfbuild.FeatureArch, "x86_64")
	f.KernelMap2("_text", runText, runText, 0x10000000, slices.Repeat([]byte{7}, 20))
	f.KSymbol(page, 4096, 1, false, name, perfbuild.At{Time: 1})
	f.KSymbol(page+64, 8, 1, false, "bpf_prog_0123456789abcdef_next", perfbuild.At{Time: 1})
	f.Comm(7, 7, "app", true, perfbuild.At{Time: 1})
	for range 2 {
		f.Sample(perfbuild.Sample{PID: 7, Time: 3,
			Chain: []uint64{perfbuild.ContextKernel, page + 1, runText + 0x106}})
	}
	recording := filepath.Join(dir, "rec")
	write := func(name string, b []byte) {
		path := filepath.Join(recording, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("data", f.Bytes())
	run := func(status int) string {
		t.Helper()
		env, stdout, stderr := inProcess("--store", filepath.Join(dir, "none"), "annotate", "-q",
			recording, name)
		if got := Main(t.Context(), env); got != status {
			t.Errorf("status %d, want %d: %s", got, status, stderr)
		}
		return stdout.String()
	}
	check := func(out string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(out, text) {
				t.Errorf("no %q in\n%s", text, out)
			}
		}
	}
	const none = "  no image: the kernel wrote this code for itself, and only /proc/kcore shows it\n" +
		"  `perf record --kcore` copies it with the kernel's code\n"
	check(run(cli.Failed), none)

	list := fmt.Sprintf("%x T _text\n%x t %s\t[bpf]\n%x t bpf_prog_0123456789abcdef_next\t[bpf]\n",
		uint64(runText), uint64(page), name, uint64(page+64))
	code := slices.Concat([]byte{0x55, 0xe8}, []byte{58, 0, 0, 0}, []byte{0xc3}, // calls next
		slices.Repeat([]byte{0xcc}, 57), []byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3})
	core := func(at uint64) []byte {
		return (&elfbuild.File{Type: stdelf.ET_CORE, NoHeaders: true,
			Sections: []elfbuild.Section{{Name: ".text", Addr: at, Data: code, Align: 4096,
				Congruent: true}},
			Segments: []elfbuild.Segment{{Flags: stdelf.PF_R | stdelf.PF_X, From: ".text", To: ".text"}},
		}).Bytes()
	}
	write("kcore_dir/kallsyms", []byte(list))
	write("kcore_dir/kcore", core(page))
	out := run(cli.OK)
	check(out, "kcore_dir/kcore, 7 bytes at 0xffffffffc0025000\n", ">  100.00 |      1 | ",
		"call   ffffffffc0025040 <bpf_prog_0123456789abcdef_next>\n", "ret")
	write("kcore_dir/kcore", core(page+0x100000)) // it has other memory
	check(run(cli.Failed), none)
	write("kcore_dir/kcore", core(page))
	write("kcore_dir/kallsyms", []byte(list+list[strings.Index(list, "\n")+1:])) // two of the name
	check(run(cli.Failed), none)
}
