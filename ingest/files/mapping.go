package files

import (
	"errors"
	"io"
	"math"
	"os"
	"runtime/debug"
)

// ErrCutOff is the error of a mapped file that became shorter while it was read.
var ErrCutOff = errors.New("the file became shorter while it was read")

// Mapping is a regular file in memory, which is read without a copy by Window. Its methods are safe
// for concurrent use, except Close.
type Mapping struct {
	file *os.File
	data []byte
}

// Map maps the first size bytes of a file, which must stay open. Not every file system can map
// files.
func Map(f *os.File, size int64) (*Mapping, error) {
	if size <= 0 || size > math.MaxInt {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: os.ErrInvalid}
	}
	data, err := mmap(f, int(size))
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return &Mapping{f, data}, nil
}

// Window returns up to n bytes from an offset, fewer only at the present end of the file. They must
// not be written, and are valid until Close. Reading bytes that the file loses afterwards is a
// fault: only functions called by Guard may read them.
func (m *Mapping) Window(off int64, n int) []byte {
	end := int64(len(m.data))
	if fi, err := m.file.Stat(); err == nil {
		end = min(end, fi.Size())
	}
	if off < 0 || off >= end {
		return nil
	}
	end = min(end, off+int64(n))
	return m.data[off:end:end]
}

// ReadAt implements io.ReaderAt.
func (m *Mapping) ReadAt(b []byte, off int64) (n int, err error) {
	if err := Guard(func() { n = copy(b, m.Window(off, len(b))) }); err != nil {
		return 0, err
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Close unmaps the file.
func (m *Mapping) Close() error {
	data := m.data
	m.data = nil
	if data == nil {
		return nil
	}
	return munmap(data)
}

// Guard calls do and returns ErrCutOff if it read a part of a Mapping that its file has lost. do
// must not start goroutines that read windows.
func Guard(do func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case interface{ Addr() uintptr }: // of a fault
			err = ErrCutOff
		default:
			panic(r)
		}
	}()
	do()
	return nil
}
