package mapdump

import (
	"errors"
	"fmt"
	"io"

	"symbolize/ingest/decode"
)

// scanner walks a file byte by byte with a sticky error. With -j a whole map is one
// line, so that nothing is read by lines.
type scanner struct {
	name string
	r    io.ReaderAt
	size int64
	base int64 // of buf in the file
	buf  []byte
	pos  int
	word []byte // the last string or word
	err  error
}

func newScanner(name string, r io.ReaderAt, size int64) *scanner {
	return &scanner{name: name, r: r, size: size}
}

// offset is the offset of the next byte.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

// fail records the first error with its position. It returns false.
func (s *scanner) fail(format string, args ...any) bool {
	if s.err == nil {
		s.err = &decode.Error{Name: s.name, Offset: s.offset(),
			Reason: fmt.Sprintf(format, args...)}
	}
	return false
}

// fill reads the next block; false at the end of the file and at an error.
func (s *scanner) fill() bool {
	s.base += int64(len(s.buf))
	s.pos = 0
	n := min(readSize, s.size-s.base)
	if n <= 0 {
		s.buf = s.buf[:0]
		return false
	}
	if int64(cap(s.buf)) < n {
		s.buf = make([]byte, n)
	}
	s.buf = s.buf[:n]
	got, err := s.r.ReadAt(s.buf, s.base)
	s.buf = s.buf[:got]
	if got < int(n) && err != nil && !errors.Is(err, io.EOF) {
		return s.fail("%v", err)
	}
	return got > 0
}

// get reads the next byte; ok is false at the end.
func (s *scanner) get() (c byte, ok bool) {
	if s.pos == len(s.buf) && !s.fill() {
		return 0, false
	}
	c = s.buf[s.pos]
	s.pos++
	return c, true
}

// peek is get without consuming the byte.
func (s *scanner) peek() (c byte, ok bool) {
	if s.pos == len(s.buf) && !s.fill() {
		return 0, false
	}
	return s.buf[s.pos], true
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// skip skips blanks and returns the next byte, which is not consumed.
func (s *scanner) skip() (c byte, ok bool) {
	for {
		if c, ok = s.peek(); !ok || !isSpace(c) {
			return c, ok
		}
		s.pos++
	}
}

// take reads the next byte behind blanks.
func (s *scanner) take() (c byte, ok bool) {
	if c, ok = s.skip(); ok {
		s.pos++
	}
	return c, ok
}

// hexValue of a digit; 16 and more for anything else.
func hexValue(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// hexByte returns the value of two hexadecimal digits.
func hexByte(hi, lo byte) (v byte, ok bool) {
	h, l := hexValue(hi), hexValue(lo)
	return h<<4 | l&15, h < 16 && l < 16
}

// pair is a key with its values; its buffers are reused.
type pair struct {
	key    []byte
	values [][]byte
	n      int // values in use
	total  int // bytes of them
}

func (p *pair) reset() { p.key, p.n, p.total = p.key[:0], 0, 0 }

// begin starts the next value.
func (s *scanner) begin(p *pair) (*[]byte, bool) {
	if p.n == maxCPUs {
		return nil, s.fail("values of more than %d CPUs", maxCPUs)
	}
	if p.n == len(p.values) {
		p.values = append(p.values, nil)
	}
	v := &p.values[p.n]
	*v = (*v)[:0]
	p.n++
	return v, true
}

// put appends a byte to the key or a value of p.
func (s *scanner) put(p *pair, b *[]byte, c byte) bool {
	if b == &p.key {
		if len(*b) == maxKey {
			return s.fail("a key of more than %d bytes", maxKey)
		}
	} else if p.total++; p.total > maxPair {
		return s.fail("values of more than %d bytes", maxPair)
	}
	*b = append(*b, c)
	return true
}
