package btf

import (
	"encoding/binary"
	"strings"

	"symbolize/fixtures/bpfbuild"
)

// builder writes a blob type by type; the first added type has the ID next.
type builder struct {
	order   bpfbuild.Order
	types   []byte
	strings []byte
	strBase int // of the base blob
	next    ID
}

func newBuilder(big bool) *builder {
	return &builder{order: bpfbuild.OrderOf(big), strings: []byte{0}, next: 1}
}

// over returns the builder of a blob that is split from base.
func over(base *Types) *builder {
	return &builder{order: bpfbuild.OrderOf(base.big), next: ID(base.Len()),
		strBase: int(base.strBase) + len(base.strings)}
}

// name returns the offset of a string.
func (b *builder) name(s string) uint32 {
	if s == "" {
		return 0
	}
	if i := strings.Index("\x00"+string(b.strings), "\x00"+s+"\x00"); i >= 0 {
		return uint32(b.strBase + i)
	}
	b.strings = append(append(b.strings, s...), 0)
	return uint32(b.strBase + len(b.strings) - len(s) - 1)
}

// add adds a type: flag and n of struct btf_type, third its size or type, then the words that
// follow.
func (b *builder) add(kind Kind, name string, flag bool, n int, third uint32, rest ...uint32) ID {
	info := uint32(kind)<<24 | uint32(n)
	if flag {
		info |= 1 << 31
	}
	for _, w := range append([]uint32{b.name(name), info, third}, rest...) {
		b.types = b.order.AppendUint32(b.types, w)
	}
	b.next++
	return b.next - 1
}

func (b *builder) integer(name string, size, encoding uint32) ID {
	return b.add(KindInt, name, false, 0, size, encoding)
}

func (b *builder) ref(kind Kind, name string, to ID) ID {
	return b.add(kind, name, false, 0, uint32(to))
}

func (b *builder) array(elem ID, n uint32) ID {
	return b.add(KindArray, "", false, 0, 0, uint32(elem), uint32(elem), n)
}

// bytes returns the blob.
func (b *builder) bytes() []byte {
	out := b.order.AppendUint16(nil, magic)
	out = append(out, version, 0)
	for _, w := range []int{headerSize, 0, len(b.types), len(b.types), len(b.strings)} {
		out = b.order.AppendUint32(out, uint32(w))
	}
	return append(append(out, b.types...), b.strings...)
}

// put changes a word of a blob.
func put(big bool, raw []byte, at int, v uint32) []byte {
	raw = append([]byte(nil), raw...)
	if big {
		binary.BigEndian.PutUint32(raw[at:], v)
	} else {
		binary.LittleEndian.PutUint32(raw[at:], v)
	}
	return raw
}

// everyKind has every kind of type; id maps names to IDs.
func everyKind(big bool) (raw []byte, id map[string]ID) {
	b := newBuilder(big)
	id = make(map[string]ID)
	id["int"] = b.integer("int", 4, 1<<24|32)
	id["bool"] = b.integer("_Bool", 1, 4<<24|8)
	id["char"] = b.integer("char", 1, 2<<24|8)
	id["bits"] = b.integer("bits", 4, 3<<16|5) // five bits from the third on
	id["ptr"] = b.ref(KindPtr, "", id["int"])
	id["array"] = b.array(id["int"], 7)
	word := uint32(id["int"])
	id["struct"] = b.add(KindStruct, "pair", false, 3, 12,
		b.name("a"), word, 0, b.name("b"), uint32(id["bits"]), 32, b.name("c"), word, 64)
	id["flagged"] = b.add(KindStruct, "fields", true, 2, 4,
		b.name("low"), word, 7<<24|1, b.name("high"), word, 24<<24|8)
	id["union"] = b.add(KindUnion, "either", false, 1, 4, b.name("a"), word, 0)
	id["enum"] = b.add(KindEnum, "plain", false, 2, 4,
		b.name("ZERO"), 0, b.name("TOP"), 0xffffffff)
	id["signed"] = b.add(KindEnum, "signed", true, 1, 4, b.name("LESS"), 0xffffffff)
	id["enum64"] = b.add(KindEnum64, "wide", false, 1, 8, b.name("WIDE"), 0x89abcdef, 0x1234567)
	id["fwd"] = b.add(KindFwd, "opaque", true, 0, 0)
	id["typedef"] = b.ref(KindTypedef, "int_t", id["int"])
	id["volatile"] = b.ref(KindVolatile, "", id["typedef"])
	id["const"] = b.ref(KindConst, "", id["volatile"])
	id["restrict"] = b.ref(KindRestrict, "", id["ptr"])
	id["proto"] = b.add(KindFuncProto, "", false, 2, word, b.name("x"), word, 0, 0)
	id["func"] = b.add(KindFunc, "call", false, 1, uint32(id["proto"]))
	id["var"] = b.add(KindVar, "counter", false, 0, word, 1)
	id["datasec"] = b.add(KindDatasec, ".data", false, 1, 16, uint32(id["var"]), 8, 4)
	id["float"] = b.add(KindFloat, "double", false, 0, 8)
	id["decltag"] = b.add(KindDeclTag, "note", false, 0, uint32(id["struct"]), 1)
	id["typetag"] = b.ref(KindTypeTag, "user", id["const"])
	return b.bytes(), id
}
