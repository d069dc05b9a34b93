package btf

import "math"

// Types returns the types as a blob called name, and final, which converts IDs of Add to the
// blob's. A declared structure is its definition if a comparison found that, or if there is a single definition
// of its name. With ErrFull the blob has the types that it can hold. The Builder can go on after that.
func (b *Builder) Types(name string) (t *Types, final func(ID) ID, err error) {
	canon := b.canon()
	number := make([]ID, len(canon)) // the final IDs
	n := ID(0)
	for id := 1; id < len(canon); id++ {
		if canon[id] == ID(id) {
			n++
			number[id] = n
		}
	}
	to := func(id ID) ID {
		if uint64(id) >= uint64(len(canon)) {
			return 0
		}
		return number[canon[id]]
	}
	types := make([]byte, 0, len(b.types))
	for i := range b.at {
		if id := ID(i + 1); canon[id] == id {
			from := len(types)
			types = append(types, b.recordBytes(id)...)
			b.renumber(types[from:], to)
		}
	}
	raw := make([]byte, 0, headerSize+len(types)+b.strings.len)
	raw = b.order.AppendUint16(raw, magic)
	raw = append(raw, version, 0)
	for _, w := range []int{headerSize, 0, len(types), len(types), b.strings.len} {
		raw = b.order.AppendUint32(raw, uint32(w))
	}
	t, err = ParseBuilt(name, b.strings.appendTo(append(raw, types...)))
	if err == nil && b.full {
		err = ErrFull
	}
	return t, to, err
}

// recordBytes returns the bytes of a type.
func (b *Builder) recordBytes(id ID) []byte {
	end := len(b.types)
	if int(id) < len(b.at) {
		end = int(b.at[id])
	}
	return b.types[b.at[id-1]:end]
}

// renumber changes the references of a record.
func (b *Builder) renumber(rec []byte, to func(ID) ID) {
	b.eachRef(rec, func(at int) {
		b.order.PutUint32(rec[at:], uint32(to(ID(b.word(rec, at)))))
	})
}

// eachRef calls f with the positions of a record's references.
func (b *Builder) eachRef(rec []byte, f func(at int)) {
	info := b.word(rec, 4)
	kind, n := Kind(info>>24&31), int(info&0xffff)
	k := &kindTable[kind]
	if k.refers {
		f(8)
	}
	if kind == KindArray {
		f(typeHead)
		f(typeHead + 4)
	}
	for i := 0; len(k.refs) > 0 && i < n; i++ {
		for _, at := range k.refs {
			f(typeHead + int(k.fixed) + i*int(k.item) + at)
		}
	}
}

// canonPasses bounds the passes that join equal references: each joins one more level of them.
const canonPasses = 16

// canon returns for each ID the one that replaces it: definitions replace declarations, and of
// references that became equal the first stays.
func (b *Builder) canon() []ID {
	canon := make([]ID, len(b.at)+1)
	for i := range canon {
		canon[i] = ID(i)
	}
	definitions := b.definitions()
	for i := range b.at {
		id := ID(i + 1)
		kind, flag := b.kind(b.record(id))
		if kind != KindFwd {
			continue
		}
		if to := b.bound[i]; to != 0 {
			canon[id] = to
		} else if to := definitions[nameKey{group(kind, flag), b.word(b.record(id), 0)}]; to != 0 && to != ambiguous {
			canon[id] = to
		}
	}
	if len(definitions) > 0 {
		for range canonPasses {
			if !b.joinRefs(canon) {
				break
			}
		}
	}
	for i := range canon { // a bound FWD can lead to one
		for range canonPasses {
			canon[i] = canon[canon[i]]
		}
	}
	return canon
}

type nameKey struct {
	kind Kind
	name uint32
}

const ambiguous ID = math.MaxUint32

// definitions returns the defined structures and unions by name, ambiguous if there are several.
func (b *Builder) definitions() map[nameKey]ID {
	m := make(map[nameKey]ID)
	for i := range b.at {
		id := ID(i + 1)
		rec := b.record(id)
		if kind, _ := b.kind(rec); isGroup(kind) && b.word(rec, 0) != 0 {
			key := nameKey{kind, b.word(rec, 0)}
			if _, dup := m[key]; dup {
				id = ambiguous
			}
			m[key] = id
		}
	}
	return m
}

// joinRefs replaces references, arrays and prototypes that are equal to earlier ones. It reports
// whether there were any.
func (b *Builder) joinRefs(canon []ID) (joined bool) {
	seen := make(map[string]ID)
	var rec []byte
	for i := range b.at {
		id := ID(i + 1)
		kind, _ := b.kind(b.record(id))
		if canon[id] != id || kind == KindFwd || !kindTable[kind].refers && kind != KindArray {
			continue
		}
		rec = append(rec[:0], b.recordBytes(id)...)
		b.renumber(rec, func(to ID) ID { return canon[to] })
		if first, dup := seen[string(rec)]; dup {
			canon[id], joined = first, true
		} else {
			seen[string(rec)] = id
		}
	}
	return joined
}
