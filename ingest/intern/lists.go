package intern

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
)

const (
	listChunkBits = 20 // log2 of the words in a chunk of Lists: 4 MiB
	listChunk     = 1 << listChunkBits
	pageBits      = 12 // log2 of the lists in a page
	pageSize      = 1 << pageBits
	firstList     = 1 << 10 // words in the first chunk: small tables stay small
)

// MaxList is the maximum length of a list.
const MaxList = listChunk

// Lists stores lists of 32-bit numbers contiguously, numbered from 0 in the order of addition.
// Equal lists are not joined.
type Lists struct {
	chunks [][]uint32
	fill   int // words used of the last chunk
	refs   [][]listRef
	n      int
	words  int
}

type listRef struct {
	pos uint32 // chunk number and offset
	len uint32
}

// Len returns the number of lists.
func (l *Lists) Len() int { return l.n }

// Words returns the total length of the lists.
func (l *Lists) Words() int { return l.words }

// Add copies a list and returns its number. Lists over MaxList words are truncated.
func (l *Lists) Add(list []uint32) uint32 {
	list = list[:min(len(list), MaxList)]
	last := len(l.chunks) - 1
	if last < 0 || l.fill+len(list) > len(l.chunks[last]) {
		size := firstList
		if last >= 0 {
			size = min(2*len(l.chunks[last]), listChunk)
		}
		for size < len(list) {
			size *= 2
		}
		chunk := make([]uint32, size)
		advise(chunk)
		l.chunks = append(l.chunks, chunk)
		last++
		l.fill = 0
	}
	if l.n>>pageBits == len(l.refs) {
		l.refs = append(l.refs, make([]listRef, pageSize))
	}
	l.refs[l.n>>pageBits][l.n&(pageSize-1)] = listRef{
		uint32(last)<<listChunkBits | uint32(l.fill), uint32(len(list))}
	copy(l.chunks[last][l.fill:], list)
	l.fill += len(list)
	l.words += len(list)
	l.n++
	return uint32(l.n) - 1
}

// At returns a list. The slice belongs to Lists.
func (l *Lists) At(id uint32) []uint32 {
	r := l.refs[id>>pageBits][id&(pageSize-1)]
	at := r.pos & (listChunk - 1)
	return l.chunks[r.pos>>listChunkBits][at : at+r.len : at+r.len]
}

// ListSet stores distinct lists of 32-bit numbers. The zero ListSet is not usable; use NewListSet.
type ListSet struct {
	Lists
	seed    Seed
	numbers Table[struct{}] // of the lists
	key     []byte          // scratch
}

// NewListSet returns an empty set.
func NewListSet() *ListSet { return &ListSet{seed: MakeSeed()} }

// Add returns the number of a list, which is copied if it is new. Lists over MaxList words are
// truncated.
func (t *ListSet) Add(list []uint32) (id uint32, fresh bool) {
	list = list[:min(len(list), MaxList)]
	t.key = t.key[:0]
	for _, v := range list {
		t.key = binary.LittleEndian.AppendUint32(t.key, v)
	}
	id, fresh = t.numbers.Number(t.seed.Hash(t.key))
	if fresh {
		t.Lists.Add(list)
	}
	return id, fresh
}

// Forget releases the memory for adding and keeps the lists.
func (t *ListSet) Forget() { t.numbers, t.key = Table[struct{}]{}, nil }

// Pair is a key of Pairs: an object and an offset in it.
type Pair struct {
	Offset uint64
	Object uint32
}

// Pairs numbers Pairs from 0 in the order of addition.
type Pairs struct {
	seed    maphash.Seed
	numbers Table[struct{}]
}

// NewPairs returns an empty table.
func NewPairs() *Pairs { return &Pairs{seed: maphash.MakeSeed()} }

// Add returns the number of p.
func (t *Pairs) Add(p Pair) uint32 {
	id, _ := t.numbers.Number(t.hash(p))
	return id
}

// AddAll appends the numbers of the pairs in list to dst. Cache misses of its look-ups overlap.
func (t *Pairs) AddAll(dst []uint32, list []Pair) []uint32 {
	var hashes [GroupSize]Hash
	for group := range slices.Chunk(list, GroupSize) {
		for i, p := range group {
			hashes[i] = t.hash(p)
		}
		t.numbers.ReadAhead(hashes[:len(group)])
		for i := range group {
			id, _ := t.numbers.Number(hashes[i])
			dst = append(dst, id)
		}
	}
	return dst
}

// hash returns a hash that contains the pair.
func (t *Pairs) hash(p Pair) Hash {
	return Hash{maphash.Comparable(t.seed, p)&^math.MaxUint32 | uint64(p.Object), p.Offset}
}

// List returns the pairs by number.
func (t *Pairs) List() []Pair {
	list := make([]Pair, 0, t.numbers.Len())
	for h := range t.numbers.All() {
		list = append(list, Pair{Offset: h.Lo, Object: uint32(h.Hi)})
	}
	return list
}
