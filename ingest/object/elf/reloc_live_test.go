package elf

import (
	"bytes"
	stddwarf "debug/dwarf"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
)

// TestRelocateCompiled compares the addresses in compilers' objects with those that the
// standard library finds, which relocates with all sections at 0.
func TestRelocateCompiled(t *testing.T) {
	clang, err := exec.LookPath("clang")
	if os.Getenv("SYMBOLIZE_LIVE") == "" || err != nil {
		t.Skip("SYMBOLIZE_LIVE is not set, or no clang")
	}
	dir := t.TempDir()
	src := filepath.Join(dir, "x.c")
	const text = "int f(int x){return x*3;}\nint g(int x){return f(x)+1;}\n" +
		"__attribute__((section(\".init.text\"))) int h(int x){return g(x);}\n"
	must.Write(t, src, []byte(text))
	for i, target := range []string{"x86_64", "aarch64", "i386", "riscv64", "mips64", "mips64el", "mips",
		"sparcv9", "m68k", "powerpc64le", "s390x"} {
		obj := filepath.Join(dir, target+".o")
		version := []string{"-gdwarf-4", "-gdwarf-5", "-gdwarf-3", "-gdwarf-4"}[min(i, 3)]
		if out, err := exec.CommandContext(t.Context(), clang, version, "-O1", "-c", "-fintegrated-as",
			"--target="+target+"-linux-gnu", "-o", obj, src).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		b := must.Read(t, obj)
		std, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		zero := func(int) (addr.Addr, bool) { return 0, true }
		got, want := subprograms(t, ourDWARF(t, b, zero)), symbolValues(t, std)
		if i < 3 { // machines that the standard library relocates
			d, err := std.DWARF()
			if err != nil {
				t.Fatal(err)
			}
			want = subprograms(t, d)
		}
		if len(want) != 3 || !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", target, got, want)
		}
		f := openBytes(t, b)
		moved := subprograms(t, ourDWARF(t, b, layoutOf(t, f, 0x1000)))
		init := uint64(InitBase) + 0x1000
		if f.Class == elf.ELFCLASS32 {
			init = maxUint32 // gone
		}
		if moved[0] != want[0]+0x1000 || moved[2] != init {
			t.Errorf("%s: %#x moved to %#x", target, want, moved)
		}
	}
}

// ourDWARF relocates the sections of an object and gives them to the standard library.
func ourDWARF(t testing.TB, b []byte, place func(int) (addr.Addr, bool)) *stddwarf.Data {
	t.Helper()
	f := openBytes(t, b)
	r, err := f.Relocator(place)
	if err != nil {
		t.Fatal(err)
	}
	data := func(name string) []byte {
		s := f.Section(name)
		if s == nil {
			return nil
		}
		b, err := f.Data(s, 0)
		if err == nil {
			err = patchSection(r, name, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	d, err := stddwarf.New(data(".debug_abbrev"), nil, nil, data(".debug_info"),
		data(".debug_line"), nil, data(".debug_ranges"), data(".debug_str"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_str_offsets",
		".debug_rnglists"} {
		if err := d.AddSection(name, data(name)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// subprograms returns the start addresses of functions, in the order of the file.
func subprograms(t testing.TB, d *stddwarf.Data) (starts []uint64) {
	t.Helper()
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return starts
		}
		if pc, ok := e.Val(stddwarf.AttrLowpc).(uint64); ok && e.Tag == stddwarf.TagSubprogram {
			starts = append(starts, pc)
		}
	}
}

// symbolValues returns the values of the symbols f, g and h.
func symbolValues(t testing.TB, f *elf.File) []uint64 {
	t.Helper()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]uint64, 3)
	for _, s := range symbols {
		if i := strings.Index("fgh", s.Name); i >= 0 && len(s.Name) == 1 {
			values[i] = s.Value
		}
	}
	return values
}
