package flow

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
)

// Numbers of the types of testTypes, in its Defs.
const (
	tLong = 1 + iota
	tInt
	tItem
	tItemPtr
	tInts
	tUnion
	tPair
	tPairPtr
	tPairs
	tIntPtr
	tTask
	tVoidPtr
)

// testTypes makes
//
//	struct item { struct item *next; long value; int list[2]; union { long l; int i; } u;
//		struct pair *pairs; long tail; };
//	struct pair { long key; struct item *item; long more; } pairs[10];
//	struct task_struct { struct item *first; struct item *second; };
func testTypes(t testing.TB) (*btf.Types, func(n int) btf.ID) {
	b := btf.NewBuilder(false, 8)
	ids := b.Add([]btf.Def{
		{Kind: btf.KindInt, Name: "long int", Size: 8, Int: btf.Int{Bits: 64, Signed: true}},
		{Kind: btf.KindInt, Name: "int", Size: 4, Int: btf.Int{Bits: 32, Signed: true}},
		{Kind: btf.KindStruct, Name: "item", Size: 48, Items: []btf.DefItem{{Name: "next", Ref: tItemPtr},
			{Name: "value", Ref: tLong, Value: 64}, {Name: "list", Ref: tInts, Value: 128},
			{Name: "u", Ref: tUnion, Value: 192}, {Name: "pairs", Ref: tPairPtr, Value: 256},
			{Name: "tail", Ref: tLong, Value: 320}}},
		{Kind: btf.KindPtr, Ref: tItem},
		{Kind: btf.KindArray, Ref: tInt, Len: 2},
		{Kind: btf.KindUnion, Size: 8, Items: []btf.DefItem{{Name: "l", Ref: tLong}, {Name: "i", Ref: tInt}}},
		{Kind: btf.KindStruct, Name: "pair", Size: 24, Items: []btf.DefItem{{Name: "key", Ref: tLong},
			{Name: "item", Ref: tItemPtr, Value: 64}, {Name: "more", Ref: tLong, Value: 128}}},
		{Kind: btf.KindPtr, Ref: tPair},
		{Kind: btf.KindArray, Ref: tPair, Len: 10},
		{Kind: btf.KindPtr, Ref: tInt},
		{Kind: btf.KindStruct, Name: "task_struct", Size: 16, Items: []btf.DefItem{{Name: "first", Ref: tItemPtr},
			{Name: "second", Ref: tItemPtr, Value: 64}}},
		{Kind: btf.KindPtr},
	})
	types, final, err := b.Types("test")
	if err != nil {
		t.Fatal(err)
	}
	return types, func(n int) btf.ID { return final(ids[n]) }
}

// testObject is an object with code at 0x1000, a jump table at 0x2000, and some variables.
type testObject struct {
	code   string
	id     func(n int) btf.ID
	table  []addr.Addr
	bytes  []byte // of the table, instead of addresses
	slots  map[addr.Addr]Slot
	kernel bool
	jumps  map[addr.Addr][]addr.Addr
	// extents: a function at any address has the rest of the code
	extents bool
}

func (o *testObject) Bytes(a addr.Addr, n int) []byte {
	b, from := []byte(o.code), a-0x1000
	if a >= 0x2000 {
		b, from = slices.Clone(o.bytes), a-0x2000
		for _, t := range o.table {
			b = binary.LittleEndian.AppendUint64(b, uint64(t))
		}
	}
	if from >= addr.Addr(len(b)) || n < 0 {
		return nil
	}
	return b[from:min(int(from)+n, len(b))]
}

func (o *testObject) Global(a addr.Addr) (Global, bool) {
	if a >= 0x3000 && a < 0x3000+240 {
		return Global{Name: "pairs", Type: o.id(tPairs), At: 0x3000}, true
	}
	return Global{}, false
}

func (o *testObject) ThreadLocal(d int64) (Global, bool) {
	if d >= -48 && d < 0 {
		from := int64(-48)
		return Global{Name: "local", Type: o.id(tItem), At: addr.Addr(from)}, true
	}
	return Global{}, false
}

