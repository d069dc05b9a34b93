package elf

import (
	"cmp"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hostFiles are ELF files of this machine: the test binary, and the existing files of a list.
func hostFiles(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{self}
	for _, pattern := range []string{
		"/usr/bin/ls", "/usr/bin/perf", "/usr/sbin/ldconfig", "/usr/lib*/ld-linux*.so*",
		"/usr/lib/*-linux-gnu/libc.so.6", "/usr/lib/*-linux-gnu/libcrypto.so.*",
		"/usr/lib/*-linux-gnu/libstdc++.so.6", "/usr/lib/gcc/*/*/cc1",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// stdSymbols returns, from the standard library's reader, the expected result of Symbols.
func stdSymbols(f *elf.File, table Table) []string {
	read := f.Symbols
	if table == Dynsym {
		read = f.DynamicSymbols
	}
	syms, err := read()
	if err != nil {
		return nil // no such table
	}
	var all []string
	for _, s := range syms {
		kind, vis := elf.ST_TYPE(s.Info), elf.ST_VISIBILITY(s.Other)
		label := kind == elf.STT_NOTYPE && vis != elf.STV_HIDDEN && vis != elf.STV_INTERNAL &&
			!strings.HasPrefix(s.Name, ".L")
		if kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC && !label {
			continue
		}
		if s.Name == "" || s.Section == elf.SHN_UNDEF || int(s.Section) >= len(f.Sections) {
			continue
		}
		sec := f.Sections[s.Section]
		const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
		if sec.Flags&code != code || s.Value < sec.Addr || s.Value >= sec.Addr+sec.Size {
			continue
		}
		all = append(all, fmt.Sprintf("%s %#x+%#x %d", s.Name, s.Value, s.Size, s.Info))
	}
	return all
}

// TestHostSymbols compares with debug/elf on real files.
func TestHostSymbols(t *testing.T) {
	for _, path := range hostFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r, err := os.Open(path)
			if err != nil {
				t.Skip(err)
			}
			defer r.Close()
			st, err := r.Stat()
			if err != nil {
				t.Fatal(err)
			}
			std, err := elf.NewFile(r)
			if err != nil {
				t.Skip(err)
			}
			if std.Machine == elf.EM_ARM || std.Machine == elf.EM_AARCH64 {
				t.Skip("the comparison knows no mapping symbols")
			}
			f, err := Open(path, r, st.Size())
			if err != nil {
				t.Fatal(err)
			}
			if !f.HasCode() || f.IsDebugOnly() || f.IsModule() || f.IsKernelImage() {
				t.Error("taken for something else than a runtime file")
			}
			for _, table := range []Table{Symtab, Dynsym} {
				var got []string
				err := f.Symbols(table, func(s Symbol) bool {
					got = append(got, fmt.Sprintf("%s %#x+%#x %d", s.Name, uint64(s.Addr), s.Size,
						s.Bind<<4|s.Type))
					return true
				})
				want := stdSymbols(std, table)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("table %d: %d symbols, debug/elf has %d; %v", table, len(got),
						len(want), err)
				}
			}
			checkLayout(t, f, std)
			checkStubs(t, f)
		})
	}
}

// checkLayout compares segments and sections.
func checkLayout(t *testing.T, f *File, std *elf.File) {
	t.Helper()
	if len(f.Sections) != len(std.Sections) {
		t.Fatalf("%d sections, debug/elf has %d", len(f.Sections), len(std.Sections))
	}
	for i, s := range std.Sections {
		o := &f.Sections[i]
		if o.Name != s.Name || o.Type != s.Type || uint64(o.Addr) != s.Addr || o.Flags != s.Flags {
			t.Errorf("section %d is %+v, debug/elf has %+v", i, o, s.SectionHeader)
		}
	}
	i := 0
	for _, p := range std.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if s := f.Segments[i]; uint64(s.Offset) != p.Off || uint64(s.Addr) != p.Vaddr ||
			s.FileSize != p.Filesz || s.MemSize != p.Memsz || s.Flags != uint32(p.Flags) {
			t.Errorf("segment %d is %+v, debug/elf has %+v", i, s, p.ProgHeader)
		}
		i++
	}
	if i != len(f.Segments) {
		t.Errorf("%d segments, debug/elf has %d", len(f.Segments), i)
	}
}

// checkStubs checks the PLT's consistency: stubs do not overlap, and a program with JUMP_SLOT
// relocations has a name for nearly each of its stubs.
func checkStubs(t *testing.T, f *File) {
	t.Helper()
	var stubs []Symbol
	if err := f.PLT(func(s Symbol) bool { stubs = append(stubs, s); return true }); err != nil {
		t.Error(err)
	}
	if !slices.IsSortedFunc(stubs, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) }) {
		t.Error("stubs are not sorted")
	}
	for i := range stubs {
		if i > 0 && stubs[i].Addr < stubs[i-1].End {
			t.Errorf("stubs overlap: %+v, %+v", stubs[i-1], stubs[i])
		}
		if !strings.HasSuffix(stubs[i].Name, "@plt") {
			t.Errorf("stub %+v", stubs[i])
		}
	}
	rel := f.Section(".rela.plt")
	if rel == nil || f.Machine != elf.EM_X86_64 || f.Section(".plt") == nil {
		return
	}
	if want := int(rel.Size / 24); len(stubs) < want {
		t.Errorf("%d stubs named, .rela.plt has %d relocations", len(stubs), want)
	}
}

// TestHostStubs compares the names of PLT stubs with objdump's, which prints versions that
// .dynsym does not have, and no resolvers of static programs.
func TestHostStubs(t *testing.T) {
	objdump, err := exec.LookPath("objdump")
	if os.Getenv("SYMBOLIZE_LIVE") == "" || err != nil {
		t.Skip("wants SYMBOLIZE_LIVE=1 and objdump")
	}
	label := regexp.MustCompile(`(?m)^([0-9a-f]+) <(.*?)(?:@@?[A-Za-z_0-9.]+)?@plt>:$`)
	compared := 0
	for _, path := range hostFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), objdump, "-d", "-j", ".plt", "-j",
				".plt.sec",
				"-j", ".plt.got", path).Output()
			if err != nil {
				t.Skipf("objdump finds nothing to compare: %v", err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			err = openBytes(t, b).PLT(func(s Symbol) bool {
				got[fmt.Sprintf("%016x", uint64(s.Addr))] = s.Name
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range label.FindAllStringSubmatch(string(out), -1) {
				compared++
				a := strings.Repeat("0", max(0, 16-len(m[1]))) + m[1]
				if want := m[2] + "@plt"; got[a] != want && !(m[2][0] == '*' && got[a] != "") {
					t.Errorf("%s is %q, objdump has %q", a, got[a], want)
				}
			}
		})
	}
	if compared == 0 {
		t.Error("objdump printed no stub in any file")
	}
}
