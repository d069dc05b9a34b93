// Package btf reads BTF, the kernel's type format (Documentation/bpf/btf.rst of Linux).
//
// A blob is a header, a section of types and a section of strings. Parse checks all of it once:
// every reference has a valid target. It returns an index over the blob and copies only the
// strings; types are decoded on access, which cannot fail. A valid blob can still describe
// impossible types (a structure within itself, an array of 2^60 bytes): Size, AppendValue and
// AppendC are bounded and return an error.
//
// cilium/ebpf/btf (0.22), which tests compare with, is not used because captures are not trusted:
// it decodes recursively, so that 400,000 chained pointers (4.8 MB) end the process by a stack
// overflow, and of 60,000 mutated blobs it accepts 3,160 with impossible members, integers or
// sizes. To load a kernel's 126,000 types takes 11 ms of CPU there, here 6 ms; to read all of them
// 178 ms and 40 MB of heap, here 59 ms and 3 MB. It keeps nothing of a damaged .BTF.ext, reads no
// base that is split itself, and does not give the bits of an INT, by which old compilers made bit
// fields.
package btf

import (
	"strings"
	"sync"

	"symbolize/ingest/decode"
)

// ID is the number of a type; 0 is void.
type ID uint32

// Types is one BTF blob: of a program, an object file, the kernel, or a module over the kernel's.
// It is safe for concurrent readers.
type Types struct {
	raw     []byte
	base    *Types // nil unless split
	big     bool
	first   ID       // of the types in raw
	types   []byte   // the section of types
	strings string   // a copy, so that names are parts of it
	strBase uint32   // length of all strings below ours
	at      []uint32 // offset in types of each type, from first on

	byName func() map[named]ID
	ptr    func() uint64
}

type named struct {
	kind Kind
	name string
}

// index computes the lookup tables on first use.
func (t *Types) index() {
	t.byName = sync.OnceValue(t.indexNames)
	t.ptr = sync.OnceValue(t.pointerSize)
}

// typeHead is the size of a struct btf_type.
const typeHead = 12

// Raw returns the blob, which the caller must not change.
func (t *Types) Raw() []byte { return t.raw }

// Base returns the base of a split blob, or nil.
func (t *Types) Base() *Types { return t.base }

// BigEndian reports the byte order of the blob, and so of the values that it describes.
func (t *Types) BigEndian() bool { return t.big }

// Len returns the number of IDs, including the base's: all IDs are below it.
func (t *Types) Len() int { return int(t.first) + len(t.at) }

// record returns the bytes from a type on and the blob that owns them; nil for void and for IDs
// out of range.
func (t *Types) record(id ID) (*Types, []byte) {
	for id < t.first && t.base != nil {
		t = t.base
	}
	if id < t.first || int64(id-t.first) >= int64(len(t.at)) {
		return t, nil
	}
	return t, t.types[t.at[id-t.first]:]
}

func (t *Types) u32(b []byte) uint32 { return decode.U32(b, t.big) }

func (t *Types) info(b []byte) (kind Kind, n int, flag bool) {
	info := t.u32(b[4:])
	return Kind(info >> 24 & 31), int(info & 0xffff), info>>31 != 0
}

// Kind returns the kind of a type: KindVoid for 0 and IDs out of range.
func (t *Types) Kind(id ID) Kind {
	t, b := t.record(id)
	if b == nil {
		return KindVoid
	}
	kind, _, _ := t.info(b)
	return kind
}

// Name returns the name of a type, "" if it has none.
func (t *Types) Name(id ID) string {
	t, b := t.record(id)
	if b == nil {
		return ""
	}
	return t.str(t.u32(b))
}

func (t *Types) str(off uint32) string {
	s, _ := t.StringAt(off)
	return s
}

// StringAt returns the string at an offset of the string section, which in a split blob
// begins with the strings of the base.
func (t *Types) StringAt(off uint32) (string, bool) {
	for off < t.strBase && t.base != nil {
		t = t.base
	}
	if int64(off)-int64(t.strBase) >= int64(len(t.strings)) || off < t.strBase {
		return "", false
	}
	s := t.strings[off-t.strBase:]
	i := strings.IndexByte(s, 0)
	if i < 0 {
		return "", false
	}
	return s[:i], true
}

// ByName returns the first type of a kind with a name.
func (t *Types) ByName(kind Kind, name string) (ID, bool) {
	if t.base != nil {
		if id, ok := t.base.ByName(kind, name); ok {
			return id, true
		}
	}
	id, ok := t.byName()[named{kind, name}]
	return id, ok
}

func (t *Types) indexNames() map[named]ID {
	m := make(map[named]ID, len(t.at))
	for i := range t.at {
		id := t.first + ID(i)
		name := t.Name(id)
		if name == "" {
			continue
		}
		key := named{t.Kind(id), name}
		if _, dup := m[key]; !dup {
			m[key] = id
		}
	}
	return m
}
