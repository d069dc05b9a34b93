package symtab

// Memory of a range of a function, with its part of the tables made from it, and of a name
// or path, in bytes.
const (
	rangeCost = 256
	textCost  = 96
)

// SetLimit bounds the memory of additions until the next Reset, in bytes, by estimate:
// names can overlap in a file, and ranges be shared, so that a small file makes a large
// table. Additions over the limit are left out. 0 sets none.
func (b *Builder) SetLimit(bytes int64) { b.limit = bytes }

// LeftOut returns the number of symbols and functions, or lines of some, left out for the
// limit, and for the bounds on the work for calls and pieces of functions.
func (b *Builder) LeftOut() uint64 { return b.leftOut }

// room reserves memory, and reports whether it is within the limit. After the first failure nothing
// more is added, so that a table ends at one address.
func (b *Builder) room(bytes int64) bool {
	if b.limit > 0 && (b.full || b.held+bytes > b.limit) {
		b.full = true
		b.leftOut++
		return false
	}
	b.held += bytes
	return true
}

// cutBudget bounds the bytes of bodies that are unpacked for ranges that others divide
// into pieces: each piece unpacks the whole.
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
