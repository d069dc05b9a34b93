package buildid

import (
	"crypto/sha1"
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
