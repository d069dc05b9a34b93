package symtab

// Memory that a range of a function takes, with its place in the tables that are made of
// it, and a name or path, in bytes.
const (
	rangeCost = 256
	textCost  = 96
)

// SetLimit bounds the memory of what is added until the next Reset, in bytes, by estimate:
// names can overlap in a file, and ranges be shared, so that a small file makes a large
// table. What comes when the limit is reached is left out. 0 sets none.
func (b *Builder) SetLimit(bytes int64) { b.limit = bytes }

// LeftOut returns how many symbols and functions, or lines of some, were left out for the
// limit, and for the bounds on the work for calls and pieces of functions.
func (b *Builder) LeftOut() uint64 { return b.leftOut }

// room takes memory, and reports whether it is there. Nothing is added any more after the
// first that did not fit: a table ends at one place.
func (b *Builder) room(bytes int64) bool {
	if b.limit > 0 && (b.full || b.held+bytes > b.limit) {
		b.full = true
		b.leftOut++
		return false
	}
	b.held += bytes
	return true
}

// cutBudget bounds how many bytes of bodies are unpacked for ranges that others cut into
// pieces: each piece unpacks the whole.
const (
	cutBudgetFactor = 32
	cutBudgetFloor  = 16 << 20
)

func (d *debugInfo) cutBudget() int64 {
	held := int64(0)
	for _, b := range d.blocks {
		held += int64(len(b))
	}
	return cutBudgetFloor + cutBudgetFactor*held
}
