package main

import (
	stdelf "debug/elf"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/format/bundle"
)

// Parts of the kernel and the module of TestAnnotateKernel.
const (
	linkedText = 0xffffffff81000000 // where vmlinux has _text
	runText    = 0xffffffff9a200000 // where it ran
	moduleAddr = 0xffffffffc0400000
	// 0 push %rbp; 1 call helper; 6 pop %rbp; 7 ret; 16 helper: ret
	caller = "\x55\xe8\x0a\x00\x00\x00\x5d\xc3" + "\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc" + "\xc3"
)

func kernelImage(id []byte) *elfbuild.File {
	f := &elfbuild.File{Type: stdelf.ET_EXEC}
	code := append(slices.Repeat([]byte{0x90}, 0x100), caller...)
	f.Sections = []elfbuild.Section{
		{Name: ".text", Flags: elfbuild.Code, Addr: linkedText, Data: code, Align: 4096,
			Congruent: true},
		{Name: "__ksymtab", Flags: stdelf.SHF_ALLOC, Addr: linkedText + 0x2000,
			Data: make([]byte, 8)},
		{Name: "__param", Flags: stdelf.SHF_ALLOC, Addr: linkedText + 0x2100,
			Data: make([]byte, 8)},
		{Name: ".init.text", Flags: elfbuild.Code, Addr: linkedText + 0x3000,
			Data: make([]byte, 16)},
		{Name: ".notes", Type: stdelf.SHT_NOTE, Flags: stdelf.SHF_ALLOC, Addr: linkedText + 0x4000,
			Align: 4, Data: f.BuildIDNote(id)},
	}
	f.Segments = []elfbuild.Segment{
		{Flags: stdelf.PF_R | stdelf.PF_X, From: ".text", To: ".text", Align: 4096},
		{Type: stdelf.PT_NOTE, Flags: stdelf.PF_R, From: ".notes", To: ".notes", Align: 4},
	}
	for _, s := range []elfbuild.Symbol{
		{Name: "_text", Value: linkedText}, {Name: "_stext", Value: linkedText},
		{Name: "do_work", Value: linkedText + 0x100, Size: 8, Type: stdelf.STT_FUNC},
		{Name: "helper", Value: linkedText + 0x110, Size: 1, Type: stdelf.STT_FUNC},
	} {
		s.Section, s.Bind = ".text", stdelf.STB_GLOBAL
		f.Symbols = append(f.Symbols, s)
	}
	return f
}

// moduleImage has the call of helper as a relocation, as the compiler leaves it.
func moduleImage(id []byte) *elfbuild.File {
	f := elfbuild.Module(id, 0x20, elfbuild.Func{Name: "demo_work", Offset: 0, Size: 8},
		elfbuild.Func{Name: "demo_helper", Offset: 16, Size: 1})
	code := []byte(caller)
	copy(code[2:6], make([]byte, 4))
	copy(f.Sections[0].Data, code)
	const helper = 2 // number of the symbol
	return f.With(elfbuild.Section{Name: ".rela.text", Type: stdelf.SHT_RELA, Link: ".symtab",
		Info: 1, EntSize: 24, Data: f.Rela(true, elfbuild.Reloc{Offset: 2, Symbol: helper,
			Type: uint32(stdelf.R_X86_64_PLT32), Addend: ^uint64(3)})})
}

