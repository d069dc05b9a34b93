package btf

import (
	"errors"
	"hash/maphash"
	"math"
	"math/bits"

	"symbolize/ingest/decode"
)

// ErrFull is the error of a Builder with more types than a blob can hold: the rest became void.
var ErrFull = errors.New("too many types for BTF")

// A Def describes a type for Builder.Add. It refers to other Defs of the same call by their index
// plus 1; 0 is void.
type Def struct {
	Kind Kind
	Name string
	// Size is the bytes of an INT, STRUCT, UNION, ENUM, ENUM64 or FLOAT.
	Size uint32
	// Ref is the type that a PTR, TYPEDEF, qualifier, tag, VAR or FUNC refers to, the element of an
	// ARRAY, or the result of a FUNC_PROTO.
	Ref int
	// Len is the elements of an ARRAY, or the linkage of a FUNC or VAR.
	Len uint32
	Int Int // encoding of an INT; its Size is not used
	// Flag marks the FWD of a union, and an ENUM or ENUM64 with signed values.
	Flag  bool
	Items []DefItem // members, enumerators, parameters, variables of a DATASEC
	// Known, if not 0, is what an earlier call returned for this type: nothing else is read.
	Known ID
}

// A DefItem is a member, an enumerator, a parameter or a variable of a Def.
type DefItem struct {
	Name string
	Ref  int // type of a member or parameter, or a VAR
	// Value is bits from the start of the structure, the value of an enumerator, or of a VAR its offset in the
	// DATASEC in the lower half, and its size in the upper one.
	Value uint64
	Bits  uint8 // of a bit field, 0 for other members
}

// A Builder makes BTF of types that come in several groups, as the units of a program have them.
// Types that are equal with all that they refer to are stored once: a declared structure is equal
// to a defined one of its name if what refers to them is equal otherwise, as the kernel's
// deduplication has it (btf__dedup of libbpf). Types of the same name that differ are both kept.
type Builder struct {
	big     bool
	order   decode.Order
	types   []byte
	at      []uint32 // offset of each type, from ID 1 on
	refHash []uint64 // by ID - 1, see hashes
	strings stringTable
	offsets map[string]uint32
	buckets map[uint64]bucket
	next    []ID    // with the same hash, by ID - 1
	bound   []ID    // definitions that FWDs were found equal to, by ID - 1; 0 for none
	index   ID      // type of array indexes
	unequal pairSet // of the call of Add: pairs that are known to differ
	seed    maphash.Seed
	start   uint64 // of hashes
	full    bool
}

// NewBuilder returns an empty Builder for values in a byte order and with pointers of 4 or 8 bytes.
func NewBuilder(bigEndian bool, pointer int) *Builder {
	b := &Builder{big: bigEndian, order: decode.OrderOf(bigEndian), offsets: make(map[string]uint32),
		buckets: make(map[uint64]bucket), seed: maphash.MakeSeed()}
	b.name("")
	b.start = maphash.String(b.seed, "types")
	b.unequal.seed = b.start
	long := Def{Kind: KindInt, Name: "long int", Size: uint32(pointer),
		Int: Int{Bits: uint8(8 * pointer), Signed: true}}
	index := Def{Kind: KindInt, Name: "__ARRAY_SIZE_TYPE__", Size: 4, Int: Int{Bits: 32}}
	b.index = b.Add([]Def{index})[1]
	if pointer == 4 { // readers derive the size of pointers from it
		b.Add([]Def{long})
	}
	return b
}

// isGroup reports whether values of a kind have members.
func isGroup(k Kind) bool { return k == KindStruct || k == KindUnion }

// group returns the kind that a FWD declares, and other kinds as they are.
func group(k Kind, flag bool) Kind {
	switch {
	case k == KindFwd && flag:
		return KindUnion
	case k == KindFwd:
		return KindStruct
	}
	return k
}

