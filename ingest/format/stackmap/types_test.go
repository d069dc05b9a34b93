package stackmap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/golden"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/btf"
)

// typeBuilder writes BTF, type by type.
type typeBuilder struct {
	types   []byte
	strings []byte
	n       uint32
}

func newTypes() *typeBuilder { return &typeBuilder{strings: []byte{0}} }

func (b *typeBuilder) name(s string) uint32 {
	if s == "" {
		return 0
	}
	at := len(b.strings)
	b.strings = append(append(b.strings, s...), 0)
	return uint32(at)
}

// add adds a type with the data after its head, and returns its id.
func (b *typeBuilder) add(name string, kind btf.Kind, count int, size uint32,
	rest ...uint32) uint32 {
	for _, v := range append([]uint32{b.name(name), uint32(kind)<<24 | uint32(count), size}, rest...) {
		b.types = binary.LittleEndian.AppendUint32(b.types, v)
	}
	b.n++
	return b.n
}

func (b *typeBuilder) integer(name string, size uint32) uint32 {
	return b.add(name, btf.KindInt, 0, size, size*8)
}

// member is of a structure, at an offset in bytes.
type member struct {
	name string
	typ  uint32
	at   uint32
}

func (b *typeBuilder) structure(name string, size uint32, members ...member) uint32 {
	var rest []uint32
	for _, m := range members {
		rest = append(rest, b.name(m.name), m.typ, m.at*8)
	}
	return b.add(name, btf.KindStruct, len(members), size, rest...)
}

// maps adds the section .maps with definitions of these keys and values.
func (b *typeBuilder) maps(defs map[string][2]uint32, order ...string) {
	var rest []uint32
	for _, name := range order {
		key := b.add("", btf.KindPtr, 0, defs[name][0])
		value := b.add("", btf.KindPtr, 0, defs[name][1])
		s := b.structure("", 16, member{"key", key, 0}, member{"value", value, 8})
		rest = append(rest, b.add(name, btf.KindVar, 0, s, 1), 0, 16)
	}
	b.add(".maps", btf.KindDatasec, len(order), 16*uint32(len(order)), rest...)
}

