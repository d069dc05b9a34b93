package bundle

import (
	"cmp"
	"errors"
	"io"
	"os"
)

// spool is what was unpacked of a bundle: in memory as long as it is small, else in
// a temporary file.
type spool struct {
	mem  []byte
	file *os.File // nil while in memory
	size int64
	// limit is how much of it is kept in memory, bytes; 0: spoolMemory.
	limit int
}

func (s *spool) Write(b []byte) (int, error) {
	if s.file == nil && len(s.mem)+len(b) > cmp.Or(s.limit, spoolMemory) {
		if err := s.toFile(); err != nil {
			return 0, err
		}
	}
	if s.file == nil {
		s.mem = append(s.mem, b...)
		s.size += int64(len(b))
		return len(b), nil
	}
	n, err := s.file.WriteAt(b, s.size)
	s.size += int64(n)
	return n, err
}

// toFile moves the spool to a file, which has no name for longer than it takes to
// open it where the system allows that.
func (s *spool) toFile() error {
	f, err := os.CreateTemp("", "symbolize-bundle-*")
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(s.mem, 0); err != nil {
		return errors.Join(err, removeFile(f))
	}
	s.mem, s.file = nil, f
	os.Remove(f.Name()) // where that fails, close tries again
	return nil
}

// truncate forgets what lies behind size.
func (s *spool) truncate(size int64) {
	s.size = size
	if s.file == nil {
		s.mem = s.mem[:size]
	}
}

// ReadAt implements io.ReaderAt. It is safe for concurrent use once all is written.
func (s *spool) ReadAt(b []byte, off int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(b, off)
	}
	if off < 0 || off >= int64(len(s.mem)) {
		return 0, io.EOF
	}
	n := copy(b, s.mem[off:])
	if n < len(b) {
		return n, io.EOF
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