// Add adds types, and returns their IDs by their numbers in references: the first is void's. The IDs
// are Builder's own, see Types.
func (b *Builder) Add(defs []Def) []ID {
	s := &addition{b: b, defs: defs, ids: make([]ID, len(defs)+1),
		supposed: make([]ID, len(defs)+1), hashes: make([]uint64, len(defs)+1), owns: make([]uint64, len(defs)+1),
		most: failedFloor + failedFactor*len(defs)}
	b.unequal.reset()
	for i := range defs {
		s.resolve(i + 1)
		for ; s.done < len(s.created); s.done++ {
			s.complete(s.created[s.done])
		}
	}
	for _, bind := range s.binds {
		if to := s.ids[bind.def]; to != 0 {
			b.bound[bind.fwd-1] = to
		}
	}
	for _, n := range s.created {
		b.insert(s.ids[n], s.own(n))
	}
	return s.ids
}

func (b *Builder) insert(id ID, hash uint64) {
	k, ok := b.buckets[hash]
	if !ok {
		b.buckets[hash] = bucket{id, id}
		return
	}
	b.next[k.last-1] = id
	b.buckets[hash] = bucket{k.first, id}
}

// bucket is the types with one hash, linked by Builder.next.
type bucket struct{ first, last ID }

// name returns the offset of a string.
func (b *Builder) name(s string) uint32 {
	if len(s) > maxString {
		s = s[:maxString-3] + "…"
	}
	if off, ok := b.offsets[s]; ok {
		return off
	}
	if uint64(b.strings.len)+uint64(len(s)) >= maxBuiltBlob/2 {
		b.full = true
		return 0
	}
	off := b.strings.add(s)
	b.offsets[s] = off
	return off
}

// record returns the bytes from a type on, and word a number of them.
func (b *Builder) record(id ID) []byte            { return b.types[b.at[id-1]:] }
func (b *Builder) word(rec []byte, at int) uint32 { return decode.U32(rec[at:], b.big) }

// sameName compares a string with one of the table without a copy.
func (b *Builder) sameName(off uint32, s string) bool {
	if len(s) > maxString {
		s = s[:maxString-3] + "…"
	}
	return b.strings.is(off, s)
}

// addition is one call of Add. Defs have numbers from 1 on.
type addition struct {
	b        *Builder
	defs     []Def
	ids      []ID     // by number; 0 if not known yet
	hashes   []uint64 // of references to a Def; 0 if not known yet
	owns     []uint64 // of Defs; 0 if not known yet
	supposed []ID     // equal types during a comparison
	pairs    []supposition
	current  int  // the one that is compared
	doubt    bool // the comparison failed because of what it supposed
	binds    []bind
	created  []int // numbers of the Defs that are new types
	done     int   // how many of them have their references
	failed   int   // types passed by comparisons that failed
	most     int   // limit of failed: after it, equal types are kept twice
}

type pair struct {
	def int
	id  ID
}

// supposition is a pair that follows from another one.
type supposition struct {
	pair
	from int // index, -1 for the first
}

// bind is a FWD of the Builder that is equal to a definition.
type bind struct {
	fwd ID
	def int
}

// resolve finds or creates the type of a Def.
func (s *addition) resolve(n int) ID {
	if n <= 0 || n >= len(s.ids) {
		return 0
	}
	if s.ids[n] != 0 {
		return s.ids[n]
	}
	d := &s.defs[n-1]
	if d.Known != 0 {
		s.ids[n] = d.Known
		return d.Known
	}
	for id := s.b.buckets[s.own(n)].first; id != 0 && s.failed < s.most; id = s.b.next[id-1] {
		if s.equal(n, id) {
			return s.ids[n]
		}
	}
	s.ids[n] = s.b.reserve(d)
	if s.ids[n] != 0 {
		s.b.refHash[s.ids[n]-1] = s.ref(n)
		s.created = append(s.created, n)
	}
	return s.ids[n]
}

