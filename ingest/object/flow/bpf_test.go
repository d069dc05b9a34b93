package flow

import (
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
)

// inst encodes an instruction of BPF.
func inst(code, dst, src byte, off int16, imm int32) string {
	b := binary.LittleEndian.AppendUint16([]byte{code, src<<4 | dst}, uint16(off))
	return string(binary.LittleEndian.AppendUint32(b, uint32(imm)))
}

// wide encodes a load of 64 bits.
func wide(dst, src byte, low, high int32) string {
	return inst(0x18, dst, src, 0, low) + inst(0, 0, 0, 0, high)
}

// bpfObject is a testObject in which map 7 has the values of pairs.
type bpfObject struct{ testObject }

func (o *bpfObject) Global(a addr.Addr) (Global, bool) {
	id, at, ok := BPFMapOf(a)
	return Global{Type: o.id(tPairs), At: a - addr.Addr(at)}, ok && id == 7 && at < 240
}

// TestBPF analyzes functions of BPF. A parameter is in r1 at the entry.
func TestBPF(t *testing.T) {
	types, id := testTypes(t)
	const exit = "\x95\x00\x00\x00\x00\x00\x00\x00"
	lookup := wide(1, 1, 7, 0) + inst(0x07, 1, 0, 0, 312) + inst(0x61, 0, 2, 0, 0) + inst(0x35, 0, 0, 3, 10) +
		inst(0x27, 0, 0, 0, 24) + inst(0x0f, 0, 1, 0, 0) + inst(0x05, 0, 0, 1, 0) + inst(0xb7, 0, 0, 0, 0)
	for _, c := range []struct {
		name, code string
		param      int
		want       string
	}{
		{name: "loads through pointers", code: inst(0x79, 2, 1, 8, 0) + inst(0x79, 3, 2, 8, 0) + exit, param: tPairPtr,
			want: "1000 pair.item, 1008 item.value"},
		{name: "stores of registers and numbers", code: inst(0x7b, 1, 2, 8, 0) + inst(0x62, 1, 0, 16, 1) + exit, param: tItemPtr,
			want: "1000 item.value write, 1008 item.list[] write"},
		{name: "a look-up in an array", code: lookup + inst(0x15, 0, 0, 1, 0) + inst(0x79, 2, 0, 16, 0) + exit,
			want: "1018 (address not followed), 1050 pair.more"},
		{name: "a place in the only value", code: wide(3, 2, 7, 8) + inst(0x79, 3, 3, 0, 0) + inst(0x79, 4, 3, 40, 0) + exit,
			want: "1010 pair.item, 1018 item.tail"},
		{name: "a map that is not known", code: wide(3, 2, 8, 8) + inst(0x79, 3, 3, 0, 0) + exit,
			want: "1010 (address without a variable)"},
		{name: "atomic operations", code: inst(0xdb, 1, 2, 8, 0) + inst(0xdb, 1, 2, 8, 1) + inst(0x79, 3, 1, 0, 0) + exit,
			param: tItemPtr, want: "1000 item.value write, 1008 item.value write, 1010 item.next"},
		{name: "one that fetches into the register", code: inst(0xdb, 1, 1, 8, 1) + inst(0x79, 3, 1, 0, 0) + exit,
			param: tItemPtr, want: "1000 item.value write, 1008 (address not followed)"},
		{name: "a call keeps r6, not r1", code: inst(0xbf, 6, 1, 0, 0) + inst(0x85, 0, 0, 0, 5) + inst(0x79, 2, 6, 8, 0) +
			inst(0x79, 2, 1, 8, 0) + exit, param: tItemPtr, want: "1010 item.value, 1018 (address not followed)"},
		{name: "spilled", code: inst(0x7b, 10, 1, -8, 0) + inst(0x79, 3, 10, -8, 0) + inst(0x79, 3, 3, 8, 0) + exit,
			param: tItemPtr, want: "1000 (spill slot), 1008 (spill slot), 1010 item.value"},
		{name: "arithmetic", code: inst(0x07, 1, 0, 0, 8) + inst(0x79, 2, 1, 0, 0) + inst(0x0c, 1, 2, 0, 0) +
			inst(0x79, 2, 1, 0, 0) + exit, param: tItemPtr, want: "1008 item.value, 1018 (address not followed)"},
		{name: "the place of a processor", code: inst(0x79, 1, 1, 8, 0) + inst(0xbf, 1, 1, -1, 0) + inst(0x79, 2, 1, 8, 0) + exit,
			param: tPairPtr, want: "1000 pair.item, 1010 item.value"},
		{name: "a list", code: inst(0x79, 1, 1, 0, 0) + inst(0x55, 1, 0, -2, 0) + exit, param: tItemPtr, want: "1000 item.next"},
		{name: "a register that is none", code: inst(0x79, 11, 1, 0, 0) + exit, param: tItemPtr, want: ""},
		{name: "half of a wide load", code: "\x18\x01\x00\x00\x00\x00\x00\x00", param: tItemPtr, want: ""},
	} {
		o := &bpfObject{testObject{code: c.code, id: id}}
		fn := &Function{Ranges: []addr.Range{{Start: 0x1000, End: 0x1000 + addr.Addr(len(c.code))}}}
		if c.param != 0 {
			fn.Variables = []Variable{o.param(1, c.param)}
		}
		a := New(o, elf.EM_BPF, types)
		list, reason := a.Function(fn)
		var got []string
		for _, x := range list {
			if x.Reason != StackOp {
				got = append(got, format(a.n.layouts, x))
			}
		}
		if text := strings.Join(got, ", "); text != c.want || reason != Known {
			t.Errorf("%s: %s %s\nwant %s", c.name, text, reason, c.want)
		}
	}
}

func FuzzBPF(f *testing.F) {
	types, id := testTypes(f)
	f.Add(wide(1, 1, 7, 0) + inst(0x79, 2, 1, 8, 0) + inst(0x05, 0, 0, -2, 0))
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) > 1<<12 {
			return
		}
		o := &bpfObject{testObject{code: code, id: id}}
		fn := &Function{Ranges: []addr.Range{{Start: 0x1000, End: 0x1000 + addr.Addr(len(code))}},
			Variables: []Variable{o.param(1, tItemPtr)}}
		list, _ := New(o, elf.EM_BPF, types).Function(fn)
		if len(list) > len(code)/bpf.InsnSize {
			t.Fatalf("%d accesses of %d bytes", len(list), len(code))
		}
	})
}
