package datatype

import (
	"bytes"
	stdelf "debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/flow"
)

// Numbers of the types of kernelTypes, in its Defs.
const (
	kLong = 1 + iota
	kItem
	kItemPtr
	kOther
	kOtherPtr
	kGetProto
	kLongProto
)

// kernelTypes makes struct item { long a; struct other *b; } and struct other { long c; }, and the functions of
// kernelFile.
func kernelTypes(t testing.TB) (*btf.Types, func(n int) btf.ID) {
	t.Helper()
	item := []btf.DefItem{{Name: "i", Ref: kItemPtr}}
	b := btf.NewBuilder(false, 8)
	ids := b.Add([]btf.Def{
		{Kind: btf.KindInt, Name: "long", Size: 8, Int: btf.Int{Bits: 64, Signed: true}},
		{Kind: btf.KindStruct, Name: "item", Size: 16, Items: []btf.DefItem{{Name: "a", Ref: kLong},
			{Name: "b", Ref: kOtherPtr, Value: 64}}},
		{Kind: btf.KindPtr, Ref: kItem},
		{Kind: btf.KindStruct, Name: "other", Size: 8, Items: []btf.DefItem{{Name: "c", Ref: kLong}}},
		{Kind: btf.KindPtr, Ref: kOther},
		{Kind: btf.KindFuncProto, Ref: kItemPtr, Items: item},
		{Kind: btf.KindFuncProto, Ref: kLong, Items: item},
		{Kind: btf.KindFunc, Name: "get", Ref: kGetProto},
		{Kind: btf.KindFunc, Name: "caller", Ref: kLongProto},
		{Kind: btf.KindFunc, Name: "faults", Ref: kLongProto},
	})
	types, final, err := b.Types("test")
	if err != nil {
		t.Fatal(err)
	}
	return types, func(n int) btf.ID { return final(ids[n]) }
}

const (
	kernelText  = 0xffffffff81000000
	kernelTable = kernelText + 0x1000
	getCode     = "\x48\x8b\x47\x08\xc3"                 // 00 mov 8(%rdi),%rax; ret
	callerCode  = "\xe8\xf6\xff\xff\xff\x48\x8b\x00\xc3" // 05 call get; 0a mov (%rax),%rax; ret
	// 0e mov (%rdi),%rax; ret; 12 mov 8(%rdi),%rax; 16 mov (%rax),%rax; ret
	faultsCode = "\x48\x8b\x07\xc3\x48\x8b\x47\x08\x48\x8b\x00\xc3"
)

// kernelFile makes a kernel of three functions. With faults control goes on at 12 after a fault at 0e.
func kernelFile(t testing.TB, faults bool) []byte {
	t.Helper()
	types, _ := kernelTypes(t)
	var table []byte
	if faults { // the distances of the instruction and of the place from the fields
		for _, distance := range []int32{0xe - 0x1000, 0x12 - 0x1004} {
			table = binary.LittleEndian.AppendUint32(table, uint32(distance))
		}
	}
	table = append(table, make([]byte, 12-len(table))...)
	code := getCode + callerCode + faultsCode
	function := func(name string, at uint64, size int) elfbuild.Symbol {
		return elfbuild.Symbol{Name: name, Section: ".text", Value: kernelText + at, Size: uint64(size),
			Type: stdelf.STT_FUNC, Bind: stdelf.STB_GLOBAL}
	}
	f := elfbuild.File{Type: stdelf.ET_EXEC, HeadersFirst: true, Sections: []elfbuild.Section{
		{Name: ".text", Flags: stdelf.SHF_ALLOC | stdelf.SHF_EXECINSTR, Addr: kernelText, Data: []byte(code)},
		{Name: "__ex_table", Flags: stdelf.SHF_ALLOC, Addr: kernelTable, Data: table},
		{Name: "__ksymtab_strings", Flags: stdelf.SHF_ALLOC, Addr: kernelText + 0x2000, Data: []byte("get\x00")},
		{Name: ".BTF", Data: types.Raw()},
	}, Symbols: []elfbuild.Symbol{function("get", 0, len(getCode)), function("caller", 5, len(callerCode)),
		function("faults", 0xe, len(faultsCode))}}
	return f.Bytes()
}

