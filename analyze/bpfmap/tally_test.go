package bpfmap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/chart"
	"symbolize/fixtures/must"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/object/btf"
)

// blob makes BTF of the types that maps with histograms have: in the order of ids
//
//	1 int, 2 unsigned int, 3 unsigned long, 4 char, 5 char[16],
//	6 struct key { comm char[16]; location u64; slot u32; }, 7 u32[8],
//	8 struct hist { comm char[16]; u32 slots[8]; }, 9 struct pair { u64 bytes; u64 calls; },
//	10 struct two { u64 a; u64 b; }, 11 struct outer { struct pair in; int slot; }
func blob(t testing.TB) *btf.Types {
	t.Helper()
	le := binary.LittleEndian
	strs := []byte{0}
	name := func(s string) uint32 {
		if s == "" {
			return 0
		}
		at := len(strs)
		strs = append(append(strs, s...), 0)
		return uint32(at)
	}
	var types []byte
	put := func(words ...uint32) {
		for _, w := range words {
			types = le.AppendUint32(types, w)
		}
	}
	integer := func(n string, size, bits, enc uint32) {
		put(name(n), 1<<24, size, enc<<24|bits)
	}
	array := func(elem, n uint32) { put(0, 3<<24, 0, elem, 2, n) }
	structure := func(n string, size uint32, members ...any) {
		put(name(n), 4<<24|uint32(len(members)/3), size)
		for m := range slices.Chunk(members, 3) {
			put(name(m[0].(string)), uint32(m[1].(int)), uint32(m[2].(int)))
		}
	}
	integer("int", 4, 32, 1)
	integer("unsigned int", 4, 32, 0)
	integer("unsigned long", 8, 64, 0)
	integer("char", 1, 8, 2)
	array(4, 16)
	structure("key", 32, "comm", 5, 0, "location", 3, 128, "slot", 2, 192)
	array(2, 8)
	structure("hist", 48, "comm", 5, 0, "slots", 7, 128)
	structure("pair", 16, "bytes", 3, 0, "calls", 3, 64)
	structure("two", 16, "a", 3, 0, "b", 3, 64)
	structure("outer", 24, "in", 9, 0, "slot", 1, 128)
	raw := le.AppendUint16(nil, 0xeb9f)
	raw = append(raw, 1, 0)
	for _, v := range []int{24, 0, len(types), len(types), len(strs)} {
		raw = le.AppendUint32(raw, uint32(v))
	}
	out, err := btf.Parse("test", append(append(raw, types...), strs...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	idInt = 1 + iota
	idU32
	idU64
	idChar
	idComm
	idKey
	idSlots
	idHist
	idPair
	idTwo
	idOuter
)

func layout(t testing.TB, key, value btf.ID) *Layout {
	types := blob(t)
	k, err := types.Size(key)
	if err != nil {
		t.Fatal(err)
	}
	v, err := types.Size(value)
	if err != nil {
		t.Fatal(err)
	}
	return &Layout{Types: types, Key: key, Value: value, KeySize: int(k), ValueSize: int(v)}
}

// pairs gives keys and values written as parts: numbers are little-endian of their type,
// strings are padded to 16 bytes.
func pairs(list ...[]any) Pairs {
	return func() ([]byte, [][]byte, bool) {
		if len(list) == 0 {
			return nil, nil, false
		}
		p := list[0]
		list = list[1:]
		var key []byte
		for i, part := range p {
			switch part := part.(type) {
			case string:
				key = append(key, (part + strings.Repeat("\x00", 16))[:16]...)
			case uint64:
				key = binary.LittleEndian.AppendUint64(key, part)
			case uint32:
				key = binary.LittleEndian.AppendUint32(key, part)
			case []uint64:
				var values [][]byte
				for _, v := range part {
					values = append(values, binary.LittleEndian.AppendUint64(nil, v))
				}
				return key, values, i >= 0
			case []byte:
				return key, [][]byte{part}, true
			}
		}
		panic("no value")
	}
}

func TestFields(t *testing.T) {
	l := layout(t, idKey, idPair)
	for name, want := range map[string]string{"location": "location 16+8", "slot": "slot 24+4",
		"key.slot": "slot 24+4", "24:4": "24:4 24+4", "0:8": "0:8 0+8"} {
		f, err := l.KeyField(name)
		if got := fmt.Sprintf("%s %d+%d", f.Name, f.Offset, f.Size); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"key", "nothing", "comm", "28:8", "-1:4", "0:9", "0:0", "a:b",
		"9223372036854775807:8", ""} {
		if f, err := l.KeyField(name); !errors.Is(err, ErrField) {
			t.Errorf("%q: %v, %v", name, f, err)
		}
	}
	l = layout(t, idOuter, idPair)
	if f, err := l.KeyField("in.calls"); err != nil || f.Offset != 8 || f.top != 0 {
		t.Errorf("in.calls: %+v, %v", f, err)
	}
	bare := &Layout{KeySize: 8, ValueSize: 8}
	if f, err := bare.KeyField("key"); err != nil || f.Size != 8 {
		t.Errorf("without BTF: %+v, %v", f, err)
	}
	if _, err := bare.KeyField("location"); err == nil || !strings.Contains(err.Error(), "OFFSET:SIZE") {
		t.Errorf("a name without BTF: %v", err)
	}
}

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		value btf.ID
		name  string
		want  string
	}{
		{value: idU64, want: "value"}, {value: idPair, want: "calls"}, {value: idPair,
			name: "bytes", want: "bytes"}, {value: idTwo},
		{value: idTwo, name: "b", want: "b"}, {value: idTwo, name: "c"}, {value: idComm},
	} {
		l := layout(t, idU32, tt.value)
		f, err := l.Count(tt.name)
		if f.Name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%d %q: %q, %v", tt.value, tt.name, f.Name, err)
		}
	}
	if _, err := (&Layout{ValueSize: 16}).Count(""); !errors.Is(err, ErrNoCount) {
		t.Errorf("16 bytes: %v", err)
	}
}

