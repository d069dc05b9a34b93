package report

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
)

// textTable numbers distinct texts.
type textTable struct {
	index map[string]uint32
	texts []string
}

func newTextTable() *textTable { return &textTable{index: make(map[string]uint32)} }

func (t *textTable) number(s string) uint32 {
	n, ok := t.index[s]
	if !ok {
		n = uint32(len(t.texts))
		t.texts = append(t.texts, s)
		t.index[s] = n
	}
	return n
}

// order gives the numbers in the order of the texts in sorted lines,
// where most are followed by ';'.
func (t *textTable) order() []uint32 {
	order := make([]uint32, len(t.texts))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return compareBefore(t.texts[a], t.texts[b]) })
	return order
}

// compareBefore compares a+";" with b+";".
func compareBefore(a, b string) int {
	n := min(len(a), len(b))
	if c := cmp.Compare(a[:n], b[:n]); c != 0 || len(a) == len(b) {
		return c
	}
	if len(a) > n {
		return cmp.Compare(a[n], ';')
	}
	return cmp.Compare(';', b[n])
}

// foldTable adds up values by key: open addressing over keys in one arena.
type foldTable struct {
	seed    maphash.Seed
	slots   []uint32 // entry plus one; 0 is free
	entries []foldEntry
	arena   []byte
}

type foldEntry struct {
	hash  uint64
	from  uint64 // in the arena
	size  uint32
	value uint64
}

const foldSlots = 1 << 14 // to begin with; a power of two

func newFoldTable() *foldTable {
	return &foldTable{seed: maphash.MakeSeed(), slots: make([]uint32, foldSlots)}
}

func (t *foldTable) key(e *foldEntry) []byte { return t.arena[e.from : e.from+uint64(e.size)] }

func (t *foldTable) add(key []byte, value uint64) {
	h := maphash.Bytes(t.seed, key)
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		e := &t.entries[t.slots[i]-1]
		if e.hash == h && bytes.Equal(t.key(e), key) {
			e.value += value
			return
		}
	}
	t.entries = append(t.entries,
		foldEntry{hash: h, from: uint64(len(t.arena)), size: uint32(len(key)), value: value})
	t.arena = append(t.arena, key...)
	t.slots[i] = uint32(len(t.entries))
	if len(t.entries)*2 > len(t.slots) {
		t.grow()
	}
}

func (t *foldTable) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n := range t.entries {
		i := t.entries[n].hash & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint32(n + 1)
	}
}
