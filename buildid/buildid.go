// Package buildid identifies objects: everything with code has a build ID.
//
// It holds the types ID and Key, the ELF note parser, the list of possible paths of the files of a
// build ID, and the proof that a file on disk is the one a capture recorded. It is a leaf: it
// imports nothing of this module.
package buildid

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
)

// KeyLen is the number of build-ID bytes in a Key: the size of a SHA-1, of struct
// bpf_stack_build_id's field and of perf's records.
const KeyLen = 20

// MaxLen bounds the build IDs that are accepted from a file. GNU ld allows any length with
// --build-id=0x…; longer notes are not build IDs.
const MaxLen = 64

// Space is the name space of a build ID. IDs of different spaces never match.
type Space uint8

// The name spaces. Their numbers are part of the store's key format.
const (
	GNU     Space = iota // NT_GNU_BUILD_ID of an ELF file or of the kernel's notes
	Content              // SHA-1 of the content of a file that has no build ID
	JIT                  // identity of a JITed function, see bpf.Program.Identity
	HTL                  // htlhash of a file, see HTLHash: an alias
	Go                   // hash of the build ID that Go's linker writes, see FromGo: an alias
	numSpaces
)

// Valid reports whether s is one of the spaces above.
func (s Space) Valid() bool { return s < numSpaces }

// Alias reports whether IDs of the space only lead to objects with an ID of another space.
func (s Space) Alias() bool { return s == HTL || s == Go }

// String returns "gnu", "content", "jit", "htl" or "go".
func (s Space) String() string {
	switch s {
	case GNU:
		return "gnu"
	case Content:
		return "content"
	case JIT:
		return "jit"
	case HTL:
		return "htl"
	case Go:
		return "go"
	}
	return fmt.Sprintf("space%d", uint8(s))
}

// ID is a recorded build ID: its bytes, its space, and whether its length is exact. Stack maps and
// perf records before Linux 5.11 have 20 zero-padded bytes without a length; such IDs are inexact.
// The zero ID is no ID. IDs are comparable; use Matches for identity.
type ID struct {
	bytes   string
	space   Space
	inexact bool
}

// New returns the GNU build ID with these bytes and exactly this length. A slice that is empty, all
// zeros or longer than MaxLen gives the zero ID.
func New(b []byte) ID { return Make(GNU, b) }

// Make is New for any space.
func Make(space Space, b []byte) ID {
	if len(b) == 0 || len(b) > MaxLen || allZero(b) {
		return ID{}
	}
	return ID{bytes: string(b), space: space}
}

// Padded returns the GNU build ID of a zero-padded field with an unknown length. Trailing
// zeros are kept out of the bytes but the length stays inexact. All zeros give the zero ID.
func Padded(b []byte) ID {
	trimmed := bytes.TrimRight(b, "\x00")
	if len(trimmed) == 0 || len(trimmed) > MaxLen {
		return ID{}
	}
	return ID{bytes: string(trimmed), inexact: true}
}

// Parse reads the hexadecimal form that String prints, and "go:" followed by a build ID of Go.
func Parse(s string) (ID, error) {
	space := GNU
	for sp := Content; sp < numSpaces; sp++ {
		if rest, ok := cutPrefix(s, sp.String()+":"); ok {
			space, s = sp, rest
		}
	}
	if space == Go && strings.Contains(s, "/") {
		return FromGo(s), nil
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return ID{}, fmt.Errorf("build ID %q: not hexadecimal", s)
	}
	id := Make(space, b)
	if id.IsZero() {
		return ID{}, fmt.Errorf("build ID %q: length %d is not in 1..%d, or all zeros", s, len(b), MaxLen)
	}
	return id, nil
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return s, false
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// IsZero reports whether there is no build ID.
func (id ID) IsZero() bool { return id.bytes == "" }

// Bytes returns a copy of the build ID's bytes; for an inexact ID without the trailing zeros.
func (id ID) Bytes() []byte { return []byte(id.bytes) }

// Len returns the number of bytes that Bytes returns.
func (id ID) Len() int { return len(id.bytes) }

// Space returns the name space.
func (id ID) Space() Space { return id.space }

// Exact reports whether the length is the true one.
func (id ID) Exact() bool { return !id.inexact }

// usualLengths are the lengths of the build IDs that linkers make: SHA-1, MD5 or UUID, and the 8
// bytes of lld's fast hash.
var usualLengths = []int{20, 16, 8}

// AsExact returns the exact IDs of usual lengths that an inexact one may be, longest first, and an
// exact ID itself.
func (id ID) AsExact() (list []ID) {
	if !id.inexact {
		return []ID{id}
	}
	for _, n := range usualLengths {
		if n >= len(id.bytes) {
			padded := make([]byte, n)
			copy(padded, id.bytes)
			list = append(list, Make(id.space, padded))
		}
	}
	return list
}

// Hex returns the bytes in lower-case hexadecimal at true length, without the space.
func (id ID) Hex() string { return hex.EncodeToString([]byte(id.bytes)) }

// String is Hex, with the space in front where it is not GNU ("content:…").
func (id ID) String() string {
	if id.space == GNU {
		return id.Hex()
	}
	return id.space.String() + ":" + id.Hex()
}

// Key is the form for joins and store keys: space and first 20 bytes, zero-padded. The zero Key is
// no key.
type Key struct {
	Space Space
	Sum   [KeyLen]byte
}

// Key returns the key of id.
func (id ID) Key() Key {
	k := Key{Space: id.space}
	copy(k.Sum[:], id.bytes)
	return k
}

// Compare orders keys by space, then bytewise.
func (k Key) Compare(o Key) int {
	if k.Space != o.Space {
		return int(k.Space) - int(o.Space)
	}
	return bytes.Compare(k.Sum[:], o.Sum[:])
}

// Matches reports whether two IDs name one object: their Keys are equal and, when both lengths are
// exact and at most 20, the lengths too. Zero matches nothing.
func (id ID) Matches(o ID) bool {
	if id.IsZero() || o.IsZero() || id.Key() != o.Key() {
		return false
	}
	if id.inexact || o.inexact || len(id.bytes) > KeyLen || len(o.bytes) > KeyLen {
		return true
	}
	return len(id.bytes) == len(o.bytes)
}

// Compare orders IDs by Key, then length, then bytes, exact before inexact.
func (id ID) Compare(o ID) int {
	if c := id.Key().Compare(o.Key()); c != 0 {
		return c
	}
	if c := len(id.bytes) - len(o.bytes); c != 0 {
		return c
	}
	if c := bytes.Compare([]byte(id.bytes), []byte(o.bytes)); c != 0 {
		return c
	}
	if id.inexact != o.inexact {
		if id.inexact {
			return 1
		}
		return -1
	}
	return 0
}
