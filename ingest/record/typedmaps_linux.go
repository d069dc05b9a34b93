package record

import (
	"sync"

	"symbolize/ingest/object/bpf"
)

// maxTypedMaps limits the maps of a recording that are described, of some dozen bytes each.
const maxTypedMaps = 1 << 16

// typedMaps are the maps that the programs of a recording use. Any goroutine may use it.
type typedMaps struct {
	mu    sync.Mutex
	known map[uint32]bpf.MapStats
}

func (t *typedMaps) find(id uint32) (bpf.MapStats, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.known[id]
	return m, ok
}

func (t *typedMaps) note(m *bpf.MapStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = make(map[uint32]bpf.MapStats)
	}
	if len(t.known) < maxTypedMaps {
		t.known[m.ID] = *m
	}
}

// list returns the maps with types, in no order.
func (t *typedMaps) list() (list []bpf.MapStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.known {
		if m.Value != 0 {
			list = append(list, m)
		}
	}
	return list
}
