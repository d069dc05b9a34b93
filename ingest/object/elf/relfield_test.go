package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"symbolize/ingest/machine"
)

// TestChange changes a field by each operation of RISC-V and LoongArch.
func TestChange(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine elf.Machine
		kind    uint32
		old     []byte
		v       uint64
		want    []byte
		bad     bool
	}{
		{name: "add 16 bits", machine: elf.EM_RISCV, kind: 34, old: []byte{0xff, 1, 9}, v: 2,
			want: []byte{1, 2, 9}},
		{name: "sub 8 bits", machine: elf.EM_RISCV, kind: 37, old: []byte{1, 9}, v: 2,
			want: []byte{0xff, 9}},
		{name: "store 6 bits", machine: elf.EM_RISCV, kind: 53, old: []byte{0xc1}, v: 0x7f,
			want: []byte{0xff}},
		{name: "sub 6 bits", machine: elf.EM_LOONGARCH, kind: 106, old: []byte{0x81}, v: 2,
			want: []byte{0xbf}},
		{name: "store ULEB128", machine: elf.EM_RISCV, kind: 60, old: []byte{0x80, 0x00}, v: 5,
			want: []byte{0x85, 0}},
		{name: "add ULEB128", machine: elf.EM_LOONGARCH, kind: 107, old: []byte{0xff, 0}, v: 1,
			want: []byte{0x80, 1}},
		{name: "no ULEB128", machine: elf.EM_RISCV, kind: 61, old: []byte{0x80, 0x80}, v: 1,
			want: []byte{0x80, 0x80}, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			field, ok := machine.Of(c.machine).Field(c.kind)
			if !ok {
				t.Fatal("no such type")
			}
			w := relField{field}
			got := bytes.Clone(c.old)
			if ok := w.change(binary.LittleEndian, got, c.v); ok == c.bad || !bytes.Equal(got, c.want) {
				t.Errorf("% x, %v; want % x", got, ok, c.want)
			}
		})
	}
}

// TestTypes writes each field of each machine, and reads it.
func TestTypes(t *testing.T) {
	const value = 0x0102030405060708
	for _, m := range machine.All() {
		for kind := range m.Fields {
			field, ok := m.Field(uint32(kind))
			if !ok || field.None {
				continue
			}
			w := relField{field}
			b := make([]byte, 9)
			w.put(binary.BigEndian, b, value)
			mask := ^uint64(0) >> (64 - 8*w.Size)
			if got := w.get(binary.BigEndian, b); got != value&mask || b[w.Size] != 0 {
				t.Errorf("%v type %d: %#x in % x", m.ELF, kind, got, b)
			}
		}
	}
}
