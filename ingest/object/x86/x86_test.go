package x86

import "testing"

// TestDecode decodes the operands and accesses of instructions.
func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name, code               string
		access                   int
		base, index, scale, disp int
		reg                      int
	}{
		{"mov 8(rdi),rax", "\x48\x8b\x47\x08", 8, 7, None, 1, 8, 0},
		{"mov (rax,r9,4),r10d", "\x46\x8b\x14\x88", 4, 0, 9, 4, 0, 10},
		{"movzwl -2(rbp),ecx", "\x0f\xb7\x4d\xfe", 2, 5, None, 1, -2, 1},
		{"movsbq (rdi,rax),rax", "\x48\x0f\xbe\x04\x07", 1, 7, 0, 1, 0, 0},
		{"movslq 16(rdi),rax", "\x48\x63\x47\x10", 4, 7, None, 1, 16, 0},
		{"movb dl,(rsi)", "\x88\x16", 1, 6, None, 1, 0, 2},
		{"lea 8(rdi),rax", "\x48\x8d\x47\x08", 0, 7, None, 1, 8, 0},
		{"movaps xmm0,(rsp)", "\x0f\x29\x04\x24", 16, 4, None, 1, 0, 0},
		{"movsd (rax),xmm1", "\xf2\x0f\x10\x08", 8, 0, None, 1, 0, 1},
		{"vmovdqu ymm0,(rsi)", "\xc5\xfe\x7f\x06", 32, 6, None, 1, 0, 0},
		{"movq (rdi),xmm0", "\xf3\x0f\x7e\x07", 8, 7, None, 1, 0, 0},
		{"prefetcht0 (rdi)", "\x0f\x18\x0f", 0, 7, None, 1, 0, 1},
		{"fldt (rdi)", "\xdb\x2f", 10, 7, None, 1, 0, 5},
		{"cmpxchg16b (rdi)", "\x48\x0f\xc7\x0f", 16, 7, None, 1, 0, 1},
	} {
		in, ok := Decode([]byte(c.code))
		if !ok || in.Len != len(c.code) {
			t.Errorf("%s: %v, %d bytes", c.name, ok, in.Len)
			continue
		}
		if in.Access() != c.access || int(in.Base) != c.base || int(in.Index) != c.index ||
			int(in.Scale) != c.scale || in.Disp != int64(c.disp) || int(in.Reg) != c.reg {
			t.Errorf("%s: %+v accesses %d bytes", c.name, in, in.Access())
		}
		for n := range c.code {
			if x, ok := Decode([]byte(c.code[:n])); ok && x.Len > n {
				t.Errorf("%s: %d bytes of %d", c.name, x.Len, n)
			}
		}
	}
}
