package symtab

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/ingest/addr"
)

// Options set the sizes at which blocks are cut, in raw bytes. Zero values select the defaults;
// others serve tests and measurements.
type Options struct {
	ChunkSize  int // of a chunk; 64 KiB
	StringSize int // of a string block; 64 KiB
	InlineSize int // stored size up to which a table stays in one value; 32 KiB, negative for never

	// Columns keeps the columns of lines and calls, at a quarter more of size.
	Columns bool
}

// maxChunkSize bounds Options.ChunkSize: one function of the greatest size still fits into an
// almost full chunk.
const maxChunkSize = 1 << 20

func (o Options) withDefaults() Options {
	o.ChunkSize = min(cmp.Or(o.ChunkSize, 64<<10), maxChunkSize)
	o.StringSize = cmp.Or(o.StringSize, 64<<10)
	o.InlineSize = cmp.Or(o.InlineSize, 32<<10)
	return o
}

// Builder collects the symbols of one object, or its functions with their inlined calls and lines,
// and encodes them. It may be used again after Reset. It is for one goroutine; Encode compresses on
// all cores.
type Builder struct {
	opts  Options
	cands []candidate
	stack []int32 // of flatten: indices into cands, the innermost last
	enc   encoder
	info  *debugInfo // nil for a table of names
	lost  Losses     // of the table encoded last

	only    []addr.Addr  // see Only
	covered []addr.Range // see Covered

	demangler *Demangler // see Demangle

	limit, held int64 // bytes, by estimate; see SetLimit
	full        bool
	leftOut     uint64
}

// candidate is a symbol that may become a function.
type candidate struct {
	start, end  uint64
	size        uint64 // as added; end may be clipped
	name        string
	nameRef     uint32  // 1 + number in debugInfo.names, 0 if Add brought it
	number      uint32  // 1 + number of the function, 0 while it has none
	seq         uint32  // number in the order of Add
	body        bodyRef // inlined calls and lines
	flags       Flags
	underscores uint16
}

// NewBuilder returns an empty Builder.
func NewBuilder(opts Options) *Builder {
	return &Builder{opts: opts.withDefaults()}
}

// Reset empties the builder and keeps its memory, but no names.
func (b *Builder) Reset() {
	clear(b.cands)
	b.cands = b.cands[:0]
	clear(b.enc.ids)
	b.info, b.lost = nil, Losses{}
	b.limit, b.held, b.full, b.leftOut = 0, 0, false, 0
	b.only, b.covered, b.demangler = nil, b.covered[:0], nil
}

// Len returns the number of symbols, and of ranges of functions, added since the last
// Reset.
func (b *Builder) Len() int {
	if b.info != nil {
		return len(b.cands) + len(b.info.bare)
	}
	return len(b.cands)
}

// Add adds a symbol. Symbols of one address must be added in the order of their file: it decides
// among otherwise equal aliases. Other order does not matter. Size must be the symbol's length,
// also for Unsized symbols. Symbols without extent or name, or with a name longer than MaxName, are
// left out; a name with a NUL is cut there.
func (b *Builder) Add(f Func) {
	name, _, _ := strings.Cut(f.Name, "\x00")
	if f.Size == 0 || name == "" || len(name) > MaxName || len(b.cands) >= MaxTable/2 {
		return
	}
	if !b.reserve(rangeCost + int64(len(name))) {
		return
	}
	end := uint64(f.Start) + f.Size
	if end < uint64(f.Start) {
		end = ^uint64(0)
		if end == uint64(f.Start) {
			return
		}
	}
	b.cands = append(b.cands, candidate{
		start: uint64(f.Start), end: end, size: end - uint64(f.Start), name: name,
		seq:   uint32(len(b.cands)),
		flags: f.Flags & (Unsized | NoType | Weak | Local), underscores: underscores(name),
	})
}

func underscores(name string) uint16 {
	return uint16(min(len(name)-len(strings.TrimLeft(name, "_")), 1<<16-1))
}

// compareAlias orders symbols at one address, the best first. The rules are perf's, so that results
// compare with perf's: symbols__fixup_end and choose_best_symbol in tools/perf/util/symbol.c, as
// measured with perf 6.1.
//
// The first of these lets an unsized symbol end where the next symbol of the list begins. For all
// aliases of an address but the last that is their own start: they stay without size, and a symbol
// without size never wins. So the last of several unsized ones (all of kallsyms is unsized) is the
// best. Where the second finds no difference it keeps the first.
func compareAlias(a, b *candidate) int {
	if a.flags&b.flags&Unsized != 0 {
		return cmp.Compare(b.seq, a.seq)
	}
	if a.flags != b.flags {
		return cmp.Compare(a.flags, b.flags)
	}
	if a.underscores != b.underscores {
		return cmp.Compare(a.underscores, b.underscores)
	}
	if len(a.name) != len(b.name) {
		return cmp.Compare(len(b.name), len(a.name))
	}
	if x, y := isSyS(a.name), isSyS(b.name); x != y {
		if x {
			return 1
		}
		return -1
	}
	return cmp.Compare(a.seq, b.seq)
}

