package calls

import (
	"encoding/binary"
	"math"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// # Encoded form
//
// Numbers are LEB128, signed ones in zigzag; lists are columns, so that they compress. Addresses of
// functions and calls are distances from the end of the one before.
//
//	table    = linker u8 | functions | calls | jumps | imports | exports | resolvers | states
//	functions  n | distances of starts | lengths | flags u8 | numbers of calls | numbers of jumps
//	calls      n | distances of return addresses | kinds u8 | targets
//	jumps      n | kinds u8 | targets
//	imports    n | { name | version }
//	exports    n | { name | version } | flags u8 | addresses
//	resolvers  n | { address | n | { address } }, by address
//	states     n | distances | states u8
//
// The target of a Local call or jump is twice the distance of its function's number from that of the
// function before, plus 1 if the offset from the function's start follows; a call outside of all
// functions has the distance of the number of functions, and its address follows. Texts have their
// length in front.

// Bits of the flags of a function.
const (
	flagOpen = 1 << iota
	flagUnknown
	flagLeaps
	flagReplaces
)

// Bits of the flags of an export.
const (
	flagHidden = 1 << iota
	flagResolver
)

// Append appends the encoded form of a table.
func (t *Table) Append(b []byte) []byte {
	b = append(b, bit(t.Linker, 1))
	n := func(v int) { b = binary.AppendUvarint(b, uint64(v)) }
	n(len(t.Funcs))
	last := addr.Addr(0)
	for i := range t.Funcs {
		b = binary.AppendUvarint(b, uint64(t.Funcs[i].Start-last))
		last = t.Funcs[i].End
	}
	for i := range t.Funcs {
		b = binary.AppendUvarint(b, uint64(t.Funcs[i].End-t.Funcs[i].Start))
	}
	for i := range t.Funcs {
		f := &t.Funcs[i]
		b = append(b, bit(f.Open, flagOpen)|bit(f.Unknown, flagUnknown)|bit(f.Leaps, flagLeaps)|
			bit(f.Replaces, flagReplaces))
	}
	for i := range t.Funcs {
		n(int(t.Funcs[i].calls.to - t.Funcs[i].calls.from))
	}
	for i := range t.Funcs {
		n(int(t.Funcs[i].jumps.to - t.Funcs[i].jumps.from))
	}
	n(len(t.Calls))
	last = 0
	targets := make([]Target, len(t.Calls))
	for i := range t.Calls {
		b = binary.AppendUvarint(b, uint64(t.Calls[i].Return-last))
		last, targets[i] = t.Calls[i].Return, t.Calls[i].Target
	}
	b = t.appendTargets(b, targets)
	n(len(t.jumps))
	b = t.appendTargets(b, t.jumps)
	return t.appendSymbols(b)
}

func bit(set bool, b byte) byte {
	if set {
		return b
	}
	return 0
}

// appendTargets appends the columns of targets.
func (t *Table) appendTargets(b []byte, list []Target) []byte {
	for _, x := range list {
		b = append(b, byte(x.Kind))
	}
	last := 0
	for _, x := range list {
		switch x.Kind {
		case Imported, Resolved:
			b = binary.AppendUvarint(b, uint64(x.At))
		case Local:
			f, start := t.Func(x.At), addr.Addr(0)
			if f < 0 {
				f = len(t.Funcs)
			} else {
				start = t.Funcs[f].Start
			}
			v := int64(f-last) * 2
			last = f
			if x.At == start {
				b = binary.AppendVarint(b, v)
				continue
			}
			b = binary.AppendUvarint(binary.AppendVarint(b, v+1), uint64(x.At-start))
		}
	}
	return b
}

// appendSymbols appends imports and what follows.
func (t *Table) appendSymbols(b []byte) []byte {
	n := func(v int) { b = binary.AppendUvarint(b, uint64(v)) }
	symbol := func(s *Symbol) {
		for _, text := range []string{s.Name, s.Version} {
			n(len(text))
			b = append(b, text...)
		}
	}
	n(len(t.Imports))
	for i := range t.Imports {
		symbol(&t.Imports[i])
	}
	n(len(t.Exports))
	for i := range t.Exports {
		symbol(&t.Exports[i].Symbol)
	}
	for i := range t.Exports {
		b = append(b, bit(t.Exports[i].Hidden, flagHidden)|bit(t.Exports[i].Resolver, flagResolver))
	}
	for i := range t.Exports {
		b = binary.AppendUvarint(b, uint64(t.Exports[i].At))
	}
	var resolvers []addr.Addr
	for a := range t.resolvers {
		resolvers = append(resolvers, a)
	}
	slices.Sort(resolvers)
	n(len(resolvers))
	for _, a := range resolvers {
		b = binary.AppendUvarint(b, uint64(a))
		n(len(t.resolvers[a]))
		for _, x := range t.resolvers[a] {
			b = binary.AppendUvarint(b, uint64(x))
		}
	}
	n(len(t.starts))
	last := addr.Addr(0)
	for _, a := range t.starts {
		b = binary.AppendUvarint(b, uint64(a-last))
		last = a
	}
	for _, s := range t.states {
		b = append(b, byte(s))
	}
	return b
}

// Parse decodes the encoded form of a table. An error is a *decode.Error.
func Parse(b []byte) (*Table, error) {
	r := &parser{Reader: decode.New("calls", b, 0, false), t: &Table{resolvers: make(map[addr.Addr][]addr.Addr)}}
	r.t.Linker = r.U8() == 1
	r.functions()
	r.calls()
	r.t.jumps = r.targets(r.count(1))
	r.symbols()
	r.states()
	if r.Err() == nil && r.Left() > 0 {
		r.Fail("%d bytes too many", r.Left())
	}
	if n := len(r.t.Funcs); r.Err() == nil && n > 0 {
		last := r.t.Funcs[n-1]
		if last.calls.to != uint32(len(r.t.Calls)) || last.jumps.to != uint32(len(r.t.jumps)) {
			r.Fail("functions have %d calls of %d and %d jumps of %d", last.calls.to, len(r.t.Calls),
				last.jumps.to, len(r.t.jumps))
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return r.t, nil
}

// parser is the state of Parse.
type parser struct {
	*decode.Reader
	t *Table
}

// count reads the number of items of at least size bytes each.
func (r *parser) count(size uint64) int {
	n := r.Uvarint()
	if n > uint64(r.Left())/size || n > math.MaxInt32 {
		r.Fail("%d items in %d bytes", n, r.Left())
		return 0
	}
	return int(n)
}

// after returns the address at a distance, which may not wrap.
func (r *parser) after(a addr.Addr, distance uint64) addr.Addr {
	if distance > uint64(^addr.Addr(0)-a) {
		r.Fail("addresses are not in order")
		return a
	}
	return a + addr.Addr(distance)
}

func (r *parser) functions() {
	f := make([]Func, r.count(5))
	starts := make([]uint64, len(f))
	for i := range starts {
		starts[i] = r.Uvarint()
	}
	at := addr.Addr(0)
	for i := range f {
		f[i].Start = r.after(at, starts[i])
		f[i].End = r.after(f[i].Start, r.Uvarint())
		at = f[i].End
		if f[i].End == f[i].Start && r.Err() == nil {
			r.Fail("an empty function")
		}
	}
	for i, b := range r.Bytes(uint64(len(f))) {
		f[i].Open, f[i].Unknown = b&flagOpen != 0, b&flagUnknown != 0
		f[i].Leaps, f[i].Replaces = b&flagLeaps != 0, b&flagReplaces != 0
	}
	sum := uint64(0)
	for i := range f {
		f[i].calls = r.span(&sum)
	}
	sum = 0
	for i := range f {
		f[i].jumps = r.span(&sum)
	}
	r.t.Funcs = f
}

// span reads the number of a function's calls or jumps, which follow those of the one before.
func (r *parser) span(sum *uint64) span {
	from := *sum
	if n := r.Uvarint(); n > math.MaxInt32-from {
		r.Fail("%d calls of a function", n)
	} else {
		*sum += n
	}
	return span{uint32(from), uint32(*sum)}
}

func (r *parser) calls() {
	c := make([]Call, r.count(2))
	at := addr.Addr(0)
	for i := range c {
		c[i].Return = r.after(at, r.Uvarint())
		if c[i].Return == at && r.Err() == nil {
			r.Fail("calls are not in order")
		}
		at = c[i].Return
	}
	for i, target := range r.targets(len(c)) {
		c[i].Target = target
	}
	r.t.Calls = c
	for i := range r.t.Funcs { // those of a function are in it
		f := &r.t.Funcs[i]
		if uint64(f.calls.to) > uint64(len(c)) || f.calls.to > f.calls.from &&
			(c[f.calls.from].Return <= f.Start || c[f.calls.to-1].Return > f.End) {
			r.Fail("calls of the function at %#x are elsewhere", uint64(f.Start))
			return
		}
	}
}

func (r *parser) targets(n int) []Target {
	kinds := r.Bytes(uint64(n))
	list := make([]Target, len(kinds))
	last := int64(0)
	for i, k := range kinds {
		list[i].Kind = TargetKind(k)
		switch list[i].Kind {
		case Indirect:
		case Imported, Resolved:
			list[i].At = addr.Addr(r.Uvarint())
		case Local:
			v := r.Varint()
			last += v >> 1
			start := addr.Addr(0)
			switch {
			case last < 0 || last > int64(len(r.t.Funcs)):
				r.Fail("function %d of %d", last, len(r.t.Funcs))
				return nil
			case last < int64(len(r.t.Funcs)):
				start = r.t.Funcs[last].Start
			}
			if list[i].At = start; v&1 != 0 {
				list[i].At += addr.Addr(r.Uvarint())
			}
		default:
			r.Fail("target of kind %d", k)
			return nil
		}
	}
	return list
}

func (r *parser) symbol() Symbol {
	name := string(r.Bytes(r.Uvarint()))
	return Symbol{name, string(r.Bytes(r.Uvarint()))}
}

// symbols reads imports, exports and resolvers.
func (r *parser) symbols() {
	r.t.Imports = make([]Symbol, r.count(2))
	for i := range r.t.Imports {
		r.t.Imports[i] = r.symbol()
	}
	for _, x := range r.t.jumps {
		r.checkImport(x)
	}
	for i := range r.t.Calls {
		r.checkImport(r.t.Calls[i].Target)
	}
	r.t.Exports = make([]Export, r.count(4))
	for i := range r.t.Exports {
		r.t.Exports[i].Symbol = r.symbol()
		if i > 0 && r.t.Exports[i].Name < r.t.Exports[i-1].Name {
			r.Fail("exports are not in order")
		}
	}
	for i, b := range r.Bytes(uint64(len(r.t.Exports))) {
		r.t.Exports[i].Hidden, r.t.Exports[i].Resolver = b&flagHidden != 0, b&flagResolver != 0
	}
	for i := range r.t.Exports {
		r.t.Exports[i].At = addr.Addr(r.Uvarint())
	}
	for range r.count(2) {
		at := addr.Addr(r.Uvarint())
		list := make([]addr.Addr, r.count(1))
		for i := range list {
			list[i] = addr.Addr(r.Uvarint())
		}
		r.t.resolvers[at] = list
	}
}

// checkImport checks the number of an imported symbol.
func (r *parser) checkImport(x Target) {
	if x.Kind == Imported && uint64(x.At) >= uint64(len(r.t.Imports)) && r.Err() == nil {
		r.Fail("import %d of %d", x.At, len(r.t.Imports))
	}
}

func (r *parser) states() {
	n := r.count(2)
	r.t.starts, r.t.states = make([]addr.Addr, n), make([]State, n)
	at := addr.Addr(0)
	for i := range r.t.starts {
		at = r.after(at, r.Uvarint())
		r.t.starts[i] = at
	}
	for i, b := range r.Bytes(uint64(n)) {
		if r.t.states[i] = State(b); State(b) >= numStates {
			r.Fail("state %d", b)
		}
	}
}
