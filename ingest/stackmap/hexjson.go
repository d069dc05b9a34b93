package stackmap

import "fmt"

// jsonPair reads an element of a JSON dump: {"key":["0x0a",…],"value":["0x01",…]}, or
// with a value for each CPU "values":[{"cpu":0,"value":[…]},…]. Elements without bytes,
// as bpftool prints them for what it could not look up, are passed over.
func (h *hexDump) jsonPair() bool {
	for {
		c, ok := h.skip()
		if !ok {
			return h.fail("the dump is cut off")
		}
		h.get()
		switch c {
		case '[', ',':
		case ']':
			h.ended = true
			return false
		case '{':
			h.key, h.n = h.key[:0], 0
			formatted, ok := h.jsonElement()
			if !ok {
				return false
			}
			if len(h.key) > 0 && h.n > 0 {
				return true
			}
			if formatted && h.pairs == 0 {
				h.err = fmt.Errorf("%s: %w: dump with `bpftool -j`", h.name, ErrFormatted)
				return false
			}
		default:
			return h.fail("%q where an element begins", c)
		}
	}
}

// jsonElement reads the members of an element behind its '{'. formatted says that a
// key or value was there, and was no array of bytes.
func (h *hexDump) jsonElement() (formatted, ok bool) {
	for {
		c, ok := h.skip()
		if !ok {
			return false, h.fail("the dump is cut off in an element")
		}
		h.get()
		switch c {
		case ',':
			continue
		case '}':
			return formatted, true
		case '"':
		default:
			return false, h.fail("%q where a name begins", c)
		}
		name, ok := h.jsonString()
		if !ok {
			return false, false
		}
		member := string(name)
		if c, ok = h.skip(); !ok || c != ':' {
			return false, h.fail("no value behind the name %q", member)
		}
		h.get()
		switch member {
		case "key":
			var hex bool
			if hex, ok = h.jsonBytes(&h.key); !hex {
				formatted = true
			}
		case "value":
			if h.n >= maxCPUs {
				return false, h.fail("values of more CPUs than are read")
			}
			var hex bool
			if hex, ok = h.jsonBytes(h.value()); !hex {
				h.n--
				formatted = true
			}
		case "values":
			ok = h.jsonValues()
		default:
			ok = h.jsonSkip()
		}
		if !ok {
			return false, false
		}
	}
}

// jsonValues reads [{"cpu":0,"value":[…]},…].
func (h *hexDump) jsonValues() bool {
	if c, ok := h.skip(); !ok || c != '[' {
		return h.jsonSkip()
	}
	h.get()
	for total := 0; ; {
		c, ok := h.skip()
		if !ok {
			return h.fail("the dump is cut off in values")
		}
		h.get()
		switch c {
		case ',':
		case ']':
			return true
		case '{':
			if _, ok := h.jsonElement(); !ok {
				return false
			}
			if h.n > 0 {
				total += len(h.values[h.n-1])
			}
			if total > maxPair {
				return h.fail("values of more than %d bytes", maxPair)
			}
		default:
			return h.fail("%q where the value of a CPU begins", c)
		}
	}
}

// jsonBytes appends an array of "0x…" strings to b. hex is false for anything else,
// which is passed over.
func (h *hexDump) jsonBytes(b *[]byte) (hex, ok bool) {
	c, ok := h.skip()
	if !ok {
		return false, h.fail("the dump is cut off")
	}
	if c != '[' {
		return false, h.jsonSkip()
	}
	h.get()
	for {
		if c, ok = h.skip(); !ok {
			return false, h.fail("the dump is cut off in bytes")
		}
		switch c {
		case ',':
			h.get()
		case ']':
			h.get()
			return len(*b) > 0, true
		case '"':
			h.get()
			word, ok := h.jsonString()
			if !ok {
				return false, false
			}
			v, isByte := hexByte(word)
			if !isByte {
				return false, h.jsonRest()
			}
			if !h.room(b) {
				return false, false
			}
			*b = append(*b, v)
		default: // formatted: an array of numbers or structs
			return false, h.jsonRest()
		}
	}
}

func hexByte(word []byte) (byte, bool) {
	if len(word) != 4 || word[0] != '0' || word[1] != 'x' {
		return 0, false
	}
	hi, ok := hexDigit(word[2])
	lo, ok2 := hexDigit(word[3])
	return hi<<4 | lo, ok && ok2
}

// jsonString reads the rest of a string, behind its first quote, and returns its first
// bytes, escapes as they are.
func (h *hexDump) jsonString() ([]byte, bool) {
	h.word = h.word[:0]
	for {
		c, ok := h.get()
		if !ok {
			return nil, h.fail("the dump is cut off in a string")
		}
		switch c {
		case '"':
			return h.word, true
		case '\\':
			if c, ok = h.get(); !ok {
				return nil, h.fail("the dump is cut off in a string")
			}
		}
		if len(h.word) < maxWord {
			h.word = append(h.word, c)
		}
	}
}

// jsonSkip passes over a value, whatever it is: up to the ',' or the bracket that ends
// it, which stays.
func (h *hexDump) jsonSkip() bool { return h.passOver(0) }

// jsonRest passes over the rest of an array, with its bracket.
func (h *hexDump) jsonRest() bool { return h.passOver(1) }

func (h *hexDump) passOver(depth int) bool {
	inside := depth > 0
	for {
		c, ok := h.get()
		if !ok {
			return h.fail("the dump is cut off")
		}
		switch c {
		case '"':
			if _, ok := h.jsonString(); !ok {
				return false
			}
		case '[', '{':
			if depth++; depth > maxNest {
				return h.fail("values nested more than %d deep", maxNest)
			}
		case ']', '}':
			if depth == 0 {
				h.unget()
				return true
			}
			if depth--; depth == 0 && inside {
				return true
			}
		case ',':
			if depth == 0 {
				h.unget()
				return true
			}
		}
	}
}