// TestAnnotateKernel: code of a kernel that ran at other addresses than it was linked to, and of a
// module with relocated calls, each with the facts that are known of it.
func TestAnnotateKernel(t *testing.T) {
	dir := t.TempDir()
	kernelID, moduleID := slices.Repeat([]byte{7}, 20), slices.Repeat([]byte{8}, 20)
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	vmlinux := write("vmlinux", kernelImage(kernelID).Bytes())
	module := write("demo.ko", moduleImage(moduleID).Bytes())
	f := perfbuild.New()
	f.KernelMap2("_text", runText, runText, 0x10000000, kernelID)
	f.Mmap2(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: moduleAddr, Len: 0x1000,
		BuildID: moduleID, Filename: "[demo]"}, perfbuild.At{})
	f.Comm(7, 7, "app", true, perfbuild.At{Time: 1})
	for _, pc := range []uint64{runText + 0x106, runText + 0x106, moduleAddr + 7} {
		f.Sample(perfbuild.Sample{PID: 7, Time: 3, Chain: []uint64{perfbuild.ContextKernel, pc}})
	}
	capture := write("perf.data", f.Bytes())
	store := filepath.Join(dir, "store")
	want := map[string][]string{
		"do_work": {
			"  code: " + vmlinux + ", 8 bytes at 0xffffffff81000100\n",
			"  note: code of the file: the running kernel patches",
			"     0.00 |      1 |    call   ffffffff81000110 <helper>\n",
			">  100.00 |      6 |    pop    %rbp\n",
		},
		"demo_work": {
			"  code: " + module + ", 8 bytes at 0x0\n",
			"  note: code of the file, with relocations inside the module applied",
			"     0.00 |      1 |    call   10 <demo_helper>\n",
			">  100.00 |      7 |    ret\n",
		},
	}
	check := func(args ...string) {
		t.Helper()
		for name, texts := range want {
			out := runMain(t, append([]string{"--store", store, "annotate", "-q", capture, name},
				args...)...)
			for _, text := range texts {
				if !strings.Contains(out, text) {
					t.Errorf("%s: no %q in\n%s", name, text, out)
				}
			}
		}
	}
	check("--vmlinux", vmlinux, "--with", module)
	runMain(t, "--store", store, "index", "-q", vmlinux, module)
	check()
	// Names from the store, and no file with the code any more.
	for _, path := range []string{vmlinux, module} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	write("vmlinux", kernelImage(kernelID).DebugOnly().Bytes())
	env, stdout, _ := inProcess("--store", store, "annotate", "-q", capture, ".*work")
	if status := Main(t.Context(), env); status != cli.Failed ||
		!strings.Contains(stdout.String(), "vmlinux has no code: it is a debug file") {
		t.Errorf("exit status %d\n%s", status, stdout)
	}
}

// TestAnnotateVDSO: a bundle has the code of its host's vdso, and is no file to look for
// other code in.
func TestAnnotateVDSO(t *testing.T) {
	dir := t.TempDir()
	vdsoID := slices.Repeat([]byte{9}, 20)
	image := elfbuild.Lib(vdsoID, 0x1000, elfbuild.Func{Name: "__vdso_time", Offset: 0, Size: 8})
	copy(image.Sections[1].Data, caller) // behind the note
	h := bundlebuild.NewHost()
	h.Entries = map[string][]byte{bundle.VDSOName(hex.EncodeToString(vdsoID)): image.Bytes()}
	const vdso = 0x7fff00000000
	f := perfbuild.New()
	f.Comm(7, 7, "app", true, perfbuild.At{Time: 1})
	f.Mmap2(perfbuild.Mmap{PID: 7, TID: 7, Addr: vdso, Len: 0x2000, BuildID: vdsoID,
		Filename: "[vdso]"}, perfbuild.At{Time: 1})
	f.KernelMap2("_text", h.Text, h.Text, 0x10000000, h.Kernel[:])
	for range 2 {
		f.Sample(perfbuild.Sample{PID: 7, Time: 3, Chain: []uint64{perfbuild.ContextUser,
			vdso + 0x1006}})
	}
	f.Sample(perfbuild.Sample{PID: 7, Time: 4, Chain: []uint64{perfbuild.ContextKernel,
		h.Text + bundlebuild.DoWork}})
	paths := map[string][]byte{"perf.data": f.Bytes(), "capture.data": h.Bundle()}
	for name, b := range paths {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, args := range [][]string{{"perf.data", "capture.data"},
		{"perf.data", "--with", "capture.data"}} {
		out := runMain(t, slices.Concat([]string{"--store", "none", "annotate", "-q"}, args,
			[]string{"__vdso_time", "do_work"})...)
		for _, text := range []string{
			"  code: capture.data: vdso/" + hex.EncodeToString(vdsoID) + ".so, 8 bytes at 0x401000\n",
			">  100.00 |      6 |    pop    %rbp\n",
			"  no vmlinux with build ID " + hex.EncodeToString(h.Kernel[:]) + " is at hand\n",
		} {
			if !strings.Contains(out, text) {
				t.Errorf("%q: no %q in\n%s", args, text, out)
			}
		}
	}
}
