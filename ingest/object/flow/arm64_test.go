package flow

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// String prints an instruction as a test compares it.
func (x *insn) String() string {
	ops := map[op]string{opMove: "move", opExtend: "extend", opAddr: "address", opAdd: "add", opSub: "sub",
		opShift: "shift", opField: "field", opMul: "mul", opMulAdd: "muladd", opAnd: "and", opInsert: "insert",
		opSelect: "select", opCompare: "compare", opStore: "store", opCall: "call"}
	jumps := map[jump]string{branch: "branch", always: "jump", indirect: "jump", stop: "stop", callTo: "",
		callThrough: ""}
	var w []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			w = append(w, fmt.Sprintf(format, args...))
		}
	}
	add(x.op != opKill, "%s%d", ops[x.op], x.width)
	add(x.dst != noReg, "r%d =", x.dst)
	add(x.a != noReg, "a r%d", x.a)
	add(x.src != noReg, "r%d", x.src)
	add(x.second != noReg, "and r%d", x.second)
	add(x.form == immForm, "#%d", x.imm)
	add(x.form != immForm && x.imm != 0, "imm %d", x.imm)
	add(x.form >= threadForm, "system %d", x.form-threadForm)
	add(x.shift != 0, "<< %d", x.shift)
	if m := &x.mem; x.access != 0 || x.op == opAddr {
		add(m.absolute, "[%x]", m.disp)
		add(!m.absolute, "[r%d%+d]", m.base, m.disp)
		add(m.index != noReg, "index r%d*%d", m.index, m.scale)
		add(m.part, "part")
	}
	add(x.access != 0, "bytes %d", x.access)
	add(x.pair, "pair")
	add(x.writes, "write")
	add(x.update != 0, "update %+d", x.update)
	add(x.text, "text")
	add(x.vague, "vague")
	add(x.jump != next && jumps[x.jump] != "", "%s", jumps[x.jump])
	add(x.target != 0, "to %x", x.target)
	add(x.kill != 0, "lose %x", x.kill)
	return strings.Join(w, " ")
}

