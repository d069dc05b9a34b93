package symtab

import (
	"cmp"
	"fmt"
	"slices"

	"symbolize/ingest/addr"
)

// Join looks up addrs, which must be sorted, and sets hits[i] for addrs[i]; hits must have the same
// length. Each chunk with an address is read once, in order. A chunk that cannot be read leaves its
// addresses without hits; the others are looked up and the first error is returned. Lines without a
// function are no hits.
func (t *Table) Join(addrs []addr.Addr, hits []Hit) error {
	if len(hits) != len(addrs) {
		return fmt.Errorf("symtab: %d addresses, %d hits", len(addrs), len(hits))
	}
	clear(hits)
	return t.each(addrs, func(chunk, lo, hi int) error {
		return t.joinChunk(chunk, addrs[lo:hi], hits[lo:hi])
	})
}

// each calls do for each chunk with some of the sorted addrs, and their range addrs[lo:hi]. The
// next chunk is unpacked meanwhile. each continues after errors and returns the first.
func (t *Table) each(addrs []addr.Addr, do func(chunk, lo, hi int) error) error {
	var first error
	chunk, lo, hi := t.span(addrs, 0, 0)
	for lo < hi {
		next, nextLo, nextHi := t.span(addrs, chunk, hi)
		if nextLo < nextHi {
			err := t.prepare(chunk)
			t.ahead.start(t, next)
			if err != nil {
				first = cmp.Or(first, err)
				chunk, lo, hi = next, nextLo, nextHi
				continue
			}
		}
		first = cmp.Or(first, do(chunk, lo, hi))
		chunk, lo, hi = next, nextLo, nextHi
	}
	return first
}

// span finds the first chunk from i on with some of addrs[lo:].
func (t *Table) span(addrs []addr.Addr, i, lo int) (chunk, from, to int) {
	for lo < len(addrs) {
		i = t.seek(i, uint64(addrs[lo]))
		if i == len(t.h.chunks) {
			break
		}
		e := &t.h.chunks[i]
		lo += countBelow(addrs[lo:], e.start)
		if n := countBelow(addrs[lo:], e.start+e.span); n > 0 {
			return i, lo, lo + n
		}
	}
	return i, lo, lo
}

// seek returns the first chunk from i on that ends after a.
func (t *Table) seek(i int, a uint64) int {
	n, _ := slices.BinarySearchFunc(t.h.chunks[i:], a, func(c chunkEntry, a uint64) int {
		if c.start+c.span > a {
			return 1
		}
		return -1
	})
	return i + n
}

// countBelow returns the number of sorted addrs below limit.
func countBelow(addrs []addr.Addr, limit uint64) int {
	n, _ := slices.BinarySearch(addrs, addr.Addr(limit))
	return n
}

// joinChunk looks up the addresses in one chunk.
func (t *Table) joinChunk(i int, addrs []addr.Addr, hits []Hit) error {
	if err := t.openChunk(i, nil); err != nil {
		return err
	}
	c := &t.cur
	for k := 0; k < len(addrs); {
		if !c.next() {
			return c.close()
		}
		if uint64(addrs[k]) >= c.end {
			continue
		}
		for k < len(addrs) && uint64(addrs[k]) < c.start {
			k++
		}
		for k < len(addrs) && uint64(addrs[k]) < c.end {
			if c.flags&Nameless == 0 {
				hits[k] = c.hit()
			}
			k++
		}
	}
	return nil
}

// hit returns the Hit of an address in the current range.
func (c *chunkCursor) hit() Hit {
	return Hit{
		Start: addr.Addr(c.funcStart), Size: c.funcSize, Func: c.number,
		Name: NameID(c.name), Flags: c.flags, OK: true,
	}
}
