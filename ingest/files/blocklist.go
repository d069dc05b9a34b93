package files

import (
	"errors"
	"io"
)

// Sizes of blocks of a blockList, bytes.
const (
	listBlock  = 1 << 20
	firstBlock = 64 << 10 // initial capacity
)

// blockList holds a byte stream of unknown length. Unlike a bytes.Buffer it never holds more than
// one partly filled block beyond the content, also while it grows.
type blockList struct {
	blocks [][]byte // all but the last have listBlock bytes
	size   int64
	stop   func() error // called before each block; can be nil
}

// ReadFrom appends everything up to EOF.
func (l *blockList) ReadFrom(r io.Reader) (n int64, err error) {
	for {
		b, err := l.room()
		if err != nil {
			return n, err
		}
		got, err := r.Read(b)
		last := &l.blocks[len(l.blocks)-1]
		*last = (*last)[:len(*last)+got]
		n += int64(got)
		l.size += int64(got)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// room returns memory after the last byte. The last block grows up to its size, so that small files
// need little.
func (l *blockList) room() ([]byte, error) {
	if n := len(l.blocks); n == 0 || len(l.blocks[n-1]) == listBlock {
		if l.stop != nil {
			if err := l.stop(); err != nil {
				return nil, err
			}
		}
		l.blocks = append(l.blocks, make([]byte, 0, firstBlock))
		if n > 0 {
			l.blocks[n] = make([]byte, 0, listBlock)
		}
	}
	last := &l.blocks[len(l.blocks)-1]
	if len(*last) == cap(*last) {
		grown := make([]byte, len(*last), min(4*cap(*last), listBlock))
		copy(grown, *last)
		*last = grown
	}
	return (*last)[len(*last):cap(*last)], nil
}

// ReadAt serves io.ReaderAt.
func (l *blockList) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	for n < len(b) {
		at := off + int64(n)
		if at >= l.size {
			return n, io.EOF
		}
		n += copy(b[n:], l.blocks[at/listBlock][at%listBlock:])
	}
	return n, nil
}
