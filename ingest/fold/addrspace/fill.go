package addrspace

import "symbolize/ingest/addr"

// maxPieces bounds the pieces that Fill looks at over all its calls. Real recordings need some
// million; a hostile one could have each of a million records look at a million pieces.
const maxPieces = 1 << 28

// Fill adds mapping m to process pid from t on, but not over existing mappings of objects for
// which keep returns true: a run-time compiler's functions lie in its memory, whose protection it
// changes all the time, and each change is a record of the memory alone.
func (b *Builder) Fill(t uint64, pid int32, m Mapping, keep func(object uint32) bool) {
	b.tick(t)
	if m.Start >= m.End || b.pieces > maxPieces {
		return
	}
	root := b.m.roots[of(b.m.procs, pid).now(0)]
	var gaps []addrRange
	at := m.Start
	look := func(n *node) {
		b.pieces++
		old := &b.m.mappings[n.mapping]
		if old.Object != m.Object && !keep(old.Object) {
			return
		}
		if n.start > at {
			gaps = append(gaps, addrRange{at, n.start})
		}
		at = max(at, min(n.end, m.End))
	}
	if n, ok := b.m.forest.find(root, m.Start); ok && n.start < m.Start {
		look(n)
	}
	b.m.forest.within(root, m.Start, m.End, look)
	if at < m.End {
		gaps = append(gaps, addrRange{at, m.End})
	}
	for _, g := range gaps {
		b.Map(t, pid, Mapping{Start: g.start, End: g.end, Object: m.Object,
			PgOff: m.PgOff + uint64(g.start-m.Start)})
	}
}

// Mappings returns the pieces of a process's present mappings, ascending.
func (b *Builder) Mappings(pid int32) (list []Mapping) {
	root := b.m.roots[of(b.m.procs, pid).now(0)]
	b.m.forest.within(root, 0, ^addr.PC(0), func(n *node) {
		m := &b.m.mappings[n.mapping]
		list = append(list, Mapping{Start: n.start, End: n.end, Object: m.Object,
			PgOff: m.PgOff + uint64(n.start-m.Start)})
	})
	return list
}