func (o *testObject) Slot(a addr.Addr) (Slot, bool) {
	s, ok := o.slots[a]
	return s, ok
}

func (o *testObject) Call(addr.Addr) Effect  { return ByABI }
func (o *testObject) CFA(r addr.Range) []CFA { return []CFA{{At: r.Start, Reg: NoRegister}} }
func (o *testObject) Extent(a addr.Addr) (addr.Range, bool) {
	return addr.Range{Start: a, End: 0x1000 + addr.Addr(len(o.code))}, o.extents && a >= 0x1000
}
func (o *testObject) Jumps(a addr.Addr) []addr.Addr { return o.jumps[a] }
func (o *testObject) Kernel() bool                  { return o.kernel }
func (o *testObject) param(r reg, n int) Variable {
	return Variable{Name: "p", Type: o.id(n), Range: addr.Range{Start: 0x1000, End: 0x1001}, Reg: uint8(r)}
}

// format prints an access: offset, type.member, "?" if it is not sure, or the reason.
func format(l *Layouts, a Access) string {
	if a.Reason != Known {
		return fmt.Sprintf("%x (%s)", a.At, a.Reason)
	}
	var paths []string
	for _, leaf := range l.Leaves(&a) {
		paths = append(paths, leaf.Path)
	}
	text := fmt.Sprintf("%x %s.%s", a.At, l.types.Name(a.Type), strings.Join(paths, "|"))
	if !a.Sure {
		text += "?"
	}
	if a.Pair {
		text += " pair"
	}
	if a.Write {
		text += " write"
	}
	return text
}

