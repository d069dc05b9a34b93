package calls

import (
	"testing"

	"symbolize/ingest/addr"
)

// TestX86 decodes instructions of every encoding. What follows them is not read.
func TestX86(t *testing.T) {
	const at = 0x1000
	for _, c := range []struct {
		name, code string
		kind       insnKind
		target     addr.Addr
		class      class
		bad        bool
	}{
		{name: "nop", code: "\x90"},
		{name: "endbr64", code: "\xf3\x0f\x1e\xfa"},
		{name: "nopw cs:0(rax,rax)", code: "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"},
		{name: "call", code: "\xe8\x10\x00\x00\x00", kind: call, target: at + 0x15},
		{name: "data16 rex.W call, of TLS", code: "\x66\x66\x48\xe8\x10\x00\x00\x00", kind: call,
			target: at + 0x18},
		{name: "call back", code: "\xe8\xf0\xff\xff\xff", kind: call, target: at - 0xb},
		{name: "bnd jmp", code: "\xf2\xe9\x00\x01\x00\x00", kind: jump, target: at + 0x106},
		{name: "jmp short", code: "\xeb\xfe", kind: jump, target: at},
		{name: "je", code: "\x0f\x84\x00\x01\x00\x00", kind: jump, target: at + 0x106},
		{name: "jrcxz", code: "\xe3\x02", kind: jump, target: at + 4},
		{name: "call *rax", code: "\xff\xd0", kind: callIndirect},
		{name: "call *r11", code: "\x41\xff\xd3", kind: callIndirect},
		{name: "call *8(rax)", code: "\xff\x50\x08", kind: callIndirect},
		{name: "call *x(rip)", code: "\xff\x15\x10\x00\x00\x00", kind: callIndirect, target: at + 0x16},
		{name: "call *(rax,rbx,8)", code: "\xff\x14\xd8", kind: callIndirect},
		{name: "jmp *x(rip)", code: "\xff\x25\x10\x00\x00\x00", kind: jumpIndirect, target: at + 0x16},
		{name: "jmp *table(,rax,8)", code: "\xff\x24\xc5\x00\x20\x00\x00", kind: jumpIndirect, target: 0x2000},
		{name: "ret", code: "\xc3", kind: ret},
		{name: "repz ret", code: "\xf3\xc3", kind: ret},
		{name: "lea x(rip),rax", code: "\x48\x8d\x05\x10\x00\x00\x00", target: at + 0x17},
		{name: "movl $1,x(rip)", code: "\xc7\x05\x10\x00\x00\x00\x01\x00\x00\x00", target: at + 0x1a},
		{name: "movabs", code: "\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08"},
		{name: "movabs moffs", code: "\xa1\x01\x02\x03\x04\x05\x06\x07\x08"},
		{name: "movw $1,(rax)", code: "\x66\xc7\x00\x01\x00"},
		{name: "testb $1,(rax)", code: "\xf6\x00\x01"},
		{name: "testl $1,(rax)", code: "\xf7\x00\x01\x00\x00\x00"},
		{name: "notl (rax)", code: "\xf7\x10"},
		{name: "enter", code: "\xc8\x10\x00\x01", class: touches},
		{name: "pshufb", code: "\x66\x0f\x38\x00\xc1"},
		{name: "palignr", code: "\x66\x0f\x3a\x0f\xc1\x08"},
		{name: "vzeroupper", code: "\xc5\xf8\x77"},
		{name: "vpxor", code: "\xc5\xf1\xef\xc9"},
		{name: "vpalignr", code: "\xc4\xe3\x75\x0f\xc2\x08"},
		{name: "vmovdqu64 x(rip),zmm0", code: "\x62\xf1\xfe\x48\x6f\x05\x10\x00\x00\x00", target: at + 0x1a},
		{name: "vpternlogd", code: "\x62\xf3\x75\x48\x25\xc2\xff"},
		{name: "xop vpcomb", code: "\x8f\xe8\x70\xcc\xc2\x01"},
		{name: "push rbp", code: "\x55", class: saves},
		{name: "push r13", code: "\x41\x55"},
		{name: "pop rbp", code: "\x5d", class: restores},
		{name: "leave", code: "\xc9", class: restores},
		{name: "mov rsp,rbp", code: "\x48\x89\xe5", class: sets},
		{name: "lea 8(rsp),rbp", code: "\x48\x8d\x6c\x24\x08", class: sets},
		{name: "mov 8(rsp),rbp", code: "\x48\x8b\x6c\x24\x08", class: restores},
		{name: "mov rbp,8(rsp)", code: "\x48\x89\x6c\x24\x08"},
		{name: "mov edi,ebp", code: "\x89\xfd", class: replaces},
		{name: "mov $1,ebp", code: "\xbd\x01\x00\x00\x00", class: replaces},
		{name: "mov $1,r13d", code: "\x41\xbd\x01\x00\x00\x00"},
		{name: "add rbp,rax", code: "\x48\x01\xe8", class: touches},
		{name: "sub $8,rsp", code: "\x48\x83\xec\x08"},
		{name: "sub $8,rbp", code: "\x48\x83\xed\x08", class: touches},
		{name: "movaps xmm5,xmm0", code: "\x0f\x28\xc5"},
		{name: "andn with rbp", code: "\xc4\xe2\x50\xf2\xc1", class: touches},
		{name: "push es", code: "\x06", bad: true},
		{name: "no opcode", code: "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90", bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, ok := decodeX86([]byte(c.code+"\xcc\xcc"), at)
			if ok == c.bad || ok && in.size != len(c.code) {
				t.Fatalf("%v, %d bytes of %d", ok, in.size, len(c.code))
			}
			if in.kind != c.kind || in.target != c.target || in.class != c.class {
				t.Errorf("kind %d, target %#x, class %d", in.kind, uint64(in.target), in.class)
			}
			for n := range c.code {
				if in, ok := decodeX86([]byte(c.code[:n]), at); ok && in.size > n {
					t.Errorf("%d bytes of %d", in.size, n)
				}
			}
		})
	}
}

