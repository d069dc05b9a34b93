package sideband

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
)

// TestKernelMapForms: the forms of the kernel's own mapping over versions of perf and machines.
func TestKernelMapForms(t *testing.T) {
	for _, tc := range []struct {
		name   string
		arch   string
		m      perfbuild.Mmap
		looks  []look
		hidden string // build ID of the hidden kernel, two digits
		ref    string // the kernel's reference symbol; "" if it is not mapped
	}{
		{name: "with a symbol", m: perfbuild.Mmap{Addr: text, Len: 0x1000, PgOff: text + 0x40,
			Filename: "[kernel.kallsyms]_stext"}, looks: []look{{-1, 1, text + 0x50, "[kernel.kallsyms]+0x10"}},
			ref: "_stext"},
		{name: "without a symbol", m: perfbuild.Mmap{Addr: text, Len: 0x1000, PgOff: text,
			Filename: "[kernel.kallsyms]"}, looks: []look{{-1, 1, text + 0x10, "[kernel.kallsyms]+0x10"}}, ref: "_text"},
		{name: "by its file", m: perfbuild.Mmap{Addr: text, Len: 0x1000, PgOff: text,
			Filename: "vmlinux-6.1.0"},
			looks: []look{{-1, 1, text + 0x10, "[kernel.kallsyms]+0x10"}}, ref: "_text"},
		{name: "perf before 3.x: no address, a length", arch: "aarch64", m: perfbuild.Mmap{Len: 0x1000,
			PgOff: text + 0x40, Filename: "[kernel.kallsyms]_text"},
			looks: []look{{-1, 1, text + 0x50, "[kernel.kallsyms]+0x10"}, {-1, 1, text - 1, "-"}}, ref: "_text"},
		{name: "perf before 3.x: the length is an end", arch: "aarch64", m: perfbuild.Mmap{Len: text + 0x20000000,
			PgOff: text + 0x40, Filename: "[kernel.kallsyms]_text"},
			looks: []look{{-1, 1, text + 0x1fffffff, "[kernel.kallsyms]+0x1fffffbf"}, {-1, 1, text + 0x20000000, "-"}},
			ref:   "_text"},
		{name: "hidden", arch: "x86_64", m: perfbuild.Mmap{Len: ^uint64(0), BuildID: sum(5),
			Filename: "[kernel.kallsyms]_text"}, looks: []look{{-1, 1, text, "-"}}, hidden: "05"},
		{name: "hidden, and never relocated", arch: "armv7l", m: perfbuild.Mmap{Len: 1 << 32,
			Filename: "[kernel.kallsyms]_text"}, looks: []look{{-1, 1, 0xc0008000, "[kernel.kallsyms]+0xc0008000"}},
			ref: ingest.LinkedAddresses},
		{name: "32-bit programs on a 64-bit kernel are relocated", arch: "armv8l",
			m: perfbuild.Mmap{Len: 1 << 32, Filename: "[kernel.kallsyms]_text"}, looks: []look{{-1, 1, 0xc0008000, "-"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			f.FeatureString(perfbuild.FeatureArch, tc.arch)
			tc.m.PID, tc.m.Misc = -1, perfbuild.Kernel
			f.Mmap2(tc.m, perfbuild.At{})
			sb := scan(t, f, ScanOptions{})
			check(t, sb, tc.looks)
			if sb.Kernel.symbol != tc.ref || sb.Kernel.Mapped != (tc.ref != "") {
				t.Errorf("mapped %v, by %q, want %q", sb.Kernel.Mapped, sb.Kernel.symbol, tc.ref)
			}
			if id := sb.Objects.List[HiddenKernel].ID; !id.IsZero() != (tc.hidden != "") ||
				tc.hidden != "" && id.Hex()[:2] != tc.hidden {
				t.Errorf("build ID of the hidden kernel %s", id)
			}
		})
	}
}

// note is the note of a kernel's build ID, as /sys/kernel/notes has it.
func note(id []byte) []byte {
	b := append([]byte{4, 0, 0, 0, byte(len(id)), 0, 0, 0, 3, 0, 0, 0}, "GNU\x00"...)
	return append(b, id...)
}

// TestKallsyms: the address space of the kernel by a kallsyms text.
func TestKallsyms(t *testing.T) {
	const list = "ffffffff81000000 T _text\nffffffff81000100 T do_work\nffffffff82000000 B _end\n" +
		"ffffffffc0800010 t __pfx_mod_a\t[worker]\nffffffffc0800020 t mod_a\t[worker]\n" +
		"ffffffffc0800040 t mod_b\t[worker]\nffffffffc0800050 d data\t[worker]\n" +
		"ffffffffc0900000 t other\t[other]\nffffffffc0100000 t bpf_prog_1_f\t[bpf]\n" +
		"ffffffffc0100100 t bpf_trampoline_7\t[bpf]\n"
	for _, tc := range []struct {
		name, list string
		notes      []byte
		id         buildid.ID
		err        string
		ref        string
	}{
		{name: "by _text", list: list, ref: "_text"},
		{name: "by _stext", list: strings.ReplaceAll(list, "_text", "_stext"), ref: "_stext"},
		{name: "packed", list: string(elfbuild.Pack("gzip", []byte(list))), ref: "_text"},
		{name: "by neither", list: "ffffffff81000100 T do_work\n", err: "neither _text nor _stext is in it"},
		{name: "hidden", list: "0000000000000000 T _text\n", err: "all addresses are zero"},
		{name: "no list", list: "hello\n", err: "not a list of kernel symbols"},
		{name: "with notes", list: list, notes: note(sum(9)), ref: "_text"},
		{name: "by a given ID", list: list, notes: note(sum(8)), id: buildid.New(sum(9)), ref: "_text"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kallsyms")
			must.Write(t, path, []byte(tc.list))
			if tc.notes != nil {
				must.Write(t, filepath.Join(dir, "notes"), tc.notes)
			}
			sb := New()
			sb.Clock.Timed = true
			if err := sb.Kernel.AddKallsyms(path, tc.id); tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			sb.Build()
			if sb.Kernel.symbol != tc.ref {
				t.Errorf("reference symbol %q, want %q", sb.Kernel.symbol, tc.ref)
			}
			check(t, sb, []look{{-1, 0, text + 0x110, "[kernel.kallsyms]+0x110"}})
			for _, o := range sb.Objects.List[NumFixed:] {
				if o.Kind == ingest.Kernel && (o.ID.Compare(buildid.New(sum(9))) == 0) != (tc.notes != nil) {
					t.Errorf("build ID %s", o.ID)
				}
			}
		})
	}
	if err := New().Kernel.AddKallsyms(filepath.Join(t.TempDir(), "none"), buildid.ID{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "kallsyms")
	must.Write(t, path, []byte(list))
	sb := New()
	if err := sb.Kernel.AddKallsyms(path, buildid.ID{}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		pc   uint64
		ret  bool
		want string
	}{
		{name: "in a function", pc: 0xffffffffc0800024, want: "mod_a+0x4"},
		{name: "a return address", pc: 0xffffffffc0800028, ret: true, want: "mod_a+0x7"},
		{name: "a return address at a function's start is of the function before", pc: 0xffffffffc0800040,
			ret: true, want: "mod_a+0x1f"},
		{name: "except after padding", pc: 0xffffffffc0800020, ret: true, want: "mod_a+0x0"},
		{name: "and at the start of a module", pc: 0xffffffffc0900000, ret: true, want: "other+0x0"},
		{name: "and of a program", pc: 0xffffffffc0100000, ret: true, want: "bpf_prog_1_f+0x0"},
		{name: "in a trampoline", pc: 0xffffffffc0100110,
			want: "bpf_trampoline_7+0x10"},
		{name: "data is no code", pc: 0xffffffffc0800054, want: "mod_b+0x14"},
		{name: "far after the last function", pc: 0xffffffffc0900000 + maxListed},
		{name: "before all", pc: 0xffffffffc00fffff},
	} {
		got := ""
		if n, off, ok := sb.Kernel.InKallsyms(tc.pc, tc.ret); ok {
			o := &sb.Objects.List[n]
			got = fmt.Sprintf("%s+%#x", o.Symbol, off)
			if o.NoImage != strings.HasPrefix(o.Symbol, "bpf_prog_") {
				t.Errorf("%s: %s has no image to capture: %v", tc.name, o.Symbol, !o.NoImage)
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestKernelCode: where a return address of the kernel is looked up.
func TestKernelCode(t *testing.T) {
	f := perfbuild.New()
	f.FeatureString(perfbuild.FeatureArch, "x86_64")
	f.KernelMap("_text", text, text, 0x1000)
	f.Mmap2(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: module, Len: 0x1000, Filename: "[ext4]"}, at(1))
	f.KSymbol(slot, 64, 1, false, "bpf_prog_a0a0a0a0a0a0a0a0_f", by(3, 1))
	f.KSymbol(slot+64, 64, 1, false, "bpf_prog_b0b0b0b0b0b0b0b0_g", by(3, 1))
	sb := scan(t, f, ScanOptions{})
	v := sb.Spaces.Kernel(5).Version()
	for _, tc := range []struct {
		name string
		pc   addr.PC
		ret  bool
		want addr.PC // 0: no mapping
	}{
		{name: "no return address", pc: text + 0x10, want: text + 0x10},
		{name: "a return address", pc: text + 0x10, ret: true, want: text + 0xf},
		{name: "nothing is mapped before it", pc: module, ret: true, want: module},
		{name: "the start of a program, behind another one", pc: slot + 64, ret: true, want: slot + 64},
		{name: "the end of a program", pc: slot + 128, ret: true, want: slot + 127},
		{name: "in nothing", pc: slot + 200, ret: true},
	} {
		m, site := sb.KernelCode(v, tc.pc, tc.ret)
		if (m != nil) != (tc.want != 0) || m != nil && site != tc.want {
			t.Errorf("%s: mapping %v, site %#x, want %#x", tc.name, m, site, tc.want)
		}
	}
}

// TestKernelMap: the kernel's address space while a program was loaded.
func TestKernelMap(t *testing.T) {
	tag := bpf.Tag(sum(0xa0)[:8])
	program := &bpf.Program{Tag: tag, Funcs: []bpf.Func{{Name: "f", Tag: tag, Start: slot, Length: 64}}}
	f := perfbuild.New()
	f.KernelMap("_text", text, text, 0x1000)
	f.KSymbol(slot, 64, 1, false, program.Symbol(0), by(3, 5))
	f.KSymbol(slot+0x100, 64, 1, false, "bpf_prog_c0c0c0c0c0c0c0c0_early", by(3, 5))
	f.KSymbol(slot+0x100, 64, 1, true, "bpf_prog_c0c0c0c0c0c0c0c0_early", by(3, 6))
	f.KSymbol(slot, 64, 1, true, program.Symbol(0), by(3, 7))
	f.KSymbol(slot, 64, 1, false, "bpf_prog_b0b0b0b0b0b0b0b0_late", by(3, 8))
	sb := scan(t, f, ScanOptions{})
	other := &bpf.Program{Funcs: []bpf.Func{{Name: "x", Start: slot + 0x800}}}
	for _, tc := range []struct {
		name string
		p    *bpf.Program
		pc   addr.PC
		want string
	}{
		{name: "at its last time", p: program, pc: slot + 4, want: "bpf_prog_a0a0a0a0a0a0a0a0_f+0x4"},
		{name: "what was unloaded before", p: program, pc: slot + 0x104},
		{name: "of a program that never was: the end", p: other, pc: slot + 4, want: "bpf_prog_b0b0b0b0b0b0b0b0_late+0x4"},
		{name: "the kernel", p: program, pc: text + 8, want: "[kernel.kallsyms]+0x8"},
	} {
		got := ""
		if o, off, ok := sb.KernelMap(tc.p).Find(tc.pc); ok {
			got = fmt.Sprintf("%s+%#x", o.File.Path, off)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if _, _, ok := (*KernelMap)(nil).Find(text); ok {
		t.Error("an address in no map")
	}
}

// TestListID: the ID of a list of functions depends on all of it, and a path with two lists has none.
func TestListID(t *testing.T) {
	file := func(name string) perfbuild.SymbolFile {
		return perfbuild.SymbolFile{Path: "/bin/a", Type: 2, Symbols: []perfbuild.FileSymbol{{Addr: 0x10, Size: 8, Name: name}}}
	}
	id := func(files ...perfbuild.SymbolFile) buildid.ID {
		f := perfbuild.New()
		f.Files(files...)
		f.Mmap2(exe(7, "/bin/a", 1), at(1))
		return scan(t, f, ScanOptions{}).lists.ids["/bin/a"]
	}
	a, b := id(file("main")), id(file("other"))
	if a.IsZero() || a.Compare(b) == 0 || a.Compare(id(file("main"), file("main"))) != 0 {
		t.Errorf("IDs %s and %s", a, b)
	}
	if both := id(file("main"), file("other")); !both.IsZero() {
		t.Errorf("two lists of one path: %s", both)
	}
}
