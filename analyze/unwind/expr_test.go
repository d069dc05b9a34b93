package unwind

import (
	"debug/elf"
	"slices"
	"testing"

	"symbolize/ingest/object/cfi"
)

// cloneExpr is the return address of Go's runtime.clone: a word at SP, 0 if the result of the
// system call, in register 0, is 0.
var cloneExpr = []byte{opBreg0 + rsp, 0, opDeref, opBreg0, 0, opBra, 2, 0, opDrop, opLit0}

// TestExpressions evaluates each operation as DWARF 5, 2.5.1, has it.
func TestExpressions(t *testing.T) {
	const minus1 = ^uint64(0)
	lit := func(n int) byte { return byte(opLit0 + n) }
	for _, c := range []struct {
		name string
		code []byte
		want uint64
		bad  bool
	}{
		{name: "initial value", want: 0xcfa},
		{name: "literal", code: []byte{lit(31)}, want: 31},
		{name: "address", code: []byte{opAddr, 1, 2, 3, 4, 5, 6, 7, 8}, want: 0x0807060504030201},
		{name: "const1u", code: []byte{0x08, 0xff}, want: 0xff},
		{name: "const1s", code: []byte{0x09, 0xff}, want: minus1},
		{name: "const2u", code: []byte{0x0a, 0xfe, 0xff}, want: 0xfffe},
		{name: "const2s", code: []byte{0x0b, 0xfe, 0xff}, want: minus1 - 1},
		{name: "const4u", code: []byte{0x0c, 0xfe, 0xff, 0xff, 0xff}, want: 0xfffffffe},
		{name: "const4s", code: []byte{0x0d, 0xfe, 0xff, 0xff, 0xff}, want: minus1 - 1},
		{name: "const8u", code: []byte{0x0e, 1, 0, 0, 0, 0, 0, 0, 0x80}, want: 1<<63 + 1},
		{name: "constu", code: []byte{opConstu, 0x80, 0x02}, want: 256},
		{name: "consts", code: []byte{opConsts, 0x7f}, want: minus1},
		{name: "register", code: []byte{opBreg0 + rbp, 0x78}, want: 0x500 - 8},
		{name: "bregx", code: []byte{opBregx, rbp, 8}, want: 0x508},
		{name: "unknown register", code: []byte{opBreg0 + 12, 0}, want: 0, bad: true},
		{name: "register that is none", code: []byte{opBregx, 0x7f, 0}, want: 0, bad: true},
		{name: "deref", code: []byte{opBreg0 + rsp, 8, opDeref}, want: 0x1122334455667788},
		{name: "deref_size", code: []byte{opBreg0 + rsp, 8, opDerefSize, 2}, want: 0x7788},
		{name: "deref outside", code: []byte{lit(1), opDeref}, want: 0, bad: true},
		{name: "dup", code: []byte{lit(3), opDup, opPlus}, want: 6},
		{name: "drop", code: []byte{lit(3), lit(4), opDrop}, want: 3},
		{name: "over", code: []byte{lit(3), lit(4), opOver}, want: 3},
		{name: "pick", code: []byte{lit(3), lit(4), lit(5), opPick, 2}, want: 3},
		{name: "pick too far", code: []byte{opPick, 1}, want: 0, bad: true},
		{name: "swap", code: []byte{lit(3), lit(4), opSwap, opMinus}, want: 1},
		{name: "rot", code: []byte{lit(1), lit(2), lit(3), opRot, opMinus, opMinus},
			want: 3 - (1 - 2)},
		{name: "abs", code: []byte{0x09, 0xfd, opAbs}, want: 3},
		{name: "neg", code: []byte{lit(3), opNeg}, want: minus1 - 2},
		{name: "not", code: []byte{lit(3), opNot}, want: minus1 - 3},
		{name: "plus_uconst", code: []byte{lit(3), opPlusUconst, 0x80, 1}, want: 131},
		{name: "and, or, xor", code: []byte{lit(12), lit(10), opAnd, lit(1), opOr, lit(3), opXor},
			want: 10},
		{name: "mul", code: []byte{lit(12), lit(10), opMul}, want: 120},
		{name: "div, signed", code: []byte{0x09, 0xf8, lit(2), opDiv}, want: minus1 - 3},
		{name: "div by -1", code: []byte{lit(5), 0x09, 0xff, opDiv}, want: minus1 - 4},
		{name: "div by 0", code: []byte{lit(5), lit(0), opDiv}, want: 0, bad: true},
		{name: "mod", code: []byte{lit(14), lit(4), opMod}, want: 2},
		{name: "shl", code: []byte{lit(3), lit(4), opShl}, want: 48},
		{name: "shl out", code: []byte{lit(3), 0x08, 64, opShl}, want: 0},
		{name: "shr", code: []byte{0x09, 0xff, 0x08, 60, opShr}, want: 15},
		{name: "shra", code: []byte{0x09, 0xf8, lit(2), opShra}, want: minus1 - 1},
		{name: "eq", code: []byte{lit(1), lit(1), opEq}, want: 1},
		{name: "ne", code: []byte{lit(1), lit(1), opNe}, want: 0},
		{name: "ge, signed", code: []byte{lit(1), 0x09, 0xff, opGe}, want: 1},
		{name: "gt", code: []byte{lit(1), lit(1), opGt}, want: 0},
		{name: "le", code: []byte{lit(1), lit(1), opLe}, want: 1},
		{name: "lt, signed", code: []byte{0x09, 0xff, lit(1), opLt}, want: 1},
		{name: "skip", code: []byte{lit(1), opSkip, 1, 0, lit(2), lit(3), opPlus}, want: 4},
		{name: "bra", code: []byte{lit(1), lit(7), opBra, 1, 0, lit(2)}, want: 1},
		{name: "bra, not taken", code: []byte{lit(1), lit(0), opBra, 1, 0, lit(2)}, want: 2},
		{name: "to the end", code: []byte{lit(1), opSkip, 1, 0, lit(2)}, want: 1},
		{name: "behind the end", code: []byte{opSkip, 2, 0, lit(2)}, want: 0, bad: true},
		{name: "before the start", code: []byte{opSkip, 0xfc, 0xff}, want: 0, bad: true},
		// Counts from 3 down: 1 + 2 * 3.
		{name: "a loop",
			code: []byte{lit(1), lit(3), opSwap, lit(2), opPlus, opSwap, lit(1), opMinus, opDup,
				opBra, 0xf6, 0xff, opDrop}, want: 7},
		{name: "an endless loop", code: []byte{opSkip, 0xfd, 0xff}, want: 0, bad: true},
		{name: "nop", code: []byte{opNop}, want: 0xcfa},
		{name: "unknown operation", code: []byte{0xe0}, want: 0, bad: true},
		{name: "empty stack", code: []byte{opDrop, opDrop}, want: 0, bad: true},
		{name: "full stack", code: slices.Repeat([]byte{opDup}, maxDepth), want: 0, bad: true},
		{name: "cut off", code: []byte{0x0e, 1, 2}, want: 0, bad: true},
		{name: "LEB128 cut off", code: []byte{opConstu, 0x80}, want: 0, bad: true},
		{name: "of a parent", code: cloneExpr, want: 0x99},
	} {
		w := &stackUnwinder{arch: cfi.ArchOf(elf.EM_X86_64), mask: minus1, sp: stack, mem: x86Stack(0, 0, 0, 0x99, 0x1122334455667788).Memory}
		f := frame{w: w}
		f.set(0, 38)
		f.set(rsp, stack)
		f.set(rbp, 0x500)
		got, ok := f.eval(c.code, true, 0xcfa)
		if ok == c.bad || ok && got != c.want {
			t.Errorf("%s: %#x, %v; want %#x, %v", c.name, got, ok, c.want, !c.bad)
		}
	}
	child := frame{w: &stackUnwinder{arch: cfi.ArchOf(elf.EM_X86_64), mask: minus1, sp: stack, mem: make([]byte, 8)}}
	child.set(0, 0)
	child.set(rsp, stack)
	if got, ok := child.eval(cloneExpr, true, 0); got != 0 || !ok {
		t.Errorf("of a child: %#x, %v", got, ok)
	}
}
