package db

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
)

// maxLogHeader bounds the header of an entry in a value log:
//
//	meta u8 | user meta u8 | key length LEB128 | value length LEB128 | expiry LEB128
//
// Key, value and the CRC-32C of all that (big-endian) follow. The key ends with
// keyVersion bytes that number its versions.
const (
	maxLogHeader = 22
	keyVersion   = 8
	maxLogKey    = 1 << 16
)

// logEntry is one entry of a value log.
type logEntry struct {
	key   []byte // without its version; valid until the next entry
	start int64  // of the entry in the file
	value int64  // where the value begins
	size  int64  // of the value
}

// walkLog visits the entries of a value log from its beginning to the first that is not
// whole. Nothing is allocated from a length that the file gives but a key of at most
// maxLogKey bytes.
func walkLog(r io.ReaderAt, size int64, visit func(e *logEntry) error) error {
	at := int64(vlogHeader)
	if at >= size {
		return nil
	}
	br := bufio.NewReaderSize(io.NewSectionReader(r, at, size-at), 256<<10)
	h := crc32.New(castagnoli)
	var e logEntry
	for {
		head, _ := br.Peek(maxLogHeader) // fewer bytes remain at the end
		n, klen, vlen := logHeader(head)
		left := size - at - int64(n) - crc32.Size
		if n == 0 || klen <= keyVersion || klen > maxLogKey || vlen > vlogFileSize ||
			int64(klen+vlen) > left {
			return nil
		}
		h.Reset()
		h.Write(head[:n])
		br.Discard(n)
		e.key = slices.Grow(e.key[:0], int(klen))[:klen]
		if _, err := io.ReadFull(br, e.key); err != nil {
			return err
		}
		h.Write(e.key)
		if _, err := io.CopyN(h, br, int64(vlen)); err != nil {
			return err
		}
		var sum [crc32.Size]byte
		if _, err := io.ReadFull(br, sum[:]); err != nil {
			return err
		}
		if binary.BigEndian.Uint32(sum[:]) != h.Sum32() {
			return nil
		}
		e.start, e.value, e.size = at, at+int64(n)+int64(klen), int64(vlen)
		at = e.value + e.size + crc32.Size
		e.key = e.key[:klen-keyVersion]
		if err := visit(&e); err != nil {
			return err
		}
	}
}

// logHeader decodes the header of an entry; n is 0 if there is none.
func logHeader(b []byte) (n int, klen, vlen uint64) {
	if len(b) < 2 {
		return 0, 0, 0
	}
	n = 2
	var field [3]uint64
	for i := range field {
		v, size := binary.Uvarint(b[n:])
		if size <= 0 {
			return 0, 0, 0
		}
		field[i], n = v, n+size
	}
	return n, field[0], field[1]
}
