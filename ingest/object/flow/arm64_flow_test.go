package flow

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"symbolize/ingest/addr"
)

// words is code of arm64.
func words(list []uint32) string {
	var b []byte
	for _, w := range list {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return string(b)
}

// TestFunctionARM64 analyzes functions, at 0x1000. Parameters are in x0 and x1 at the entry only: x1 is a
// number. Calls beyond the function are of 0x140c.
func TestFunctionARM64(t *testing.T) {
	types, id := testTypes(t)
	for _, c := range []struct {
		name    string
		code    []uint32
		table   []byte // at 0x2000
		x0      int
		named   reg // a variable, a number, from the second instruction on; 0 for none
		kernel  bool
		extents bool
		want    string
	}{
		// ldr x2, [x0, #8]; ldr w3, [x2, #16]; ret
		{name: "members through pointers", x0: tPairPtr,
			code: []uint32{0xf9400402, 0xb9401043, 0xd65f03c0},
			want: "1000 pair.item, 1004 item.list[]"},
		// ldp x2, x3, [x0]; ldp x4, x5, [x0, #32]; ldr x5, [x4, #8]; ldr w2, [x5, #16]; ldp w6,
		// w7, [x0, #16]; ret
		{name: "pairs of members, and of an array's elements", x0: tItemPtr,
			code: []uint32{0xa9400c02, 0xa9421404, 0xf9400485, 0xb94010a2, 0x29421c06,
				0xd65f03c0},
			want: "1000 item.next|value pair, 1004 item.pairs|tail pair, 1008 pair.item, 100c " +
				"item.list[], 1010 item.list[]|list[] pair"},
		// ldp x2, x3, [x0, #40]; ret
		{name: "a pair beyond the end", x0: tItemPtr,
			code: []uint32{0xa9428c02, 0xd65f03c0},
			want: "1000 item.tail"},
		// ldp x0, x1, [x0]; ldr x2, [x0, #8]; ret
		{name: "the base of a pair is overwritten", x0: tItemPtr,
			code: []uint32{0xa9400400, 0xf9400402, 0xd65f03c0},
			want: "1000 item.next|value pair, 1004 item.value"},
		// ldr x2, [x0, #8]!; str x2, [x0, #8]; stp xzr, xzr, [x0], #16; ldr x4, [x0]; ret
		{name: "the base changes before and after", x0: tPairPtr,
			code: []uint32{0xf8408c02, 0xf9000402, 0xa8817c1f, 0xf9400004, 0xd65f03c0},
			want: "1000 pair.item, 1004 pair.more write, 1008 pair.item|more pair write, 100c " +
				"pair.key?"},
		// sxtw x1, w1; mov w3, #24; smaddl x2, w1, w3, x0; ldr x2, [x2, #8]; ret
		{name: "a product as index", x0: tPairPtr,
			code: []uint32{0x93407c21, 0x52800303, 0x9b230022, 0xf9400442, 0xd65f03c0},
			want: "100c pair.item"},
		// add x6, x1, x1, lsl #1; add x6, x0, x6, lsl #3; ldr x6, [x6, #16]; ret
		{name: "sums as index", x0: tPairPtr,
			code: []uint32{0x8b010426, 0x8b060c06, 0xf94008c6, 0xd65f03c0},
			want: "1008 pair.more"},
		// ubfiz x4, x1, #2, #2; and x5, x1, #3; sub x5, x4, x5; add x5, x0, x5, lsl #3; ldr x5,
		// [x5]; ret
		{name: "bits as index", x0: tPairPtr,
			code: []uint32{0xd37e0424, 0x92400425, 0xcb050085, 0x8b050c05, 0xf94000a5,
				0xd65f03c0},
			want: "1010 pair.key"},
		// ubfiz x4, x1, #2, #2; and x5, x1, #7; sub x5, x4, x5; add x5, x0, x5, lsl #3; ldr x5,
		// [x5]; ret
		{name: "other bits as index", x0: tPairPtr,
			code: []uint32{0xd37e0424, 0x92400825, 0xcb050085, 0x8b050c05, 0xf94000a5,
				0xd65f03c0},
			want: "1010 (weak evidence)"},
		// lsl x4, x2, #2; sub x4, x4, x2; add x4, x0, x4, lsl #3; ldr x4, [x4]; ret
		{name: "a number that gets a name", x0: tPairPtr, named: 2,
			code: []uint32{0xd37ef444, 0xcb020084, 0x8b040c04, 0xf9400084, 0xd65f03c0},
			want: "100c pair.key"},
		// ldr x1, [x0, w1, sxtw #3]; ret
		{name: "an index that does not fit", x0: tPairPtr,
			code: []uint32{0xf861d801, 0xd65f03c0},
			want: "1000 (weak evidence)"},
		// ldr x1, [x2, w0, uxtw]; ret
		{name: "a part of a pointer is an index", x0: tPairPtr,
			code: []uint32{0xf8604841, 0xd65f03c0},
			want: "1000 (address not followed)"},
		// stp x29, x30, [sp, #-32]!; mov x29, sp; stp x0, x19, [sp, #16]; bl .+0x400; ldr x1,
		// [sp, #16]; ldr x1, [x1, #8]; ldr x2, [x0]; ldp x29, x30, [sp], #32; ret
		{name: "spilled over a call", x0: tItemPtr,
			code: []uint32{0xa9be7bfd, 0x910003fd, 0xa9014fe0, 0x94000100, 0xf9400be1,
				0xf9400421, 0xf9400002, 0xa8c27bfd, 0xd65f03c0},
			want: "1000 (spill slot), 1008 (spill slot), 1010 (spill slot), 1014 item.value, " +
				"1018 (address not followed), 101c (spill slot)"},
		// bl .+12; ldr x2, [x0, #8]; ldr x2, [x17, #8]; mov x1, #0; ret
		{name: "registers that a called function keeps", x0: tItemPtr, extents: true,
			code: []uint32{0x94000003, 0xf9400402, 0xf9400622, 0xd2800001, 0xd65f03c0},
			want: "1004 item.value, 1008 (address not followed)"},
		// adrp x1, .+0x2000; add x1, x1, #16; ldr x2, [x1]; ldr x2, [x1, w0, uxtw #3]; ret
		{name: "a variable by its address",
			code: []uint32{0xd0000001, 0x91004021, 0xf9400022, 0xf8605822, 0xd65f03c0},
			want: "1008 pair.more, 100c (weak evidence)"},
		// mov x1, #0x3000; ldr x2, [x1]; ret
		{name: "a number as an address",
			code: []uint32{0xd2860001, 0xf9400022, 0xd65f03c0},
			want: "1004 pair.key"},
		// mrs x1, tpidr_el0; sub x1, x1, #48; ldr x2, [x1, #8]; ret
		{name: "thread-local",
			code: []uint32{0xd53bd041, 0xd100c021, 0xf9400422, 0xd65f03c0},
			want: "1008 item.value"},
		// mrs x19, tpidr_el0; adrp x0, .+0x4000; ldr x1, [x0, #8]; add x0, x0, #8; blr x1; add
		// x0, x19, x0; ldr x2, [x0, #8]; ret
		{name: "a descriptor of a thread-local variable",
			code: []uint32{0xd53bd053, 0x90000020, 0xf9400401, 0x91002000, 0xd63f0020,
				0x8b000260, 0xf9400402, 0xd65f03c0},
			want: "1008 (address without a variable), 1018 item.value"},
		// mrs x1, sp_el0; ldr x2, [x1, #8]; ret
		{name: "the running task", kernel: true,
			code: []uint32{0xd5384101, 0xf9400422, 0xd65f03c0},
			want: "1004 task_struct.second"},
		// mrs x1, sp_el0; ldr x2, [x1, #8]; ret
		{name: "a program's sp_el0",
			code: []uint32{0xd5384101, 0xf9400422, 0xd65f03c0},
			want: "1004 (address not followed)"},
		// mrs x1, tpidr_el1; adrp x2, .+0x2000; add x2, x2, #8; ldr x2, [x1, x2]; ret
		{name: "a variable of this processor", kernel: true,
			code: []uint32{0xd538d081, 0xd0000002, 0x91002042, 0xf8626822, 0xd65f03c0},
			want: "100c pair.item"},
		// cmp w1, #3; csel x0, x0, xzr, eq; ldr x2, [x0, #8]; ret
		{name: "a null pointer is selected", x0: tItemPtr,
			code: []uint32{0x71000c3f, 0x9a9f0000, 0xf9400402, 0xd65f03c0},
			want: "1008 item.value"},
		// cbz w2, .+8; mov x0, x1; ldr x2, [x0, #8]; ret
		{name: "paths disagree", x0: tItemPtr,
			code: []uint32{0x34000042, 0xaa0103e0, 0xf9400402, 0xd65f03c0},
			want: "1008 (address not followed)"},
		// cmp w1, #1; b.hi .+40; adrp x3, .+0x1000; add x3, x3, #0; ldrb w3, [x3, w1, uxtw]; adr
		// x2, .+12; add x3, x2, w3, sxtb #2; br x3; ldr x2, [x0, #8]; ret; ldr x2, [x0]; ret
		{name: "a switch", x0: tItemPtr, table: []byte{0, 2},
			code: []uint32{0x7100043f, 0x54000148, 0xb0000003, 0x91000063, 0x38614863,
				0x10000062, 0x8b238843, 0xd61f0060, 0xf9400402, 0xd65f03c0, 0xf9400002,
				0xd65f03c0},
			want: "1010 (address without a variable), 1020 item.value, 1028 item.next"},
		// adrp x3, .+0x1000; str x3, [sp, #-16]; ldr x3, [sp, #-16]; ldrh w3, [x3, w1, uxtw #1];
		// adr x2, .+12; add x3, x2, w3, sxth #2; br x3; ldr x2, [x0, #8]; ret; ldr x2, [x0]; ret
		{name: "a switch by a table that was spilled", x0: tItemPtr, table: []byte{0, 0, 2, 0, 0xff, 0xff},
			code: []uint32{0xb0000003, 0xf81f03e3, 0xf85f03e3, 0x78615863, 0x10000062,
				0x8b23a843, 0xd61f0060, 0xf9400402, 0xd65f03c0, 0xf9400002, 0xd65f03c0},
			want: "1004 (spill slot), 1008 (spill slot), 100c (address without a variable), " +
				"101c item.value, 1024 item.next"},
		// cbz x1, .+8; brk #0x800; ldr x2, [x0, #8]; ret
		{name: "a traced trap", x0: tItemPtr,
			code: []uint32{0xb4000041, 0xd4210000, 0xf9400402, 0xd65f03c0},
			want: "1008 item.value"},
		// ldr q0, [x0, #8]; str d0, [x0, #8]; ret
		{name: "vectors", x0: tItemPtr,
			code: []uint32{0x3cc08000, 0xfd000400, 0xd65f03c0},
			want: "1000 item.value?, 1004 item.value write"},
		// ld1d {z0.d}, p0/z, [x0]; ret
		{name: "no known size", x0: tItemPtr,
			code: []uint32{0xa5e0a000, 0xd65f03c0},
			want: "1000 (unknown instruction)"},
		// ldadd x1, x2, [x0]; ldr x3, [x0, #8]; ret
		{name: "an atomic operation", x0: tItemPtr,
			code: []uint32{0xf8210002, 0xf9400403, 0xd65f03c0},
			want: "1000 item.next write, 1004 item.value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := words(c.code)
			o := &testObject{code: code, id: id, bytes: c.table, kernel: c.kernel, extents: c.extents,
				slots: map[addr.Addr]Slot{0x5008: {At: -48, Local: true}}}
			fn := &Function{Ranges: []addr.Range{{Start: 0x1000, End: addr.Addr(0x1000 + len(code))}},
				Variables: []Variable{o.param(1, tLong)}}
			if c.x0 != 0 {
				fn.Variables = append(fn.Variables, o.param(0, c.x0))
			}
			if c.named != 0 {
				v := o.param(c.named, tLong)
				v.Start, v.End = 0x1004, fn.Ranges[0].End
				fn.Variables = append(fn.Variables, v)
			}
			a := New(o, elf.EM_AARCH64, types)
			checkAccesses(t, a, fn, c.want)
		})
	}
}

