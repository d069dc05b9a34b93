package main

import (
	"encoding/binary"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdSplitBTF is `splitbtf BASE SPLIT`: writes BTF with an int and the struct list_head, and
// what a kernel module's continues it with: a struct that holds both.
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
	for i, x := range []struct {
		words   []uint32
		strings string
	}{{base, names}, {split, "\x00driver\x00list\x00users\x00"}} {
		le := binary.LittleEndian
		b := le.AppendUint32(nil, 0x0001eb9f) // magic, version 1, no flags
		types := uint32(4 * len(x.words))
		for _, w := range append([]uint32{24, 0, types, types, uint32(len(x.strings))}, x.words...) {
			b = le.AppendUint32(b, w)
		}
		ts.Check(os.WriteFile(ts.MkAbs(args[i]), append(b, x.strings...), 0o644))
	}
}
