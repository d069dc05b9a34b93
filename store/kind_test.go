package store

import "testing"

// TestSourceKinds: each kind has a row with a name and a rank of its own, and properties that fit
// together.
func TestSourceKinds(t *testing.T) {
	names, ranks := make(map[string]bool), make(map[int]bool)
	for k := range endOfKinds {
		row := &sourceKinds[k]
		if row.text == "" || names[row.text] || ranks[row.rank] || (row.rank == 0) != (k == 0) {
			t.Errorf("%d: name %q, rank %d", k, row.text, row.rank)
		}
		names[row.text], ranks[row.rank] = true, true
		if k.Frames() && (k.Symbols() || k.Fallback()) || k.Debug() && !k.Frames() || k.Nameless() && !k.Fallback() ||
			k.List() && !k.Symbols() || !k.Names() && (k.Frames() || k.Symbols() || k.Fallback()) {
			t.Errorf("%s: %+v", k, *row)
		}
	}
	if got := SourceKind(200).String(); got != "kind200" {
		t.Error(got)
	}
}