// TestFunction analyzes functions. Parameters are in rdi and rsi at the entry only.
func TestFunction(t *testing.T) {
	types, id := testTypes(t)
	for _, c := range []struct {
		name, code string
		rdi, rsi   int
		result     int        // of the function that is called
		callee     int        // of the function at 0x100a
		whole      int        // of a variable that is in rax in all of its scope
		frame      []Variable // of the type item
		jump       addr.Addr  // where the instruction at 0x1003 may go
		bare       bool
		kernel     bool
		want       string
	}{
		{name: "mov 8(rdi),rax; mov 16(rax),ecx", code: "\x48\x8b\x47\x08\x8b\x48\x10\xc3", rdi: tPairPtr,
			want: "1000 pair.item, 1004 item.list[], 1007 (stack operation)"},
		{name: "a loop through a list", code: "\x48\x03\x47\x08\x48\x8b\x3f\x48\x85\xff\x75\xf4\xc3", rdi: tItemPtr,
			want: "1000 item.value, 1004 item.next, 100c (stack operation)"},
		{name: "an index that fits", code: "\x48\x63\xf6\x48\x8d\x04\x76\x48\x8b\x4c\xc7\x08\xc3", rdi: tPairPtr,
			want: "1007 pair.item, 100c (stack operation)"},
		{name: "one that does not", code: "\x48\x8b\x4c\xb7\x08\xc3", rdi: tPairPtr,
			want: "1000 (weak evidence), 1005 (stack operation)"},
		{name: "an index of an array within", code: "\x8b\x4c\xb7\x10\xc3", rdi: tItemPtr,
			want: "1000 item.list[]?, 1004 (stack operation)"},
		{name: "a biased one", code: "\x48\x8d\x76\x03\x8b\x4c\xb7\x10\xc3", rdi: tItemPtr,
			want: "1004 (weak evidence), 1008 (stack operation)"},
		{name: "spilled over a call", code: "\x53\x48\x83\xec\x10\x48\x89\x7c\x24\x08\xe8\x0e\x00\x00\x00" +
			"\x48\x8b\x44\x24\x08\x48\x8b\x48\x08\x48\x83\xc4\x10\x5b\xc3", rdi: tItemPtr,
			want: "1000 (stack operation), 1005 (spill slot), 100a (stack operation), 100f (spill slot), " +
				"1014 item.value, 101c (stack operation), 101d (stack operation)"},
		{name: "paths disagree", code: "\x85\xd2\x74\x03\x48\x89\xf7\x48\x8b\x47\x08\xc3", rdi: tItemPtr,
			rsi: tPairPtr, want: "1007 (address not followed), 100b (stack operation)"},
		{name: "a null pointer on one path", code: "\x85\xd2\x74\x02\x31\xff\x48\x8b\x47\x08\xc3", rdi: tItemPtr,
			want: "1006 item.value, 100a (stack operation)"},
		{name: "a fused jump", code: "\x48\x83\x7f\x08\x01\x74\x01\x90\xc3", rdi: tItemPtr,
			want: "1000 item.value, 1005 item.value, 1008 (stack operation)"},
		{name: "a register that a call changes", code: "\xe8\x04\x00\x00\x00\x48\x8b\x47\x08\xc3", rdi: tItemPtr,
			want: "1000 (stack operation), 1005 (address not followed), 1009 (stack operation)"},
		{name: "what a call returns", code: "\xe8\x05\x00\x00\x00\x48\x8b\x40\x08\xc3\xc3", result: tItemPtr,
			want: "1000 (stack operation), 1005 item.value, 1009 (stack operation), 100a (stack operation)"},
		{name: "by the function itself", code: "\xe8\x05\x00\x00\x00\x48\x8b\x40\x08\xc3\xc3", callee: tItemPtr,
			want: "1000 (stack operation), 1005 item.value, 1009 (stack operation), 100a (stack operation)"},
		{name: "the entry of the call first", code: "\xe8\x05\x00\x00\x00\x48\x8b\x40\x08\xc3\xc3", callee: tItemPtr,
			result: tPairPtr, want: "1000 (stack operation), 1005 pair.item, 1009 (stack operation), 100a (stack operation)"},
		{name: "a void * is that of a variable", code: "\xe8\x05\x00\x00\x00\x48\x8b\x40\x08\xc3\xc3", result: tVoidPtr,
			whole: tItemPtr, want: "1000 (stack operation), 1005 item.value, 1009 (stack operation), 100a (stack operation)"},
		{name: "another type is not", code: "\xe8\x05\x00\x00\x00\x48\x8b\x40\x08\xc3\xc3", result: tPairPtr,
			whole: tItemPtr, want: "1000 (stack operation), 1005 pair.item, 1009 (stack operation), 100a (stack operation)"},
		{name: "beyond the end, before the start", code: "\x48\x8b\x47\x50\x48\x8b\x47\xf0\xc3", rdi: tItemPtr,
			want: "1000 (weak evidence), 1004 item.pairs?, 1008 (stack operation)"},
		{name: "a variable by its address", code: "\x48\x8b\x05\x09\x20\x00\x00\xc3", // 0x3010
			want: "1000 pair.more, 1007 (stack operation)"},
		{name: "no variable at an address", code: "\x48\x8b\x05\x09\x30\x00\x00\xc3",
			want: "1000 (address without a variable), 1007 (stack operation)"},
		{name: "thread-local", code: "\x64\x48\x8b\x04\x25\xf8\xff\xff\xff\xc3",
			want: "1000 item.tail, 1009 (stack operation)"},
		{name: "members of a union by size", code: "\x48\x8b\x47\x18\x8b\x47\x18\xc3", rdi: tItemPtr,
			want: "1000 item.u.l, 1004 item.u.i, 1007 (stack operation)"},
		{name: "a switch", code: "\xff\x24\xc5\x00\x20\x00\x00\x48\x8b\x47\x08\xc3\x48\x8b\x07\xc3", rdi: tItemPtr,
			want: "1000 (address not followed), 1007 item.value, 100b (stack operation), " +
				"100c item.next, 100f (stack operation)"},
		{name: "vectors over members", code: "\xc5\xfe\x6f\x07\xc5\xfe\x7f\x06\xc3", rdi: tItemPtr, rsi: tIntPtr,
			want: "1000 item.next?, 1004 int. write, 1008 (stack operation)"},
		{name: "a write", code: "\x48\xc7\x47\x08\x01\x00\x00\x00\xc3", rdi: tItemPtr,
			want: "1000 item.value write, 1008 (stack operation)"},
		{name: "a part of a number", code: "\x0f\xb6\x4f\x01\xc3", rdi: tIntPtr,
			want: "1000 int., 1004 (stack operation)"},
		{name: "by BTF alone", code: "\x0f\xb6\x4f\x01\xc3", rdi: tIntPtr, bare: true,
			want: "1000 (weak evidence), 1004 (stack operation)"},
		{name: "data of processors by a pointer", code: "\x65\x48\x8b\x47\x08\xc3", rdi: tItemPtr, kernel: true,
			want: "1000 item.value, 1005 (stack operation)"},
		{name: "no such data of programs", code: "\x65\x48\x8b\x47\x08\xc3", rdi: tItemPtr,
			want: "1000 (address without a variable), 1005 (stack operation)"},
		{name: "a static branch", code: "\x48\x89\xf8\x90\xc3\x48\x8b\x48\x08\xc3", rdi: tItemPtr, jump: 0x1005,
			want: "1004 (stack operation), 1005 item.value, 1009 (stack operation)"},
		{name: "none", code: "\x48\x89\xf8\x90\xc3\x48\x8b\x48\x08\xc3", rdi: tItemPtr,
			want: "1004 (stack operation), 1005 (address not followed), 1009 (stack operation)"},
		{name: "a variable in memory in parts", code: "\x48\x8b\x44\x24\x08\x48\x8b\x44\x24\x28\xc3",
			frame: []Variable{{Kind: AtRegister, Reg: uint8(rsp), Size: 8},
				{Kind: AtRegister, Reg: uint8(rsp), Off: 16, Piece: 16, Size: 32}},
			want: "1000 (spill slot), 1005 item.tail, 100a (stack operation)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &testObject{code: c.code, id: id, table: []addr.Addr{0x1007, 0x100c}, kernel: c.kernel}
			if c.jump != 0 {
				o.jumps = map[addr.Addr][]addr.Addr{0x1003: {c.jump}}
			}
			end := addr.Addr(0x1000 + len(c.code))
			fn := &Function{Ranges: []addr.Range{{Start: 0x1000, End: end}}, Bare: c.bare}
			if c.result != 0 {
				fn.Results = map[addr.Addr]btf.ID{0x1005: id(c.result)}
			}
			if c.rdi != 0 {
				fn.Variables = append(fn.Variables, o.param(rdi, c.rdi))
			}
			if c.rsi != 0 {
				fn.Variables = append(fn.Variables, o.param(rsi, c.rsi))
			}
			if c.callee != 0 {
				fn.Result = func(a addr.Addr) btf.ID {
					if a != 0x100a {
						return 0
					}
					return id(c.callee)
				}
			}
			if c.whole != 0 {
				v := o.param(rax, c.whole)
				v.Range, v.Whole = fn.Ranges[0], true
				fn.Variables = append(fn.Variables, v)
			}
			for _, v := range c.frame {
				v.Type, v.Range = id(tItem), fn.Ranges[0]
				fn.Variables = append(fn.Variables, v)
			}
			a := New(o, elf.EM_X86_64, types)
			checkAccesses(t, a, fn, c.want)
		})
	}
}

