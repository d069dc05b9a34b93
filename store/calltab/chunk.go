package calltab

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/calls"
)

// chunk is a chunk in its stored form, in which the items of a function are found by counting: most
// chunks are asked for one or two addresses.
type chunk struct {
	first int32 // number of its first function
	start addr.Addr
	funcs []row // and one more, where the lists end

	returns, targets, jumpTargets, callers, stateAt []byte // columns of numbers
	kinds, jumpKinds, states                        []byte
}

// row is a function of a chunk. Addresses are from the chunk's start.
type row struct {
	start, end                        uint32
	calls, jumps, callersAt, statesAt uint32 // where its lists begin
	flags                             byte
}

// decode makes the index of a chunk, and keeps b.
func (t *Table) decode(e *entry, b []byte) (*chunk, error) {
	d := decode.New("chunk", b, 0, false)
	c := &chunk{first: e.first, start: e.start}
	if int(e.funcs) > len(b) {
		return nil, formatError("%d functions in %d bytes", e.funcs, len(b))
	}
	c.funcs = make([]row, e.funcs+1)
	n := len(c.funcs) - 1
	column := func(set func(i int, v uint32)) {
		for i := range n {
			v := d.Uvarint()
			if v > math.MaxUint32 {
				d.Fail("%d in a column of functions", v)
			}
			set(i, uint32(v))
		}
	}
	column(func(i int, v uint32) { c.funcs[i].start = v })
	at := uint64(0)
	column(func(i int, v uint32) {
		f := &c.funcs[i]
		at += uint64(f.start)
		f.start = uint32(at)
		at += uint64(v)
		f.end = uint32(at)
		if at > math.MaxUint32 {
			d.Fail("a function behind %d", at)
		}
	})
	for i, flags := range d.Bytes(uint64(n)) {
		if c.funcs[i].flags = flags; flags > knownFlags {
			d.Fail("flags %#x", flags)
		}
	}
	for _, list := range [...]func(f *row) *uint32{
		func(f *row) *uint32 { return &f.calls }, func(f *row) *uint32 { return &f.jumps },
		func(f *row) *uint32 { return &f.callersAt }, func(f *row) *uint32 { return &f.statesAt },
	} {
		sum := uint64(0)
		column(func(i int, v uint32) {
			if sum += uint64(v); sum > uint64(len(b)) {
				d.Fail("%d items in %d bytes", sum, len(b))
				return
			}
			*list(&c.funcs[i+1]) = uint32(sum)
		})
	}
	end := c.funcs[n]
	c.returns = numbers(d, b, end.calls)
	c.kinds = d.Bytes(uint64(end.calls))
	c.targets = numbers(d, b, end.calls)
	c.jumpKinds = d.Bytes(uint64(end.jumps))
	c.jumpTargets = numbers(d, b, end.jumps)
	c.callers = numbers(d, b, end.callersAt)
	c.stateAt = numbers(d, b, end.statesAt)
	c.states = d.Bytes(uint64(end.statesAt))
	for _, s := range c.states {
		if s >= byte(calls.NumStates) {
			d.Fail("state %d", s)
		}
	}
	if d.Err() == nil && d.Left() > 0 {
		d.Fail("%d bytes too many", d.Left())
	}
	if err := d.Err(); err != nil {
		return nil, formatError("%v", err)
	}
	return c, nil
}

// numbers reads a column of n numbers.
func numbers(d *decode.Reader, b []byte, n uint32) []byte {
	all := b[d.Offset():]
	rest, ok := skip(all, n)
	if !ok {
		d.Fail("%d numbers in %d bytes", n, len(all))
	}
	return d.Bytes(uint64(len(all) - len(rest)))
}