// reserve writes the record of a Def without its references.
func (b *Builder) reserve(d *Def) ID {
	items := min(len(d.Items), math.MaxUint16)
	size := typeHead + int(kindTable[d.Kind].fixed) + items*int(kindTable[d.Kind].item)
	if len(b.at) >= maxBuiltTypes-1 || len(b.types)+size > maxBuiltBlob/2-headerSize {
		b.full = true
		return 0
	}
	info, flag := uint32(d.Kind)<<24|uint32(items), d.Flag
	third := d.Size
	if isGroup(d.Kind) {
		flag = hasBits(d)
	}
	if kindTable[d.Kind].refers {
		third = 0
	}
	if d.Kind == KindFunc {
		info |= d.Len & 3
	}
	if flag {
		info |= 1 << 31
	}
	b.at = append(b.at, uint32(len(b.types)))
	b.refHash, b.next, b.bound = append(b.refHash, 0), append(b.next, 0), append(b.bound, 0)
	put := func(v uint32) { b.types = b.order.AppendUint32(b.types, v) }
	put(b.name(d.Name))
	put(info)
	put(third)
	switch d.Kind {
	case KindInt:
		put(encodingOf(d))
	case KindArray:
		put(0)
		put(uint32(b.index))
		put(d.Len)
	case KindVar:
		put(d.Len)
	case KindDeclTag:
		put(math.MaxUint32)
	}
	for _, it := range d.Items[:items] {
		b.reserveItem(d.Kind, flag, it)
	}
	return ID(len(b.at))
}

func (b *Builder) reserveItem(kind Kind, flag bool, it DefItem) {
	put := func(v uint32) { b.types = b.order.AppendUint32(b.types, v) }
	if kind == KindDatasec {
		put(0)
		put(uint32(it.Value))
		put(uint32(it.Value >> 32))
		return
	}
	put(b.name(it.Name))
	switch kind {
	case KindStruct, KindUnion:
		put(0)
		put(memberOffset(it, flag))
	case KindEnum:
		put(uint32(it.Value))
	case KindEnum64:
		put(uint32(it.Value))
		put(uint32(it.Value >> 32))
	case KindFuncProto:
		put(0)
	}
}

// hasBits reports whether a structure has bit fields, so that offsets have only 24 bits.
func hasBits(d *Def) bool {
	for i := range d.Items {
		if d.Items[i].Bits != 0 {
			return true
		}
	}
	return false
}

// memberOffset encodes the position of a member.
func memberOffset(it DefItem, flag bool) uint32 {
	if flag {
		return uint32(it.Bits)<<24 | uint32(it.Value)&0xffffff
	}
	return uint32(it.Value)
}

// encodingOf encodes an INT.
func encodingOf(d *Def) uint32 {
	v := uint32(d.Int.Bits) | uint32(d.Int.Offset)<<16
	for i, f := range []bool{d.Int.Signed, d.Int.Char, d.Int.Bool} {
		if f {
			v |= 1 << (24 + i)
		}
	}
	return v
}

// complete writes the references of a new type.
func (s *addition) complete(n int) {
	d, id := &s.defs[n-1], s.ids[n]
	put := func(at int, ref int) {
		to := uint32(s.resolve(ref)) // which can move the bytes
		s.b.order.PutUint32(s.b.record(id)[at:], to)
	}
	switch {
	case d.Kind == KindArray:
		put(typeHead, d.Ref)
	case kindTable[d.Kind].refers:
		put(8, d.Ref)
	}
	k := &kindTable[d.Kind]
	if len(k.refs) > 0 {
		for i := range min(len(d.Items), math.MaxUint16) {
			put(typeHead+int(k.fixed)+i*int(k.item)+k.refs[0], d.Items[i].Ref)
		}
	}
}

// maxHashDepth bounds the chain of references that a hash follows.
const maxHashDepth = 32

// ref returns the hash that a reference to a Def has: of structures their name, so that declared and
// defined ones have the same.
func (s *addition) ref(n int) uint64 { return s.refAt(n, 0) }

func (s *addition) refAt(n, depth int) uint64 {
	if n <= 0 || n >= len(s.ids) {
		return 1
	}
	if s.hashes[n] != 0 {
		return s.hashes[n]
	}
	d := &s.defs[n-1]
	if d.Known != 0 {
		return s.b.refHash[d.Known-1]
	}
	if depth >= maxHashDepth {
		return 2
	}
	h := s.b.hasher()
	if kind := group(d.Kind, d.Flag); isGroup(kind) && d.Name != "" {
		h.number(uint64(kind))
		h.text(d.Name)
	} else {
		s.content(&h, d, depth)
	}
	s.hashes[n] = h.sum()
	return s.hashes[n]
}