// checkAccesses compares the accesses of a function.
func checkAccesses(t *testing.T, a *Analyzer, fn *Function, want string) {
	t.Helper()
	list, reason := a.Function(fn)
	var got []string
	for _, x := range list {
		got = append(got, format(a.n.layouts, x))
	}
	if text := strings.Join(got, ", "); text != want || reason != Known {
		t.Errorf("%s\nwant %s", text, want)
	}
}

// TestUnbounded analyzes functions with more instructions, variables and paths than it follows.
func TestUnbounded(t *testing.T) {
	types, id := testTypes(t)
	o := &testObject{code: strings.Repeat("\x90", maxInsns+1), id: id}
	fn := &Function{Ranges: []addr.Range{{Start: 0x1000, End: addr.Addr(0x1000 + len(o.code))}}}
	if list, reason := New(o, elf.EM_X86_64, types).Function(fn); reason != TooLarge || list != nil {
		t.Errorf("many instructions: %v", reason)
	}
	o.code = strings.Repeat("\x90", 4096)
	fn.Ranges[0].End = 0x2000
	for i := range addr.Addr(1 << 10) { // each at all places behind its start
		v := o.param(rdi, tItemPtr)
		v.Range = addr.Range{Start: 0x1000 + i, End: 0x2000}
		fn.Variables = append(fn.Variables, v)
	}
	if list, reason := New(o, elf.EM_X86_64, types).Function(fn); reason != TooLarge || list != nil {
		t.Errorf("many variables: %v", reason)
	}
}