// FuzzARM64 analyzes any code of arm64, and each beginning of it: it ends, with accesses in order.
func FuzzARM64(f *testing.F) {
	f.Add(words([]uint32{0xa9400402, 0xf9400442, 0xd65f03c0}), uint64(0x0105), int64(0))
	f.Add(words([]uint32{0x7100043f, 0x54000148, 0xb0000003, 0x91000063, 0x38614863, 0x10000062, 0x8b238843,
		0xd61f0060, 0xf9400402, 0xd65f03c0, 0xf9400002, 0xd65f03c0}), uint64(3), int64(-16))
	types, id := testTypes(f)
	f.Fuzz(func(t *testing.T, code string, seed uint64, off int64) {
		if len(code) > 4096 {
			return
		}
		o := &testObject{code: code, id: id, table: []addr.Addr{0x1000, 0x1003}, kernel: seed>>40&1 != 0,
			extents: seed>>41&1 != 0, slots: map[addr.Addr]Slot{0x5008: {At: -48, Local: true}}}
		fn := &Function{}
		for i := range 4 {
			x := seed >> (8 * i)
			fn.Variables = append(fn.Variables, Variable{Type: id(int(x % 12)), Reg: uint8(x >> 3 & 63),
				Kind: PlaceKind(x >> 5 % 5), Off: off, Range: addr.Range{Start: 0x1000, End: 0x3000}, Whole: i&1 == 0})
		}
		start := time.Now()
		for n := len(code); n >= 0; n -= max(1, len(code)/8) {
			fn.Ranges = []addr.Range{{Start: 0x1000, End: addr.Addr(0x1000 + n)}}
			list, _ := New(o, elf.EM_AARCH64, types).Function(fn)
			if !slices.IsSortedFunc(list, func(a, b Access) int { return compareAddr(a.At, b.At) }) {
				t.Errorf("not in order: %v", list)
			}
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%v for %d bytes", d, len(code))
		}
	})
}
