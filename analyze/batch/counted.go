package batch

import (
	"symbolize/store"
	"symbolize/store/symtab"
)

// countedView opens each table once for the look-ups of one object. It serves one goroutine at a
// time.
type countedView struct {
	store.View
	tables map[string]opened
}

type opened struct {
	table *symtab.Table
	err   error
}

// Open implements store.View.
func (v *countedView) Open(m *store.Manifest, i int) (*symtab.Table, error) {
	key := store.TableKey(m, i)
	t, ok := v.tables[key]
	if !ok {
		t.table, t.err = v.View.Open(m, i)
		v.tables[key] = t
	}
	return t.table, t.err
}
