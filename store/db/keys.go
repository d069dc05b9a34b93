package db

import (
	"encoding/binary"
	"fmt"

	"symbolize/buildid"
	"symbolize/store"
	"symbolize/store/symtab"
)

// First bytes of keys. They are part of the schema.
const (
	prefixManifest = 'm'
	prefixTable    = 't'
	prefixRaw      = 'r'
	prefixDir      = 'd'
	prefixBlob     = 'b'
)

// Parts of a table, in keys.
const (
	partHeader  = 0
	partChunk   = 1 // 1 + symtab.Chunk
	partStrings = 2 // 1 + symtab.Strings
)

const (
	objKeyLen = 1 + buildid.KeyLen + 1 // space, sum, length
	// sumLen is how many bytes of a source's digest are in keys: as hard to hit twice as a build
	// ID.
	sumLen       = 16
	sourceKeyLen = objKeyLen + 1 + sumLen
)

// objKey appends the name of an object in keys.
func objKey(b []byte, id buildid.ID) []byte {
	b = objPrefix(b, id)
	return append(b, byte(id.Len()))
}

// objPrefix is objKey without the length, for IDs whose length is not known.
func objPrefix(b []byte, id buildid.ID) []byte {
	k := id.Key()
	b = append(b, byte(k.Space))
	return append(b, k.Sum[:]...)
}

func manifestKey(id buildid.ID) []byte {
	return objKey(append(make([]byte, 0, 1+objKeyLen), prefixManifest), id)
}

// sourcePrefix returns the common prefix of all keys of one source, with capacity for the rest.
func sourcePrefix(prefix byte, id buildid.ID, info *store.SourceInfo) []byte {
	b := append(make([]byte, 0, 1+sourceKeyLen+5), prefix)
	b = objKey(b, id)
	b = append(b, byte(info.Kind))
	return append(b, info.Digest[:sumLen]...)
}

// tableKey appends part and number to a source's prefix. The prefix is not written over: each key
// has its own memory, because Badger keeps it until the commit.
func tableKey(prefix []byte, part byte, i uint32) []byte {
	b := make([]byte, len(prefix), len(prefix)+5)
	copy(b, prefix)
	b = append(b, part)
	return binary.BigEndian.AppendUint32(b, i)
}

func rawKey(prefix []byte, i uint32) []byte {
	b := make([]byte, len(prefix), len(prefix)+4)
	copy(b, prefix)
	return binary.BigEndian.AppendUint32(b, i)
}

func dirKey(dir string) []byte {
	return append(append(make([]byte, 0, 1+len(dir)), prefixDir), dir...)
}

// partOf returns the part number of a kind of block.
func partOf(kind symtab.BlockKind) byte { return byte(kind) + 1 }

// keyText returns a key for people.
func keyText(key []byte) string {
	if len(key) == 0 {
		return "(empty)"
	}
	switch key[0] {
	case prefixDir:
		return fmt.Sprintf("d %q", key[1:])
	case prefixBlob:
		return fmt.Sprintf("b %x", key[1:])
	}
	if id, rest, ok := cutObjKey(key[1:]); ok {
		return fmt.Sprintf("%c %s/%d %x", key[0], id.Hex(), id.Len(), rest)
	}
	return fmt.Sprintf("%x", key)
}

// cutObjKey splits an object's name off. For a build ID longer than a key the ID that comes back is
// only its head.
func cutObjKey(b []byte) (id buildid.ID, rest []byte, ok bool) {
	if len(b) < objKeyLen {
		return id, nil, false
	}
	n := int(b[objKeyLen-1])
	id = buildid.Make(buildid.Space(b[0]), b[1:1+min(n, buildid.KeyLen)])
	return id, b[objKeyLen:], !id.IsZero()
}
