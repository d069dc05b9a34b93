package calltab

import (
	"math"
	"slices"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/calls"
)

// chunk is a decoded chunk. Addresses are from its start.
type chunk struct {
	first                       int32
	start                       addr.Addr
	starts, ends                []uint32
	flags                       []byte
	callsTo, jumpsTo, callersTo []uint32 // by function: where its calls begin; and the end
	calls                       []Call
	jumps                       []Target
	callers                     []int32
	stateAt                     []uint32
	states                      []byte
}

// function returns the number in the chunk of the function at an address, -1 for none.
func (c *chunk) function(rel uint32) int {
	i := sort.Search(len(c.starts), func(i int) bool { return c.starts[i] > rel }) - 1
	if i >= 0 && rel < c.ends[i] {
		return i
	}
	return -1
}

func (c *chunk) state(rel uint32) calls.State {
	i := sort.Search(len(c.stateAt), func(i int) bool { return c.stateAt[i] > rel }) - 1
	if i < 0 {
		return calls.Unproven
	}
	return calls.State(c.states[i])
}

// decode decodes a chunk.
func (t *Table) decode(e *entry, b []byte) (*chunk, error) {
	d := chunkDecoder{Reader: decode.New("chunk", b, 0, false), t: t,
		c: &chunk{first: e.first, start: e.start}}
	d.functions(int(e.funcs))
	d.calls()
	d.c.jumps = d.targets(d.total(d.c.jumpsTo))
	d.callers()
	d.states()
	if d.Err() == nil && d.Left() > 0 {
		d.Fail("%d bytes too many", d.Left())
	}
	if err := d.Err(); err != nil {
		return nil, formatError("%v", err)
	}
	return d.c, nil
}

type chunkDecoder struct {
	*decode.Reader
	t *Table
	c *chunk
}

// after returns the address at a distance.
func (d *chunkDecoder) after(at uint32, distance uint64) uint32 {
	if distance > math.MaxUint32-uint64(at) {
		d.Fail("an address %d behind %d", distance, at)
		return at
	}
	return at + uint32(distance)
}

// count fails if there are more items of a byte at least than bytes.
func (d *chunkDecoder) count(n uint64) int {
	if n > uint64(d.Left()) {
		d.Fail("%d items in %d bytes", n, d.Left())
		return 0
	}
	return int(n)
}

func (d *chunkDecoder) functions(n int) {
	c := d.c
	n = d.count(uint64(n))
	c.starts, c.ends = make([]uint32, n), make([]uint32, n)
	distances := make([]uint64, n)
	for i := range distances {
		distances[i] = d.Uvarint()
	}
	at := uint32(0)
	for i := range c.starts {
		c.starts[i] = d.after(at, distances[i])
		c.ends[i] = d.after(c.starts[i], d.Uvarint())
		at = c.ends[i]
	}
	c.flags = slices.Clone(d.Bytes(uint64(n)))
	for _, f := range c.flags {
		if f > knownFlags {
			d.Fail("flags %#x", f)
		}
	}
	for _, list := range []*[]uint32{&c.callsTo, &c.jumpsTo, &c.callersTo} {
		*list = make([]uint32, n+1)
		for i := range n {
			(*list)[i+1] = d.after((*list)[i], d.Uvarint())
		}
	}
}

// total returns how many items a column has.
func (d *chunkDecoder) total(to []uint32) int { return d.count(uint64(to[len(to)-1])) }

func (d *chunkDecoder) calls() {
	c := d.c
	c.calls = make([]Call, d.total(c.callsTo))
	for f := range c.starts {
		at := c.starts[f]
		for i := c.callsTo[f]; i < c.callsTo[f+1] && int(i) < len(c.calls); i++ {
			before := at
			at = d.after(at, d.Uvarint())
			if at == before || at > c.ends[f] {
				d.Fail("a call outside of its function")
			}
			c.calls[i].behind = at
		}
		if d.Err() != nil {
			return
		}
	}
	for i, x := range d.targets(len(c.calls)) {
		c.calls[i].Target = x
	}
}

func (d *chunkDecoder) targets(n int) []Target {
	kinds := d.Bytes(uint64(n))
	list := make([]Target, len(kinds))
	last := int64(d.c.first)
	for i, k := range kinds {
		x := &list[i]
		*x = Target{Kind: calls.TargetKind(k &^ (kindOwn | kindPasses)), Own: k&kindOwn != 0,
			Passes: k&kindPasses != 0}
		n, limit := uint64(0), uint64(1)
		switch x.Kind {
		case calls.Indirect:
		case calls.Local:
			last += d.Varint()
			n, limit = uint64(last), d.t.sum.funcs
		case calls.Imported:
			n, limit = d.Uvarint(), d.t.sum.imports
		case calls.Resolved:
			n, limit = d.Uvarint(), d.t.sum.resolvers
		default:
			d.Fail("a target of kind %d", k)
		}
		if n >= limit {
			d.Fail("target %d of %d", n, limit)
			return nil
		}
		x.N = int32(n)
	}
	return list
}

func (d *chunkDecoder) callers() {
	c := d.c
	c.callers = make([]int32, d.total(c.callersTo))
	for f := range c.starts {
		for i := c.callersTo[f]; i < c.callersTo[f+1] && int(i) < len(c.callers); i++ {
			n := int64(c.first) + int64(f) + d.Varint()
			if n < 0 || uint64(n) >= d.t.sum.funcs {
				d.Fail("caller %d of %d", n, d.t.sum.funcs)
				return
			}
			c.callers[i] = int32(n)
		}
	}
}

func (d *chunkDecoder) states() {
	c := d.c
	c.stateAt = make([]uint32, d.count(d.Uvarint()))
	at := uint32(0)
	for i := range c.stateAt {
		at = d.after(at, d.Uvarint())
		c.stateAt[i] = at
	}
	c.states = slices.Clone(d.Bytes(uint64(len(c.stateAt))))
	for _, s := range c.states {
		if s >= byte(calls.NumStates) {
			d.Fail("state %d", s)
		}
	}
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
