// Package magic identifies compressed files by their first bytes.
package magic

import "strings"

// Packing is a compression format; "" is none.
type Packing string

// The packings of files.
const (
	Gzip  Packing = "gzip"
	XZ    Packing = "xz"
	Zstd  Packing = "zstd"
	Bzip2 Packing = "bzip2"
)

// Bytes is the number of first bytes of a file that Of needs.
const Bytes = 6

var packings = [...]struct {
	magic   string
	packing Packing
}{
	{"\xfd7zXZ\x00", XZ},
	{"\x28\xb5\x2f\xfd", Zstd},
	{"\x1f\x8b", Gzip},
	{"BZh", Bzip2},
}

// Of returns the packing of a file that begins with head, "" for a file that is not packed.
func Of(head []byte) Packing {
	head = head[:min(len(head), Bytes)]
	for i := range packings {
		if p := &packings[i]; strings.HasPrefix(string(head), p.magic) {
			return p.packing
		}
	}
	return ""
}
