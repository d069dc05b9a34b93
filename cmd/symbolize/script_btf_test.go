package main

import (
	"debug/elf"
	"encoding/binary"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"symbolize/fixtures/elfbuild"
)

// cmdSplitBTF is `splitbtf BASE SPLIT`: writes BTF with an int and the struct list_head, and
// the BTF of a kernel module that continues it: a struct that holds both.
func cmdSplitBTF(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: splitbtf BASE SPLIT")
	}
	const kindInt, kindPtr, kindStruct, signed = 1 << 24, 2 << 24, 4 << 24, 1 << 24
	names := "\x00int\x00list_head\x00next\x00"
	base := []uint32{
		1, kindInt, 4, signed | 32, // 1: int
		5, kindStruct | 1, 8, 15, 3, 0, // 2: struct list_head { struct list_head *next; }
		0, kindPtr, 2, // 3
	}
	own := uint32(len(names)) // offsets in the strings go on, as numbers of types do
	split := []uint32{
		own + 1, kindStruct | 2, 16, own + 8, 2, 0, own + 13, 1, 64, // 4: struct driver
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), btfOf(base, names), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), btfOf(split, "\x00driver\x00list\x00users\x00"), 0o644))
}

// btfOf is BTF of types and strings.
func btfOf(types []uint32, names string) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0x0001eb9f) // magic, version 1, no flags
	size := uint32(4 * len(types))
	for _, w := range append([]uint32{24, 0, size, size, uint32(len(names))}, types...) {
		b = le.AppendUint32(b, w)
	}
	return append(b, names...)
}

// cmdMapBTF is `mapbtf FILE`: writes BTF with the markers of three maps with the same name in the
// kernel, which cuts names: two with keys of 4 bytes, and values with and without a sign, and one
// with keys of 8.
func cmdMapBTF(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mapbtf FILE")
	}
	const kindInt, kindStruct, signed = 1 << 24, 4 << 24, 1 << 24
	names := "\x00u32\x00u64\x00s64\x00key\x00value\x00"
	types := []uint32{
		1, kindInt, 4, 32, // 1: u32
		5, kindInt, 8, 64, // 2: u64
		9, kindInt, 8, signed | 64, // 3: s64
	}
	for _, m := range []struct {
		name       string
		key, value uint32
	}{{name: "request_latency_read", key: 1, value: 2}, {name: "request_latency_write", key: 1,
		value: 3}, {name: "request_latency_by_disk", key: 2, value: 2}} {
		types = append(types, uint32(len(names)), kindStruct|2, 16, 13, m.key, 0, 17, m.value, 64)
		names += "____btf_map_" + m.name + "\x00"
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), btfOf(types, names), 0o644))
}

// cmdOldMaps is `oldmaps FILE`: writes a BPF object without BTF that defines two maps by
// struct bpf_map_def, the second one cut off.
func cmdOldMaps(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: oldmaps FILE")
	}
	var data []byte
	for _, w := range []uint32{1, 16, 8, 10240, 1, 2, 4} {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	f := &elfbuild.File{Machine: elf.EM_BPF, Type: elf.ET_REL}
	f.Sections = []elfbuild.Section{{Name: "maps", Data: data, Flags: elf.SHF_ALLOC}}
	for i, name := range []string{"events", "cut"} {
		f.Symbols = append(f.Symbols, elfbuild.Symbol{Name: name, Section: "maps",
			Value: uint64(20 * i), Size: 20, Type: elf.STT_OBJECT, Bind: elf.STB_GLOBAL})
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), f.Bytes(), 0o644))
}
