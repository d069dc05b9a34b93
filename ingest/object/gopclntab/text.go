package gopclntab

import "symbolize/ingest/addr"

// Text returns the range of the functions, with the padding behind the last; empty without any.
func (t *Table) Text() addr.Range {
	start, ok1 := t.entryOf(0)
	end, ok2 := t.entryOf(t.numFuncs)
	if t.numFuncs == 0 || !ok1 || !ok2 || end < start {
		return addr.Range{}
	}
	return addr.Range{Start: addr.Addr(start), End: addr.Addr(end)}
}
