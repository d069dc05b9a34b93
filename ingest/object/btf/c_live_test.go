package btf

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"symbolize/fixtures/must"
)

// cText is the output of WriteC for all types, with variables so that the compiler keeps the
// types, and the layout of each as assertions.
func cText(t *testing.T, types *Types) (text, layout []byte, names map[ID]string) {
	t.Helper()
	var b, asserts bytes.Buffer
	if err := types.WriteC(&b, nil, nil); err != nil {
		t.Fatal(err)
	}
	p := cPrinter{t: types, names: newNames(types)}
	names = make(map[ID]string)
	for id := range ID(types.Len()) {
		if types.Name(id) != "" && types.MemberCount(id) > 0 {
			names[id] = p.names.of[id]
			size, _ := types.Size(id)
			fmt.Fprintf(&b, "%s *keep_%d;\n", p.tag(id), id)
			fmt.Fprintf(&asserts, "_Static_assert(sizeof(%s) == %d, \"%[1]s\");\n", p.tag(id), size)
			asserted(&asserts, &p, p.tag(id), id, 0)
		}
	}
	return b.Bytes(), asserts.Bytes(), names
}

// asserted writes assertions on the offsets of members, those of unnamed members too.
func asserted(b *bytes.Buffer, p *cPrinter, tag string, id ID, bits uint32) {
	for _, m := range p.t.Members(id) {
		switch at := bits + m.BitOffset; {
		case m.Name == "" && p.t.Name(m.Type) == "":
			asserted(b, p, tag, m.Type, at)
		case m.Name != "" && m.BitSize == 0:
			fmt.Fprintf(b, "_Static_assert(__builtin_offsetof(%s, %s) == %d, \"%[2]s\");\n",
				tag, p.local(m.Name), at/8)
		}
	}
}

// compiled compiles C for BPF and returns the types in clang's output.
func compiled(t *testing.T, text []byte) *Types {
	t.Helper()
	dir := t.TempDir()
	src, obj := filepath.Join(dir, "types.c"), filepath.Join(dir, "types.o")
	must.Write(t, src, text)
	out, err := exec.Command("clang-16", "-g", "-O2", "-target", "bpf", "-w", "-c", src, "-o", obj).
		CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	types := typesOf(t, obj)
	if types == nil {
		t.Fatal("clang told no types")
	}
	return types
}

// sameLayout compares a type with one of another name in another blob, apart from the unnamed
// members that fill holes.
func sameLayout(a *Types, id ID, b *Types, name string) error {
	other, ok := b.ByName(a.Kind(id), name)
	if !ok {
		return fmt.Errorf("%s is not there", name)
	}
	x, _ := a.Size(id)
	if y, _ := b.Size(other); x != y {
		return fmt.Errorf("%s of %d bytes has %d", name, x, y)
	}
	want, got := places(a, id), places(b, other)
	if len(want) != len(got) {
		return fmt.Errorf("%s: %d members are %d", name, len(want), len(got))
	}
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("%s: %s is %s", name, want[i], got[i])
		}
	}
	return nil
}

func places(t *Types, id ID) (out []string) {
	for _, m := range t.Members(id) {
		if len(m.Name) > 7 && m.Name[:7] == "__hole_" || m.Name == "__all" {
			continue
		}
		size, _ := t.Size(m.Type)
		out = append(out, fmt.Sprintf("%s at bit %d, %d bits of %d bytes", m.Name, m.BitOffset,
			m.BitSize, size))
	}
	return out
}

// TestLiveCompiled compiles the outputs of WriteC and of `bpftool btf dump format c` with clang:
// the layouts are the same as before.
func TestLiveCompiled(t *testing.T) {
	must.BeLive(t, "compiles with clang-16")
	paths, err := filepath.Glob("../bpfobj/testdata/*.o")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, filepath.Join(mapsDir, "kinds.bpf.o")) {
		types := typesOf(t, path)
		if types == nil {
			continue
		}
		theirs, err := exec.Command("bpftool", "btf", "dump", "file", path, "format", "c").Output()
		if err != nil {
			t.Fatal(err)
		}
		text, _, names := cText(t, types)
		for id := range names {
			theirs = fmt.Appendf(theirs, "%s *keep_%d;\n", types.tag(id), id)
		}
		compareCompiled(t, path+": ours", types, text, names)
		compareCompiled(t, path+": bpftool's", types, theirs, names)
	}
}

// compareCompiled compiles C and compares the layouts with those of types.
func compareCompiled(t *testing.T, what string, types *Types, text []byte, names map[ID]string) {
	t.Helper()
	got := compiled(t, text)
	for id, name := range names {
		if err := sameLayout(types, id, got, name); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	t.Logf("%s: %d structures and unions", what, len(names))
}

// TestLiveCompiledKernel compiles all types of the running kernel with each compiler: for its own
// architecture with assertions on all layouts, for BPF with clang's BTF.
func TestLiveCompiledKernel(t *testing.T) {
	must.BeLive(t, "compiles with clang-16")
	const path = "/sys/kernel/btf/vmlinux"
	raw := must.Read(t, path)
	types, err := Parse(path, raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, layout, names := cText(t, types)
	compareCompiled(t, path, types, text, names)
	src := filepath.Join(t.TempDir(), "vmlinux.c")
	must.Write(t, src, append(text, layout...))
	for _, command := range [][]string{
		{"gcc", "-std=gnu17"}, {"gcc", "-std=gnu2x"},
		{"clang", "-std=gnu17"}, {"clang-16", "-std=gnu2x"}, {"clang", "-target", "bpf"},
	} {
		args := append(command[1:], "-fsyntax-only", "-w", src)
		if out, err := exec.Command(command[0], args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%.2000s", command, err, out)
		}
	}
}
