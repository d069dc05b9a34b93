package btf

// cursor places members as C compilers do (System V ABI), in bits.
type cursor struct {
	layouts *layouts
	packed  bool
	at      uint64
}

// next returns where a compiler would place a member.
func (c *cursor) next(m Member) uint64 {
	if m.BitSize > 0 {
		if c.packed {
			return c.at
		}
		size, _ := c.layouts.t.Size(m.Type)
		unit := 8 * size
		if unit > 0 && c.at/unit != (c.at+uint64(m.BitSize)-1)/unit {
			return roundUp(c.at, unit)
		}
		return c.at
	}
	if c.packed {
		return roundUp(c.at, 8)
	}
	return roundUp(c.at, 8*c.layouts.align(m.Type))
}

// take goes after a member, where it is.
func (c *cursor) take(m Member) {
	size := uint64(m.BitSize)
	if size == 0 {
		size, _ = c.layouts.t.Size(m.Type)
		size *= 8
	}
	c.at = max(c.at, uint64(m.BitOffset)+size)
}

// end returns where a structure of an alignment would end.
func (c *cursor) end(align uint64) uint64 { return roundUp(c.at, 8*align) }

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }

// Bounds of the search for alignments: the largest of a basic type in bytes, and the nesting
// depth of structures.
const (
	maxAlign      = 16
	maxAlignDepth = 64
)

// layouts caches the C layouts of structures.
type layouts struct {
	t     *Types
	known map[ID]cLayout
	depth int
}

// cLayout is a C layout of a structure: an alignment in bytes from its members' types, or packed,
// if the members' offsets differ from that.
type cLayout struct {
	align  uint64
	packed bool
}

// align returns the alignment of a type in bytes, 1 if it has none.
func (l *layouts) align(id ID) uint64 {
	for range maxRefs {
		id = l.t.resolve(id)
		if l.t.Kind(id) != KindArray {
			break
		}
		id = l.t.Array(id).Elem
	}
	switch l.t.Kind(id) {
	case KindInt, KindEnum, KindEnum64, KindFloat, KindPtr:
		size, _ := l.t.Size(id)
		return min(max(size&-size, 1), maxAlign)
	case KindStruct, KindUnion:
		return l.of(id).align
	}
	return 1
}

// of returns the layout of a structure or union.
func (l *layouts) of(id ID) cLayout {
	if known, ok := l.known[id]; ok {
		return known
	}
	if l.known == nil {
		l.known = make(map[ID]cLayout)
	}
	l.known[id] = cLayout{align: 1} // for a structure within itself
	if l.depth++; l.depth < maxAlignDepth {
		l.known[id] = l.natural(id)
	}
	l.depth--
	return l.known[id]
}

// natural checks whether the members' offsets satisfy their alignments.
func (l *layouts) natural(id ID) cLayout {
	align := uint64(1)
	for _, m := range l.t.Members(id) {
		own := l.align(m.Type)
		if m.BitSize > 0 {
			size, _ := l.t.Size(m.Type)
			first, last := uint64(m.BitOffset), uint64(m.BitOffset)+uint64(m.BitSize)-1
			if unit := 8 * size; unit > 0 && first/unit != last/unit {
				return cLayout{1, true}
			}
		} else if uint64(m.BitOffset)%(8*own) != 0 {
			return cLayout{1, true}
		}
		align = max(align, own)
	}
	if size, _ := l.t.Size(id); size%align != 0 {
		return cLayout{1, true}
	}
	return cLayout{align, false}
}

// longest returns the size of the largest member of a union in bytes.
func (t *Types) longest(id ID) (n uint64) {
	for _, m := range t.Members(id) {
		size, _ := t.Size(m.Type)
		n = max(n, size, (uint64(m.BitSize)+7)/8)
	}
	return n
}