func TestUint(t *testing.T) {
	data := []byte{0xfe, 0xff, 0x01, 0x80}
	for _, tt := range []struct {
		f    Field
		big  bool
		want uint64
	}{
		{f: Field{Size: 4}, want: 0x8001fffe}, {f: Field{Size: 4}, big: true, want: 0xfeff0180},
		{f: Field{Size: 2, Signed: true}, want: ^uint64(1)}, {f: Field{Offset: 2, Size: 1},
			big: true, want: 1},
		{f: Field{Offset: 2, Size: 2, Signed: true}, big: true, want: 0x180},
	} {
		if got := tt.f.Uint(data, tt.big); got != tt.want {
			t.Errorf("%+v big %v: %#x, want %#x", tt.f, tt.big, got, tt.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	l := layout(t, idKey, idU64)
	f, err := l.KeyField("location")
	if err != nil {
		t.Fatal(err)
	}
	count, err := l.Count("")
	if err != nil {
		t.Fatal(err)
	}
	a, b := uint64(0xffffffff81000010), uint64(0xffffffff81000020)
	rows, lost := l.Addresses(pairs(
		[]any{"dd", a, uint32(1), uint32(0), []uint64{3, 4}},
		[]any{"cat", a, uint32(1), uint32(0), []uint64{1}},
		[]any{"dd", b, uint32(1), uint32(0), []uint64{7}},
		[]any{"dd", a, uint32(1), uint32(0), []uint64{5}},
	), f, count)
	want := []Row{{a, `comm = "dd", slot = 1`, 12}, {b, `comm = "dd", slot = 1`, 7},
		{a, `comm = "cat", slot = 1`, 1}}
	if !slices.Equal(rows, want) || lost != (Losses{}) {
		t.Errorf("%+v, lost %+v", rows, lost)
	}
}

// TestPlans: where the histograms of maps are, as the tools make them.
func TestPlans(t *testing.T) {
	for _, tt := range []struct {
		name       string
		key, value btf.ID
		entries    uint32
		o          PlanOptions
		want       string
	}{
		{name: "BPF_HISTOGRAM(dist)", key: idInt, value: idU64, entries: 64, o: PlanOptions{},
			want: "bcc key/value 0"},
		{name: "an array", key: idU32, value: idU64, entries: 64, o: PlanOptions{},
			want: "log2 key/value 0"},
		{name: "an array of int keys of another size", key: idInt, value: idU64, entries: 27,
			o: PlanOptions{}, want: "log2 key/value 0"},
		{name: "BPF_HISTOGRAM with a key", key: idKey, value: idU64, entries: 64,
			o: PlanOptions{}, want: "bcc slot/value 0"},
		{name: "libbpf-tools", key: idU32, value: idHist, entries: 100, o: PlanOptions{},
			want: "log2 /slots 8"},
		{name: "an array as value", key: idU32, value: idSlots, entries: 1, o: PlanOptions{},
			want: "log2 /value 8"},
		{name: "a scale", key: idKey, value: idPair, entries: 1,
			o: PlanOptions{Scale: &chart.Scale{Kind: chart.Linear},
				Count: "bytes"}, want: "linear slot/bytes 0"},
		{name: "a slot", key: idKey, value: idU64, entries: 1, o: PlanOptions{Slot: "location"},
			want: "log2 location/value 0"},
	} {
		p, err := layout(t, tt.key, tt.value).Plan(tt.o, tt.entries)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := fmt.Sprintf("%s %s/%s %d", p.Scale, p.Slot.Name, p.Count.Name, p.Slots)
		if got != tt.want || p.Guessed != (tt.o.Scale == nil) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if _, err := layout(t, idPair, idU64).Plan(PlanOptions{}, 1); !errors.Is(err, ErrNoSlot) {
		t.Errorf("no slot: %v", err)
	}
	if _, err := (&Layout{KeySize: 20, ValueSize: 8}).Plan(PlanOptions{}, 1); !errors.Is(err, ErrNoSlot) {
		t.Errorf("20 bytes: %v", err)
	}
}

func TestHistograms(t *testing.T) {
	l := layout(t, idKey, idU64)
	p, err := l.Plan(PlanOptions{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	list, lost := l.Histograms(pairs(
		[]any{"dd", uint64(1), uint32(3), uint32(0), []uint64{2, 5}},
		[]any{"dd", uint64(1), uint32(4), uint32(0), []uint64{1}},
		[]any{"cat", uint64(1), uint32(3), uint32(0), []uint64{9}},
		[]any{"cat", uint64(1), uint32(70), uint32(0), []uint64{6}},
		[]any{"idle", uint64(1), uint32(2), uint32(0), []uint64{0}},
	), p)
	var got []string
	for _, h := range list {
		got = append(got, fmt.Sprint(h.Label, h.Counts))
	}
	want := `comm = "dd", location = 1[0 0 0 7 1]|comm = "cat", location = 1[0 0 0 9]`
	if strings.Join(got, "|") != want || lost != (Losses{Beyond: 6}) {
		t.Errorf("%s, lost %+v", got, lost)
	}
	if s := SumOf(list, 5); s.Time != 5 || !slices.Equal(s.Counts, []uint64{0, 0, 0, 16, 1}) {
		t.Errorf("sum %+v", s)
	}
	if texts := lost.Texts(); len(texts) != 1 || !strings.HasPrefix(texts[0], "6 counts") {
		t.Errorf("%q", texts)
	}
}

// TestSlotArrays: slots in the value, one histogram for each key.
func TestSlotArrays(t *testing.T) {
	l := layout(t, idU32, idHist)
	l.MapType = 1
	p, err := l.Plan(PlanOptions{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 48)
	copy(value, "sda")
	binary.LittleEndian.PutUint32(value[16+4*2:], 5)
	binary.LittleEndian.PutUint32(value[16+4*7:], 1)
	for _, mapType := range []uint32{1, 2} {
		l.MapType = mapType
		list, _ := l.Histograms(pairs([]any{uint32(0), value}, []any{uint32(8), value}), p)
		if len(list) != 2 || list[1].Label != "8" || (list[0].Label == "0") != (mapType == 1) ||
			!slices.Equal(list[1].Counts, []uint64{0, 0, 5, 0, 0, 0, 0, 1}) {
			t.Errorf("%+v", list)
		}
	}
}

func TestNegative(t *testing.T) {
	l := layout(t, idU32, idInt)
	f, err := l.Count("")
	if err != nil {
		t.Fatal(err)
	}
	var lost Losses
	n := l.sum(f, [][]byte{{0xff, 0xff, 0xff, 0xff}, {5, 0, 0, 0}}, &lost)
	if n != 5 || lost.Negative != 1 {
		t.Errorf("%d, %+v", n, lost)
	}
}

// TestLabelWithoutTypes: the rest of a key, as bytes.
func TestLabelWithoutTypes(t *testing.T) {
	l := &Layout{KeySize: 6, ValueSize: 8}
	f, err := l.KeyField("2:2")
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Label([]byte{1, 2, 3, 4, 5, 6}, f); got != "01020506" {
		t.Errorf("%q", got)
	}
}

// FuzzPairs reads dumps with plans of all kinds.
func FuzzPairs(f *testing.F) {
	data := must.Read(f, "../../fixtures/drops/locations.json")
	f.Add(data, "", "", uint8(idKey), uint8(idU64))
	f.Add([]byte(`[{"key":["0x01"],"value":["0x02"]}]`), "0:1", "0:1", uint8(0), uint8(0))
	f.Add([]byte("key: 0a 00 00 00  value: 01 00 00 00\nFound 1 element\n"), "key", "value", uint8(2),
		uint8(8))
	f.Fuzz(func(t *testing.T, data []byte, slot, count string, key, value uint8) {
		d, err := mapdump.Open("fuzz", strings.NewReader(string(data)), int64(len(data)))
		if err != nil {
			return
		}
		l := &Layout{KeySize: int(d.Header.KeySize), ValueSize: int(d.Header.ValueSize)}
		types := blob(t)
		fits := func(id btf.ID, size int) bool {
			n, err := types.Size(id)
			return err == nil && n == uint64(size)
		}
		if fits(btf.ID(key), l.KeySize) && fits(btf.ID(value), l.ValueSize) {
			l.Types, l.Key, l.Value = types, btf.ID(key), btf.ID(value)
		}
		p, err := l.Plan(PlanOptions{Slot: slot, Count: count}, 64)
		if err != nil {
			return
		}
		l.Histograms(d.Next, p)
		at, err := l.KeyField(slot)
		n, err2 := l.Count(count)
		if d, err3 := mapdump.Open("fuzz", strings.NewReader(string(data)),
			int64(len(data))); errors.Join(err, err2, err3) == nil {
			l.Addresses(d.Next, at, n)
		}
	})
}