// skip returns what is behind n numbers.
func skip(b []byte, n uint32) ([]byte, bool) {
	for n >= 8 && len(b) >= 8 { // they end at the bytes without the highest bit
		n -= uint32(bits.OnesCount64(^binary.LittleEndian.Uint64(b) & 0x8080808080808080))
		b = b[8:]
	}
	for ; n > 0 && len(b) > 0; b = b[1:] {
		if b[0] < 0x80 {
			n--
		}
	}
	return b, n == 0
}

// items are numbers of a function.
type items struct {
	t *Table
	b []byte
}

func (t *Table) items(column []byte, from uint32) items {
	b, _ := skip(column, from)
	return items{t, b}
}

func (x *items) uvarint() uint64 {
	v, ok := decode.CutUvarint(&x.b)
	if !ok {
		x.t.fail(formatError("a number of more than 64 bits"))
	}
	return v
}

// nearest returns the last function that starts at or before an address; the first one if none does.
func (c *chunk) nearest(rel uint32) int {
	return max(sort.Search(len(c.funcs)-1, func(i int) bool { return c.funcs[i].start > rel })-1, 0)
}

// state returns the state at an address, to which function i is the nearest.
func (t *Table) state(c *chunk, i int, rel uint32) (s calls.State) {
	x := t.items(c.stateAt, c.funcs[i].statesAt)
	at := uint64(0)
	if i > 0 {
		at = uint64(c.funcs[i].start)
	}
	for n := c.funcs[i].statesAt; n < c.funcs[i+1].statesAt; n++ {
		if at += min(x.uvarint(), maxSpan); at > uint64(rel) {
			break
		}
		s = calls.State(c.states[n])
	}
	return s
}

// before returns the target of the call that ends at an address of function i.
func (t *Table) before(c *chunk, i int, rel uint32) (Target, bool) {
	f := &c.funcs[i]
	x, at := t.items(c.returns, f.calls), uint64(f.start)
	for n := f.calls; n < c.funcs[i+1].calls && at < uint64(rel); n++ {
		if at += min(x.uvarint(), maxSpan); at == uint64(rel) {
			to := t.items(c.targets, n)
			return t.target(c.first+int32(i), c.kinds[n], to.uvarint()), true
		}
	}
	return Target{}, false
}

// target decodes the target of a call or jump in function f.
func (t *Table) target(f int32, kind byte, v uint64) Target {
	x := Target{Kind: calls.TargetKind(kind &^ (kindOwn | kindPasses)), Own: kind&kindOwn != 0,
		Passes: kind&kindPasses != 0}
	limit := uint64(1)
	switch x.Kind {
	case calls.Indirect:
	case calls.Local:
		v, limit = uint64(int64(f)+(int64(v>>1)^-int64(v&1))), t.sum.funcs
	case calls.Imported:
		limit = t.sum.imports
	case calls.Resolved:
		limit = t.sum.resolvers
	default:
		limit = 0
	}
	if v >= limit {
		t.fail(formatError("target %d of %d, of kind %d", v, limit, kind))
		return Target{}
	}
	x.N = int32(v)
	return x
}

// decodeSymbols decodes the first block of symbols.
func (t *Table) decodeSymbols(b []byte) error {
	r := decode.New("symbols", b, 0, false)
	n := r.Uvarint()
	for ; n > 0 && r.Err() == nil; n-- {
		t.versions = append(t.versions, string(r.Bytes(r.Uvarint())))
	}
	t.imports = r.Bytes(t.sum.imports * importSize)
	for i := uint64(0); i < t.sum.resolvers && r.Err() == nil; i++ {
		var list []int32
		for n := r.Uvarint(); n > 0 && r.Err() == nil; n-- {
			f := r.Uvarint()
			if f >= t.sum.funcs {
				r.Fail("variant %d of %d", f, t.sum.funcs)
			}
			list = append(list, int32(f))
		}
		t.resolvers = append(t.resolvers, list)
	}
	if r.Err() == nil && r.Left() > 0 {
		r.Fail("%d bytes too many", r.Left())
	}
	if err := r.Err(); err != nil {
		return formatError("%v", err)
	}
	return nil
}
