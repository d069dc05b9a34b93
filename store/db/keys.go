package db

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"

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

// objPrefix is objKey without the length, for IDs of unknown length.
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

// sourceKeys visits the keys of a source's table and captured input.
func sourceKeys(id buildid.ID, info *store.SourceInfo) iter.Seq[[]byte] {
	return func(yield func(key []byte) bool) {
		prefix := sourcePrefix(prefixTable, id, info)
		for part, n := range []uint32{partHeader: 1, partChunk: info.Chunks, partStrings: info.Strings} {
			for i := range n {
				if !yield(tableKey(prefix, byte(part), i)) {
					return
				}
			}
		}
		prefix = sourcePrefix(prefixRaw, id, info)
		for i := range info.RawPieces {
			if !yield(rawKey(prefix, i)) {
				return
			}
		}
	}
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

// Every value is stored as
//
//	version u8 | payload length LEB128 | payload | CRC-32C, 4 bytes little-endian
//
// with the checksum over key, version, length and payload: a value that a damaged pointer leads to
// is no other key's value either.
const envelopeVersion = 1

// envelopeOverhead bounds an envelope's bytes besides the payload.
const envelopeOverhead = 1 + binary.MaxVarintLen64 + crc32.Size

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal returns the stored form of a payload.
func seal(key, payload []byte) []byte {
	b := make([]byte, 0, len(payload)+envelopeOverhead)
	b = append(b, envelopeVersion)
	b = binary.AppendUvarint(b, uint64(len(payload)))
	b = append(b, payload...)
	return binary.LittleEndian.AppendUint32(b, checksum(key, b))
}

// unseal returns the payload of a stored value, aliasing it. Errors wrap ErrDamaged.
func unseal(key, value []byte) ([]byte, error) {
	if len(value) == 0 {
		// Badger's answer, without an error, when it cannot read a value.
		return nil, store.Damagef("key %s: value is lost", keyText(key))
	}
	if value[0] != envelopeVersion {
		return nil, store.Damagef("key %s: envelope version %d", keyText(key), value[0])
	}
	size, n := binary.Uvarint(value[1:])
	head := 1 + n
	if n <= 0 || len(value) < head+crc32.Size || size != uint64(len(value)-head-crc32.Size) {
		return nil, store.Damagef("key %s: length is not that of the value", keyText(key))
	}
	end := len(value) - crc32.Size
	if got := checksum(key, value[:end]); got != binary.LittleEndian.Uint32(value[end:]) {
		return nil, store.Damagef("key %s: checksum %08x", keyText(key), got)
	}
	return value[head:end:end], nil
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}
