package dwarfvar

import "symbolize/ingest/object/dwarf"

// numbers is a map from positions to numbers above 0 that is filled once for each unit.
type numbers struct {
	list  []numbered
	slots []int32 // by the hash of a position, its place in list plus 1; 0 for none
}

type numbered struct {
	dwarf.Pos
	n int
}

func (m *numbers) reset() {
	clear(m.list)
	clear(m.slots)
	m.list = m.list[:0]
}

// slot returns the slot of a position, or the free one for it.
func (m *numbers) slot(p dwarf.Pos) *int32 {
	h := (p.Off ^ p.Root.Offset<<32) * 0x9e3779b97f4a7c15
	for i := h >> 32; ; i++ {
		s := &m.slots[i&uint64(len(m.slots)-1)]
		if *s == 0 || m.list[*s-1].Pos == p {
			return s
		}
	}
}

// of returns the number of a position, 0 if it has none.
func (m *numbers) of(p dwarf.Pos) int {
	if len(m.slots) == 0 {
		return 0
	}
	if s := *m.slot(p); s > 0 {
		return m.list[s-1].n
	}
	return 0
}

// set gives a position that has none a number.
func (m *numbers) set(p dwarf.Pos, n int) {
	m.list = append(m.list, numbered{p, n})
	if 2*len(m.list) <= len(m.slots) {
		*m.slot(p) = int32(len(m.list))
		return
	}
	m.slots = make([]int32, max(1<<10, 2*len(m.slots)))
	for i := range m.list {
		*m.slot(m.list[i].Pos) = int32(i + 1)
	}
}