// own returns the hash under which a type is found: equal types have equal ones, except that a
// declared structure has its own.
func (s *addition) own(n int) uint64 {
	d := &s.defs[n-1]
	if !isGroup(d.Kind) || d.Name == "" {
		return s.ref(n) + uint64(d.Kind)
	}
	if s.owns[n] == 0 {
		h := s.b.hasher()
		s.content(&h, d, 0)
		s.owns[n] = h.sum()
	}
	return s.owns[n]
}

// content hashes a type with its references, of structures without them.
func (s *addition) content(h *hasher, d *Def, depth int) {
	h.number(uint64(d.Kind))
	h.text(d.Name)
	h.number(uint64(d.Size)<<32 | uint64(d.Len))
	h.number(uint64(encodingOf(d))<<32 | uint64(len(d.Items)))
	group := isGroup(d.Kind)
	if !group {
		h.number(s.refAt(d.Ref, depth+1))
	}
	for i := range d.Items {
		it := &d.Items[i]
		h.text(it.Name)
		h.number(it.Value)
		if !group {
			h.number(s.refAt(it.Ref, depth+1))
		}
	}
}

// Bounds of the types that failed comparisons of one Add pass, as floor + factor × types of it.
const (
	failedFloor  = 1 << 20
	failedFactor = 64
)

// maxCompared bounds the types that a comparison passes.
const maxCompared = 1 << 16

// equal reports whether a Def is equal to a type, with all that they refer to, and if so notes all
// types found equal on the way. Types that are being compared are supposed to be equal, so that
// cycles end.
func (s *addition) equal(n int, id ID) bool {
	binds := len(s.binds)
	s.pairs, s.current, s.doubt = s.pairs[:0], -1, false
	ok := s.suppose(n, id)
	for i := 0; ok && i < len(s.pairs); i++ {
		s.current = i
		ok = i < maxCompared && s.same(s.pairs[i].pair)
	}
	for _, p := range s.pairs {
		if ok && s.ids[p.def] == 0 {
			s.ids[p.def] = p.id
		}
		s.supposed[p.def] = 0
	}
	if !ok {
		s.binds = s.binds[:binds]
		s.failed += len(s.pairs) + 1
		s.remember(pair{n, id})
	}
	return ok
}

// Bounds of the pairs that are remembered, of one comparison and of all. Units of vmlinux have up to 40,000.
const (
	maxUnequalPath = 64
	maxUnequal     = 1 << 18
)

// remember notes which pairs are not equal after a comparison failed: the first one, and if nothing that was supposed
// was the reason, those that lead to the last one. Many types lead to one that differs: in vmlinux that was nine of
// ten pairs that were compared.
func (s *addition) remember(first pair) {
	unequal := &s.b.unequal
	if unequal.len >= maxUnequal {
		return
	}
	unequal.add(first)
	for i, n := s.current, 0; i > 0 && !s.doubt && n < maxUnequalPath; i, n = s.pairs[i].from, n+1 {
		unequal.add(s.pairs[i].pair)
	}
}

// suppose adds a pair to compare, unless that is decided already.
func (s *addition) suppose(n int, id ID) bool {
	if n <= 0 || n >= len(s.ids) {
		return id == 0
	}
	if id == 0 {
		return false
	}
	if s.ids[n] == id || s.supposed[n] == id {
		return true
	}
	if to := s.b.bound[id-1]; to != 0 {
		id = to
	}
	d := &s.defs[n-1]
	if d.Known != 0 {
		return d.Known == id
	}
	if s.ids[n] == id || s.supposed[n] == id {
		return true
	}
	rec := s.b.record(id)
	kind, flag := s.b.kind(rec)
	named := d.Name != "" && isGroup(group(d.Kind, d.Flag))
	if d.Kind != KindFwd && kind == KindFwd {
		if !named || group(kind, flag) != d.Kind || !s.b.sameName(s.b.word(rec, 0), d.Name) {
			return false
		}
		for _, b := range s.binds {
			if b.fwd == id {
				s.doubt = b.def != n
				return b.def == n
			}
		}
		s.binds = append(s.binds, bind{id, n})
		return true
	}
	if named && (s.ids[n] != 0 || s.supposed[n] != 0) { // of declarations only the name counts
		s.doubt = s.ids[n] == 0
		return d.Kind == KindFwd && s.same(pair{n, id})
	}
	if s.b.unequal.has(pair{n, id}) {
		return false
	}
	s.supposed[n] = id
	s.pairs = append(s.pairs, supposition{pair{n, id}, s.current})
	return true
}

