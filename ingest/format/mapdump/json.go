package mapdump

import (
	"fmt"
	"strconv"
)

// jsonDump reads [{"key":["0x0a",…],"value":["0x01",…],"formatted":…},…], and
// "values":[{"cpu":0,"value":[…]},…] of maps that are per CPU.
type jsonDump struct {
	*scanner
	facts *facts
	in    int  // brackets open around the elements
	ended bool // of the first map
}

// element holds the members of one object.
type element struct {
	key, value bool // were present, as bytes
	formatted  bool // a key or value was present, and was no array of bytes
	failure    string
	opened     bool // not an element: it describes the map with the elements that follow
}

// next reads an element into p; false at the end and at damage.
func (j *jsonDump) next(p *pair) bool {
	for {
		c, ok := j.take()
		switch {
		case j.err != nil || j.ended:
			return false
		case !ok:
			return j.fail("the dump is cut off: no ']' behind the last element")
		case c == '[':
			if j.in++; j.in > 3 {
				return j.fail("%d brackets around elements", j.in)
			}
		case c == ',' && j.in > 0:
		case c == ']' && j.in > 0:
			j.end()
			return false
		case c == '{':
			p.reset()
			var e element
			if !j.members(p, &e, 0) {
				return false
			}
			if ok, again := j.judge(p, &e); !again {
				return ok
			}
		default:
			return j.fail("%q where an element begins", c)
		}
	}
}

// judge classifies an object: a pair, a failure that bpftool reports, or the beginning of a map.
func (j *jsonDump) judge(p *pair, e *element) (ok, again bool) {
	switch {
	case e.opened:
		return false, true
	case e.failure != "" && !e.key:
		j.err = fmt.Errorf("%s: %w: %s", j.name, ErrTool, e.failure)
		return false, false
	case e.failure != "":
		j.facts.lose(e.failure)
		return false, true
	case e.value && (e.key || !e.formatted):
		return true, false
	case e.formatted:
		j.err = fmt.Errorf("%s: offset %#x: %w", j.name, j.offset(), errFormatted)
		return false, false
	}
	return j.fail("an element without a value"), false
}

// end checks the bytes after the elements of the first map.
func (j *jsonDump) end() {
	j.ended = true
	for c, ok := j.take(); ok; c, ok = j.take() {
		if c == '{' || c == '[' {
			j.err = fmt.Errorf("%s: offset %#x: %w", j.name, j.offset(), ErrSeveral)
			return
		}
	}
}

// members reads the members of an object after its '{'. depth is 1 for the value of a CPU.
func (j *jsonDump) members(p *pair, e *element, depth int) bool {
	for {
		c, ok := j.take()
		switch {
		case !ok:
			return j.fail("the dump is cut off in an element")
		case c == ',':
			continue
		case c == '}':
			return true
		case c != '"':
			return j.fail("%q where a name begins", c)
		}
		if !j.str() {
			return false
		}
		member := string(j.word)
		if c, ok = j.take(); !ok || c != ':' {
			return j.fail("no ':' behind the name %q", member)
		}
		if !j.member(member, p, e, depth) {
			return false
		}
		if e.opened {
			return true
		}
	}
}

func (j *jsonDump) member(name string, p *pair, e *element, depth int) bool {
	hex, ok := false, true
	switch {
	case name == "key" && depth == 0:
		hex, ok = j.bytes(p, &p.key)
		e.key = e.key || hex
		e.formatted = e.formatted || !hex
	case name == "value":
		return j.value(p, e)
	case name == "values" && depth == 0:
		return j.values(p, e)
	case name == "error":
		return j.failure(e)
	case name == "elements" && depth == 0:
		e.opened = true
	case depth == 0 && !e.key && !e.formatted:
		return j.fact(name)
	default:
		ok = j.passOver(0)
	}
	return ok
}

func (j *jsonDump) value(p *pair, e *element) bool {
	if c, ok := j.skip(); ok && c == '{' && e.key {
		return j.errorObject(e)
	}
	v, ok := j.begin(p)
	if !ok {
		return false
	}
	hex, ok := j.bytes(p, v)
	if hex {
		e.value = true
	} else {
		e.formatted = true
		p.n--
	}
	return ok
}

// errorObject reads {"error":"…"}, the replacement of an unreadable value.
func (j *jsonDump) errorObject(e *element) bool {
	j.take()
	c, ok := j.skip()
	if ok && c == '"' {
		j.take()
		if !j.str() {
			return false
		}
		if string(j.word) == "error" {
			if c, ok = j.take(); !ok || c != ':' {
				return j.fail("no ':' behind \"error\"")
			}
			return j.failure(e) && j.rest()
		}
	}
	e.formatted = true
	return j.rest()
}

