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
		{"initial value", nil, 0xcfa, false},
		{"literal", []byte{lit(31)}, 31, false},
		{"address", []byte{opAddr, 1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201, false},
		{"const1u", []byte{0x08, 0xff}, 0xff, false},
		{"const1s", []byte{0x09, 0xff}, minus1, false},
		{"const2u", []byte{0x0a, 0xfe, 0xff}, 0xfffe, false},
		{"const2s", []byte{0x0b, 0xfe, 0xff}, minus1 - 1, false},
		{"const4u", []byte{0x0c, 0xfe, 0xff, 0xff, 0xff}, 0xfffffffe, false},
		{"const4s", []byte{0x0d, 0xfe, 0xff, 0xff, 0xff}, minus1 - 1, false},
		{"const8u", []byte{0x0e, 1, 0, 0, 0, 0, 0, 0, 0x80}, 1<<63 + 1, false},
		{"constu", []byte{opConstu, 0x80, 0x02}, 256, false},
		{"consts", []byte{opConsts, 0x7f}, minus1, false},
		{"register", []byte{opBreg0 + rbp, 0x78}, 0x500 - 8, false},
		{"bregx", []byte{opBregx, rbp, 8}, 0x508, false},
		{"unknown register", []byte{opBreg0 + 12, 0}, 0, true},
		{"register that is none", []byte{opBregx, 0x7f, 0}, 0, true},
		{"deref", []byte{opBreg0 + rsp, 8, opDeref}, 0x1122334455667788, false},
		{"deref_size", []byte{opBreg0 + rsp, 8, opDerefSize, 2}, 0x7788, false},
		{"deref outside", []byte{lit(1), opDeref}, 0, true},
		{"dup", []byte{lit(3), opDup, opPlus}, 6, false},
		{"drop", []byte{lit(3), lit(4), opDrop}, 3, false},
		{"over", []byte{lit(3), lit(4), opOver}, 3, false},
		{"pick", []byte{lit(3), lit(4), lit(5), opPick, 2}, 3, false},
		{"pick too far", []byte{opPick, 1}, 0, true},
		{"swap", []byte{lit(3), lit(4), opSwap, opMinus}, 1, false},
		{"rot", []byte{lit(1), lit(2), lit(3), opRot, opMinus, opMinus}, 3 - (1 - 2), false},
		{"abs", []byte{0x09, 0xfd, opAbs}, 3, false},
		{"neg", []byte{lit(3), opNeg}, minus1 - 2, false},
		{"not", []byte{lit(3), opNot}, minus1 - 3, false},
		{"plus_uconst", []byte{lit(3), opPlusUconst, 0x80, 1}, 131, false},
		{"and, or, xor", []byte{lit(12), lit(10), opAnd, lit(1), opOr, lit(3), opXor}, 10, false},
		{"mul", []byte{lit(12), lit(10), opMul}, 120, false},
		{"div, signed", []byte{0x09, 0xf8, lit(2), opDiv}, minus1 - 3, false},
		{"div by -1", []byte{lit(5), 0x09, 0xff, opDiv}, minus1 - 4, false},
		{"div by 0", []byte{lit(5), lit(0), opDiv}, 0, true},
		{"mod", []byte{lit(14), lit(4), opMod}, 2, false},
		{"shl", []byte{lit(3), lit(4), opShl}, 48, false},
		{"shl out", []byte{lit(3), 0x08, 64, opShl}, 0, false},
		{"shr", []byte{0x09, 0xff, 0x08, 60, opShr}, 15, false},
		{"shra", []byte{0x09, 0xf8, lit(2), opShra}, minus1 - 1, false},
		{"eq", []byte{lit(1), lit(1), opEq}, 1, false},
		{"ne", []byte{lit(1), lit(1), opNe}, 0, false},
		{"ge, signed", []byte{lit(1), 0x09, 0xff, opGe}, 1, false},
		{"gt", []byte{lit(1), lit(1), opGt}, 0, false},
		{"le", []byte{lit(1), lit(1), opLe}, 1, false},
		{"lt, signed", []byte{0x09, 0xff, lit(1), opLt}, 1, false},
		{"skip", []byte{lit(1), opSkip, 1, 0, lit(2), lit(3), opPlus}, 4, false},
		{"bra", []byte{lit(1), lit(7), opBra, 1, 0, lit(2)}, 1, false},
		{"bra, not taken", []byte{lit(1), lit(0), opBra, 1, 0, lit(2)}, 2, false},
		{"to the end", []byte{lit(1), opSkip, 1, 0, lit(2)}, 1, false},
		{"behind the end", []byte{opSkip, 2, 0, lit(2)}, 0, true},
		{"before the start", []byte{opSkip, 0xfc, 0xff}, 0, true},
		// Counts from 3 down: 1 + 2 * 3.
		{"a loop", []byte{lit(1), lit(3), opSwap, lit(2), opPlus, opSwap, lit(1), opMinus, opDup,
			opBra, 0xf6, 0xff, opDrop}, 7, false},
		{"an endless loop", []byte{opSkip, 0xfd, 0xff}, 0, true},
		{"nop", []byte{opNop}, 0xcfa, false},
		{"unknown operation", []byte{0xe0}, 0, true},
		{"empty stack", []byte{opDrop, opDrop}, 0, true},
		{"full stack", slices.Repeat([]byte{opDup}, maxDepth), 0, true},
		{"cut off", []byte{0x0e, 1, 2}, 0, true},
		{"LEB128 cut off", []byte{opConstu, 0x80}, 0, true},
		{"of a parent", cloneExpr, 0x99, false},
	} {
		w := &worker{arch: cfi.ArchOf(elf.EM_X86_64), mask: minus1, sp: stack, mem: x86Stack(0, 0, 0, 0x99, 0x1122334455667788).Memory}
		f := frame{w: w}
		f.set(0, 38)
		f.set(rsp, stack)
		f.set(rbp, 0x500)
		got, ok := f.eval(c.code, true, 0xcfa)
		if ok == c.bad || ok && got != c.want {
			t.Errorf("%s: %#x, %v; want %#x, %v", c.name, got, ok, c.want, !c.bad)
		}
	}
	child := frame{w: &worker{arch: cfi.ArchOf(elf.EM_X86_64), mask: minus1, sp: stack, mem: make([]byte, 8)}}
	child.set(0, 0)
	child.set(rsp, stack)
	if got, ok := child.eval(cloneExpr, true, 0); got != 0 || !ok {
		t.Errorf("of a child: %#x, %v", got, ok)
	}
}
