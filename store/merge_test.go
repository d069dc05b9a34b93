package store

import "testing"

// TestMergeCountsNames keeps the count of a store that an older import made.
func TestMergeCountsNames(t *testing.T) {
	a := SourceInfo{Kind: DWARF, Named: 0x440}
	b := SourceInfo{Kind: DWARF, Named: 0x40}
	for _, got := range []SourceInfo{mergeInfo(a, b), mergeInfo(b, a)} {
		if got.Named != 0x40 {
			t.Errorf("%d bytes named", got.Named)
		}
	}
}

// TestMergeVersions keeps the table of the newest format, which has demangled names, whichever
// comes first.
func TestMergeVersions(t *testing.T) {
	plain := SourceInfo{Kind: DWARF, TableVersion: 1, Size: 10, Strings: 1, Input: Digest{1}}
	named := SourceInfo{Kind: DWARF, TableVersion: 2, Size: 13, Strings: 2, Input: Digest{2}}
	for _, got := range []SourceInfo{mergeInfo(plain, named), mergeInfo(named, plain)} {
		if got != named {
			t.Errorf("%+v", got)
		}
	}
}
