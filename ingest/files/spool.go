package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// ErrFull is wrapped by errors of Write if the file system of the temporary directory has
// no space left.
var ErrFull = errors.New("no space left for a temporary file")

// ErrTooLarge is wrapped by errors of Write if more comes than Bound allows.
var ErrTooLarge = errors.New("it unpacks to more than a recording does")

// Of a small file no more than free and ratio times its size is unpacked: zstd makes 32,000 bytes
// of one. Deep stacks, which pack best, grow a hundredfold.
const (
	free         = 256 << 20
	freeInMemory = 64 << 20
	ratio        = 256
)

// MaxUnpacked returns the number of bytes that a packed file of a size may unpack to; most is the
// user's allows, 0 for the default.
func MaxUnpacked(packed, most int64) int64 {
	switch {
	case most > 0:
		return most
	case packed > (math.MaxInt64-free)/ratio:
		return math.MaxInt64
	}
	return free + packed*ratio
}

// MaxInMemory is MaxUnpacked for content that is in memory as a whole.
func MaxInMemory(packed, most int64) int64 {
	if most > 0 {
		return most
	}
	return MaxUnpacked(packed, 0) - free + freeInMemory
}

// Spool holds bytes. Writes come from one goroutine; once all is written, ReadAt is safe for
// concurrent use. The zero value is an empty Spool of the default limit.
type Spool struct {
	mem  [][]byte // pieces of pieceSize bytes, the last one as long as it is
	file *os.File // nil while in memory
	size int64
	// limit is how much of it is kept in memory, bytes; 0: memory.
	limit   int64
	checked int64 // the size up to which the file system had space
	bound   int64 // the largest size; 0 for any
}

// NewSpool returns an empty Spool that keeps at most limit bytes in memory.
func NewSpool(limit int64) *Spool { return &Spool{limit: limit} }

// SpoolOf returns a Spool of the first size bytes of a file without a name. It owns the file.
func SpoolOf(f *os.File, size int64) *Spool { return &Spool{file: f, size: size, checked: size} }

// Bound makes Write fail where the content would have more than n bytes.
func (s *Spool) Bound(n int64) { s.bound = n }

const (
	// pieceSize is the growth of a spool in memory, in bytes: growing by copying would need three
	// times the content.
	pieceSize = 1 << 20
	// memory is the default limit.
	memory = 32 << 20
	// reserve is the space left to others on the file system, and checkEvery is how
	// often that is looked at, both in bytes.
	reserve    = 16 << 20
	checkEvery = 64 << 20
)

// Size returns the number of bytes.
func (s *Spool) Size() int64 { return s.size }

// Write implements io.Writer.
func (s *Spool) Write(b []byte) (int, error) {
	if s.bound > 0 && s.size+int64(len(b)) > s.bound {
		return 0, fmt.Errorf("%w: %d KiB", ErrTooLarge, s.bound>>10)
	}
	if s.file == nil && s.size+int64(len(b)) > cmp.Or(s.limit, memory) {
		if err := s.toFile(); err != nil {
			return 0, err
		}
	}
	if s.file == nil {
		s.keep(b)
		return len(b), nil
	}
	if err := s.checkRoom(int64(len(b))); err != nil {
		return 0, err
	}
	n, err := s.file.WriteAt(b, s.size)
	s.size += int64(n)
	return n, full(err)
}

// Skip appends n bytes of value 0, which needs no space in a file.
func (s *Spool) Skip(n int64) error {
	if s.file == nil {
		if err := s.toFile(); err != nil {
			return err
		}
	}
	s.size += n
	s.checked = max(s.checked, s.size)
	return full(s.file.Truncate(s.size))
}

// checkRoom fails before the file system is full, so that other programs can go on.
func (s *Spool) checkRoom(n int64) error {
	if s.size+n <= s.checked {
		return nil
	}
	free, err := FreeBytes(filepath.Dir(s.file.Name()))
	if err == nil && free < reserve+n {
		return fmt.Errorf("%w: %s has %d MiB left, of which %d are kept free", ErrFull,
			os.TempDir(), free>>20, int64(reserve)>>20)
	}
	s.checked = s.size + n + checkEvery
	return nil
}

// full marks the error of a full file system.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// keep appends to the part in memory.
func (s *Spool) keep(b []byte) {
	for len(b) > 0 {
		last := len(s.mem) - 1
		if last < 0 || len(s.mem[last]) == pieceSize {
			if last++; last == 0 {
				s.mem = append(s.mem, nil) // it grows with the content
			} else {
				s.mem = append(s.mem, make([]byte, 0, pieceSize))
			}
		}
		n := min(len(b), pieceSize-len(s.mem[last]))
		s.mem[last] = append(s.mem[last], b[:n]...)
		b, s.size = b[n:], s.size+int64(n)
	}
}

// toFile moves the spool to a file.
func (s *Spool) toFile() error {
	f, err := Create(filepath.Join(os.TempDir(), "symbolize-spool"), 0o600)
	if err == nil {
		err = f.Unname()
	}
	if err != nil {
		return full(err)
	}
	for i, piece := range s.mem {
		if _, err := f.WriteAt(piece, int64(i)*pieceSize); err != nil {
			return errors.Join(full(err), f.Close())
		}
	}
	s.mem, s.file = nil, f.File
	return nil
}

// Truncate drops the bytes after size.
func (s *Spool) Truncate(size int64) {
	s.size = size
	if s.file != nil {
		return
	}
	pieces := int((size + pieceSize - 1) / pieceSize)
	clear(s.mem[pieces:])
	if s.mem = s.mem[:pieces]; size%pieceSize > 0 {
		s.mem[pieces-1] = s.mem[pieces-1][:size%pieceSize]
	}
}

// ReadAt implements io.ReaderAt.
func (s *Spool) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 || off >= s.size {
		return 0, io.EOF
	}
	if s.file != nil {
		clipped := b[:min(int64(len(b)), s.size-off)]
		if n, err = s.file.ReadAt(clipped, off); err == nil && n < len(b) {
			err = io.EOF
		}
		return n, err
	}
	for n < len(b) {
		if off >= s.size {
			return n, io.EOF
		}
		got := copy(b[n:], s.mem[off/pieceSize][off%pieceSize:])
		n, off = n+got, off+int64(got)
	}
	return n, nil
}

// Close gives memory and file back.
func (s *Spool) Close() error {
	s.mem, s.size = nil, 0
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
