package unwind

import (
	"cmp"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/cfi"
	"symbolize/store/unwindtab"
)

// rule returns the rule of an address in a table; false if it has none.
func (t *Tables) rule(o *objectTable, a addr.Addr) (*cfi.Rule, bool) {
	i := o.table.ChunkOf(a)
	if i < 0 {
		return nil, false
	}
	slot := &o.chunks[i]
	c := slot.chunk.Load()
	if c == nil {
		if c = t.load(o, i); c == nil {
			return nil, false
		}
	}
	if now := t.clock.Load(); slot.used.Load() != now {
		slot.used.Store(now)
	}
	r := &o.table.Rules[c.Rule(a)]
	return r, r.Kind != cfi.NoRule
}

// load decodes a chunk, and forgets those not used for longest if there are too many; nil if
// it is damaged.
func (t *Tables) load(o *objectTable, i int) *unwindtab.Chunk {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := &o.chunks[i]
	if c := slot.chunk.Load(); c != nil || slot.bad.Load() {
		return c
	}
	c, err := o.table.Chunk(i)
	if err != nil {
		slot.bad.Store(true)
		t.failed(err)
		return nil
	}
	slot.used.Store(t.clock.Add(1))
	t.held += int64(c.Size())
	if t.held > t.limit {
		t.forget()
	}
	t.loaded = append(t.loaded, slot)
	slot.chunk.Store(c)
	return c
}

// forget drops the chunks that were not used for longest, down to three quarters of the limit.
// Workers that are just reading one keep it alive.
func (t *Tables) forget() {
	slices.SortFunc(t.loaded, func(a, b *chunkSlot) int {
		return cmp.Compare(b.used.Load(), a.used.Load())
	})
	for t.held > t.limit*3/4 && len(t.loaded) > 0 {
		last := t.loaded[len(t.loaded)-1]
		t.loaded = t.loaded[:len(t.loaded)-1]
		t.held -= int64(last.chunk.Swap(nil).Size())
	}
}
