package bundle

import (
	"cmp"
	"errors"
	"io"
	"os"
)

// spool holds the unpacked bytes of a bundle: in memory as long as it is small, else in
// a temporary file.
type spool struct {
	mem  [][]byte // pieces of spoolPiece bytes, the last one as long as it is
	file *os.File // nil while in memory
	size int64
	// limit is how much of it is kept in memory, bytes; 0: spoolMemory.
	limit int64
}

// spoolPiece is how much memory a spool takes at a time, bytes: one that grew by copying
// would take three times its content.
const spoolPiece = 1 << 20

func (s *spool) Write(b []byte) (int, error) {
	if s.file == nil && s.size+int64(len(b)) > cmp.Or(s.limit, spoolMemory) {
		if err := s.toFile(); err != nil {
			return 0, err
		}
	}
	if s.file == nil {
		s.keep(b)
		return len(b), nil
	}
	n, err := s.file.WriteAt(b, s.size)
	s.size += int64(n)
	return n, err
}

// keep appends to the part in memory.
func (s *spool) keep(b []byte) {
	for len(b) > 0 {
		last := len(s.mem) - 1
		if last < 0 || len(s.mem[last]) == spoolPiece {
			if last++; last == 0 {
				s.mem = append(s.mem, nil) // it grows with the content
			} else {
				s.mem = append(s.mem, make([]byte, 0, spoolPiece))
			}
		}
		n := min(len(b), spoolPiece-len(s.mem[last]))
		s.mem[last] = append(s.mem[last], b[:n]...)
		b, s.size = b[n:], s.size+int64(n)
	}
}

// toFile moves the spool to a file, which has no name for longer than it takes to
// open it where the system allows that.
func (s *spool) toFile() error {
	f, err := os.CreateTemp("", "symbolize-bundle-*")
	if err != nil {
		return err
	}
	for i, piece := range s.mem {
		if _, err := f.WriteAt(piece, int64(i)*spoolPiece); err != nil {
			return errors.Join(err, removeFile(f))
		}
	}
	s.mem, s.file = nil, f
	os.Remove(f.Name()) // where that fails, close tries again
	return nil
}

// truncate forgets the bytes behind size.
func (s *spool) truncate(size int64) {
	s.size = size
	if s.file != nil {
		return
	}
	pieces := int((size + spoolPiece - 1) / spoolPiece)
	clear(s.mem[pieces:])
	if s.mem = s.mem[:pieces]; size%spoolPiece > 0 {
		s.mem[pieces-1] = s.mem[pieces-1][:size%spoolPiece]
	}
}

// ReadAt implements io.ReaderAt. It is safe for concurrent use once all is written.
func (s *spool) ReadAt(b []byte, off int64) (n int, err error) {
	if s.file != nil {
		return io.NewSectionReader(s.file, 0, s.size).ReadAt(b, off)
	}
	for n < len(b) {
		if off < 0 || off >= s.size {
			return n, io.EOF
		}
		got := copy(b[n:], s.mem[off/spoolPiece][off%spoolPiece:])
		n, off = n+got, off+int64(got)
	}
	return n, nil
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file, s.size = nil, 0
	return removeFile(f)
}

// removeFile closes a temporary file and sees to it that its name is gone.
func removeFile(f *os.File) error {
	err := f.Close()
	if rm := os.Remove(f.Name()); rm != nil && !errors.Is(rm, os.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return err
}