// TestARM64 decodes calls and jumps.
func TestARM64(t *testing.T) {
	const at = 0x1000
	for _, c := range []struct {
		name, code string
		kind       insnKind
		target     addr.Addr
	}{
		{name: "bl", code: "\x04\x00\x00\x94", kind: call, target: at + 0x10},
		{name: "bl back", code: "\xff\xff\xff\x97", kind: call, target: at - 4},
		{name: "b", code: "\x04\x00\x00\x14", kind: jump, target: at + 0x10},
		{name: "b.ne", code: "\x81\x00\x00\x54", kind: jump, target: at + 0x10},
		{name: "cbz", code: "\x80\x00\x00\xb4", kind: jump, target: at + 0x10},
		{name: "tbnz", code: "\x80\x00\x08\x37", kind: jump, target: at + 0x10},
		{name: "blr x1", code: "\x20\x00\x3f\xd6", kind: callIndirect},
		{name: "br x17", code: "\x20\x02\x1f\xd6", kind: jumpIndirect},
		{name: "ret", code: "\xc0\x03\x5f\xd6", kind: ret},
		{name: "retaa", code: "\xff\x0b\x5f\xd6", kind: ret},
		{name: "stub", code: "\x90\x00\x00\x90\x11\x0e\x40\xf9", target: at + 0x10000 + 0x18},
		{name: "add", code: "\x00\x00\x01\x8b"},
	} {
		in, ok := arm64([]byte(c.code), at)
		if !ok || in.size != 4 || in.kind != c.kind || in.target != c.target {
			t.Errorf("%s: %v, kind %d, target %#x", c.name, ok, in.kind, uint64(in.target))
		}
		if _, ok := arm64([]byte(c.code[:3]), at); ok {
			t.Errorf("%s: three bytes are an instruction", c.name)
		}
	}
}

// FuzzDecode decodes any bytes: an instruction is in them, and not empty.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x55\x48\x89\xe5\xe8\x00\x00\x00\x00\x62\xf1\xfe\x48\x6f\x05\x10\x00\x00\x00\xc3"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range []func([]byte, addr.Addr) (insn, bool){decodeX86, arm64} {
			for at := 0; at < len(b); {
				in, ok := decode(b[at:], addr.Addr(at))
				if !ok {
					break
				}
				if in.size <= 0 || in.size > len(b)-at || in.size > 15 {
					t.Fatalf("%d bytes of %d", in.size, len(b)-at)
				}
				at += in.size
			}
		}
	})
}
