package store

import "testing"

// TestMergeCountsNames takes up the count of a store that an older import made.
func TestMergeCountsNames(t *testing.T) {
	a := SourceInfo{Kind: DWARF, Named: 0x440}
	b := SourceInfo{Kind: DWARF, Named: 0x40}
	for _, m := range []func() (SourceInfo, bool, bool){
		func() (SourceInfo, bool, bool) { return mergeInfo(a, b) },
		func() (SourceInfo, bool, bool) { return mergeInfo(b, a) },
	} {
		if got, table, raw := m(); got.Named != 0x40 || table || raw {
			t.Errorf("%d bytes named, table %v, raw %v", got.Named, table, raw)
		}
	}
}
