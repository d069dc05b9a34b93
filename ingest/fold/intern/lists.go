package intern

import (
	"encoding/binary"
	"hash/maphash"
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

// ListSet stores distinct lists of 32-bit numbers. It is built like Table, without a copy of the
// keys. The zero ListSet is not usable; use NewListSet.
type ListSet struct {
	Lists
	seed  maphash.Seed
	parts [NumParts]listPart
	key   []byte // scratch
}

type listPart struct {
	slots []listSlot
	n     int
}

// listSlot is an entry: the number of its list, and its hash.
type listSlot struct {
	hash uint32
	id   uint32 // number + 1; 0 if the slot is free
}

// NewListSet returns an empty set.
func NewListSet() *ListSet { return &ListSet{seed: maphash.MakeSeed()} }

// Add returns the number of a list, which is copied if it is new. Lists over MaxList words are
// truncated.
func (t *ListSet) Add(list []uint32) (id uint32, fresh bool) {
	list = list[:min(len(list), MaxList)]
	h := t.hash(list)
	p := &t.parts[PartOf(h)]
	if Crowded(p.n+1, len(p.slots)) {
		p.grow()
	}
	s := t.probe(p, h, list)
	if s.id != 0 {
		return s.id - 1, false
	}
	id = t.Lists.Add(list)
	*s = listSlot{h, id + 1}
	p.n++
	return id, true
}

func (t *ListSet) hash(list []uint32) uint32 {
	t.key = t.key[:0]
	for _, v := range list {
		t.key = binary.LittleEndian.AppendUint32(t.key, v)
	}
	return uint32(maphash.Bytes(t.seed, t.key) >> 32)
}

// probe returns the slot of a list, or the free slot for it. The part has a free slot.
func (t *ListSet) probe(p *listPart, h uint32, list []uint32) *listSlot {
	for i := Home(h, len(p.slots)); ; i++ {
		if i == len(p.slots) {
			i = 0
		}
		s := &p.slots[i]
		if s.id == 0 || s.hash == h && slices.Equal(t.At(s.id-1), list) {
			return s
		}
	}
}

func (p *listPart) grow() {
	old := p.slots
	p.slots = Grown(old)
	for _, s := range old {
		if s.id == 0 {
			continue
		}
		i := Home(s.hash, len(p.slots))
		for p.slots[i].id != 0 {
			if i++; i == len(p.slots) {
				i = 0
			}
		}
		p.slots[i] = s
	}
}

// Forget releases the memory for adding and keeps the lists.
func (t *ListSet) Forget() { t.parts, t.key = [NumParts]listPart{}, nil }

// Pair is a key of Pairs: an object and an offset in it.
type Pair struct {
	Offset uint64
	Object uint32
}

type pairSlot struct {
	offset uint64
	object uint32
	id     uint32 // number + 1; 0 if the slot is free
}

// Pairs numbers Pairs from 0 in the order of addition. It is built like Table.
type Pairs struct {
	seed  maphash.Seed
	parts [NumParts]pairPart
	n     int
	ahead uint32 // keeps the reads of AddAll
}

type pairPart struct {
	slots []pairSlot
	n     int
}

// NewPairs returns an empty table.
func NewPairs() *Pairs { return &Pairs{seed: maphash.MakeSeed()} }

// Add returns the number of p.
func (t *Pairs) Add(p Pair) uint32 { return t.addHashed(t.hash(p), p) }

// AddAll appends the numbers of the pairs in list to dst. Cache misses of its look-ups overlap.
func (t *Pairs) AddAll(dst []uint32, list []Pair) []uint32 {
	var hashes [GroupSize]uint32
	for len(list) > 0 {
		group := list[:min(len(list), GroupSize)]
		for i, p := range group {
			h := t.hash(p)
			hashes[i] = h
			if slots := t.parts[PartOf(h)].slots; len(slots) > 0 {
				t.ahead += slots[Home(h, len(slots))].id
			}
		}
		for i, p := range group {
			dst = append(dst, t.addHashed(hashes[i], p))
		}
		list = list[len(group):]
	}
	return dst
}

func (t *Pairs) addHashed(h uint32, p Pair) uint32 {
	part := &t.parts[PartOf(h)]
	if Crowded(part.n+1, len(part.slots)) {
		t.grow(part)
	}
	s := part.probe(h, p)
	if s.id == 0 {
		part.n++
		t.n++
		*s = pairSlot{p.Offset, p.Object, uint32(t.n)}
	}
	return s.id - 1
}

func (t *Pairs) hash(p Pair) uint32 {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], p.Offset)
	binary.LittleEndian.PutUint32(b[8:], p.Object)
	return uint32(maphash.Bytes(t.seed, b[:]) >> 32)
}

// probe returns the slot of p, or the free slot for it.
func (part *pairPart) probe(h uint32, p Pair) *pairSlot {
	for i := Home(h, len(part.slots)); ; i++ {
		if i == len(part.slots) {
			i = 0
		}
		s := &part.slots[i]
		if s.id == 0 || s.offset == p.Offset && s.object == p.Object {
			return s
		}
	}
}

func (t *Pairs) grow(part *pairPart) {
	old := part.slots
	part.slots = Grown(old)
	for _, s := range old {
		if s.id != 0 {
			p := Pair{s.offset, s.object}
			*part.probe(t.hash(p), p) = s
		}
	}
}

// List returns the pairs by number.
func (t *Pairs) List() []Pair {
	list := make([]Pair, t.n)
	for i := range t.parts {
		for _, s := range t.parts[i].slots {
			if s.id != 0 {
				list[s.id-1] = Pair{s.offset, s.object}
			}
		}
	}
	return list
}