// kind returns the kind of a record and its flag.
func (b *Builder) kind(rec []byte) (Kind, bool) {
	info := b.word(rec, 4)
	return Kind(info >> 24 & 31), info>>31 != 0
}

// same compares a pair, and supposes that what they refer to is equal.
func (s *addition) same(p pair) bool {
	d, b := &s.defs[p.def-1], s.b
	rec := b.record(p.id)
	kind, flag := b.kind(rec)
	if !b.sameName(b.word(rec, 0), d.Name) {
		return false
	}
	if d.Kind == KindFwd {
		return group(d.Kind, d.Flag) == group(kind, flag)
	}
	items := min(len(d.Items), math.MaxUint16)
	if kind != d.Kind {
		return false
	}
	n := int(b.word(rec, 4) & 0xffff)
	k := &kindTable[kind]
	switch {
	case kind == KindFunc:
		return n == int(d.Len&3) && s.suppose(d.Ref, ID(b.word(rec, 8)))
	case n != items:
		return false
	case k.refers && !s.suppose(d.Ref, ID(b.word(rec, 8))):
		return false
	case !k.refers && kind != KindArray && b.word(rec, 8) != d.Size:
		return false
	}
	switch kind {
	case KindInt:
		return b.word(rec, typeHead) == encodingOf(d)
	case KindArray:
		return b.word(rec, typeHead+8) == d.Len && s.suppose(d.Ref, ID(b.word(rec, typeHead)))
	case KindVar:
		return b.word(rec, typeHead) == d.Len
	case KindStruct, KindUnion:
		if flag != hasBits(d) {
			return false
		}
	case KindEnum, KindEnum64:
		if flag != d.Flag {
			return false
		}
	}
	return s.sameItems(rec, d, items, flag)
}

func (s *addition) sameItems(rec []byte, d *Def, items int, flag bool) bool {
	b, k := s.b, &kindTable[d.Kind]
	for i := range items {
		it, at := &d.Items[i], typeHead+int(k.fixed)+i*int(k.item)
		if k.names && !b.sameName(b.word(rec, at), it.Name) {
			return false
		}
		ok := true
		switch d.Kind {
		case KindStruct, KindUnion:
			ok = b.word(rec, at+8) == memberOffset(*it, flag)
		case KindEnum:
			ok = b.word(rec, at+4) == uint32(it.Value)
		case KindEnum64, KindDatasec:
			ok = b.word(rec, at+4) == uint32(it.Value) && b.word(rec, at+8) == uint32(it.Value>>32)
		}
		if !ok || len(k.refs) > 0 && !s.suppose(it.Ref, ID(b.word(rec, at+k.refs[0]))) {
			return false
		}
	}
	return true
}

// hasher hashes the content of types: texts and numbers by a random seed.
type hasher struct {
	seed maphash.Seed
	h    uint64
}

func (b *Builder) hasher() hasher { return hasher{b.seed, b.start} }

func (h *hasher) number(v uint64) {
	hi, lo := bits.Mul64(h.h^v, 0x9e3779b97f4a7c15)
	h.h = bits.RotateLeft64(h.h, 29) ^ hi ^ lo
}

func (h *hasher) text(s string) { h.number(maphash.String(h.seed, s)) }

// sum returns the hash, which is not 0.
func (h *hasher) sum() uint64 { return max(h.h, 3) }