func (j *jsonDump) failure(e *element) bool {
	c, ok := j.skip()
	if !ok || c != '"' {
		return j.passOver(0)
	}
	j.take()
	if !j.str() {
		return false
	}
	if e.failure = string(j.word); e.failure == "" {
		e.failure = "unknown error"
	}
	return true
}

// values reads [{"cpu":0,"value":[…]},…].
func (j *jsonDump) values(p *pair, e *element) bool {
	if c, ok := j.skip(); !ok || c != '[' {
		e.formatted = true
		return j.passOver(0)
	}
	j.take()
	j.facts.perCPU = true
	for {
		c, ok := j.take()
		switch {
		case !ok:
			return j.fail("the dump is cut off in values")
		case c == ',':
		case c == ']':
			return true
		case c == '{':
			if !j.members(p, e, 1) {
				return false
			}
		default:
			return j.fail("%q where the value of a CPU begins", c)
		}
	}
}

// bytes appends an array of "0x…" strings to b, a buffer of p. hex is false for
// anything else, which is skipped.
func (j *jsonDump) bytes(p *pair, b *[]byte) (hex, ok bool) {
	c, ok := j.skip()
	if !ok {
		return false, j.fail("the dump is cut off")
	}
	if c != '[' {
		return false, j.passOver(0)
	}
	j.take()
	for {
		c, ok := j.take()
		switch {
		case !ok:
			return false, j.fail("the dump is cut off in bytes")
		case c == ',':
		case c == ']':
			return true, true
		case c == '"':
			if !j.str() {
				return false, false
			}
			w := j.word
			if len(w) != 4 || w[0] != '0' || w[1] != 'x' {
				return false, j.rest()
			}
			v, isByte := hexByte(w[2], w[3])
			if !isByte {
				return false, j.rest()
			}
			if !j.put(p, b, v) {
				return false, false
			}
		default: // formatted: an array of numbers, structs, arrays
			j.pos--
			return false, j.rest()
		}
	}
}

// str reads a string after its first quote into word, escapes without the backslash.
func (j *jsonDump) str() bool {
	j.word = j.word[:0]
	for {
		c, ok := j.get()
		if !ok {
			return j.fail("the dump is cut off in a string")
		}
		switch c {
		case '"':
			if next, ok := j.peek(); len(j.word) == 0 && ok && next == '"' {
				j.get() // """ is how bpftool prints a character that is a quote
				j.word = append(j.word, '"')
			}
			return true
		case '\\':
			if c, ok = j.get(); !ok {
				return j.fail("the dump is cut off in a string")
			}
		}
		if len(j.word) < maxWord {
			j.word = append(j.word, c)
		}
	}
}

// rest skips the rest of an array or object, with its bracket.
func (j *jsonDump) rest() bool { return j.passOver(1) }

// passOver skips a value of any kind: up to the ',' or the bracket after it, which is not read; or
// up to the bracket that closes the depth-th, which is read.
func (j *jsonDump) passOver(depth int) bool {
	inside := depth > 0
	for {
		c, ok := j.peek()
		if !ok {
			return j.fail("the dump is cut off")
		}
		if depth == 0 && (c == ',' || c == ']' || c == '}') {
			return true
		}
		j.pos++
		switch c {
		case '"':
			if !j.str() {
				return false
			}
		case '[', '{':
			if depth++; depth > maxNest {
				return j.fail("values nested more than %d deep", maxNest)
			}
		case ']', '}':
			if depth--; depth == 0 && inside {
				return true
			}
		}
	}
}

// fact reads a member that describes the map: bpftool prints them before "elements"
// when it dumps several.
func (j *jsonDump) fact(name string) bool {
	c, ok := j.skip()
	if !ok {
		return j.fail("the dump is cut off")
	}
	switch {
	case c == '"':
		j.take()
		if !j.str() {
			return false
		}
		j.facts.set(name, string(j.word))
		return true
	case c >= '0' && c <= '9':
		j.word = j.word[:0]
		for ok && c >= '0' && c <= '9' && len(j.word) < maxWord {
			j.word = append(j.word, c)
			j.pos++
			c, ok = j.peek()
		}
		if v, err := strconv.ParseUint(string(j.word), 10, 32); err == nil {
			j.facts.number(name, uint32(v))
		}
		return j.passOver(0)
	}
	return j.passOver(0)
}
