package pgo

import (
	stdelf "debug/elf"
	"fmt"
	"slices"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/calls"
)

// TestBlocks: what code runs over.
func TestBlocks(t *testing.T) {
	code := []byte{
		0x75, 0x03, // 0: jne 5
		0xeb, 0x05, // 2: jmp 9
		0x90,       // 4: nop
		0x90,       // 5: nop, a target
		0x74, 0x01, // 6: je 9
		0x90,       // 8: nop
		0xc3,       // 9: ret, a target
		0x74, 0x05, // a: je 11
		0xe8, 0, 0, 0, 0, // c: call
		0x90,                         // 11: nop, a target
		0x90,                         // 12: nop, entered by an exception
		0xe9, 0xe8, 0x00, 0x00, 0x00, // 13: jmp 1100
	}
	b := &blocks{starts: []addr.Addr{0x1000}, entered: make(map[addr.Addr]bool)}
	r := addr.Range{Start: 0x1000, End: 0x1000 + addr.Addr(len(code))}
	b.decode(stdelf.EM_X86_64, code, r)
	slices.Sort(b.starts)
	b.starts = slices.Compact(b.starts)
	b.enter(0x1012)
	b.enter(0x1000)
	for _, tt := range []struct {
		from, to addr.Addr
		resumed  bool
		want     string
	}{
		{0x1000, 0x1002, true, ""}, // a conditional jump before a jump ends no block; nothing is before
		{0x1005, 0x1009, true, "1006>1008 1008>1009 "},
		{0x1008, 0x1008, false, ""},
		{0x1001, 0x1009, false, ""}, // not an instruction
		{0x1002, 0x1009, false, ""}, // over a jump
		{0x100a, 0x1013, false, "100a>100c 100c>1011 1011>1012 "},
		{0x1011, 0x1012, false, "1011>1012 "}, // after a call: entered by a jump,
		{0x1011, 0x1012, true, "100c>1011 1011>1012 "},
	} {
		got := ""
		for _, e := range b.between(tt.from, tt.to, tt.resumed) {
			got += fmt.Sprintf("%x>%x ", e.last, e.next)
		}
		if got != tt.want {
			t.Errorf("%#x to %#x, %v: %q, want %q", tt.from, tt.to, tt.resumed, got, tt.want)
		}
	}
	if !b.is(0x1009, calls.Return) || b.is(0x1008, calls.Return) || b.is(0x1000, calls.IndirectJump) {
		t.Error("returns or indirect jumps are wrong")
	}
	if !b.entered[0x1012] || b.entered[0x1000] {
		t.Errorf("entered %v", b.entered)
	}
}
