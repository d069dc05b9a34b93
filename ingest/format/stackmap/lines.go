package stackmap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line of text in bytes. A line of a systing export is a stack or a
// name; one of Inspektor Gadget an event with its two stacks.
const maxLine = 1 << 20

// lineReader reads lines and passes over those that are too long.
type lineReader struct {
	name string
	in   *bufio.Reader
	long []byte
	at   int64 // of the next line
	err  error
	// skipped counts lines that are too long.
	skipped uint64
}

func newLineReader(name string, r io.Reader) *lineReader {
	return &lineReader{name: name, in: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next line without its end; it is valid until the next call. ended reports that
// the line has its newline.
func (l *lineReader) next() (line []byte, ended, ok bool) {
	for l.err == nil {
		b, err := l.in.ReadSlice('\n')
		l.at += int64(len(b))
		if err == nil {
			return b[:len(b)-1], true, true
		}
		l.long = append(l.long[:0], b...)
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			b, err = l.in.ReadSlice('\n')
			l.at += int64(len(b))
			if tooLong = tooLong || len(l.long)+len(b) > maxLine; !tooLong {
				l.long = append(l.long, b...)
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			l.err = fmt.Errorf("%s: offset %#x: %w", l.name, l.at, err)
			break
		}
		if err != nil {
			l.err = io.EOF
		}
		if tooLong {
			l.skipped++
			continue
		}
		if err == nil {
			return l.long[:len(l.long)-1], true, true
		}
		return l.long, false, len(l.long) > 0
	}
	return nil, false, false
}

// damage returns the error that ended the reading; nil at the end.
func (l *lineReader) damage() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// hexDigit is the value of a digit.
func hexDigit(c byte) (v byte, ok bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
