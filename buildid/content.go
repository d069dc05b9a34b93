package buildid

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
)

// FromContent returns the ID, in the space Content, of a file that has no build ID: the SHA-1 of
// its bytes, which are read in a stream. SHA-1 as in GNU build IDs: it identifies files, it is no
// protection against forgery.
func FromContent(r io.Reader) (ID, error) {
	h := sha1.New()
	if _, err := io.Copy(h, r); err != nil {
		return ID{}, err
	}
	return Make(Content, h.Sum(nil)), nil
}

// htlBytes is the number of bytes at each end of a file that HTLHash reads.
const htlBytes = 4096

// HTLHash returns the ID, in the space HTL, that profiles of OpenTelemetry have for a file of size
// bytes: the first 16 bytes of the SHA-256 of its first and its last 4,096 bytes, which may overlap,
// and its size as 8 bytes, big-endian.
func HTLHash(r io.ReaderAt, size int64) (ID, error) {
	h := sha256.New()
	b := make([]byte, min(htlBytes, size))
	for _, at := range []int64{0, size - int64(len(b))} {
		if n, err := r.ReadAt(b, at); n < len(b) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return ID{}, err
		}
		h.Write(b)
	}
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(size)))
	return Make(HTL, h.Sum(nil)[:16]), nil
}

// FromGo returns the ID, in the space Go, of the text that `go tool buildid` prints: its SHA-1,
// because it is longer than other IDs. The empty text gives the zero ID.
func FromGo(text string) ID {
	if text == "" {
		return ID{}
	}
	sum := sha1.Sum([]byte(text))
	return Make(Go, sum[:])
}