// TestDecodeARM64 decodes instructions as GNU as assembles them, at 0x1000.
func TestDecodeARM64(t *testing.T) {
	for _, c := range []struct {
		text string
		word uint32
		want string
	}{
		{text: "adr x1, .+8", word: 0x10000041, want: "address8 r1 = [1008]"},
		{text: "adrp x1, .", word: 0x90000001, want: "address8 r1 = [1000]"},
		{text: "add x0, x1, #16", word: 0x91004020, want: "add8 r0 = a r1 #16"},
		{text: "add x0, x1, #16, lsl #12", word: 0x91404020, want: "add8 r0 = a r1 #65536"},
		{text: "sub sp, sp, #32", word: 0xd10083ff, want: "sub8 r31 = a r31 #32"},
		{text: "subs w1, w1, #1", word: 0x71000421, want: "sub4 r1 = a r1 #1"},
		{text: "cmp w0, #9", word: 0x7100241f, want: "compare4 a r0 #9"},
		{text: "tst x0, #7", word: 0xf240081f, want: "and8 a r0 #7"},
		{text: "and x0, x1, #-16", word: 0x927cec20, want: "and8 r0 = a r1 #-16"},
		{text: "and w1, w2, #3", word: 0x12000441, want: "field4 r1 = a r2 << 2"},
		{text: "and x19, x0, #0xf0", word: 0x927c0c13, want: "and8 r19 = a r0 #240"},
		{text: "and sp, x9, #-64", word: 0x927ae53f, want: "and8 r31 = a r9 #-64"},
		{text: "orr x0, xzr, #0xff", word: 0xb2401fe0, want: "move8 r0 = #255"},
		{text: "orr x0, x1, #1", word: 0xb2400020, want: "r0 = a r1 #1 lose 1"},
		{text: "mov w0, #56", word: 0x52800700, want: "move4 r0 = #56"},
		{text: "mov x0, #-1", word: 0x92800000, want: "move8 r0 = #-1"},
		{text: "mov w0, #-2", word: 0x12800020, want: "move4 r0 = #4294967294"},
		{text: "movk x0, #0x12, lsl #16", word: 0xf2a00240, want: "insert8 r0 = #18 << 16"},
		{text: "mov x0, x1", word: 0xaa0103e0, want: "move8 r0 = r1"},
		{text: "mov w0, w1", word: 0x2a0103e0, want: "move4 r0 = r1"},
		{text: "mov x29, sp", word: 0x910003fd, want: "add8 r29 = a r31 #0"},
		{text: "lsl x0, x1, #3", word: 0xd37df020, want: "shift8 r0 = a r1 imm 3"},
		{text: "lsl w0, w1, #3", word: 0x531d7020, want: "shift4 r0 = a r1 imm 3"},
		{text: "lsr x0, x1, #3", word: 0xd343fc20, want: "r0 = a r1 lose 1"},
		{text: "sxtw x0, w1", word: 0x93407c20, want: "extend4 r0 = a r1 r1"},
		{text: "uxtb w0, w1", word: 0x53001c20, want: "extend1 r0 = a r1 r1"},
		{text: "sxth x0, w1", word: 0x93403c20, want: "extend2 r0 = a r1 r1"},
		{text: "ubfiz x1, x2, #4, #2", word: 0xd37c0441, want: "field8 r1 = a r2 imm 4 << 2"},
		{text: "sbfiz x1, x2, #4, #2", word: 0x937c0441, want: "field8 r1 = a r2 imm 4 << 130"},
		{text: "sbfiz x1, x1, #3, #32", word: 0x937d7c21, want: "shift8 r1 = a r1 imm 3"},
		{text: "ubfx x0, x1, #4, #4", word: 0xd3441c20, want: "r0 = a r1 lose 1"},
		{text: "bfi x0, x1, #4, #4", word: 0xb37c0c20, want: "r0 = a r1 lose 1"},
		{text: "extr x0, x1, x2, #5", word: 0x93c21420, want: "lose 1"},
		{text: "add x0, x1, x2", word: 0x8b020020, want: "add8 r0 = a r1 r2"},
		{text: "add x0, x1, x2, lsl #3", word: 0x8b020c20,
			want: "address8 r0 = a r1 r2 [r1+0] index r2*8"},
		{text: "add w0, w1, w2, lsl #2", word: 0x0b020820, want: "add4 r0 = a r1 r2 << 2"},
		{text: "sub x0, x1, x2, lsl #3", word: 0xcb020c20, want: "sub8 r0 = a r1 r2 << 3"},
		{text: "add x0, x1, x2, lsr #3", word: 0x8b420c20, want: "r0 = a r1 r2 lose 1"},
		{text: "add x0, x1, w2, sxtw #3", word: 0x8b22cc20,
			want: "address8 r0 = a r1 r2 [r1+0] index r2*8 part"},
		{text: "add x0, x1, w2, uxtb", word: 0x8b220020, want: "add8 r0 = a r1"},
		{text: "add x0, sp, x2", word: 0x8b2263e0, want: "add8 r0 = a r31 r2"},
		{text: "neg x0, x1", word: 0xcb0103e0, want: "r0 = r1 lose 1"},
		{text: "csel x0, x1, x2, eq", word: 0x9a820020, want: "select8 r0 = a r1 r2"},
		{text: "csel x0, xzr, x2, eq", word: 0x9a8203e0, want: "select8 r0 = a r2 r2 #0"},
		{text: "cset w0, eq", word: 0x1a9f17e0, want: "lose 1"},
		{text: "ccmp x0, #1, #0, ne", word: 0xfa411800, want: ""},
		{text: "madd x0, x1, x2, x3", word: 0x9b020c20, want: "muladd8 r0 = a r3 r1 and r2"},
		{text: "mul w0, w1, w2", word: 0x1b027c20, want: "muladd4 r0 = r1 and r2"},
		{text: "smaddl x0, w1, w2, x3", word: 0x9b220c20, want: "muladd8 r0 = a r3 r1 and r2"},
		{text: "msub x0, x1, x2, x3", word: 0x9b028c20, want: "r0 = lose 1"},
		{text: "umulh x0, x1, x2", word: 0x9bc27c20, want: "r0 = lose 1"},
		{text: "udiv x0, x1, x2", word: 0x9ac20820, want: "lose 1"},
		{text: "rev x0, x1", word: 0xdac00c20, want: "lose 1"},
		{text: "ldr x0, [x1, #8]", word: 0xf9400420, want: "move8 r0 = [r1+8] bytes 8"},
		{text: "ldr w0, [x1, #8]", word: 0xb9400820, want: "move4 r0 = [r1+8] bytes 4"},
		{text: "ldrb w0, [x1, #103]", word: 0x39419c20, want: "move1 r0 = [r1+103] bytes 1"},
		{text: "ldrsw x0, [x1, #16]", word: 0xb9801020, want: "extend4 r0 = [r1+16] bytes 4"},
		{text: "ldrsb w0, [x1]", word: 0x39c00020, want: "extend1 r0 = [r1+0] bytes 1"},
		{text: "ldr x0, [x1, #-8]", word: 0xf85f8020, want: "move8 r0 = [r1-8] bytes 8"},
		{text: "ldr x0, [x1], #8", word: 0xf8408420, want: "move8 r0 = [r1+0] bytes 8 update +8"},
		{text: "ldr x0, [x1, #8]!", word: 0xf8408c20, want: "move8 r0 = [r1+8] bytes 8 update +8"},
		{text: "str xzr, [x1, #8]", word: 0xf900043f, want: "store8 #0 [r1+8] bytes 8 write"},
		{text: "str w2, [x1, #8]", word: 0xb9000822, want: "store4 r2 [r1+8] bytes 4 write"},
		{text: "strb w2, [x1], #1", word: 0x38001422, want: "store1 r2 [r1+0] bytes 1 write update +1"},
		{text: "ldr x0, [x1, x2, lsl #3]", word: 0xf8627820, want: "move8 r0 = [r1+0] index r2*8 bytes 8"},
		{text: "ldr x0, [x1, w2, sxtw #3]", word: 0xf862d820,
			want: "move8 r0 = [r1+0] index r2*8 part bytes 8"},
		{text: "ldr x0, [x1, x2]", word: 0xf8626820, want: "move8 r0 = [r1+0] index r2*1 bytes 8"},
		{text: "str w0, [x1, w2, uxtw #2]", word: 0xb8225820,
			want: "store4 r0 [r1+0] index r2*4 part bytes 4 write"},
		{text: "ldr x0, .+16", word: 0x58000080, want: "move8 r0 = [1010] bytes 8"},
		{text: "ldr d0, .+16", word: 0x5c000080, want: "[1010] bytes 8"},
		{text: "prfm pldl1keep, [x1, #8]", word: 0xf9800420, want: ""},
		{text: "ldp x0, x1, [x2, #16]", word: 0xa9410440, want: "move8 r0 = and r1 [r2+16] bytes 16 pair"},
		{text: "ldp w0, w1, [x2, #16]", word: 0x29420440, want: "move4 r0 = and r1 [r2+16] bytes 8 pair"},
		{text: "ldpsw x0, x1, [x2]", word: 0x69400440, want: "extend4 r0 = and r1 [r2+0] bytes 8 pair"},
		{text: "stp x29, x30, [sp, #-16]!", word: 0xa9bf7bfd,
			want: "store8 r29 and r30 [r31-16] bytes 16 pair write update -16"},
		{text: "ldp x29, x30, [sp], #16", word: 0xa8c17bfd,
			want: "move8 r29 = and r30 [r31+0] bytes 16 pair update +16"},
		{text: "stp xzr, x1, [x2]", word: 0xa900045f, want: "store8 and r1 [r2+0] bytes 16 pair write"},
		{text: "ldp q0, q1, [x2, #32]", word: 0xad410440, want: "[r2+32] bytes 32 pair"},
		{text: "stp d0, d1, [x2], #16", word: 0x6c810440, want: "[r2+0] bytes 16 pair write update +16"},
		{text: "ldr q0, [x1, #16]", word: 0x3dc00420, want: "[r1+16] bytes 16"},
		{text: "str d0, [x1, #16]", word: 0xfd000820, want: "[r1+16] bytes 8 write"},
		{text: "ldr s0, [x1, x2, lsl #2]", word: 0xbc627820, want: "[r1+0] index r2*4 bytes 4"},
		{text: "ldr h0, [x1]", word: 0x7d400020, want: "[r1+0] bytes 2"},
		{text: "ld1 {v0.16b}, [x1], #16", word: 0x4cdf7020, want: "[r1+0] bytes 16 update +16"},
		{text: "st2 {v0.8b, v1.8b}, [x1]", word: 0x0c008020, want: "[r1+0] bytes 16 write"},
		{text: "ld4 {v0.4s-v3.4s}, [x1], x2", word: 0x4cc20820, want: "[r1+0] bytes 64 lose 2"},
		{text: "ld1r {v0.4s}, [x1]", word: 0x4d40c820, want: "[r1+0] bytes 4"},
		{text: "st1 {v0.d}[1], [x1]", word: 0x4d008420, want: "[r1+0] bytes 8 write"},
		{text: "ldxr x0, [x1]", word: 0xc85f7c20, want: "move8 r0 = [r1+0] bytes 8"},
		{text: "stxr w2, x0, [x1]", word: 0xc8027c20, want: "store8 r0 [r1+0] bytes 8 write lose 4"},
		{text: "ldaxp x0, x1, [x2]", word: 0xc87f8440, want: "move8 r0 = and r1 [r2+0] bytes 16 pair"},
		{text: "stlxp w3, x0, x1, [x2]", word: 0xc8238440, want: "[r2+0] bytes 16 pair write lose 8"},
		{text: "ldar w0, [x1]", word: 0x88dffc20, want: "move4 r0 = [r1+0] bytes 4"},
		{text: "stlr x0, [x1]", word: 0xc89ffc20, want: "store8 r0 [r1+0] bytes 8 write"},
		{text: "cas x0, x1, [x2]", word: 0xc8a07c41, want: "[r2+0] bytes 8 write lose 1"},
		{text: "caspal x0, x1, x2, x3, [x4]", word: 0x4860fc82, want: "[r4+0] bytes 16 pair write lose 3"},
		{text: "ldadd x0, x1, [x2]", word: 0xf8200041, want: "[r2+0] bytes 8 write lose 2"},
		{text: "swpal w0, w1, [x2]", word: 0xb8e08041, want: "[r2+0] bytes 4 write lose 2"},
		{text: "stadd x0, [x2]", word: 0xf820005f, want: "[r2+0] bytes 8 write"},
		{text: "ldapr x0, [x1]", word: 0xf8bfc020, want: "move8 r0 = [r1+0] bytes 8"},
		{text: "stlur x0, [x1, #-8]", word: 0xd91f8020, want: "store8 r0 [r1-8] bytes 8 write"},
		{text: "ldraa x0, [x1, #8]", word: 0xf8201420, want: "move8 r0 = [r1+8] bytes 8"},
		{text: "b .+8", word: 0x14000002, want: "jump to 1008"},
		{text: "bl .+8", word: 0x94000002, want: "call8 to 1008"},
		{text: "b.ne .-8", word: 0x54ffffc1, want: "branch to ff8"},
		{text: "cbz x0, .+8", word: 0xb4000040, want: "branch to 1008"},
		{text: "tbnz x0, #3, .+8", word: 0x37180040, want: "branch to 1008"},
		{text: "br x1", word: 0xd61f0020, want: "r1 jump"},
		{text: "blr x1", word: 0xd63f0020, want: "call8 r1"},
		{text: "ret", word: 0xd65f03c0, want: "stop"},
		{text: "retaa", word: 0xd65f0bff, want: "stop"},
		{text: "brk #1", word: 0xd4200020, want: "stop"},
		{text: "brk #0x800", word: 0xd4210000, want: ""},
		{text: "svc #0", word: 0xd4000001, want: "lose 1"},
		{text: "udf #0", word: 0x00000000, want: "stop"},
		{text: "mrs x0, tpidr_el0", word: 0xd53bd040, want: "move8 r0 = system 0"},
		{text: "mrs x0, tpidr_el1", word: 0xd538d080, want: "move8 r0 = system 1"},
		{text: "mrs x0, sp_el0", word: 0xd5384100, want: "move8 r0 = system 2"},
		{text: "mrs x0, midr_el1", word: 0xd5380000, want: "move8 r0 ="},
		{text: "msr tpidr_el0, x0", word: 0xd51bd040, want: ""},
		{text: "nop", word: 0xd503201f, want: ""},
		{text: "paciasp", word: 0xd503233f, want: ""},
		{text: "dmb ish", word: 0xd5033bbf, want: ""},
		{text: "fmov x0, d0", word: 0x9e660000, want: "lose 1"},
		{text: "fmov d0, x0", word: 0x9e670000, want: ""},
		{text: "fcvtzs x0, d0", word: 0x9e780000, want: "lose 1"},
		{text: "scvtf d0, x0", word: 0x9e620000, want: ""},
		{text: "umov w0, v0.b[1]", word: 0x0e033c00, want: "lose 1"},
		{text: "fadd d0, d1, d2", word: 0x1e622820, want: ""},
		{text: "cpyfp [x0]!, [x1]!, x2!", word: 0x19010440, want: "text lose 7"},
		{text: "addvl sp, sp, #-1", word: 0x043f57ff, want: "lose 80000000"},
		{text: "incd x0", word: 0x04f0e3e0, want: "lose 1"},
		{text: "ld1d {z0.d}, p0/z, [x0]", word: 0xa5e0a000, want: "vague lose 1"},
		{text: "stg x0, [x1]", word: 0xd9200820, want: "vague lose 3"},
	} {
		code := binary.LittleEndian.AppendUint32(nil, c.word)
		x, ok := decodeARM64(code, 0x1000)
		if got := x.String(); got != c.want || !ok || x.size != 4 {
			t.Errorf("%s: %#x\ngot  %s\nwant %s", c.text, c.word, got, c.want)
		}
		for n := range code {
			if _, ok := decodeARM64(code[:n], 0x1000); ok {
				t.Errorf("%s: %d bytes are an instruction", c.text, n)
			}
		}
	}
	if _, ok := decodeARM64([]byte{0, 0, 0, 2}, 0x1000); ok {
		t.Error("a word that is not allocated is an instruction")
	}
}
