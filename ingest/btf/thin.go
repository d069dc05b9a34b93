// Package btf reads BTF, the kernel's type format.
//
// This file is the least that ingest/bpf needs, so that the tree compiles; the
// whole reader replaces it: whoever lands that deletes this file.
package btf

import (
	"bytes"

	"symbolize/ingest/decode"
)

// ID is the number of a type; 0 is void.
type ID uint32

// Kind is the kind of a type, as the kernel numbers them.
type Kind uint8

// KindFunc is the kind of functions.
const KindFunc Kind = 12

// Types is one BTF blob. It is safe for concurrent readers.
type Types struct {
	raw     []byte
	strings []byte
	kinds   []Kind
	names   []uint32
}

// Parse decodes a blob called name.
func Parse(name string, raw []byte, base *Types) (*Types, error) {
	const magic, headerSize = 0xeb9f, 24
	big := len(raw) > 1 && raw[0] == 0xeb
	r := decode.New(name, raw, 0, big)
	if r.U16() != magic || base != nil {
		r.Fail("no stand-alone BTF")
	}
	r.U16()
	header := r.U32()
	typeOff, typeLen, strOff, strLen := r.U32(), r.U32(), r.U32(), r.U32()
	if r.Err() != nil {
		return nil, r.Err()
	}
	t := &Types{raw: raw, kinds: []Kind{0}, names: []uint32{0}}
	r.Seek(uint64(header) + uint64(strOff))
	t.strings = r.Bytes(uint64(strLen))
	if r.Err() != nil {
		return nil, r.Err()
	}
	r.Seek(uint64(header) + uint64(typeOff))
	r = decode.New(name, r.Bytes(uint64(typeLen)), int64(header)+int64(typeOff), big)
	for r.Left() > 0 {
		t.names = append(t.names, r.U32())
		info := r.U32()
		kind, n := Kind(info>>24&31), uint64(info&0xffff)
		r.U32()
		switch kind { // what follows by kind: the kernel's Documentation/bpf/btf.rst
		case 2, 7, 8, 9, 10, 11, KindFunc, 16, 18:
		case 1, 14, 17:
			r.Skip(4)
		case 3:
			r.Skip(12)
		case 4, 5, 15, 19:
			r.Skip(12 * n)
		case 6, 13:
			r.Skip(8 * n)
		default:
			r.Fail("type %d is of the unknown kind %d", len(t.kinds), kind)
		}
		t.kinds = append(t.kinds, kind)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	return t, nil
}

// Raw returns the blob.
func (t *Types) Raw() []byte { return t.raw }

// Len returns how many IDs there are; all are below it.
func (t *Types) Len() int { return len(t.kinds) }

// Kind returns the kind of a type.
func (t *Types) Kind(id ID) Kind { return t.kinds[id] }

// Name returns the name of a type, "" if it has none.
func (t *Types) Name(id ID) string {
	s, _ := t.StringAt(t.names[id])
	return s
}

// StringAt returns the string at an offset of the string table.
func (t *Types) StringAt(off uint32) (string, bool) {
	if int64(off) >= int64(len(t.strings)) {
		return "", false
	}
	s := t.strings[off:]
	i := bytes.IndexByte(s, 0)
	if i < 0 {
		return "", false
	}
	return string(s[:i]), true
}
