//go:build unix

package dwarf

import (
	"os"

	"golang.org/x/sys/unix"
)

// canGrow reports whether writes to a file are visible in its mappings.
const canGrow = true

// mapFile maps part of a file for reading. m is the argument of unmap and dropPages: the whole
// pages around b.
func mapFile(f *os.File, off, size uint64) (b, m []byte, err error) {
	lead := off % uint64(os.Getpagesize())
	m, err = unix.Mmap(int(f.Fd()), int64(off-lead), int(size+lead), unix.PROT_READ,
		unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return m[lead:], m, nil
}

func unmap(m []byte) error { return unix.Munmap(m) }

// dropPages removes the pages of a mapping from the process; the page cache keeps them. A failure
// costs memory, nothing else.
func dropPages(m []byte) { _ = unix.Madvise(m, unix.MADV_DONTNEED) }
