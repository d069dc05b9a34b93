package sampler

import (
	"bytes"
	"cmp"
	"slices"
)

// numbering is the order in which the stacks of a kind are written, in which each has its number:
// stacks with common callers are adjacent, which compresses to half the size of the order of
// arrival. Stacks that no count names are left out.
type numbering struct {
	order  []int32 // ids of the table, by number
	number []int32 // by id; len(order) where there is no such stack in the dump
}

// of returns the number that a dump of counts has for an id of the table.
func (n *numbering) of(id int32) int32 {
	switch {
	case id < 0: // an errno
		return id
	case int(id) < len(n.number):
		return n.number[id]
	}
	return int32(len(n.order))
}

// sortBytes is how much of the stacks is sorted at a time, and held in memory.
const sortBytes = 32 << 20

// numberUsed numbers the stacks that were received and that used names, by their ids.
func (t *table) numberUsed(used []bool) (numbering, error) {
	t.flush()
	n := numbering{number: make([]int32, len(t.kept))}
	begin, size := 0, 0
	for id := range t.kept {
		if !used[id] || t.kept[id].length == 0 {
			continue
		}
		n.order = append(n.order, int32(id))
		if size += int(t.kept[id].length); size < sortBytes {
			continue
		}
		if err := t.sortByCallers(n.order[begin:], size); err != nil {
			return n, err
		}
		begin, size = len(n.order), 0
	}
	if err := t.sortByCallers(n.order[begin:], size); err != nil {
		return n, err
	}
	for id := range n.number {
		n.number[id] = int32(len(n.order))
	}
	for i, id := range n.order {
		n.number[id] = int32(i)
	}
	return n, nil
}

// sortByCallers sorts stacks, of size bytes together, by their frames from the outermost in.
func (t *table) sortByCallers(ids []int32, size int) error {
	all := make([]byte, 0, size)
	frames := make(map[int32][]byte, len(ids))
	for _, id := range ids {
		b, err := t.read(id, all[len(all):size])
		if err != nil {
			return err
		}
		frames[id], all = b, all[:len(all)+len(b)]
	}
	step := frame(t.kind)
	slices.SortFunc(ids, func(a, b int32) int { return compareCallers(frames[a], frames[b], step) })
	return nil
}

// compareCallers compares stacks by their frames of this size, from the outermost in.
func compareCallers(a, b []byte, size int) int {
	for len(a) >= size && len(b) >= size {
		x, y := len(a)-size, len(b)-size
		if c := bytes.Compare(a[x:], b[y:]); c != 0 {
			return c
		}
		a, b = a[:x], b[:y]
	}
	return cmp.Compare(len(a), len(b))
}

// used returns which stacks of a kind the counts name, by their ids in its table.
func (c *counts) used(t *table) []bool {
	used := make([]bool, len(t.kept))
	for x := range c.of {
		id := x.user
		if t.kind == kernelStack {
			id = x.kernel
		}
		if id >= 0 && int(id) < len(used) {
			used[id] = true
		}
	}
	return used
}
