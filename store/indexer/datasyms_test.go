package indexer

import (
	stdelf "debug/elf"
	"fmt"
	"testing"

	"symbolize/ingest/addr"
)

// TestDataSymbols asks a file, and symbols that share addresses.
func TestDataSymbols(t *testing.T) {
	file, err := FileDataSymbols("../../fixtures/types/faults")
	if err != nil {
		t.Fatal(err)
	}
	built := &DataSymbols{list: []dataSymbol{{"local", 0x10, 8, stdelf.STB_LOCAL}, {"weak", 0x10, 8, stdelf.STB_WEAK},
		{"global", 0x10, 8, stdelf.STB_GLOBAL}, {"b", 0x20, 4, stdelf.STB_LOCAL}, {"a", 0x20, 4, stdelf.STB_LOCAL},
		{"longer", 0x20, 8, stdelf.STB_LOCAL}}}
	built.sort()
	for _, c := range []struct {
		name string
		of   *DataSymbols
		at   addr.Addr
		want string
	}{
		{name: "the start", of: file, at: 0xe020, want: "books+0"},
		{name: "the last byte", of: file, at: 0xe020 + 32783, want: "books+32783"},
		{name: "the next symbol", of: file, at: 0x16040, want: "pool+0"},
		{name: "between symbols", of: file, at: 0x3f30},
		{name: "before all", of: file, at: 0x10},
		{name: "behind all", of: file, at: 1 << 40},
		{name: "a function", of: file, at: 0x1000},
		{name: "a name that others see", of: built, at: 0x13, want: "global+3"},
		{name: "behind it", of: built, at: 0x18},
		{name: "the longest", of: built, at: 0x27, want: "longer+7"},
		{name: "none", of: &DataSymbols{}, at: 0},
	} {
		got := ""
		if name, distance, ok := c.of.At(c.at); ok {
			got = fmt.Sprintf("%s+%d", name, distance)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if s, err := FileDataSymbols("../../fixtures/types/module.ko"); err != nil || len(s.list) != 0 {
		t.Errorf("a module: %v, %v", s, err)
	}
	if _, err := FileDataSymbols("../../fixtures/types/faults.data"); err == nil {
		t.Error("a file that is not ELF")
	}
}
