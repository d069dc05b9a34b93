package bpfmap

import (
	"encoding/binary"
	"testing"

	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/btf"
)

// smallBTF builds BTF of one-word types: each is a name, the word after it, and more words.
type smallBTF struct {
	strings string
	types   []byte
	n       uint32
}

func (b *smallBTF) add(name string, words ...uint32) uint32 {
	all := append([]uint32{uint32(1 + len(b.strings))}, words...)
	b.strings += name + "\x00"
	for _, w := range all {
		b.types = binary.LittleEndian.AppendUint32(b.types, w)
	}
	b.n++
	return b.n
}

func (b *smallBTF) parse(t *testing.T) *btf.Types {
	t.Helper()
	text := "\x00" + b.strings
	raw := []byte{0x9f, 0xeb, 1, 0}
	for _, w := range []int{24, 0, len(b.types), len(b.types), len(text)} {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(w))
	}
	types, err := btf.Parse("test", append(append(raw, b.types...), text...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// TestStructOps finds the kernel's structure of a struct_ops map, by name or by size.
func TestStructOps(t *testing.T) {
	const structKind, varKind, sectionKind = 4 << 24, 14 << 24, 15 << 24
	var program, kernel smallBTF
	ops := program.add("ops___v2", structKind, 8)
	for _, section := range []struct {
		name string
		vars []string
	}{{name: ".struct_ops.link", vars: []string{"a_long_name_of_o", "b"}}, {name: ".data",
		vars: []string{"c"}}} {
		words := []uint32{sectionKind | uint32(len(section.vars)), 16}
		for i, name := range section.vars {
			words = append(words, program.add(name, varKind, ops, 1), uint32(8*i), 8)
		}
		program.add(section.name, words...)
	}
	kernel.add("ops", structKind, 8)
	own := btf.ID(kernel.add("bpf_struct_ops_ops", structKind, 64))
	kernel.add("bpf_struct_ops_twin", structKind, 64)
	single := btf.ID(kernel.add("bpf_struct_ops_single", structKind, 32))
	defined, types := program.parse(t), kernel.parse(t)
	for _, c := range []struct {
		situation, name string
		program         *btf.Types
		size            int
		want            btf.ID
	}{
		{situation: "by its definition", name: "b", program: defined,
			size: 64, want: own},
		{situation: "by a name that is cut", name: "a_long_name_of_", program: defined,
			size: 64, want: own},
		{situation: "of another size than the kernel's", name: "b", program: defined,
			size: 72, want: 0},
		{situation: "a variable of another section", name: "c", program: defined,
			size: 64, want: 0},
		{situation: "by the only one of its size", name: "x", program: nil,
			size: 32, want: single},
		{situation: "of two of its size", name: "x", program: nil,
			size: 64, want: 0},
		{situation: "of none of its size", name: "x", program: nil,
			size: 8, want: 0},
	} {
		m := &Dump{Header: rawdump.Header{Type: structOps, Name: c.name}, program: c.program,
			Layout: Layout{KeySize: 4, ValueSize: c.size}}
		if err := m.types(&Source{Types: types}); err != nil || m.Layout.Value != c.want ||
			(m.Layout.Types != nil) != (c.want != 0) {
			t.Errorf("%s: type %d, want %d; %v", c.situation, m.Layout.Value, c.want, err)
		}
	}
}
