package stackmap

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"symbolize/ingest/decode"
)

// hexDump reads the pairs of `bpftool map dump`, as JSON (-j, -p) or plain text, from
// its hexadecimal bytes. It is no JSON parser: bpftool prints bit fields and floats in
// a way that is no JSON, beside the bytes, and all that is passed over. Neither are
// lines of any length kept: with -j the whole map is one.
type hexDump struct {
	name string
	in   *bufio.Reader
	at   int64

	key    []byte
	values [][]byte // one for each CPU; buffers are used again
	n      int      // values in use

	plain   bool
	started bool
	ended   bool // the dump says that it is complete
	pairs   uint64
	size    int    // of all values of the last pair, bytes
	word    []byte // the last word of a plain dump
	again   bool   // it is still to be used
	err     error
}

// Limits of a pair, in bytes and CPUs.
const (
	maxKey   = 64 << 10
	maxValue = 16 << 20
	maxCPUs  = 1 << 16
	maxPair  = 64 << 20 // all CPUs together
	maxWord  = 64
	maxNest  = 1 << 10 // of what is passed over
)

func newHexDump(name string, r io.Reader) *hexDump {
	return &hexDump{name: name, in: bufio.NewReaderSize(r, 256<<10)}
}

// fail remembers what is wrong, and where.
func (h *hexDump) fail(format string, args ...any) bool {
	if h.err == nil {
		h.err = &decode.Error{Name: h.name, Offset: h.at, Reason: fmt.Sprintf(format, args...)}
	}
	return false
}

func (h *hexDump) get() (byte, bool) {
	c, err := h.in.ReadByte()
	if err == nil {
		h.at++
		return c, true
	}
	if !errors.Is(err, io.EOF) {
		h.fail("%v", err)
	}
	return 0, false
}

func (h *hexDump) unget() {
	h.in.UnreadByte()
	h.at--
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// skip passes over blanks and returns the next byte, not taken.
func (h *hexDump) skip() (byte, bool) {
	for {
		c, ok := h.get()
		if !ok {
			return 0, false
		}
		if !isSpace(c) {
			h.unget()
			return c, true
		}
	}
}

// next reads a pair into key and values, which are valid until the next call. It is
// false at the end and at damage, which err tells.
func (h *hexDump) next() bool {
	if h.err != nil {
		return false
	}
	if !h.started {
		h.started = true
		c, ok := h.skip()
		if !ok {
			return h.fail("the dump is empty")
		}
		h.plain = c == 'k'
		if !h.plain && c != '[' && c != '{' {
			return h.fail("no dump of bpftool begins with %q", c)
		}
	}
	h.key, h.n = h.key[:0], 0
	ok := false
	if h.plain {
		ok = h.plainPair()
	} else {
		ok = h.jsonPair()
	}
	if ok {
		h.pairs++
	}
	return ok
}

// value returns a buffer for the next CPU's value.
func (h *hexDump) value() *[]byte {
	if h.n == len(h.values) {
		h.values = append(h.values, nil)
	}
	v := &h.values[h.n]
	*v = (*v)[:0]
	h.n++
	return v
}

// room reports whether another byte of a key or value is below the limits.
func (h *hexDump) room(b *[]byte) bool {
	limit := maxValue
	if b == &h.key {
		limit = maxKey
	}
	if len(*b) >= limit {
		return h.fail("a key or value of more than %d bytes", limit)
	}
	return true
}

func hexDigit(c byte) (byte, bool) {
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

// nextWord returns the next word of a plain dump; it is valid until the next call, and
// empty at the end.
func (h *hexDump) nextWord() []byte {
	if h.again {
		h.again = false
		return h.word
	}
	h.word = h.word[:0]
	if _, ok := h.skip(); !ok {
		return nil
	}
	for len(h.word) < maxWord {
		c, ok := h.get()
		if !ok {
			break
		}
		if isSpace(c) {
			h.unget()
			break
		}
		h.word = append(h.word, c)
	}
	return h.word
}

// plainPair reads "key: HEX… value: HEX…", in one line or in many, with a value for
// each CPU where those are "value (CPU 00):".
func (h *hexDump) plainPair() bool {
	word := h.nextWord()
	switch {
	case h.err != nil:
		return false
	case string(word) == "Found":
		h.ended = true // "Found 3 elements"
		return false
	case len(word) == 0:
		return h.fail("the dump is cut off: the line that counts its elements is missing")
	case string(word) != "key:":
		return h.fail("%q where a key begins", word)
	}
	total := 0
	for word = h.plainBytes(&h.key); string(word) == "value:" || string(word) == "value"; {
		if string(word) == "value" && !h.cpuNumber() {
			return false
		}
		if h.n >= maxCPUs || total > maxPair {
			return h.fail("values of more CPUs than are read")
		}
		v := h.value()
		word = h.plainBytes(v)
		total += len(*v)
	}
	switch {
	case h.err != nil:
		return false
	case h.n == 0:
		return h.fail("no value where one begins: %q", word)
	case len(word) == 0 && h.size > 0 && total != h.size:
		return h.fail("the dump is cut off in a value")
	}
	h.size, h.again = total, len(word) > 0
	return true
}

// plainBytes appends bytes that are printed as two digits to b, and returns the word
// behind them, empty at the end.
func (h *hexDump) plainBytes(b *[]byte) []byte {
	for {
		word := h.nextWord()
		if len(word) != 2 {
			return word
		}
		hi, ok := hexDigit(word[0])
		lo, ok2 := hexDigit(word[1])
		if !ok || !ok2 {
			return word
		}
		if !h.room(b) {
			return nil
		}
		*b = append(*b, hi<<4|lo)
	}
}

// cpuNumber reads "(CPU 00):". The CPUs come in order, so that the number says nothing.
func (h *hexDump) cpuNumber() bool {
	if w := h.nextWord(); string(w) != "(CPU" {
		return h.fail("%q where the number of a CPU stands", w)
	}
	if w := h.nextWord(); len(w) < 3 || !bytes.HasSuffix(w, []byte("):")) {
		return h.fail("%q where the number of a CPU stands", w)
	}
	return true
}