// isSyS recognises kernels' second names of system calls before 4.17, besides sys_…; perf avoids
// them (arch__choose_best_symbol).
func isSyS(name string) bool {
	return strings.HasPrefix(name, "SyS") || strings.HasPrefix(name, "compat_SyS")
}

// Encode makes the table. It returns one without functions if nothing was added. A Builder that had
// debug information is empty afterwards. The same symbols have the same bytes, for any order of Add
// among symbols of different addresses.
func (b *Builder) Encode() *Encoded {
	b.enc.reset(b.opts, b.demangler)
	if b.info != nil {
		return b.encodeDebug()
	}
	sortCandidates(b.cands)
	b.flatten(b.cands, b.limited(b.enc.piece))
	return b.enc.finish()
}

// sortCandidates sorts by start, the best alias first. It sorts small elements, and moves each
// candidate once.
func sortCandidates(cands []candidate) {
	type place struct {
		start uint64
		from  uint32 // index in cands
	}
	order := make([]place, len(cands))
	for i := range cands {
		order[i] = place{cands[i].start, uint32(i)}
	}
	slices.SortFunc(order, func(x, y place) int {
		if x.start != y.start {
			return cmp.Compare(x.start, y.start)
		}
		return compareAlias(&cands[x.from], &cands[y.from])
	})
	for i := range order {
		if order[i].from == uint32(i) {
			continue
		}
		// Of a cycle of the permutation each element comes from the place of the next one.
		first, to := cands[i], uint32(i)
		for from := order[to].from; from != uint32(i); from = order[to].from {
			cands[to], order[to].from = cands[from], to
			to = from
		}
		cands[to], order[to].from = first, to
	}
}

// flatten resolves the overlaps of the sorted symbols: at each address the one with the latest
// start wins, among equal starts the best alias; a symbol continues after the end of those inside
// it, but an unsized one only if no alias of it has a size. It calls emit with disjoint ranges in
// ascending order; adjacent ones are never of the same symbol.
func (b *Builder) flatten(cands []candidate, emit func(start, end uint64, c *candidate)) {
	b.stack = b.stack[:0]
	at := uint64(0) // everything below is done
	for i := 0; i < len(cands); {
		next := cands[i].start
		b.drain(cands, &at, next, emit)
		at = max(at, next)
		j := i
		for j < len(cands) && cands[j].start == next {
			j++
		}
		// The best of the group must be on top. If one of them has a size, the guessed ends of
		// those without one are not needed.
		unsized := cands[i].flags & Unsized
		for k := j - 1; k >= i; k-- {
			if cands[k].flags&Unsized == unsized {
				b.stack = append(b.stack, int32(k))
			}
		}
		i = j
	}
	b.drain(cands, &at, ^uint64(0), emit)
}

// drain emits the ranges of the stack between *at and limit.
func (b *Builder) drain(cands []candidate, at *uint64, limit uint64,
	emit func(start, end uint64, c *candidate)) {
	for len(b.stack) > 0 && *at < limit {
		c := &cands[b.stack[len(b.stack)-1]]
		if c.end > *at {
			end := min(c.end, limit)
			emit(*at, end, c)
			*at = end
		}
		if c.end > limit {
			return
		}
		b.stack = b.stack[:len(b.stack)-1]
	}
}

// Only limits the table to the functions at these addresses, ascending, until Reset: all
// look-ups of them have the results of the whole table, which is made for one run. nil is no limit.
func (b *Builder) Only(addrs []addr.Addr) { b.only = addrs }

// Needs reports whether a range has an address of Only.
func (b *Builder) Needs(r addr.Range) bool {
	if b.only == nil {
		return true
	}
	i, _ := slices.BinarySearch(b.only, r.Start)
	return i < len(b.only) && b.only[i] < r.End
}

// NeedsAny reports whether one of the ranges has an address of Only. If none has, a caller need not
// add their function: the ranges are added to Covered.
func (b *Builder) NeedsAny(ranges []addr.Range) bool {
	if b.only == nil || slices.ContainsFunc(ranges, b.Needs) {
		return true
	}
	b.covered = append(b.covered, ranges...)
	return false
}

// Covered returns, after Encode, the ranges of all functions, except unsized symbols, also of
// functions that the table lacks because of Only. They are unsorted, and valid until Reset.
func (b *Builder) Covered() []addr.Range { return b.covered }

// limited returns a function that adds pieces to Covered and calls emit with the pieces that have
// an address of Only.
func (b *Builder) limited(emit func(start, end uint64, c *candidate)) func(
	uint64, uint64, *candidate) {
	return func(start, end uint64, c *candidate) {
		r := addr.Range{Start: addr.Addr(start), End: addr.Addr(end)}
		if c.flags&Unsized == 0 {
			b.covered = append(b.covered, r)
		}
		if b.Needs(r) {
			emit(start, end, c)
		}
	}
}

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

// reserve reserves memory, and reports whether it is within the limit. After the first failure nothing
// more is added, so that a table ends at one address.
func (b *Builder) reserve(bytes int64) bool {
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
