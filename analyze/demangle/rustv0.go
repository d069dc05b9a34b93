package demangle

import (
	"sort"
	"strings"
)

// clearRust returns a name in Rust's mangling v0 in a form that the library reads as the mangling
// means it. There a decimal number that begins with 0 ends with it, which the length of a name
// without letters does: a closure within a closure ends in "00", a type within one in "05Inner".
// The library reads on, and has 5 letters as the closure's name, or fails. Such a 0 gets the
// underscore that may follow any length; references, which count bytes from the start, are adapted.
// It reports false if the name has such a 0 and cannot be read.
func clearRust(core string) (string, bool) {
	if !zeroThenDigit(core) {
		return core, true
	}
	r := &rustReader{in: core[len("_R"):], out: []byte("_R")}
	r.path()
	if !r.bad && r.at < len(r.in) {
		r.path() // the crate that instantiates
	}
	return string(r.out), !r.bad && r.at == len(r.in)
}

// zeroThenDigit reports whether a name has a 0 that can be a length without the rest of a number.
func zeroThenDigit(s string) bool {
	for i := 1; i < len(s); i++ {
		if s[i-1] == '0' && isDigit(s[i]) {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// A rustReader copies a mangled name, without its prefix "_R", and changes lengths and references.
// After an error, next returns 0, which is not a letter of the mangling.
type rustReader struct {
	in    string
	at    int
	out   []byte
	moved []rustMove
	bad   bool
}

// A rustMove is the distance in bytes between name and copy, from a position on.
type rustMove struct{ from, by int }

func (r *rustReader) peek() byte {
	if r.bad || r.at >= len(r.in) {
		return 0
	}
	return r.in[r.at]
}

// next copies a byte and returns it.
func (r *rustReader) next() byte {
	c := r.peek()
	if c == 0 {
		r.bad = true
		return 0
	}
	r.at++
	r.out = append(r.out, c)
	return c
}

// skip copies a byte if it is c.
func (r *rustReader) skip(c byte) bool { return r.peek() == c && r.next() == c }

// list reads with one until an E.
func (r *rustReader) list(one func()) {
	for !r.bad && !r.skip('E') {
		one()
	}
}

// move notes the distance of the following text from its position in the name.
func (r *rustReader) move() {
	r.moved = append(r.moved, rustMove{r.at, len(r.out) - len("_R") - r.at})
}

const base62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// base62 reads digits up to an underscore.
func (r *rustReader) base62() {
	for c := r.next(); !r.bad && c != '_'; c = r.next() {
		r.bad = strings.IndexByte(base62, c) < 0
	}
}

// reference reads the position of an earlier part, after B, and writes the new position.
func (r *rustReader) reference() {
	digits, place := len(r.out), 0
	from := r.at
	if r.base62(); r.bad {
		return
	}
	for _, c := range []byte(r.in[from : r.at-1]) {
		if place = place*62 + strings.IndexByte(base62, c); place > len(r.in) {
			r.bad = true
			return
		}
	}
	if r.at-from > 1 {
		place++ // "_" is 0, "0_" is 1
	}
	i := sort.Search(len(r.moved), func(i int) bool { return r.moved[i].from > place })
	if i > 0 {
		place += r.moved[i-1].by
	}
	r.out = appendBase62(r.out[:digits], place)
	r.move()
}

// appendBase62 appends a number as the mangling writes it.
func appendBase62(b []byte, n int) []byte {
	if n > 0 {
		n--
		var digits []byte
		for ; n >= 62; n /= 62 {
			digits = append(digits, base62[n%62])
		}
		digits = append(digits, base62[n])
		for i := len(digits) - 1; i >= 0; i-- {
			b = append(b, digits[i])
		}
	}
	return append(b, '_')
}

// identifier reads a name with its disambiguator.
func (r *rustReader) identifier() {
	if r.skip('s') {
		r.base62()
	}
	r.bareIdentifier()
}

func (r *rustReader) bareIdentifier() {
	r.skip('u')
	if !isDigit(r.peek()) {
		r.bad = true
		return
	}
	n := int(r.next() - '0')
	if n == 0 && isDigit(r.peek()) {
		r.out = append(r.out, '_')
		r.move()
		return
	}
	for n > 0 && n <= len(r.in) && isDigit(r.peek()) {
		n = 10*n + int(r.next()-'0')
	}
	r.skip('_')
	if n > len(r.in)-r.at {
		r.bad = true
		return
	}
	r.out = append(r.out, r.in[r.at:r.at+n]...)
	r.at += n
}

func (r *rustReader) path() {
	switch c := r.next(); c {
	case 'C':
		r.identifier()
	case 'M', 'X': // an implementation, of a trait
		if r.skip('s') {
			r.base62()
		}
		r.path()
		r.typ()
		if c == 'X' {
			r.path()
		}
	case 'Y':
		r.typ()
		r.path()
	case 'N':
		r.next()
		r.path()
		r.identifier()
	case 'I':
		r.path()
		r.list(r.argument)
	case 'B':
		r.reference()
	default:
		r.bad = true
	}
}

// argument reads a generic argument.
func (r *rustReader) argument() {
	switch {
	case r.skip('L'):
		r.base62()
	case r.skip('K'):
		r.constant()
	default:
		r.typ()
	}
}

func (r *rustReader) typ() {
	switch c := r.peek(); c {
	case 'A', 'S', 'P', 'O', 'R', 'Q':
		r.next()
		if (c == 'R' || c == 'Q') && r.skip('L') {
			r.base62()
		}
		r.typ()
		if c == 'A' {
			r.constant()
		}
	case 'T':
		r.next()
		r.list(r.typ)
	case 'F':
		r.next()
		r.signature()
	case 'D':
		r.next()
		r.bounds()
	default:
		if c >= 'a' && c <= 'z' {
			r.next()
		} else {
			r.path()
		}
	}
}

// signature reads the type of a function after its F.
func (r *rustReader) signature() {
	if r.skip('G') {
		r.base62()
	}
	r.skip('U')
	if r.skip('K') && !r.skip('C') {
		r.bareIdentifier()
	}
	r.list(r.typ)
	r.typ()
}

// bounds reads the traits and the lifetime of a dyn type after its D.
func (r *rustReader) bounds() {
	if r.skip('G') {
		r.base62()
	}
	r.list(func() {
		r.path()
		for r.skip('p') {
			r.bareIdentifier()
			r.typ()
		}
	})
	r.bad = r.bad || !r.skip('L')
	r.base62()
}

// constant reads a placeholder, a reference, or a type with hexadecimal digits.
func (r *rustReader) constant() {
	switch r.next() {
	case 'p':
	case 'B':
		r.reference()
	default:
		r.skip('n')
		r.base62()
	}
}
