package calls

import (
	stdelf "debug/elf"
	"encoding/binary"
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
		kind    BranchKind
		target  addr.Addr // of jumps
		length  int
	}{
		{name: "jmp back", machine: stdelf.EM_X86_64, code: []byte{0xeb, 0xfe}, kind: Jump, target: 0x1000, length: 2},
		{name: "jmp", machine: stdelf.EM_X86_64, code: []byte{0xe9, 0, 1, 0, 0}, kind: Jump, target: 0x1105, length: 5},
		{name: "jne", machine: stdelf.EM_X86_64, code: []byte{0x75, 0x10}, kind: ConditionalJump, target: 0x1012, length: 2},
		{name: "jne near", machine: stdelf.EM_X86_64, code: []byte{0x0f, 0x85, 0, 1, 0, 0}, kind: ConditionalJump, target: 0x1106, length: 6},
		{name: "jmp *%rax", machine: stdelf.EM_X86_64, code: []byte{0xff, 0xe0}, kind: IndirectJump, length: 2},
		{name: "ret", machine: stdelf.EM_X86_64, code: []byte{0xf3, 0xc3}, kind: Return, length: 2},
		{name: "call", machine: stdelf.EM_X86_64, code: []byte{0xe8, 0, 0, 0, 0}, kind: CallBranch, length: 5},
		{name: "vpaddd", machine: stdelf.EM_X86_64, code: []byte{0xc5, 0xfd, 0xfe, 0xc1}, length: 4},
		{name: "cut off", machine: stdelf.EM_X86_64, code: []byte{0xe9, 0}},
		{name: "b", machine: stdelf.EM_AARCH64, code: arm(0x17ffffff), kind: Jump, target: 0xffc, length: 4},
		{name: "b.ne", machine: stdelf.EM_AARCH64, code: arm(0x54000081), kind: ConditionalJump, target: 0x1010, length: 4},
		{name: "cbz", machine: stdelf.EM_AARCH64, code: arm(0xb4000040), kind: ConditionalJump, target: 0x1008, length: 4},
		{name: "tbnz", machine: stdelf.EM_AARCH64, code: arm(0x3707ffe0), kind: ConditionalJump, target: 0xffc, length: 4},
		{name: "br", machine: stdelf.EM_AARCH64, code: arm(0xd61f0200), kind: IndirectJump, length: 4},
		{name: "ret of arm64", machine: stdelf.EM_AARCH64, code: arm(0xd65f03c0), kind: Return, length: 4},
		{name: "bl", machine: stdelf.EM_AARCH64, code: arm(0x94000001), kind: CallBranch, length: 4},
		{name: "add", machine: stdelf.EM_AARCH64, code: arm(0x8b010000), length: 4},
		{name: "another machine", machine: stdelf.EM_S390, code: make([]byte, 8)},
	} {
		in, ok := DecodeBranch(tt.machine, tt.code, 0x1000)
		isJump := in.Kind == Jump || in.Kind == ConditionalJump
		if ok != (tt.length > 0) || ok && (in.Kind != tt.kind || in.Len != tt.length || isJump && in.Target != tt.target) {
			t.Errorf("%s: %v, kind %d to %#x, %d bytes, want %d to %#x, %d", tt.name, ok, in.Kind, in.Target, in.Len, tt.kind,
				tt.target, tt.length)
		}
	}
}
