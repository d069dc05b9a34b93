package btf

import (
	"bytes"

	"symbolize/ingest/decode"
)

// Bounds. The kernel accepts 16 MB and 2^20 types (include/uapi/linux/btf.h); its own are some 6
// MB and 150,000. A string is at most a line of source text.
const (
	maxBlob   = 32 << 20
	maxTypes  = 1 << 20
	maxString = 32 << 10
)

// Bounds of blobs that a Builder makes.
const (
	maxBuiltBlob  = 1 << 30
	maxBuiltTypes = 1 << 24
)

const (
	magic      = 0xeb9f
	magicOther = 0x9feb // in the other byte order
	headerSize = 24
	version    = 1
)

// isBTF reports whether a file that begins with head is a BTF blob.
func isBTF(head []byte) bool {
	if len(head) < headerSize || head[2] != version {
		return false
	}
	m := uint16(head[0])<<8 | uint16(head[1])
	return m == magic || m == magicOther
}

// Parse reads a blob called name, as part of base if it is not nil: the types of a module
// continue the kernel's numbers. Types retain raw. The error is a *decode.Error with the position
// of the damage; a damaged blob has no result.
func Parse(name string, raw []byte, base *Types) (*Types, error) {
	return parse(name, raw, base, maxBlob, maxTypes)
}

// ParseBuilt is Parse for a blob that a Builder made, which may be larger than others.
func ParseBuilt(name string, raw []byte) (*Types, error) {
	return parse(name, raw, nil, maxBuiltBlob, maxBuiltTypes)
}

