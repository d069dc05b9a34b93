package mapdump

import (
	"bytes"
	"fmt"
	"strconv"
)

// plainDump reads "key: HEX… value: HEX…", in one line or in many, with "value (CPU
// 00):" for each CPU, up to "Found N elements".
type plainDump struct {
	*scanner
	facts *facts
	again bool // the last word is still to be used
	ended bool
	count uint64
}

// next reads a pair into p; false at the end and at damage.
func (d *plainDump) next(p *pair) bool {
	for !d.ended && d.err == nil {
		p.reset()
		word := d.read()
		switch {
		case d.err != nil:
			return false
		case len(word) == 0:
			return d.fail("the dump is cut off: no line that counts its elements")
		case string(word) == "Found":
			return d.found()
		case string(word) == "key:" || bytes.HasPrefix(word, []byte("value")):
			if ok, again := d.pair(p); !again {
				return ok
			}
		case len(word) > 1 && word[len(word)-1] == ':' && d.count == 0 &&
			isNumber(word[:len(word)-1]):
			d.header(word)
		case len(word) > 1 && word[len(word)-1] == ':' && isNumber(word[:len(word)-1]):
			d.err = fmt.Errorf("%s: offset %#x: %w", d.name, d.offset(), ErrSeveral)
			return false
		case string(word) == "Error:":
			d.err = fmt.Errorf("%s: %w: %s", d.name, ErrTool, d.line())
			return false
		default:
			return d.fail("%q where a key begins", word)
		}
	}
	return false
}

// follows reports whether a word can follow a pair: the start of another one, or of the
// number of all. A value followed by anything else may be incomplete.
func follows(word []byte) bool {
	return string(word) == "key:" || string(word) == "Found" ||
		bytes.HasPrefix(word, []byte("value"))
}

func isNumber(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// read returns the next word, valid until the next call; empty at the end.
func (d *plainDump) read() []byte {
	if d.again {
		d.again = false
		return d.word
	}
	d.word = d.word[:0]
	if _, ok := d.skip(); !ok {
		return nil
	}
	for {
		c, ok := d.peek()
		if !ok || isSpace(c) {
			return d.word
		}
		d.pos++
		if len(d.word) == maxWord {
			d.fail("a word of more than %d bytes", maxWord)
			return nil
		}
		d.word = append(d.word, c)
	}
}

// line returns the rest of the line, cut at maxWord.
func (d *plainDump) line() string {
	d.word = d.word[:0]
	for {
		c, ok := d.get()
		if !ok || c == '\n' {
			return string(bytes.TrimSpace(d.word))
		}
		if len(d.word) < maxWord {
			d.word = append(d.word, c)
		}
	}
}

// pair reads a pair after its first word. again is set if it was none: the value could not be read.
func (d *plainDump) pair(p *pair) (ok, again bool) {
	word := d.word
	if string(word) == "key:" {
		word = d.hex(p, &p.key)
	}
	perCPU := false
	for d.err == nil && bytes.HasPrefix(word, []byte("value")) {
		if string(word) == "value" {
			if !d.cpu(p.n) {
				return false, false
			}
			perCPU = true
		} else if p.n > 0 && !perCPU {
			break // a map without keys: the next element
		}
		v, ok := d.begin(p)
		if !ok {
			return false, false
		}
		word = d.hex(p, v)
	}
	switch {
	case d.err != nil:
		return false, false
	case p.n == 0 && string(word) == "inner_map_id:":
		return d.inner(p), false
	case p.n == 0:
		return d.fail("%q where a value begins", word), false
	case p.n == 1 && len(p.values[0]) == 0 && len(word) > 0 && string(word) != "key:":
		first := string(word) // which line overwrites
		d.facts.lose(first + " " + d.line())
		return false, true
	case len(word) == 0:
		return d.fail("the dump is cut off in a value"), false
	case !follows(word):
		return d.fail("%q where a key begins", word), false
	}
	d.facts.perCPU = d.facts.perCPU || perCPU
	d.again = true
	d.count++
	return true, false
}

// inner reads the number that is the value of a map of maps, a u32 of the host's order;
// little-endian is assumed, as a text dump does not record it.
func (d *plainDump) inner(p *pair) bool {
	id, err := strconv.ParseUint(string(d.read()), 10, 32)
	if err != nil {
		return d.fail("no id of an inner map")
	}
	v, _ := d.begin(p)
	for range 4 {
		d.put(p, v, byte(id))
		id >>= 8
	}
	d.count++
	return d.err == nil
}

// hex appends bytes that are printed as two digits to b, a buffer of p, and returns the
// word after them; empty at the end.
func (d *plainDump) hex(p *pair, b *[]byte) []byte {
	for {
		word := d.read()
		if len(word) != 2 {
			return word
		}
		v, ok := hexByte(word[0], word[1])
		if !ok {
			return word
		}
		if !d.put(p, b, v) {
			return nil
		}
	}
}

// cpu reads "(CPU 00):".
func (d *plainDump) cpu(want int) bool {
	if w := d.read(); string(w) != "(CPU" {
		return d.fail("%q in place of the number of a CPU", w)
	}
	w, ok := bytes.CutSuffix(d.read(), []byte("):"))
	if n, err := strconv.Atoi(string(w)); !ok || err != nil || n != want {
		return d.fail("%q where CPU %d should follow", w, want)
	}
	return true
}

// found compares the number of elements with bpftool's count.
func (d *plainDump) found() bool {
	d.ended = true
	n, err := strconv.ParseUint(string(d.read()), 10, 64)
	if err != nil {
		return d.fail("no number of elements at the end")
	}
	if n != d.count {
		return d.fail("%d elements, bpftool counted %d", d.count, n)
	}
	if d.read(); bytes.HasPrefix(d.word, []byte("element")) {
		if d.read(); len(d.word) > 0 {
			d.err = fmt.Errorf("%s: offset %#x: %w", d.name, d.offset(), ErrSeveral)
		}
	}
	return false
}

// header reads "12: hash  name counts  flags 0x0", the line before each of several
// maps.
func (d *plainDump) header(id []byte) {
	if v, err := strconv.ParseUint(string(id[:len(id)-1]), 10, 32); err == nil {
		d.facts.number("id", uint32(v))
	}
	words := bytes.Fields([]byte(d.line()))
	for i, w := range words {
		switch {
		case i == 0:
			d.facts.set("type", string(w))
		case i+1 < len(words) && string(w) == "name":
			d.facts.set("name", string(words[i+1]))
		case i+1 < len(words) && string(w) == "flags":
			if v, err := strconv.ParseUint(string(words[i+1]), 0, 32); err == nil {
				d.facts.number("flags", uint32(v))
			}
		}
	}
}
