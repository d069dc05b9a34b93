package mapdump

import (
	"encoding/binary"
	"fmt"

	"symbolize/ingest/object/btf"
)

// typeBuilder makes BTF of inferred fields.
type typeBuilder struct {
	types, strings []byte
	next           btf.ID
	integers       map[Inferred]btf.ID
	large          bool // a type has more than maxFormattedSize bytes
}

// InferredTypes makes the types of a key and a value of these sizes out of their fields;
// if those are nil, of bytes. The order of bytes is little endian.
func InferredTypes(key, value []Inferred, keySize, valueSize int) (t *btf.Types, k, v btf.ID,
	err error) {
	b := &typeBuilder{strings: []byte{0}, next: 1, integers: make(map[Inferred]btf.ID)}
	k, v = b.whole(key, keySize), b.whole(value, valueSize)
	t, err = b.parse()
	return t, k, v, err
}

// parse returns the types that were made.
func (b *typeBuilder) parse() (*btf.Types, error) {
	raw := binary.LittleEndian.AppendUint32(nil, 0x1eb9f) // magic, version 1, no flags
	size := uint32(len(b.types))
	for _, w := range []uint32{24, 0, size, size, uint32(len(b.strings))} {
		raw = binary.LittleEndian.AppendUint32(raw, w)
	}
	return btf.Parse("types of a formatted dump", append(append(raw, b.types...), b.strings...), nil)
}

// whole makes the type of a key or value.
func (b *typeBuilder) whole(fields []Inferred, size int) btf.ID {
	if fields == nil {
		word := uint32(b.integer(Inferred{Size: 1}))
		return b.add(btf.KindArray, "", 0, 0, word, word, uint32(size))
	}
	if fields[0].Name == "" {
		return b.integer(fields[0])
	}
	var words []uint32
	for _, f := range fields {
		words = append(words, b.name(f.Name), uint32(b.integer(f)), uint32(8*f.Offset))
	}
	return b.add(btf.KindStruct, "", len(fields), uint32(size), words...)
}

// integer returns the type of a number.
func (b *typeBuilder) integer(f Inferred) btf.ID {
	const signed, isBool = 1 << 24, 4 << 24
	if f.Text {
		letter := uint32(b.letter())
		return b.add(btf.KindArray, "", 0, 0, letter, letter, uint32(f.Size))
	}
	key := Inferred{Size: f.Size, Signed: f.Signed, Bool: f.Bool}
	id, ok := b.integers[key]
	if !ok {
		name, encoding := fmt.Sprintf("u%d", 8*f.Size), uint32(8*f.Size)
		switch {
		case f.Bool:
			name, encoding = "_Bool", encoding|isBool
		case f.Signed:
			name, encoding = fmt.Sprintf("s%d", 8*f.Size), encoding|signed
		}
		id = b.add(btf.KindInt, name, 0, uint32(f.Size), encoding)
		b.integers[key] = id
	}
	return id
}

// letter returns the type char.
func (b *typeBuilder) letter() btf.ID {
	key := Inferred{Text: true}
	if b.integers[key] == 0 {
		b.integers[key] = b.add(btf.KindInt, "char", 0, 1, 1<<24|8)
	}
	return b.integers[key]
}

func (b *typeBuilder) name(s string) uint32 {
	if s == "" {
		return 0
	}
	at := len(b.strings)
	b.strings = append(append(b.strings, s...), 0)
	return uint32(at)
}

// add appends a type with n items.
func (b *typeBuilder) add(kind btf.Kind, name string, n int, third uint32, rest ...uint32) btf.ID {
	return b.addInfo(uint32(kind)<<24|uint32(n), name, third, rest...)
}

// addInfo appends a type by its second word.
func (b *typeBuilder) addInfo(info uint32, name string, third uint32, rest ...uint32) btf.ID {
	for _, w := range append([]uint32{b.name(name), info, third}, rest...) {
		b.types = binary.LittleEndian.AppendUint32(b.types, w)
	}
	b.next++
	return b.next - 1
}
