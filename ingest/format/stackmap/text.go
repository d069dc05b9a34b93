package stackmap

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/decode"
)

// maxLine bounds a line of text, and a JSON object, in bytes. A line of a systing export is a
// stack or a name; an object of Inspektor Gadget is an event with its two stacks.
const maxLine = 1 << 20

// lineReader reads lines and skips lines over its bound.
type lineReader struct {
	name    string
	in      *bufio.Reader
	long    []byte
	at      int64 // after the current line
	start   int64 // of the current line
	err     error
	skipped uint64 // lines that are too long
}

func newLineReader(name string, r io.Reader) *lineReader {
	return &lineReader{name: name, in: bufio.NewReaderSize(r, 64<<10)}
}

// all returns the lines without their newline, each valid until the next. whole is false for a
// last line without newline.
func (l *lineReader) all() iter.Seq2[[]byte, bool] {
	return func(yield func(line []byte, whole bool) bool) {
		for {
			line, whole, ok := l.next()
			if !ok || !yield(line, whole) {
				return
			}
		}
	}
}

func (l *lineReader) next() (line []byte, whole, ok bool) {
	for l.err == nil {
		l.start = l.at
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
		if err != nil {
			l.err = err
			if !errors.Is(err, io.EOF) {
				l.err = fmt.Errorf("%s: offset %#x: %w", l.name, l.at, err)
				break
			}
		}
		switch {
		case tooLong:
			l.skipped++
		case err == nil:
			return l.long[:len(l.long)-1], true, true
		default:
			return l.long, false, len(l.long) > 0
		}
	}
	return nil, false, false
}

// finish warns about lines that were too long, and returns the error that ended the reading; nil
// at the end of the text.
func (l *lineReader) finish(s *Set) error {
	if l.skipped > 0 {
		s.warn(fmt.Errorf("%s: %d lines of more than %d bytes are left out", l.name, l.skipped,
			maxLine))
	}
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}

// objectReader splits text into its outermost JSON objects, whether they are on one line or
// several, or in an array, so that only one is in memory.
type objectReader struct {
	name    string
	in      *bufio.Reader
	buf     []byte
	at      int64
	start   int64  // of the last object
	skipped uint64 // objects that are too large or unterminated
	err     error
}

// next returns the next object, valid until the next call.
func (o *objectReader) next() ([]byte, bool) {
	for o.err == nil {
		o.buf = o.buf[:0]
		whole, large := o.object()
		switch {
		case !whole:
			return nil, false
		case !large:
			return o.buf, true
		}
		o.skipped++
	}
	return nil, false
}

// object reads the next object into buf. whole is false at the end of the text and for an object
// that is cut off.
func (o *objectReader) object() (whole, large bool) {
	depth, quoted, escaped, newline := 0, false, false, false
	for {
		c, err := o.in.ReadByte()
		if err != nil {
			if depth > 0 || !errors.Is(err, io.EOF) {
				reason := "the output is cut off in an event"
				if !errors.Is(err, io.EOF) {
					reason = err.Error()
				}
				o.err = &decode.Error{Name: o.name, Offset: o.at, Reason: reason}
			}
			return false, false
		}
		o.at++
		if depth == 0 && c != '{' {
			continue // blanks, commas and brackets between objects
		}
		// A nested object never begins a line: the object before was damaged.
		if depth > 0 && newline && c == '{' {
			o.in.UnreadByte()
			o.at--
			return true, true
		}
		newline = c == '\n'
		if depth == 0 {
			o.start = o.at - 1
		}
		if large = large || len(o.buf) >= maxLine; !large {
			o.buf = append(o.buf, c)
		}
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return true, large
			}
		}
	}
}

// hexDigits returns how many hexadecimal digits text begins with.
func hexDigits(text []byte) int {
	return len(text) - len(bytes.TrimLeft(text, "0123456789abcdefABCDEF"))
}

// addressFrame makes a frame of an address in hexadecimal, with or without 0x.
func addressFrame(text string) (f Frame, ok bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return Frame{Offset: v, Status: IP}, err == nil
}

// buildIDFrame makes a frame of a build ID of up to 20 bytes and an offset, both in hexadecimal.
// Zeros are no build ID: then the offset is an address.
func (s *Set) buildIDFrame(id []byte, offset string) (f Frame, ok bool) {
	f, ok = addressFrame(offset)
	var raw [buildid.KeyLen]byte
	if !ok || len(id) == 0 || len(id) > 2*len(raw) {
		return f, false
	}
	if _, err := hex.Decode(raw[:], id); err != nil {
		return f, false
	}
	if raw == ([buildid.KeyLen]byte{}) {
		return f, true
	}
	return s.valid(raw, f.Offset), true
}

// processID converts the number of a process or thread; -1 if it is out of range.
func processID(n int64) int32 {
	if n < 0 || n > math.MaxInt32 {
		return -1
	}
	return int32(n)
}
