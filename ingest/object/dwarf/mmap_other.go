//go:build !unix

package dwarf

import (
	"io"
	"os"
)

// canGrow reports whether writes to a file are visible in its mappings.
const canGrow = false

// mapFile reads part of a file: there is no mapping here.
func mapFile(f *os.File, off, size uint64) (b, m []byte, err error) {
	b, err = readAll(io.NewSectionReader(f, int64(off), int64(size)), size)
	return b, nil, err
}

func unmap([]byte) error { return nil }

func dropPages([]byte) {}
