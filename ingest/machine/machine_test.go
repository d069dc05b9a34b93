package machine

import (
	"debug/elf"
	"path"
	"slices"
	"testing"
)

func TestNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		elf   elf.Machine
		class elf.Class
		big   bool
	}{
		{name: "x86_64", elf: elf.EM_X86_64, class: elf.ELFCLASS64},
		{name: "amd64", elf: elf.EM_X86_64, class: elf.ELFCLASS64},
		{name: "i386", elf: elf.EM_386, class: elf.ELFCLASS32},
		{name: "i586", elf: elf.EM_386, class: elf.ELFCLASS32},
		{name: "i686", elf: elf.EM_386, class: elf.ELFCLASS32},
		{name: "aarch64", elf: elf.EM_AARCH64, class: elf.ELFCLASS64},
		{name: "aarch64_be", elf: elf.EM_AARCH64, class: elf.ELFCLASS64, big: true},
		{name: "arm64", elf: elf.EM_AARCH64, class: elf.ELFCLASS64},
		{name: "arm", elf: elf.EM_ARM, class: elf.ELFCLASS32},
		{name: "armv7l", elf: elf.EM_ARM, class: elf.ELFCLASS32},
		{name: "armv5tel", elf: elf.EM_ARM, class: elf.ELFCLASS32},
		{name: "armv8l"}, // 32-bit programs of arm64
		{name: "s390x", elf: elf.EM_S390, class: elf.ELFCLASS64, big: true},
		{name: "ppc64le", elf: elf.EM_PPC64, class: elf.ELFCLASS64},
		{name: "ppc64", elf: elf.EM_PPC64, class: elf.ELFCLASS64, big: true},
		{name: "loongarch64", elf: elf.EM_LOONGARCH, class: elf.ELFCLASS64},
		{name: "loong64", elf: elf.EM_LOONGARCH, class: elf.ELFCLASS64},
		{name: ""},
		{name: "pdp11"},
	} {
		a, k := Named(c.name)
		if a == nil {
			if c.elf != 0 {
				t.Errorf("%q is unknown", c.name)
			}
			continue
		}
		if a.ELF != c.elf || k.Class != c.class || k.BigEndian != c.big {
			t.Errorf("%q: %v, %v, %v", c.name, a.ELF, k.Class, k.BigEndian)
		}
	}
}

func TestName(t *testing.T) {
	for _, c := range []struct {
		elf   elf.Machine
		class elf.Class
		big   bool
		want  string
	}{
		{elf: elf.EM_X86_64, class: elf.ELFCLASS64, want: "x86_64"},
		{elf: elf.EM_X86_64, class: elf.ELFCLASS32, want: "x86_64"}, // x32
		{elf: elf.EM_AARCH64, class: elf.ELFCLASS64, big: true, want: "aarch64_be"},
		{elf: elf.EM_PPC64, class: elf.ELFCLASS64, big: true, want: "ppc64"},
		{elf: elf.EM_ARM, class: elf.ELFCLASS32, want: "arm"},
		{elf: elf.EM_SPARC, class: elf.ELFCLASS32, big: true, want: "sparc"},
		{elf: elf.EM_AVR, class: elf.ELFCLASS32, want: "avr"},
	} {
		if got := Name(c.elf, c.class, c.big); got != c.want {
			t.Errorf("%v, %v, %v: %q, want %q", c.elf, c.class, c.big, got, c.want)
		}
	}
}

// TestTable checks that each row is consistent, and that no name or number has two.
func TestTable(t *testing.T) {
	names, numbers := make(map[string]bool), make(map[elf.Machine]bool)
	for _, a := range All() {
		if numbers[a.ELF] {
			t.Errorf("%v has two rows", a.ELF)
		}
		numbers[a.ELF] = true
		texts := []string{a.Go}
		for _, k := range a.Names {
			texts = append(texts, k.Text)
			if _, err := path.Match(k.Text, ""); err != nil {
				t.Errorf("%v: pattern %q: %v", a.ELF, k.Text, err)
			}
		}
		for _, s := range texts {
			if names[s] && s != "" {
				t.Errorf("%v: name %q belongs to another machine, too", a.ELF, s)
			}
			names[s] = true
		}
		if f, ok := a.Field(0); !ok || !f.None {
			t.Errorf("%v: relocation type 0 changes something", a.ELF)
		}
		if _, ok := a.Field(0xffff); ok {
			t.Errorf("%v: type 0xffff has a field", a.ELF)
		}
		if a.Saved != nil && (a.Saved[0] != a.FP || len(a.Saved) > MaxSaved) {
			t.Errorf("%v: registers of rules %v, frame pointer %d", a.ELF, a.Saved, a.FP)
		}
		if a.Perf != nil && (a.PerfBit(a.PerfPC) < 0 || a.PerfBit(a.SP) < 0 || a.PerfBit(a.FP) < 0 ||
			a.Word == 0 || a.CodeMask == 0) {
			t.Errorf("%v: stacks cannot be unwound from %v", a.ELF, a.Perf)
		}
		if a.Perf == nil && a.Saved != nil {
			t.Errorf("%v has unwind rules, but no registers to start with", a.ELF)
		}
	}
}

// TestPerfBits are bits of the kernel's perf_regs.h.
func TestPerfBits(t *testing.T) {
	for _, c := range []struct {
		name       string
		pc, sp, fp int
	}{
		{name: "x86_64", pc: 8, sp: 7, fp: 6},
		{name: "i686", pc: 8, sp: 7, fp: 6},
		{name: "aarch64", pc: 32, sp: 31, fp: 29},
		{name: "loongarch64", pc: 0, sp: 3, fp: 22},
	} {
		a, _ := Named(c.name)
		if pc, sp, fp := a.PerfBit(a.PerfPC), a.PerfBit(a.SP), a.PerfBit(a.FP); pc != c.pc || sp != c.sp ||
			fp != c.fp {
			t.Errorf("%s: %d, %d, %d", c.name, pc, sp, fp)
		}
	}
}

func TestJITs(t *testing.T) {
	want := []string{"aarch64", "aarch64_be", "armv7l", "i686", "loongarch64", "mips64", "ppc64",
		"ppc64le", "riscv64", "s390x", "sparc64", "x86_64"}
	got := JITs()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
