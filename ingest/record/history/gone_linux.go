package history

import (
	"maps"
	"slices"
	"strings"

	"symbolize/ingest/format/bundle"
)

// Gone returns the symbols of modules that were unloaded, as lines of kallsyms.
func (m *Modules) Gone() []byte {
	m.listed.Lock()
	defer m.listed.Unlock()
	there := make(map[moduleKey]bool)
	for _, o := range m.list {
		if o.Unloaded == 0 {
			there[moduleKey{o.Name, uint64(o.Addr)}] = true
		}
	}
	keys := slices.SortedFunc(maps.Keys(m.syms), func(a, b moduleKey) int {
		if a.name != b.name {
			return strings.Compare(a.name, b.name)
		}
		return int(min(max(int64(a.base-b.base), -1), 1))
	})
	var out []byte
	for _, key := range keys {
		if !there[key] {
			out = append(out, m.syms[key]...)
		}
	}
	return out
}

// Forget forgets the modules that were unloaded before a time, which are in no further bundle.
func (m *Modules) Forget(before uint64) {
	m.listed.Lock()
	defer m.listed.Unlock()
	gone := make(map[moduleKey]bool)
	m.list = slices.DeleteFunc(m.list, func(o bundle.Module) bool {
		if o.Unloaded == 0 || o.Unloaded >= before {
			return false
		}
		gone[moduleKey{o.Name, uint64(o.Addr)}] = true
		return true
	})
	for _, o := range m.list {
		delete(gone, moduleKey{o.Name, uint64(o.Addr)})
	}
	for key := range gone {
		m.kept -= len(m.syms[key])
		delete(m.syms, key)
	}
}
