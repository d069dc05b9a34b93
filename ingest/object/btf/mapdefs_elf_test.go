package btf

import (
	"bytes"
	stdelf "debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/object/elf"
)

// oldObject is an object with definitions of maps in the section "maps", the offsets of symbols
// by name, and one map in a section of its own.
func oldObject(t *testing.T, big bool, places map[string]uint64, words ...uint32) *elf.File {
	t.Helper()
	var data []byte
	for _, w := range words {
		data = bpfbuild.OrderOf(big).AppendUint32(data, w)
	}
	f := &elfbuild.File{BigEndian: big, Machine: stdelf.EM_BPF, Type: stdelf.ET_REL}
	f.Sections = []elfbuild.Section{{Name: "maps", Data: data, Flags: stdelf.SHF_ALLOC},
		{Name: "maps/alone", Data: data[:min(16, len(data))], Flags: stdelf.SHF_ALLOC}}
	for name, at := range places {
		f.Symbols = append(f.Symbols, elfbuild.Symbol{Name: name, Section: "maps", Value: at,
			Size: 20, Type: stdelf.STT_OBJECT, Bind: stdelf.STB_GLOBAL})
	}
	f.Symbols = append(f.Symbols, elfbuild.Symbol{Name: "alone", Section: "maps/alone", Size: 16,
		Type: stdelf.STT_OBJECT, Bind: stdelf.STB_GLOBAL})
	b := f.Bytes()
	x, err := elf.Open("test", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestOldMaps reads struct bpf_map_def with and without the types of markers.
func TestOldMaps(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := newBuilder(big)
		u32, u64 := b.integer("u32", 4, 32), b.integer("u64", 8, 64)
		for _, name := range []string{"counts", "other", "gone"} {
			b.add(KindStruct, markerPrefix+name, false, 2, 16,
				b.name("key"), uint32(u32), 0, b.name("value"), uint32(u64), 64)
		}
		types, err := Parse("test", b.bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		f := oldObject(t, big, map[string]uint64{"counts": 0, "plain": 24, "other": 44},
			1, 4, 8, 10240, 1, 99, // with a word more
			2, 4, 16, 7, 0,
			9, 12, 8, 3, 0) // not of the sizes that its marker has
		counts := MapDef{Name: "counts", Type: 1, KeySize: 4, ValueSize: 8, MaxEntries: 10240,
			Flags: 1}
		plain := MapDef{Name: "plain", Type: 2, KeySize: 4, ValueSize: 16, MaxEntries: 7}
		other := MapDef{Name: "other", Type: 9, KeySize: 12, ValueSize: 8, MaxEntries: 3}
		alone := MapDef{Name: "alone", Type: 1, KeySize: 4, ValueSize: 8, MaxEntries: 10240}
		got, err := ObjectMaps(f, nil)
		if want := []MapDef{counts, plain, other, alone}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		counts.Key, counts.Value = u32, u64
		gone := MapDef{Name: "gone", KeySize: 4, ValueSize: 8, Key: u32, Value: u64}
		got, err = ObjectMaps(f, types)
		if want := []MapDef{counts, other, gone, plain, alone}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
}

// TestOldMapsDamaged: a truncated definition costs that map only, and is reported.
func TestOldMapsDamaged(t *testing.T) {
	f := oldObject(t, false, map[string]uint64{"whole": 0, "cut": 16, "behind": 1 << 40},
		1, 4, 8, 2, 1, 4)
	got, err := ObjectMaps(f, nil)
	if len(got) != 2 || got[0].Name != "whole" || got[0].Flags != 0 {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"map cut has 8 bytes at 0x10", "map behind has 0 bytes"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
