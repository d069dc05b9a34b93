package main

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
)

// damagedObject copies an object and makes its debug information unreadable from the
// middle of .debug_abbrev on: names of symbols and the rest stay.
func damagedObject(t *testing.T) string {
	t.Helper()
	data := must.Read(t, fixedObject)
	f, err := elf.Open(fixedObject)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section(".debug_abbrev")
	if s == nil {
		t.Fatal("no .debug_abbrev")
	}
	for i := s.Offset; i < s.Offset+s.FileSize; i++ {
		data[i] = 0xff
	}
	path := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLookupIncomplete: an object with damaged debug information is no failure: the rest of it
// answers, and the exit status and a warning report that it is incomplete.
func TestLookupIncomplete(t *testing.T) {
	file := damagedObject(t)
	env, stdout, stderr := inProcess("lookup", "-e", file, "0x401200")
	if status := Main(t.Context(), env); status != cli.Partial ||
		!strings.HasPrefix(stdout.String(), "main\n") {
		t.Errorf("exit status %d: %s", status, stdout)
	}
	if !strings.Contains(stderr.String(), "warning: "+file+": debug information is incomplete") ||
		strings.Contains(stderr.String(), "error:") {
		t.Errorf("no warning: %s", stderr)
	}
}

// TestResolveWithIncomplete is the same for resolve --with.
func TestResolveWithIncomplete(t *testing.T) {
	file := damagedObject(t)
	env, stdout, stderr := inProcess("resolve", "--with", file, "--format", "folded",
		"../../fixtures/captures/fixed.data")
	if status := Main(t.Context(), env); status != cli.Partial ||
		!strings.Contains(stdout.String(), "main") {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
}

// TestLookupRelocatable: a named .o file has answers, by section and with sections laid out one
// after another; index refuses it.
func TestLookupRelocatable(t *testing.T) {
	f := elfbuild.Module(nil, 0x20, elfbuild.Func{Name: "first", Offset: 0, Size: 8},
		elfbuild.Func{Name: "second", Offset: 16, Size: 16})
	f.Sections = slices.DeleteFunc(f.Sections, func(s elfbuild.Section) bool {
		return s.Name == ".modinfo" || s.Name == ".gnu.linkonce.this_module"
	})
	file := filepath.Join(t.TempDir(), "demo.o")
	if err := os.WriteFile(file, f.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"second":         {"0x14"},
		"cleanup_module": {"--section", ".exit.text", "4"},
		"init_module":    {"--section", ".init.text", "4", "--style", "gnu"},
	} {
		got := runLookupText(t, "", append([]string{"-e", file}, args...)...)
		if name, _, _ := strings.Cut(got, "\n"); name != want {
			t.Errorf("%v: %q, want %s", args, got, want)
		}
	}
	env, _, stderr := inProcess("index", "--store", t.TempDir(), file)
	if status := Main(t.Context(), env); status != cli.Partial && status != cli.Failed ||
		!strings.Contains(stderr.String(), "no object: relocatable object") {
		t.Errorf("index: exit status %d: %s", status, stderr)
	}
}

// TestLookupMangled: the ways in which the tools' users ask for names as they are.
func TestLookupMangled(t *testing.T) {
	f := elfbuild.Module(nil, 0x20, elfbuild.Func{Name: "_ZN1a3runEv", Offset: 0, Size: 8})
	file := filepath.Join(t.TempDir(), "demo.ko")
	if err := os.WriteFile(file, f.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"-C": "a::run()", "-C=false": "_ZN1a3runEv",
		"--no-demangle": "_ZN1a3runEv", "--demangle=none": "_ZN1a3runEv",
		"--demangle=simple": "a::run"} {
		got := runLookupText(t, "", "-e", file, flag, "4")
		if name, _, _ := strings.Cut(got, "\n"); name != want {
			t.Errorf("%s: %q, want %s", flag, name, want)
		}
	}
}

// TestLookupDebugOnly: named debug files without a build ID have answers, of modules by section,
// too; index refuses them.
func TestLookupDebugOnly(t *testing.T) {
	module := elfbuild.Module(nil, 0x20, elfbuild.Func{Name: "first", Offset: 0, Size: 8},
		elfbuild.Func{Name: "second", Offset: 16, Size: 16}).DebugOnly()
	linked := elfbuild.Lib(nil, 0x40, elfbuild.Func{Name: "work", Offset: 16, Size: 16}).DebugOnly()
	work := fmt.Sprintf("%#x", elfbuild.TextAddr+0x14)
	for _, c := range []struct {
		name string
		file *elfbuild.File
		want string
		args []string
	}{
		{name: "demo.ko.debug", file: module, want: "init_module",
			args: []string{"--section", ".init.text", "4"}},
		{name: "demo.ko.debug", file: module, want: "second",
			args: []string{"--section", ".text", "0x14"}},
		{name: "demo.debug", file: linked, want: "work", args: []string{work}},
		{name: "demo.debug", file: linked, want: "work", args: []string{"--style", "json", work}},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(file, c.file.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		got := runLookupText(t, "", append([]string{"-e", file}, c.args...)...)
		if name, _, _ := strings.Cut(got, "\n"); !strings.Contains(name, c.want) {
			t.Errorf("%s %v: %q, want %s", c.name, c.args, got, c.want)
		}
		env, _, stderr := inProcess("index", "--store", t.TempDir(), file)
		if status := Main(t.Context(), env); status == cli.OK {
			t.Errorf("index %s: exit status %d: %s", c.name, status, stderr)
		}
	}
}

// TestLookupBPFObject: a BPF object file that is named is one object, with sections.
func TestLookupBPFObject(t *testing.T) {
	got := runLookupText(t, "", "-e", "../../fixtures/maps/kinds.bpf.o", "0x0")
	if name, _, _ := strings.Cut(got, "\n"); name != "touch" {
		t.Errorf("%q", got)
	}
}
