package main

import (
	"bytes"
	stdelf "debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/elf"
)

// btfKernel is kernelImage with the types of its functions: long do_work(struct item *), and a variable of
// processors.
func btfKernel(t *testing.T, id []byte) *elfbuild.File {
	t.Helper()
	b := btf.NewBuilder(false, 8)
	b.Add([]btf.Def{
		{Kind: btf.KindInt, Name: "long int", Size: 8, Int: btf.Int{Bits: 64, Signed: true}},
		{Kind: btf.KindStruct, Name: "item", Size: 24, Items: []btf.DefItem{{Name: "next", Ref: 3}, {Name: "value", Ref: 1, Value: 64},
			{Name: "rest", Ref: 1, Value: 128}}},
		{Kind: btf.KindPtr, Ref: 2},
		{Kind: btf.KindFuncProto, Ref: 1, Items: []btf.DefItem{{Name: "it", Ref: 3}, {Name: "n", Ref: 1}}},
		{Kind: btf.KindFunc, Name: "do_work", Ref: 4},
		{Kind: btf.KindVar, Name: "last_item", Ref: 3, Len: 1},
	})
	types, _, err := b.Types("built")
	if err != nil {
		t.Fatal(err)
	}
	f := kernelImage(id)
	// mov 8(%rdi),%rax; mov %gs:32,%rcx; mov %rax,16(%rcx); mov (%rax),%rax; ret
	f.Sections[0].Data = append(f.Sections[0].Data[:0x100], "\x48\x8b\x47\x08\x65\x48\x8b\x0c\x25\x20\x00\x00\x00\x48\x89\x41\x10\x48\x8b\x00\xc3"...)
	f.Symbols[2].Size, f.Symbols[3].Value = 20, linkedText+0x114
	f.Symbols = append(f.Symbols, elfbuild.Symbol{Name: "last_item", Value: 32, Size: 8, Type: stdelf.STT_OBJECT,
		Bind: stdelf.STB_GLOBAL, Section: ".data..percpu"})
	return f.With(elfbuild.Section{Name: ".BTF", Type: stdelf.SHT_PROGBITS, Flags: stdelf.SHF_ALLOC, Addr: linkedText + 0x5000,
		Data: types.Raw()}).With(elfbuild.Section{Name: ".data..percpu", Type: stdelf.SHT_PROGBITS,
		Flags: stdelf.SHF_ALLOC | stdelf.SHF_WRITE, Data: make([]byte, 64)})
}

// moduleID returns the build ID of a file.
func moduleID(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f.ID.Bytes()
}

// TestTypesOfKernel reports the members that a kernel and a module access: of the kernel by BTF, of the module by
// DWARF and by BTF, from files and from a store.
func TestTypesOfKernel(t *testing.T) {
	dir := t.TempDir()
	kernelID := slices.Repeat([]byte{7}, 20)
	vmlinux := filepath.Join(dir, "vmlinux")
	if err := os.WriteFile(vmlinux, btfKernel(t, kernelID).Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		module, mark string
	}{{"module.ko", ""}, {"module.btf.ko", " [BTF]"}} {
		t.Run(c.module, func(t *testing.T) {
			module, err := filepath.Abs(filepath.Join("../../fixtures/types", c.module))
			if err != nil {
				t.Fatal(err)
			}
			id := moduleID(t, module)
			f := perfbuild.New()
			f.KernelMap2("_text", runText, runText, 0x10000000, kernelID)
			f.Mmap2(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: moduleAddr, Len: 0x1000, BuildID: id,
				Filename: "[module]"}, perfbuild.At{})
			f.Comm(7, 7, "app", true, perfbuild.At{Time: 1})
			for _, pc := range []uint64{runText + 0x100, runText + 0x10d, runText + 0x10d, runText + 0x111, moduleAddr + 0x18, moduleAddr + 0x89} {
				f.Sample(perfbuild.Sample{PID: 7, Time: 3, Chain: []uint64{perfbuild.ContextKernel, pc}})
			}
			capture := filepath.Join(dir, c.module+".data")
			if err := os.WriteFile(capture, f.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			store := filepath.Join(dir, c.module+".store")
			files := []string{"--vmlinux", vmlinux, "--with", module}
			want := []string{"struct item.rest [BTF]", "struct item.value [BTF]", "(address not followed)",
				"struct item.i_key" + c.mark, "struct shared.s_limit" + c.mark}
			top := runMain(t, append([]string{"--store", store, "top", "-q", "--by", "field", capture}, files...)...)
			page := runMain(t, append([]string{"--store", store, "annotate", "-q", "--types", capture, "do_work"}, files...)...)
			for _, text := range want {
				if !strings.Contains(top, text+"\n") {
					t.Errorf("no %q in\n%s", text, top)
				}
			}
			for _, text := range []string{"; struct item.value [BTF]\n", "struct item [BTF]: "} {
				if !strings.Contains(page, text) {
					t.Errorf("no %q in\n%s", text, page)
				}
			}
			if c.mark != "" {
				return // of modules with BTF there is no table
			}
			runMain(t, "--store", store, "index", "-q", "--types", vmlinux, module)
			if stored := runMain(t, "--store", store, "top", "-q", "--by", "field", "--no-local", capture); stored != top {
				t.Errorf("from the store\n%s\nfrom files\n%s", stored, top)
			}
		})
	}
}
