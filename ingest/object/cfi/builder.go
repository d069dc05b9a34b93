package cfi

import (
	"cmp"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// Limits of one object. Real ones have at most 1,155 rules and 58 expressions.
const (
	maxRules = 1 << 16
	maxExprs = 1 << 16
	maxExpr  = 1 << 10 // bytes of one
)

// padding is the longest gap between functions that counts as alignment of the next
// one: their rows are then not separated.
const padding = 15

// row is a rule and where it begins, counted from its function's start.
type row struct{ off, rule uint32 }

// span is a function, or a part of one that no function of a better source covers.
type span struct {
	addr.Range
	base     addr.Addr // of its rows
	from, to uint32    // of its rows
}

// Builder collects functions in any order. If they overlap, functions of an earlier source are
// used, see NextSource. It is for one goroutine.
type Builder struct {
	Arch  *machine.Arch
	Rules []Rule   // by number; rule 0 is NoRule
	Exprs [][]byte // by number

	packed  []packedRule // by number
	rules   map[packedRule]uint32
	exprs   map[string]int32
	recent  [recentRules]uint32 // numbers of recent rules, by packedRule.recent
	done    []span              // of finished sources: sorted and disjoint
	funcs   []span              // of the present one
	rows    []row
	added   int
	dropped int
}

// NewBuilder returns an empty Builder.
func NewBuilder(a *machine.Arch) *Builder {
	b := &Builder{rules: make(map[packedRule]uint32), exprs: make(map[string]int32)}
	b.Reset(a)
	return b
}

// Numbers of rows and functions for which a Builder keeps its memory, 2 and 1 MB. Few files have
// more: the largest one of a /usr/lib has 1.1 million rows and 138,000 functions. To keep the memory
// for these too saves nothing, and an index of /usr/lib takes 25 MB more.
const (
	keptRows  = 1 << 18
	keptFuncs = 1 << 15
)

// Reset empties the Builder for an object of a machine, and keeps its memory: of an index of
// /usr/lib 3 % were copies of rows and functions, as their slices grew for each object anew.
func (b *Builder) Reset(a *machine.Arch) {
	clear(b.rules)
	clear(b.exprs)
	b.rules[packedRule{}] = 0
	*b = Builder{Arch: a, Rules: append(b.Rules[:0], Rule{}), packed: append(b.packed[:0], packedRule{}),
		rules: b.rules, exprs: b.exprs, funcs: b.funcs[:0], rows: b.rows[:0]}
	if cap(b.rows) > keptRows || cap(b.funcs) > keptFuncs {
		b.rows, b.funcs = nil, nil
	}
}

// Func begins a function, to which the following Rows belong. It reports false for a range
// that cannot be one: empty, or of 4 GiB and more.
func (b *Builder) Func(r addr.Range) bool {
	if r.End <= r.Start || uint64(r.End-r.Start) >= 1<<32 || len(b.rows) >= 1<<31 {
		return false
	}
	n := uint32(len(b.rows))
	b.funcs = append(b.funcs, span{Range: r, base: r.Start, from: n, to: n})
	b.added++
	return true
}

// Row adds a rule that holds from an address of the present function on. Addresses ascend; of
// two rows at one the later counts.
//
// Directives of arm64's vdso lead from a signal's frame to the caller of what was interrupted,
// without a stack pointer (arch/arm64/kernel/vdso/sigreturn.S): the kernel's layout counts.
func (b *Builder) Row(at addr.Addr, r *Rule) {
	if r.Signal && b.Arch.LinkRegister && r.CFA.How == Register {
		if rule, ok := b.SignalRule(&b.Arch.Signals[0], 0); ok {
			r = &rule
		}
	}
	f := &b.funcs[len(b.funcs)-1]
	if at < f.Start || at >= f.End {
		return
	}
	off, n := uint32(at-f.Start), b.number(r)
	if k := len(b.rows); uint32(k) > f.from {
		switch last := &b.rows[k-1]; {
		case last.off == off:
			last.rule = n
			return
		case last.rule == n || last.off > off:
			return
		}
	}
	b.rows = append(b.rows, row{off, n})
	f.to++
}

// number returns the number of a rule.
func (b *Builder) number(r *Rule) uint32 {
	if r.Kind != Frame {
		r = &Rule{Kind: r.Kind}
	}
	p := r.pack()
	known := &b.recent[p.recent()]
	if b.packed[*known] == p {
		return *known
	}
	n, ok := b.rules[p]
	if !ok {
		if len(b.Rules) >= maxRules {
			b.dropped++
			return 0
		}
		n = uint32(len(b.Rules))
		b.Rules, b.packed = append(b.Rules, *r), append(b.packed, p)
		b.rules[p] = n
	}
	*known = n
	return n
}

// packedRule has all of a Rule in words without padding: it is compared and hashed as memory.
type packedRule [2 + MaxSaved]uint64

func (w Where) pack() uint64 {
	return uint64(w.How) | uint64(w.Reg)<<8 | uint64(uint32(w.Off))<<32
}

func (r *Rule) pack() (p packedRule) {
	p[0] = r.CFA.pack() | uint64(r.Kind)<<16
	if r.Signal {
		p[0] |= 1 << 24
	}
	p[1] = r.RA.pack()
	for i := range r.Saved {
		p[2+i] = r.Saved[i].pack()
	}
	return p
}

// recentRules is how many rules are found without a look-up in the map, a power of two. Real
// objects have at most 1,155.
const (
	recentBits  = 11
	recentRules = 1 << recentBits
)

// recent hashes a rule. The products do not wait for one another, and the bits that are used
// depend on all of a word.
func (p *packedRule) recent() uint64 {
	h := uint64(0)
	for i, w := range p {
		h += w * multipliers[i]
	}
	return h >> (64 - recentBits)
}

// multipliers are odd, without a pattern: fractions of √2, √3, √5, √7, √11, √13, √17 and √19.
var multipliers = packedRule{
	0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
}

// Expr returns the number of a DWARF expression; false if it is too long or there are too
// many.
func (b *Builder) Expr(code []byte) (int32, bool) {
	if n, ok := b.exprs[string(code)]; ok {
		return n, true
	}
	if len(code) > maxExpr || len(b.Exprs) >= maxExprs {
		return 0, false
	}
	n := int32(len(b.Exprs))
	b.Exprs = append(b.Exprs, slices.Clone(code))
	b.exprs[string(code)] = n
	return n, true
}

// Funcs returns the number of functions that were added.
func (b *Builder) Funcs() int { return b.added }

// Dropped returns the number of rows that lost their rule because there were too many
// different ones.
func (b *Builder) Dropped() int { return b.dropped }

// NextSource ends a source: functions that are added from now on count only where those so
// far have no rows.
func (b *Builder) NextSource() {
	funcs := b.funcs
	slices.SortStableFunc(funcs, func(a, b span) int { return cmp.Compare(a.Start, b.Start) })
	// Within a source the function that begins first counts.
	flat := make([]span, 0, len(funcs))
	end := addr.Addr(0)
	for _, f := range funcs {
		if f.Start = max(f.Start, end); f.Start < f.End {
			flat = append(flat, f)
			end = f.End
		}
	}
	b.done = insert(b.done, flat)
	b.funcs = b.funcs[:0]
}

// Covered reports whether a source so far has a function at an address. NextSource must have
// been called since the last Func.
func (b *Builder) Covered(a addr.Addr) bool {
	i, ok := slices.BinarySearchFunc(b.done, a, func(s span, a addr.Addr) int {
		return cmp.Compare(s.Start, a)
	})
	return ok || i > 0 && b.done[i-1].End > a
}

// Next returns the start of the first function of finished sources behind an address; false
// if there is none.
func (b *Builder) Next(a addr.Addr) (addr.Addr, bool) {
	i, ok := slices.BinarySearchFunc(b.done, a, func(s span, a addr.Addr) int {
		return cmp.Compare(s.Start, a)
	})
	if ok {
		i++
	}
	if i >= len(b.done) {
		return 0, false
	}
	return b.done[i].Start, true
}

// insert adds to sorted, disjoint spans the parts of others that they do not cover.
func insert(have, more []span) []span {
	if len(have) == 0 {
		return more
	}
	out := make([]span, 0, len(have)+len(more))
	i, covered := 0, addr.Addr(0)
	for _, m := range more {
		m.Start = max(m.Start, covered)
		for ; i < len(have) && have[i].End <= m.Start; i++ {
			out = append(out, have[i])
		}
		for ; i < len(have) && have[i].Start < m.End && m.Start < m.End; i++ {
			if have[i].Start > m.Start {
				part := m
				part.End = have[i].Start
				out = append(out, part)
			}
			out = append(out, have[i])
			covered = have[i].End // perhaps beyond m
			m.Start = covered
		}
		if m.Start < m.End {
			out = append(out, m)
		}
	}
	return append(out, have[i:]...)
}

// Rows visits the rows of all sources in order of address: equal neighbours are one, and
// where nothing is known there is a row of rule 0. The last one is such a row. The present
// source is ended.
func (b *Builder) Rows(visit func(start addr.Addr, rule uint32)) {
	b.NextSource()
	current, end := uint32(0), addr.Addr(0)
	put := func(at addr.Addr, rule uint32) {
		if rule != current {
			visit(at, rule)
			current = rule
		}
	}
	for i := range b.done {
		s := &b.done[i]
		if s.Start-end > padding {
			put(end, 0)
		}
		rows := b.rows[s.from:s.to]
		skip := uint32(s.Start - s.base)
		k, exact := 0, skip == 0 && len(rows) > 0 && rows[0].off == 0 // nearly all
		if !exact {
			k, exact = slices.BinarySearchFunc(rows, skip, func(r row, off uint32) int {
				return cmp.Compare(r.off, off)
			})
		}
		switch {
		case exact:
		case k > 0:
			put(s.Start, rows[k-1].rule)
		default:
			put(s.Start, 0)
		}
		for ; k < len(rows) && s.base+addr.Addr(rows[k].off) < s.End; k++ {
			put(s.base+addr.Addr(rows[k].off), rows[k].rule)
		}
		end = s.End
	}
	put(end, 0)
}

// Ranges visits the functions of all sources in order of address; where sources overlap, the parts of
// each that count. The present source is ended.
func (b *Builder) Ranges(visit func(addr.Range)) {
	b.NextSource()
	for i := range b.done {
		visit(b.done[i].Range)
	}
}
