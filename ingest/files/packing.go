package files

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

// MagicBytes is the number of first bytes of a file that PackingOf needs.
const MagicBytes = 6

var packings = [...]struct {
	magic   string
	packing Packing
}{
	{"\xfd7zXZ\x00", XZ},
	{"\x28\xb5\x2f\xfd", Zstd},
	{"\x1f\x8b", Gzip},
	{"BZh", Bzip2},
}

// PackingOf returns the packing of a file that begins with head, "" for a file that is not packed.
func PackingOf(head []byte) Packing {
	head = head[:min(len(head), MagicBytes)]
	for i := range packings {
		if p := &packings[i]; strings.HasPrefix(string(head), p.magic) {
			return p.packing
		}
	}
	return ""
}