// readKernel reads a file by its BTF; nil for one that cannot be read.
func readKernel(t testing.TB, file []byte, o Options) *Table {
	t.Helper()
	f, err := elf.Open("kernel", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil
	}
	types, _, _ := btf.FromELF(f)
	if types == nil {
		return nil
	}
	table, err := ReadBTF(t.Context(), f, types, o)
	if err != nil {
		return nil
	}
	return table
}

// answers prints the rows of a table.
func answers(table *Table) string {
	if table == nil {
		return ""
	}
	layouts := flow.NewLayouts(table.Types)
	var list []string
	for i := range table.Funcs {
		for k := range table.Funcs[i].Rows {
			x := &table.Funcs[i].Rows[k]
			switch x.Reason {
			case flow.StackOp:
			case flow.Known:
				for _, leaf := range layouts.Leaves(x) {
					list = append(list, fmt.Sprintf("%x %s.%s", uint64(x.At), table.Types.TypeName(x.Type), leaf.Path))
				}
			default:
				list = append(list, fmt.Sprintf("%x (%s)", uint64(x.At), x.Reason))
			}
		}
	}
	return strings.Join(list, ", ")
}

// TestReadBTF: parameters at the entry, the results of calls, and where control goes after faults.
func TestReadBTF(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults bool
		only   []addr.Addr
		want   string
	}{
		{name: "all", faults: true,
			want: "0 struct item.b, a struct item.a, e struct item.a, 12 struct item.b, 16 struct other.c"},
		{name: "without the place after a fault",
			want: "0 struct item.b, a struct item.a, e struct item.a, 12 (address not followed), 16 (address not followed)"},
		{name: "one function", faults: true, only: []addr.Addr{kernelText + 0x7}, want: "a struct item.a"},
		{name: "no function", faults: true, only: []addr.Addr{}, want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := readKernel(t, kernelFile(t, c.faults), Options{Only: c.only, Base: kernelText})
			if got := answers(table); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if table != nil && table.Source != FromBTF {
				t.Errorf("the types are from %s", table.Source)
			}
		})
	}
}

// TestReadBTFTruncated reads all beginnings of a file, and the file with each byte changed.
func TestReadBTFTruncated(t *testing.T) {
	file := kernelFile(t, true)
	for n := range file {
		readKernel(t, file[:n], Options{Base: kernelText})
		changed := bytes.Clone(file)
		changed[n] ^= 0xff
		readKernel(t, changed, Options{Base: kernelText})
	}
}

func FuzzReadBTF(f *testing.F) {
	f.Add(kernelFile(f, true))
	f.Add(kernelFile(f, false))
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) < 1<<16 {
			readKernel(t, file, Options{Base: kernelText})
		}
	})
}

// TestPrune: types come in the order that is asked for; of structures behind pointers only the name is kept, unless
// they are asked for themselves.
func TestPrune(t *testing.T) {
	types, id := kernelTypes(t)
	for _, c := range []struct {
		name string
		ids  []int
		want string
	}{
		{"behind a pointer", []int{kItem}, "STRUCT item, INT long, PTR, FWD other"},
		{"in their order", []int{kLong, kItem}, "INT long, STRUCT item, PTR, FWD other"},
		{"asked for", []int{kItem, kOther}, "STRUCT item, INT long, PTR, STRUCT other"},
		{"none", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ids []btf.ID
			for _, n := range c.ids {
				ids = append(ids, id(n))
			}
			out, moved, err := prune(types, ids, nil)
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for n := btf.ID(1); n < btf.ID(out.Len()); n++ {
				if name := out.Name(n); name != "__ARRAY_SIZE_TYPE__" {
					list = append(list, strings.TrimSpace(out.Kind(n).String()+" "+name))
				}
			}
			if got := strings.Join(list, ", "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			for i, from := range ids {
				if got := out.Name(moved[from]); got != types.Name(from) {
					t.Errorf("type %d is %s", c.ids[i], got)
				}
			}
		})
	}
}