func (b *typeBuilder) parse(t *testing.T) *btf.Types {
	t.Helper()
	le := binary.LittleEndian
	raw := le.AppendUint16(nil, 0xeb9f)
	raw = append(raw, 1, 0)
	for _, v := range []int{24, 0, len(b.types), len(b.types), len(b.strings)} {
		raw = le.AppendUint32(raw, uint32(v))
	}
	types, err := btf.Parse("built", slices.Concat(raw, b.types, b.strings), nil)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// TestRecordedTypes: the recorded BTF describes the recorded key.
func TestRecordedTypes(t *testing.T) {
	types, err := btf.Parse("counts.btf", fixture(t, "load/counts.btf"), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := Labels{PID: true, TID: true, Comm: true}
	want := recorded(t).text(all)
	for _, counts := range []string{"counts.raw", "counts.json", "cpus.txt"} {
		set := mustRead(t, "stacks", fixture(t, "load/stacks.raw"), &Options{
			Counts: input(counts, fixture(t, "load/"+counts)), BTF: types})
		if d := golden.FirstDifference(set.text(all), want); d != "" || set.Labels != all {
			t.Errorf("%s: %s", counts, d)
		}
	}
	// The key of one id is of no type there.
	set := mustRead(t, "stacks", fixture(t, "load/stacks.raw"), &Options{
		Counts: input("single", fixture(t, "load/single.json")), BTF: types})
	if len(set.Samples) < 20 || set.Labels != (Labels{}) {
		t.Errorf("%d samples, labels %v", len(set.Samples), set.Labels)
	}
}

// TestDescribe: fields by the names and types of members, case by case.
func TestDescribe(t *testing.T) {
	b := newTypes()
	u32, s64, u8 := b.integer("int", 4), b.integer("long", 8), b.integer("char", 1)
	comm := b.add("", btf.KindArray, 0, 0, u8, u32, 16)
	ids := b.add("", btf.KindArray, 0, 0, u32, u32, 2)
	alias := b.add("stack_t", btf.KindTypedef, 0, u32)
	// As libbpf-tools' profile and offcputime have it, and bcc's programs.
	profile := b.structure("key_t", 28, member{"pid", u32, 0}, member{"user_stack_id", u32, 4},
		member{"kern_stack_id", alias, 8}, member{"name", comm, 12})
	offcpu := b.structure("key_t", 16, member{"pid", u32, 0}, member{"tgid", u32, 4},
		member{"user_stack_id", u32, 8}, member{"kern_stack_id", u32, 12})
	inner := b.structure("who", 24, member{"pid_tgid", s64, 0}, member{"comm", comm, 8})
	outer := b.structure("outer", 40, member{"who", inner, 0}, member{"kstack", s64, 24},
		member{"ustack", s64, 32})
	twin := b.structure("twin", 16, member{"cpu", u32, 0}, member{"ustack", u32, 4},
		member{"pid", u32, 8}, member{"comm", u32, 12})
	odd := b.structure("odd", 12, member{"stack_id", ids, 0}, member{"user_stack_id", u32, 8})
	halves := b.add("", btf.KindArray, 0, 0, s64, u32, 2)
	hashed := b.structure("hashed", 36, member{"user_stack", halves, 0},
		member{"kernel_stack", b.integer("__int128", 16), 16}, member{"pid", u32, 32})
	count := b.structure("val", 24, member{"last", s64, 0}, member{"count", u32, 8}, member{"comm",
		u32, 12})
	one := b.structure("one", 8, member{"delta", s64, 0})
	two := b.structure("two", 16, member{"a", s64, 0}, member{"b", s64, 8})
	b.maps(map[string][2]uint32{"counts": {offcpu, count}, "a_very_long_name_indeed": {twin, one},
		"stackmap": {u32, comm}}, "counts", "a_very_long_name_indeed", "stackmap")
	types := b.parse(t)
	field := func(fields ...Field) []Field { return fields }
	offcpuFields := field(Field{PID, 0, 4}, Field{TGID, 4, 4}, Field{UserStackID, 8, 4},
		Field{KernelStackID, 12, 4})
	twinFields := field(Field{UserStackID, 4, 4}, Field{PID, 8, 4})
	for _, c := range []struct {
		name   string
		header rawdump.Header
		key    []Field
		value  *Field
		fails  bool
	}{
		{name: "ids of a raw dump",
			header: rawdump.Header{KeySize: 28, KeyType: profile, ValueType: s64},
			key: field(Field{PID, 0, 4}, Field{UserStackID, 4, 4}, Field{KernelStackID, 8, 4}, Field{Comm, 12,
				16})},
		{name: "nested, both numbers in one",
			header: rawdump.Header{KeySize: 40, KeyType: outer, ValueType: one},
			key: field(Field{TGID, 4, 4}, Field{PID, 0, 4}, Field{Comm, 8, 16}, Field{KernelStackID, 24, 8},
				Field{UserStackID, 32, 8}), value: &Field{Size: 8}},
		{name: "an array is no id",
			header: rawdump.Header{KeySize: 12, KeyType: odd, ValueType: two},
			key:    field(Field{UserStackID, 8, 4})},
		{name: "hashes", header: rawdump.Header{KeySize: 36, KeyType: hashed},
			key: field(Field{UserStackID, 0, 16},
				Field{KernelStackID, 16, 16}, Field{PID, 32, 4})},
		{name: "a map by its name", header: rawdump.Header{KeySize: 16, Name: "counts"},
			key:   offcpuFields,
			value: &Field{Offset: 8, Size: 4}},
		{name: "a name that was cut",
			header: rawdump.Header{KeySize: 16, Name: "a_very_long_nam"}, key: twinFields,
			value: &Field{Size: 8}},
		{name: "two maps could be it", header: rawdump.Header{KeySize: 16}, fails: true},
		{name: "ids of other BTF",
			header: rawdump.Header{KeySize: 16, KeyType: 9999, Name: "counts"}, key: offcpuFields,
			value: &Field{Offset: 8, Size: 4}},
		{name: "a struct that no map has", header: rawdump.Header{KeySize: 28},
			key: field(Field{PID, 0, 4}, Field{UserStackID, 4, 4}, Field{KernelStackID, 8, 4}, Field{Comm, 12,
				16})},
		{name: "no struct of that size", header: rawdump.Header{KeySize: 48}, fails: true},
		{name: "no stack in it", header: rawdump.Header{KeySize: 24}, fails: true},
	} {
		d, err := describe(types, &c.header)
		if c.fails {
			if !errors.Is(err, ErrTypes) {
				t.Errorf("%s: %+v, %v", c.name, d, err)
			}
			continue
		}
		if err != nil || !slices.Equal(d.key, c.key) || fmt.Sprint(d.value) != fmt.Sprint(c.value) {
			t.Errorf("%s: %+v, value %v, want %+v, value %v; %v", c.name, d, d.value, c.key, c.value, err)
		}
	}
}

// TestDescribeCut: maps with the same name in the kernel are not confused.
func TestDescribeCut(t *testing.T) {
	b := newTypes()
	u32, s64 := b.integer("int", 4), b.integer("long", 8)
	first := b.structure("first", 8, member{"user_stack_id", u32, 0}, member{"pid", u32, 4})
	second := b.structure("second", 8, member{"pid", u32, 0}, member{"user_stack_id", u32, 4})
	wide := b.structure("wide", 12, member{"pid", u32, 0}, member{"user_stack_id", u32, 4})
	b.maps(map[string][2]uint32{"stack_counts_of_readers": {first, s64},
		"stack_counts_of_writers": {second, s64}, "stack_counts_of_all": {wide, s64}},
		"stack_counts_of_readers", "stack_counts_of_writers", "stack_counts_of_all")
	types := b.parse(t)
	_, err := describe(types, &rawdump.Header{KeySize: 8, Name: "stack_counts_of"})
	if !errors.Is(err, ErrTypes) || !strings.Contains(err.Error(),
		"stack_counts_of_readers, stack_counts_of_writers") {
		t.Error(err)
	}
	d, err := describe(types, &rawdump.Header{KeySize: 12, Name: "stack_counts_of"})
	if err != nil || len(d.key) != 2 || d.key[1].Offset != 4 {
		t.Errorf("told by the size of the key: %+v, %v", d, err)
	}
}

// TestDescribeBounded: structs of structs of structs end.
func TestDescribeBounded(t *testing.T) {
	b := newTypes()
	u32 := b.integer("int", 4)
	inner := b.structure("s0", 4, member{"x", u32, 0})
	for i := range 12 {
		var members []member
		for range 200 {
			members = append(members, member{"m", inner, 0})
		}
		inner = b.structure(fmt.Sprint("s", i+1), 4, members...)
	}
	key := b.structure("key", 4, member{"m", inner, 0}, member{"ustack", u32, 0})
	types := b.parse(t)
	if d, err := describe(types, &rawdump.Header{KeySize: 4, KeyType: key}); err == nil {
		t.Errorf("%+v", d)
	}
}

// TestParseFields: the arguments of --key and --value.
func TestParseFields(t *testing.T) {
	got, err := ParseFields("user_stack_id:0, kstack:4,tgid:8,comm:16:12,stack_id:32:8")
	want := []Field{{UserStackID, 0, 4}, {KernelStackID, 4, 4}, {TGID, 8, 4}, {Comm, 16, 12},
		{StackID, 32, 8}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "pid", "pid:", "pid:x", "pid:-1", "pid:0:9", "pid:0:0", "pod:0",
		"pid:0:4:4", "pid:99999999", "comm:0:99999999", "pid:0,pid:4"} {
		if got, err := ParseFields(text); !errors.Is(err, ErrField) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if f, err := ParseValue("8:4"); err != nil || *f != (Field{Offset: 8, Size: 4}) {
		t.Errorf("%+v, %v", f, err)
	}
	for _, text := range []string{"", "x", "-1", "0:9", "0:0", "0:x", "999999999"} {
		if f, err := ParseValue(text); err == nil {
			t.Errorf("%q: %+v", text, f)
		}
	}
	if numFields.String() != "unknown field" || TGID.String() != "tgid" {
		t.Error("names of fields")
	}
}

// TestWords: the names of forms and causes.
func TestWords(t *testing.T) {
	for _, c := range [][2]string{{Bpftrace.String(), "bpftrace text"}, {Form(99).String(),
		"unknown form"},
		{BucketTaken.String(), "bucket taken"}, {Cause(99).String(), "unknown cause"}} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
