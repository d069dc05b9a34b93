package elf

import (
	"os"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

// TestImage places a module of the compiler: its code, its data, and what it imports.
func TestImage(t *testing.T) {
	const path = "../../../fixtures/types/module.ko"
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, file, fi.Size())
	if err != nil {
		t.Fatal(err)
	}
	const base = 0x100000
	m, err := f.Image(base)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]Entry)
	if err := m.Entries(func(e Entry) bool { found[e.Name] = e; return true }); err != nil {
		t.Fatal(err)
	}
	placed := make(map[string]PlacedSection)
	for i, p := range m.Sections {
		placed[p.Name] = p
		for _, q := range m.Sections[:i] {
			if p.Addr < q.Addr+addr.Addr(q.Size) && q.Addr < p.Addr+addr.Addr(p.Size) {
				t.Errorf("%s at %#x overlaps %s at %#x", p.Name, uint64(p.Addr), q.Name, uint64(q.Addr))
			}
		}
	}
	for name, section := range map[string]string{"module_data": ".text", "nodes": ".bss", "own_counts": ".data..percpu",
		"init_module": ".init.text"} {
		p, e := placed[section], found[name]
		if e.Section == 0 || e.Value < uint64(p.Addr) || e.Value >= uint64(p.Addr)+p.Size ||
			(e.Code != 0) != strings.HasSuffix(section, "text") {
			t.Errorf("%s is at %#x of section %d, %s is at %#x", name, e.Value, e.Section, section, uint64(p.Addr))
		}
	}
	for _, name := range []string{"shared_state", "find_node"} {
		if e := found[name]; e.Section != 0 || e.Value < base+imageImports {
			t.Errorf("%s, which is imported, is at %#x of section %d", name, e.Value, e.Section)
		}
	}
	// add shared_state+8(%rip),%rax is at 0x5f of .text.
	text := placed[".text"]
	code, err := f.Data(&f.Sections[text.Index], 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(text.Index, code); err != nil {
		t.Fatal(err)
	}
	disp := int32(uint32(code[0x62]) | uint32(code[0x63])<<8 | uint32(code[0x64])<<16 | uint32(code[0x65])<<24)
	if at := uint64(text.Addr) + 0x66 + uint64(int64(disp)); at != found["shared_state"].Value+8 {
		t.Errorf("an instruction reads %#x, shared_state is at %#x", at, found["shared_state"].Value)
	}
}
