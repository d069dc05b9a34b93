package files

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// OfMachine reports whether an error is of this machine at this moment, such as no space or a disk
// that cannot be read: it says nothing about the content of a file, and the next run may have none.
// A path that does not exist or may not be opened is no such error, nor is an offset that no file
// can have.
func OfMachine(err error) bool {
	if errors.Is(err, ErrFull) {
		return true
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.EACCES, syscall.EPERM,
		syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.EOVERFLOW:
		return false
	}
	return true
}

// Reads notes the first error of the machine while files are read. Decoders may take such an error
// for damage, or for the end of the data: the result is then not to be kept. A nil pointer notes
// nothing.
type Reads struct {
	mu  sync.Mutex
	err error
}

// Of returns a reader of a file with errors that are noted.
func (r *Reads) Of(f io.ReaderAt) io.ReaderAt {
	if r == nil {
		return f
	}
	return &notedReader{f, r}
}

// Note notes an error if it is of the machine.
func (r *Reads) Note(err error) {
	if r == nil || err == nil || !OfMachine(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// Err returns the first error that was noted.
func (r *Reads) Err() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// notedReader is a reader of Reads.Of.
type notedReader struct {
	io.ReaderAt
	reads *Reads
}

// ReadAt implements io.ReaderAt.
func (n *notedReader) ReadAt(b []byte, at int64) (int, error) {
	got, err := n.ReaderAt.ReadAt(b, at)
	n.reads.Note(err)
	return got, err
}

// FileOf returns the file that a reader reads, also behind Reads.Of.
func FileOf(r io.ReaderAt) (*os.File, bool) {
	if n, ok := r.(*notedReader); ok {
		r = n.ReaderAt
	}
	f, ok := r.(*os.File)
	return f, ok
}