func parse(name string, raw []byte, base *Types, blob, types int) (*Types, error) {
	t := &Types{raw: raw, base: base, big: len(raw) > 0 && raw[0] == magic>>8}
	if base != nil {
		t.first = ID(base.Len())
		t.strBase = base.strBase + uint32(len(base.strings))
	}
	r := decode.New(name, raw, 0, t.big)
	if base != nil && base.big != t.big {
		r.Fail("its byte order differs from the BTF that it is split from")
	}
	at := t.header(r, blob)
	if r.Err() != nil {
		return nil, r.Err()
	}
	r = decode.New(name, t.types, at, t.big)
	t.scan(r, types)
	if r.Err() == nil {
		t.check(r)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	t.index()
	return t, nil
}

// header finds the sections, and returns the offset of the types.
func (t *Types) header(r *decode.Reader, most int) (at int64) {
	if len(t.raw) > most {
		r.Fail("%d bytes of BTF; %d is the most", len(t.raw), most)
		return 0
	}
	if m := r.U16(); r.Err() == nil && m != magic {
		r.Fail("magic %#x is not BTF's", m)
		return 0
	}
	if v := r.U8(); r.Err() == nil && v != version {
		r.Fail("version %d of BTF; %d is known", v, version)
		return 0
	}
	r.U8()
	size := r.U32()
	typeOff, typeLen, strOff, strLen := r.U32(), r.U32(), r.U32(), r.U32()
	if r.Err() == nil && size < headerSize {
		r.Fail("a header of %d bytes; %d is the least", size, headerSize)
	}
	r.Seek(uint64(size) + uint64(strOff))
	t.text(r, r.Bytes(uint64(strLen)))
	r.Seek(uint64(size) + uint64(typeOff))
	at = r.Offset()
	t.types = r.Bytes(uint64(typeLen))
	if r.Err() == nil && typeOff%4 != 0 {
		r.Fail("types at %d, which is not a multiple of 4", typeOff)
	}
	return at
}

// text sets the strings.
func (t *Types) text(r *decode.Reader, b []byte) {
	n := len(b)
	switch {
	case r.Err() != nil:
		return
	case n > 0 && b[n-1] != 0:
		r.Fail("the last string does not end")
	case t.base == nil && (n == 0 || b[0] != 0):
		r.Fail("the strings do not begin with an empty one")
	}
	for from := 0; from < n && r.Err() == nil; {
		length := bytes.IndexByte(b[from:], 0)
		if length > maxString {
			r.Fail("a string of %d bytes; %d is the most", length, maxString)
		}
		from += length + 1
	}
	t.strings = string(b)
}

// scan finds the offset of each type.
func (t *Types) scan(r *decode.Reader, most int) {
	if t.base == nil {
		t.first = 1
	}
	for r.Left() > 0 {
		if len(t.at) >= most {
			r.Fail("more than %d types", most)
			return
		}
		start := len(t.types) - r.Left()
		r.U32()
		info := r.U32()
		r.U32()
		kind, n := Kind(info>>24&31), uint64(info&0xffff)
		if r.Err() == nil && (kind == KindVoid || kind >= numKinds) {
			r.Fail("type %d has the unknown kind %d", t.Len(), kind)
		}
		if r.Err() != nil {
			return
		}
		if r.Skip(kindTable[kind].fixed + n*kindTable[kind].item); r.Err() != nil {
			return
		}
		t.at = append(t.at, uint32(start))
	}
}

// check validates every name and every reference.
func (t *Types) check(r *decode.Reader) {
	c := checker{t: t, r: r}
	for i, at := range t.at {
		c.id, c.at = t.first+ID(i), at
		c.typ(t.types[at:])
		if r.Err() != nil {
			return
		}
	}
}

type checker struct {
	t  *Types
	r  *decode.Reader
	id ID
	at uint32
}

func (c *checker) fail(format string, args ...any) {
	c.r.Seek(uint64(c.at))
	c.r.Fail(format, args...)
}

// name checks that off is a string: all strings are terminated, see text.
func (c *checker) name(off uint32) {
	if int64(off) >= int64(c.t.strBase)+int64(len(c.t.strings)) {
		c.fail("type %d has a name at %#x, behind all strings", c.id, off)
	}
}

func (c *checker) ref(id uint32) {
	if int64(id) >= int64(c.t.Len()) {
		c.fail("type %d refers to type %d of %d", c.id, id, c.t.Len())
	}
}

func (c *checker) typ(b []byte) {
	t := c.t
	kind, n, flag := t.info(b)
	c.name(t.u32(b))
	k := &kindTable[kind]
	if k.refers {
		c.ref(t.u32(b[8:]))
	}
	rest := b[typeHead:]
	for i := uint64(0); k.item > 0 && i < uint64(n); i++ {
		item := rest[i*k.item:]
		if k.names {
			c.name(t.u32(item))
		}
		for _, at := range k.refs {
			c.ref(t.u32(item[at:]))
		}
	}
	switch kind {
	case KindInt:
		c.integer(t.u32(b[8:]), t.u32(rest))
	case KindArray:
		c.ref(t.u32(rest))
		c.ref(t.u32(rest[4:]))
	case KindStruct, KindUnion:
		c.members(rest, n, t.u32(b[8:]), flag)
	case KindDeclTag:
		if at := int32(t.u32(rest)); at < -1 {
			c.fail("type %d is a tag of component %d", c.id, at)
		}
	}
	c.size(kind, t.u32(b[8:]))
}

// size checks the size of an enumeration or a float as the kernel does: 12 bytes are the
// long double of 32-bit x86.
func (c *checker) size(kind Kind, n uint32) {
	ok := true
	switch kind {
	case KindEnum, KindEnum64:
		ok = n == 1 || n == 2 || n == 4 || n == 8
	case KindFloat:
		ok = n == 2 || n == 4 || n == 8 || n == 12 || n == 16
	}
	if !ok {
		c.fail("type %d: %s of %d bytes", c.id, kind, n)
	}
}

func (c *checker) integer(size, encoding uint32) {
	bits, offset := encoding&0xff, encoding>>16&0xff
	if size == 0 || size > 16 || bits == 0 || bits+offset > 8*size {
		c.fail("type %d: an integer of %d bits at bit %d of %d bytes", c.id, bits, offset, size)
	}
}

// members checks that the members of a structure begin in it.
func (c *checker) members(b []byte, n int, size uint32, flag bool) {
	t := c.t
	for i := range n {
		off, width := t.u32(b[12*i+8:]), uint32(0)
		if flag {
			off, width = off&0xffffff, off>>24
		}
		if uint64(off)+uint64(width) > 8*uint64(size) {
			c.fail("type %d: member %d at bit %d of %d bytes", c.id, i, off, size)
		}
	}
}
