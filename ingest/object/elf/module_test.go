package elf

import (
	"debug/elf"
	"errors"
	"fmt"
	"testing"

	"symbolize/fixtures/elfbuild"
)

// TestModuleLayout lays a module out as kernel/module/main.c does.
func TestModuleLayout(t *testing.T) {
	for _, fm := range forms {
		sec := func(name string, flags elf.SectionFlag, size, align uint64) elfbuild.Section {
			return elfbuild.Section{Name: name, Flags: flags, Data: make([]byte, size),
				Align: align}
		}
		b := inForm(fm, &elfbuild.File{Type: elf.ET_REL, Sections: []elfbuild.Section{
			sec(".text", elfbuild.Code, 0x103, 64),
			sec(".init.text", elfbuild.Code, 0x21, 16),
			sec(".rodata", elf.SHF_ALLOC, 0x40, 16),
			sec(".noinstr.text", elfbuild.Code, 0, 16),
			sec(".exit.text", elfbuild.Code, 0x10, 1),
			sec(".static_call.text", elfbuild.Code, 0x20, 4),
			sec(".text.unlikely", elfbuild.Code, 0x20, 32),
			sec(".comment", 0, 0x20, 1),
			sec(".init.text.unlikely", elfbuild.Code, 0x20, 16),
			sec(".gnu.linkonce.this_module", elfbuild.Data, 0x40, 64),
		}})
		fn := func(name, section string, at, size uint64) elfbuild.Symbol {
			return elfbuild.Symbol{Name: name, Section: section, Value: at, Size: size,
				Type: elf.STT_FUNC}
		}
		b.Symbols = []elfbuild.Symbol{
			fn("main", ".text", 0x10, 0x20), fn("tail", ".text", 0x100, 0),
			fn("cleanup_module", ".exit.text", 0, 0x10), fn("cold", ".text.unlikely", 4, 8),
			fn("init_module", ".init.text", 0, 0x21), fn("data", ".rodata", 0, 8),
			fn("beyond", ".text", 0x103, 1),
		}
		f := open(t, b)
		placed, err := f.ModuleLayout()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range placed {
			if f.Sections[p.Index].Name != p.Name {
				t.Errorf("%v: section %d is %s", fm, p.Index, f.Sections[p.Index].Name)
			}
			got = append(got, fmt.Sprintf("%s %#x+%#x", p.Name, uint64(p.Addr), p.Size))
		}
		compare(t, fm.String(), got, []string{
			".text 0x0+0x103", ".noinstr.text 0x110+0x0", ".exit.text 0x110+0x10",
			".static_call.text 0x120+0x20", ".text.unlikely 0x140+0x20",
			".init.text 0x100000000+0x21", ".init.text.unlikely 0x100000030+0x20",
		})
		compare(t, fm.String(), symbols(t, f, Symtab), []string{
			"main 0x10+0x20 end 0x30", "tail 0x100+0x0 end 0x103",
			"cleanup_module 0x110+0x10 end 0x120", "cold 0x144+0x8 end 0x14c",
			"init_module 0x100000000+0x21 end 0x100000021",
		})
	}
}

// TestModuleDebugFile: the debug file of a module gives the same addresses.
func TestModuleDebugFile(t *testing.T) {
	b := elfbuild.Module(testID, 0x103, elfbuild.Func{Name: "demo", Offset: 8, Size: 16})
	want := symbols(t, open(t, b), Symtab)
	if len(want) != 3 {
		t.Fatalf("symbols %q", want)
	}
	compare(t, "debug file", symbols(t, open(t, b.DebugOnly()), Symtab), want)
}

func TestModuleLayoutBad(t *testing.T) {
	if _, err := open(t, elfbuild.Lib(nil, 64)).ModuleLayout(); !errors.Is(err, errNotRelocatable) {
		t.Errorf("a library was laid out: %v", err)
	}
	huge := elfbuild.Module(nil, 64).With(elfbuild.Section{Name: ".huge", Type: elf.SHT_NOBITS,
		Flags: elfbuild.Code, Size: 1 << 62})
	_, err := open(t, huge).ModuleLayout()
	wantError(t, err, "module section .huge of 4611686018427387904 bytes")
	wantError(t, open(t, huge).Symbols(Symtab, func(Symbol) bool { return true }), ".huge")

	odd := elfbuild.Module(nil, 5).With(elfbuild.Section{Name: ".more", Flags: elfbuild.Code,
		Data: []byte{1}, Align: 3}) // no power of two: as if there were none
	placed, err := open(t, odd).ModuleLayout()
	if err != nil || len(placed) != 4 || placed[2].Addr != 21 {
		t.Errorf("layout %+v, %v", placed, err)
	}
}
