package pgo

import (
	stdelf "debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"symbolize/ingest/addr"
)

// TestDecodeBranch: jumps by hand-assembled instructions.
func TestDecodeBranch(t *testing.T) {
	arm := func(w uint32) []byte { return binary.LittleEndian.AppendUint32(nil, w) }
	for _, tt := range []struct {
		name    string
		machine stdelf.Machine
		code    []byte
		kind    branchKind
		target  addr.Addr // of jumps
		length  int
	}{
		{name: "jmp back", machine: stdelf.EM_X86_64, code: []byte{0xeb, 0xfe}, kind: jump, target: 0x1000, length: 2},
		{name: "jmp", machine: stdelf.EM_X86_64, code: []byte{0xe9, 0, 1, 0, 0}, kind: jump, target: 0x1105, length: 5},
		{name: "jne", machine: stdelf.EM_X86_64, code: []byte{0x75, 0x10}, kind: conditional, target: 0x1012, length: 2},
		{name: "jne near", machine: stdelf.EM_X86_64, code: []byte{0x0f, 0x85, 0, 1, 0, 0}, kind: conditional, target: 0x1106, length: 6},
		{name: "jmp *%rax", machine: stdelf.EM_X86_64, code: []byte{0xff, 0xe0}, kind: indirectJump, length: 2},
		{name: "ret", machine: stdelf.EM_X86_64, code: []byte{0xf3, 0xc3}, kind: ret, length: 2},
		{name: "call", machine: stdelf.EM_X86_64, code: []byte{0xe8, 0, 0, 0, 0}, length: 5},
		{name: "vpaddd", machine: stdelf.EM_X86_64, code: []byte{0xc5, 0xfd, 0xfe, 0xc1}, length: 4},
		{name: "cut off", machine: stdelf.EM_X86_64, code: []byte{0xe9, 0}},
		{name: "b", machine: stdelf.EM_AARCH64, code: arm(0x17ffffff), kind: jump, target: 0xffc, length: 4},
		{name: "b.ne", machine: stdelf.EM_AARCH64, code: arm(0x54000081), kind: conditional, target: 0x1010, length: 4},
		{name: "cbz", machine: stdelf.EM_AARCH64, code: arm(0xb4000040), kind: conditional, target: 0x1008, length: 4},
		{name: "tbnz", machine: stdelf.EM_AARCH64, code: arm(0x3707ffe0), kind: conditional, target: 0xffc, length: 4},
		{name: "br", machine: stdelf.EM_AARCH64, code: arm(0xd61f0200), kind: indirectJump, length: 4},
		{name: "ret of arm64", machine: stdelf.EM_AARCH64, code: arm(0xd65f03c0), kind: ret, length: 4},
		{name: "bl", machine: stdelf.EM_AARCH64, code: arm(0x94000001), length: 4},
		{name: "add", machine: stdelf.EM_AARCH64, code: arm(0x8b010000), length: 4},
		{name: "another machine", machine: stdelf.EM_S390, code: make([]byte, 8)},
	} {
		in, n := decodeBranch(tt.machine, tt.code, 0x1000)
		isJump := in.kind == jump || in.kind == conditional
		if in.kind != tt.kind || n != tt.length || isJump && in.target != tt.target {
			t.Errorf("%s: kind %d to %#x, %d bytes, want %d to %#x, %d", tt.name, in.kind, in.target, n, tt.kind,
				tt.target, tt.length)
		}
	}
}

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
