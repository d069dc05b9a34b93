package stackmap

import (
	"bufio"
	"errors"
	"io"

	"symbolize/ingest/decode"
)

// objectReader cuts text into its outermost JSON objects, whether they are one a line, over many,
// or in an array, so that no more than one is in memory.
type objectReader struct {
	name    string
	in      *bufio.Reader
	buf     []byte
	at      int64
	start   int64  // of the last object
	skipped uint64 // objects that are too large or do not end
	err     error
}

func newObjectReader(name string, r io.Reader) *objectReader {
	return &objectReader{name: name, in: bufio.NewReaderSize(r, 64<<10)}
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

// object reads up to the end of an object into buf. whole is false at the end of the
// text and for an object that is cut off.
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
