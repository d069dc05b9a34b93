package db

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"symbolize/buildid"
	"symbolize/ingest/decode"
	"symbolize/store"
)

// First bytes of keys of the index, and types of records; see the package comment.
const (
	prefixManifest = 'm'
	prefixDir      = 'd'
	prefixBlob     = 'b'
	prefixNote     = 'n'
)

// digest is the name of a file.
type digest = store.Digest

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const objKeyLen = 1 + buildid.KeyLen + 1 // space, sum, length

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

func dirKey(dir string) []byte {
	return append(append(make([]byte, 0, 1+len(dir)), prefixDir), dir...)
}

func blobKey(id store.BlobID) []byte {
	return append(append(make([]byte, 0, 1+len(id)), prefixBlob), id[:]...)
}

func noteKey(sum digest) []byte { return append([]byte{prefixNote}, sum[:]...) }

// keyText returns a key for people.
func keyText(key []byte) string {
	if len(key) == 0 {
		return "(empty)"
	}
	switch key[0] {
	case prefixDir:
		return fmt.Sprintf("d %q", key[1:])
	case prefixBlob, prefixNote:
		return fmt.Sprintf("%c %x", key[0], key[1:])
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

// Blobs and path rows.

func blobRecord(id digest, size int64) []byte {
	return binary.AppendUvarint(append([]byte(nil), id[:]...), uint64(size))
}

func parseBlobRecord(b []byte) (id digest, size int64, err error) {
	r := decode.New("blob", b, 0, false)
	copy(id[:], r.Bytes(uint64(len(digest{}))))
	size = int64(store.Bounded(r, 2*store.MaxBlob))
	if r.Err() != nil || r.Left() > 0 {
		return id, 0, store.Damagef("blob record of %d bytes", len(b))
	}
	return id, size, nil
}

// dirRecord is the payload of a directory's record.
func dirRecord(dir string, level uint64, rows []byte) [][]byte {
	return [][]byte{binary.AppendUvarint(nil, uint64(len(dir))), []byte(dir),
		binary.AppendUvarint(nil, level), rows}
}

// rowsAt splits the level off stored path rows.
func rowsAt(b []byte) (level uint64, rows []byte, err error) {
	level, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, store.Damagef("path rows without a level")
	}
	return level, b[n:], nil
}

// laterRows reports whether path rows of a directory count instead of others.
func laterRows(level uint64, rows []byte, other uint64, otherRows []byte) bool {
	return level > other || level == other && bytes.Compare(rows, otherRows) > 0
}
