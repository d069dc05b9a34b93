package elf

import (
	"debug/elf"
	"testing"

	"symbolize/fixtures/elfbuild"
)

// TestRelocateChanges applies relocations that add to the value in place, alone and in pairs, in
// the order of assemblers: text is at 0x5010.
func TestRelocateChanges(t *testing.T) {
	type rel = elfbuild.Reloc
	const riscv, loong = elf.EM_RISCV, elf.EM_LOONGARCH
	for _, c := range []struct {
		name string
		m    elf.Machine
		rels []rel
		old  []byte
		want []byte
	}{
		{name: "riscv ADD32, SUB32", m: riscv,
			rels: []rel{{Symbol: symText, Type: 35, Addend: 9}, {Symbol: symText, Type: 39}},
			old:  []byte{0, 0, 0, 0, 7}, want: []byte{9, 0, 0, 0, 7}},
		{name: "riscv ADD16, SUB16", m: riscv,
			rels: []rel{{Symbol: symText, Type: 34, Addend: 0x102}, {Symbol: symText, Type: 38}},
			old:  []byte{0, 0, 7}, want: []byte{2, 1, 7}},
		{name: "riscv ADD8, SUB8", m: riscv,
			rels: []rel{{Symbol: symText, Type: 33, Addend: 3}, {Symbol: symText, Type: 37}},
			old:  []byte{0, 7}, want: []byte{3, 7}},
		{name: "riscv SET6, SUB6", m: riscv,
			rels: []rel{{Symbol: symText, Type: 53, Addend: 5}, {Symbol: symText, Type: 52}},
			old:  []byte{0x7f, 7}, want: []byte{0x45, 7}},
		{name: "riscv SET8", m: riscv, rels: []rel{{Symbol: symText, Type: 54}},
			old: []byte{0xee, 7}, want: []byte{0x10, 7}},
		{name: "riscv SET16", m: riscv, rels: []rel{{Symbol: symText, Type: 55}},
			old: []byte{0xee, 0xee, 7}, want: []byte{0x10, 0x50, 7}},
		{name: "riscv SET_ULEB128, SUB_ULEB128", m: riscv,
			rels: []rel{{Symbol: symText, Type: 60, Addend: 200}, {Symbol: symText, Type: 61}},
			old:  []byte{0x80, 0x00, 7}, want: []byte{0xc8, 0x01, 7}},
		{name: "riscv RELAX", m: riscv, rels: []rel{{Type: 51}}, old: []byte{7}, want: []byte{7}},
		{name: "riscv of code that is not loaded", m: riscv,
			rels: []rel{{Symbol: symUndefined, Type: 35, Addend: 9},
				{Symbol: symUndefined, Type: 39}}, old: []byte{1, 2, 3, 4}, want: []byte{1, 2, 3, 4}},
		{name: "loongarch ADD_ULEB128, SUB_ULEB128", m: loong,
			rels: []rel{{Symbol: symText, Type: 107, Addend: 200}, {Symbol: symText, Type: 108}},
			old:  []byte{0x80, 0x00, 7}, want: []byte{0xc8, 0x01, 7}},
		{name: "loongarch ADD6, SUB6", m: loong,
			rels: []rel{{Symbol: symText, Type: 105, Addend: 5}, {Symbol: symText, Type: 106}},
			old:  []byte{0x40, 7}, want: []byte{0x45, 7}},
		{name: "sparc UA32", m: elf.EM_SPARCV9, rels: []rel{{Symbol: symText, Type: 23}},
			old:  []byte{1, 1, 1, 1, 7},
			want: []byte{0x10, 0x50, 0, 0, 7}},
		{name: "sparc 64 with a second addend", m: elf.EM_SPARCV9,
			rels: []rel{{Symbol: symText, Type: 54 | 0x1100}},
			old:  make([]byte, 9), want: []byte{0x10, 0x50, 0, 0, 0, 0, 0, 0, 0}},
		{name: "m68k 32", m: elf.EM_68K, rels: []rel{{Symbol: symText, Type: 1}},
			old: make([]byte, 5), want: []byte{0x10, 0x50, 0, 0, 0}},
		{name: "csky 32", m: elf.Machine(252), rels: []rel{{Symbol: symText, Type: 1}},
			old: make([]byte, 5), want: []byte{0x10, 0x50, 0, 0, 0}},
	} {
		f := open(t, relocatable(forms[0], c.m, true, c.rels...))
		rl, err := f.Relocator(layoutOf(t, f, 0x1000))
		if err != nil {
			t.Fatal(err)
		}
		rl.values[symText].value, rl.values[symText].known = 0x5010, true
		b := make([]byte, 64)
		copy(b, c.old)
		err = rl.Apply(sectionNamed(f, ".debug_info"), b)
		if got := b[:len(c.old)]; err != nil || string(got) != string(c.want) {
			t.Errorf("%s: % x, want % x; %v", c.name, got, c.want, err)
		}
	}
}

func sectionNamed(f *File, name string) int {
	for i := range f.Sections {
		if f.Sections[i].Name == name {
			return i
		}
	}
	return -1
}

// TestRelocateMIPS64: the type of a relocation is in its last byte, in either order.
func TestRelocateMIPS64(t *testing.T) {
	for _, fm := range forms[:2] {
		rel := elfbuild.Reloc{Symbol: symText, Type: 18}
		if !fm.big {
			rel.Symbol, rel.Type = 18<<24, symText // as the builder writes r_info
		}
		f := open(t, relocatable(fm, elf.EM_MIPS, true, rel))
		b, err := patched(t, f, ".debug_info", 0xee)
		if got := f.u64(b); err != nil || got != 0x5010 {
			t.Errorf("%v: %#x, %v", fm, got, err)
		}
	}
}
