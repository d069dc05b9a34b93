package pgo

import (
	stdelf "debug/elf"
	"fmt"
	"slices"
	"testing"

	"symbolize/ingest/addr"
)

// TestBlocks: what code runs over.
func TestBlocks(t *testing.T) {
	code := []byte{
		0x75, 0x03, // 0: jne 5
		0xeb, 0x05, // 2: jmp 9
		0x90,       // 4: nop
		0x90,       // 5: nop, a target
		0x74, 0x01, // 6: je 9
		0x90, // 8: nop
		0xc3, // 9: ret, a target
	}
	b := &blocks{starts: []addr.Addr{0x1000}}
	r := addr.Range{Start: 0x1000, End: 0x1000 + addr.Addr(len(code))}
	b.decode(stdelf.EM_X86_64, code, r)
	slices.Sort(b.starts)
	b.starts = slices.Compact(b.starts)
	for _, tt := range []struct {
		from, to addr.Addr
		want     string
	}{
		{0x1000, 0x1002, ""}, // a conditional jump before a jump ends no block
		{0x1005, 0x1009, "1006>1008 1008>1009 "},
		{0x1008, 0x1008, ""},
		{0x1001, 0x1009, ""}, // not an instruction
	} {
		got := ""
		b.between(tt.from, tt.to, func(last, next addr.Addr) { got += fmt.Sprintf("%x>%x ", last, next) })
		if got != tt.want {
			t.Errorf("%#x to %#x: %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
	if !b.returns(0x1009) || b.returns(0x1008) || b.indirect(0x1000) {
		t.Error("returns or indirect jumps are wrong")
	}
}
