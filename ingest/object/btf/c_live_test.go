package btf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func needLive(t *testing.T) {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: SYMBOLIZE_LIVE is not set; nothing was compiled with clang-16")
	}
}

// header prints the types of a blob in the order that C wants them.
type header struct {
	t    *Types
	text []byte
	done map[ID]bool   // printed, or being printed
	used map[string]ID // names, with "struct " and the like
	err  error
}

// define prints a type unless it is there. Of two types of one name only the first is.
func (h *header) define(id ID) {
	name := h.t.Name(id)
	if h.t.Kind(id) != KindTypedef {
		name = h.t.tag(id)
	}
	if _, ok := h.used[name]; ok || h.t.Kind(id) == KindTypedef && name == "__builtin_va_list" {
		return
	}
	h.used[name] = id
	b, err := h.t.AppendC(h.text, id, nil)
	if err != nil && h.err == nil {
		h.err = err
	}
	h.text = b
}

// need prints what a type needs before it, and the type itself if it has a name. Behind a
// pointer a structure need not be whole.
func (h *header) need(id ID, whole bool) {
	switch kind := h.t.Kind(id); kind {
	case KindStruct, KindUnion:
		if named := h.t.Name(id) != ""; named && !whole || named && h.done[id] {
			return
		}
		h.done[id] = true
		for _, m := range h.t.Members(id) {
			h.need(m.Type, true)
		}
		if h.t.Name(id) != "" {
			h.define(id)
		}
	case KindEnum, KindEnum64:
		if h.t.Name(id) != "" && !h.done[id] {
			h.done[id] = true
			h.define(id)
		}
	case KindTypedef:
		if !h.done[id] {
			h.done[id] = true
			h.need(h.t.Ref(id), false)
			h.define(id)
		}
		h.need(h.t.Ref(id), whole)
	case KindPtr:
		h.need(h.t.Ref(id), false)
	case KindArray:
		h.need(h.t.Array(id).Elem, true)
	case KindConst, KindVolatile, KindRestrict, KindTypeTag:
		h.need(h.t.Ref(id), whole)
	case KindFuncProto:
		h.need(h.t.Ref(id), false)
		for _, p := range h.t.Params(id) {
			h.need(p.Type, false)
		}
	}
}

// write prints a header of all types, and variables so that the compiler keeps them.
func (h *header) write() error {
	h.done, h.used = make(map[ID]bool), make(map[string]ID)
	for id := range ID(h.t.Len()) {
		if k := h.t.Kind(id); (k == KindStruct || k == KindUnion || k == KindFwd) && h.t.Name(id) != "" {
			h.text = append(h.text, h.t.tag(id)+";\n"...)
		}
	}
	for id := range ID(h.t.Len()) {
		if k := h.t.Kind(id); k == KindStruct || k == KindUnion || k == KindTypedef {
			if h.t.Name(id) != "" {
				h.need(id, true)
			}
		}
	}
	for id := range ID(h.t.Len()) {
		if name := h.t.tag(id); h.used[name] == id && h.t.MemberCount(id) > 0 {
			h.text = fmt.Appendf(h.text, "%s *keep_%d;\n", name, id)
		}
	}
	return h.err
}

// compiled compiles C for BPF and returns the types that clang tells of it.
func compiled(t *testing.T, text []byte) *Types {
	t.Helper()
	dir := t.TempDir()
	src, obj := filepath.Join(dir, "types.c"), filepath.Join(dir, "types.o")
	if err := os.WriteFile(src, text, 0o644); err != nil {
		t.Fatal(err)
	}
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

// sameLayout compares the types of one name in two blobs; what fills holes has no name.
func sameLayout(a *Types, id ID, b *Types) error {
	other, ok := b.ByName(a.Kind(id), a.Name(id))
	if !ok {
		return fmt.Errorf("%s is not there", a.tag(id))
	}
	x, _ := a.Size(id)
	if y, _ := b.Size(other); x != y {
		return fmt.Errorf("%s of %d bytes has %d", a.tag(id), x, y)
	}
	want, got := places(a, id), places(b, other)
	if len(want) != len(got) {
		return fmt.Errorf("%s: %d members are %d", a.tag(id), len(want), len(got))
	}
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("%s: %s is %s", a.tag(id), want[i], got[i])
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

// TestLiveCompiled compiles what AppendC prints with clang, and what `bpftool btf dump
// format c` prints: the layouts are the same as before.
func TestLiveCompiled(t *testing.T) {
	needLive(t)
	paths, err := filepath.Glob("../bpfobj/testdata/*.o")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, filepath.Join(mapsDir, "kinds.bpf.o")) {
		if types := typesOf(t, path); types != nil {
			compareCompiled(t, path, types)
		}
	}
}

func compareCompiled(t *testing.T, path string, types *Types) {
	t.Helper()
	h := header{t: types}
	if err := h.write(); err != nil {
		t.Fatal(err)
	}
	ours, n := compiled(t, h.text), 0
	theirs, err := exec.Command("bpftool", "btf", "dump", "file", path, "format", "c").Output()
	if err != nil {
		t.Fatal(err)
	}
	for id := range ID(types.Len()) {
		if types.MemberCount(id) > 0 && h.used[types.tag(id)] == id {
			theirs = fmt.Appendf(theirs, "%s *keep_%d;\n", types.tag(id), id)
		}
	}
	peer := compiled(t, theirs)
	for id := range ID(types.Len()) {
		if types.MemberCount(id) == 0 || h.used[types.tag(id)] != id || types.Name(id) == "" {
			continue
		}
		n++
		if err := sameLayout(types, id, ours); err != nil {
			t.Errorf("%s: ours: %v", path, err)
		}
		if err := sameLayout(types, id, peer); err != nil {
			t.Errorf("%s: bpftool's: %v", path, err)
		}
	}
	t.Logf("%s: %d structures and unions", path, n)
}

// holdsOther tells whether a type holds one whose name the header gives to another type,
// or a va_list, which is not for BPF what it is for the kernel's machine.
func (h *header) holdsOther(id ID) bool {
	switch kind := h.t.Kind(id); kind {
	case KindTypedef:
		name := h.t.Name(id)
		return h.used[name] != id || name == "__builtin_va_list" || h.holdsOther(h.t.Ref(id))
	case KindConst, KindVolatile, KindRestrict, KindTypeTag:
		return h.holdsOther(h.t.Ref(id))
	case KindArray:
		return h.holdsOther(h.t.Array(id).Elem)
	case KindStruct, KindUnion:
		if h.t.Name(id) != "" && h.used[h.t.tag(id)] != id {
			return true
		}
		for _, m := range h.t.Members(id) {
			if h.holdsOther(m.Type) {
				return true
			}
		}
	}
	return false
}

// TestLiveCompiledKernel compiles all structures of the running kernel.
func TestLiveCompiledKernel(t *testing.T) {
	needLive(t)
	const path = "/sys/kernel/btf/vmlinux"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	types, err := Parse(path, raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := header{t: types}
	if err := h.write(); err != nil {
		t.Fatal(err)
	}
	ours := compiled(t, h.text)
	same, left := 0, 0
	for id := range ID(types.Len()) {
		switch {
		case types.MemberCount(id) == 0 || types.Name(id) == "":
		case h.holdsOther(id):
			left++
		default:
			if err := sameLayout(types, id, ours); err != nil {
				t.Error(err)
			}
			same++
		}
	}
	t.Logf("%d structures and unions; %d more hold others of one name", same, left)
}
