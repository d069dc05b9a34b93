//go:build unix

package files

import (
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW

// mmap maps the first size bytes of a file for reading.
func mmap(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
}

func munmap(data []byte) error { return syscall.Munmap(data) }
