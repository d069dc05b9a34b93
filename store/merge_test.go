package store

import "testing"

// TestMergeCountsNames keeps the count of a store that an older import made.
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

// TestMergeVersions keeps the table of the newest format, which has demangled names, whichever
// comes first.
func TestMergeVersions(t *testing.T) {
	plain := SourceInfo{Kind: DWARF, TableVersion: 1, Size: 10, Strings: 1}
	named := SourceInfo{Kind: DWARF, TableVersion: 2, Size: 13, Strings: 2}
	if got, table, _ := mergeInfo(plain, named); got != named || !table {
		t.Errorf("%+v, table %v", got, table)
	}
	if got, table, _ := mergeInfo(named, plain); got != named || table {
		t.Errorf("%+v, table %v", got, table)
	}
}