// FuzzFunction analyzes any code and variables: it ends, with accesses in order.
func FuzzFunction(f *testing.F) {
	f.Add("\x48\x03\x47\x08\x48\x8b\x3f\x48\x85\xff\x75\xf4\xc3", uint64(0x0105), int64(0))
	f.Add("\x53\x48\x83\xec\x10\x48\x89\x7c\x24\x08\x48\x83\xe4\xf0\x48\x8b\x44\x24\x08\x5b\xc3", uint64(3), int64(-16))
	types, id := testTypes(f)
	f.Fuzz(func(t *testing.T, code string, seed uint64, off int64) {
		if len(code) > 4096 {
			return
		}
		o := &testObject{code: code, id: id, table: []addr.Addr{0x1000, 0x1003}, kernel: seed>>40&1 != 0}
		end := addr.Addr(0x1000 + len(code))
		fn := &Function{Ranges: []addr.Range{{Start: 0x1000, End: end}}}
		for i := range 4 {
			x := seed >> (8 * i)
			fn.Variables = append(fn.Variables, Variable{Type: id(int(x % 11)), Reg: uint8(x >> 3 & 31),
				Kind: PlaceKind(x >> 5 % 5), Off: off, Range: addr.Range{Start: 0x1000, End: end}, Whole: i&1 == 0})
		}
		start := time.Now()
		list, _ := New(o, elf.EM_X86_64, types).Function(fn)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%v for %d bytes", d, len(code))
		}
		if !slices.IsSortedFunc(list, func(a, b Access) int { return compareAddr(a.At, b.At) }) {
			t.Errorf("not in order: %v", list)
		}
	})
}

// TestJumpTargets: targets in the function of a jump through a table of addresses, which ends with another
// one, and with the file.
func TestJumpTargets(t *testing.T) {
	code := []byte{0xff, 0x24, 0xc5, 0, 0x20, 0, 0, 0x90, 0x90, 0xc3} // jmp *0x2000(,%rax,8); nop; nop; ret
	table := []byte{7, 0x10, 0, 0, 0, 0, 0, 0, 9, 0x10, 0, 0, 0, 0, 0, 0}
	other := append(slices.Clone(table), 0, 0x30, 0, 0, 0, 0, 0, 0, 8, 0x10, 0, 0, 0, 0, 0, 0)
	r := addr.Range{Start: 0x1000, End: 0x1000 + addr.Addr(len(code))}
	for _, words := range [][]byte{table, other, nil} {
		got := JumpTargets(elf.EM_X86_64, r, func(a addr.Addr, n int) []byte {
			if a == r.Start {
				return code
			}
			return words[:min(n, len(words))]
		})
		if want := []addr.Addr{0x1007, 0x1009}; words != nil && !slices.Equal(got, want) || words == nil && got != nil {
			t.Errorf("%d bytes of words: %#x", len(words), got)
		}
	}
	if got := JumpTargets(elf.EM_MIPS, r, nil); got != nil {
		t.Errorf("of an unknown machine %#x", got)
	}
}
