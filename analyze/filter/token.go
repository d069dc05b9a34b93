package filter

import "bytes"

// hexLen returns how many hexadecimal digits b begins with.
func hexLen(b []byte) int {
	n := 0
	for n < len(b) && isHex(b[n]) {
		n++
	}
	return n
}

// number reads hexadecimal digits at i that no letter follows.
func (s *scanner) number(i int) (v uint64, end int, ok bool) {
	if i >= len(s.text) {
		return 0, 0, false
	}
	n := hexLen(s.text[i:])
	end = i + n
	if n == 0 || n > maxOffDigits || end < len(s.text) && isWord(s.text[end]) {
		return 0, 0, false
	}
	for _, c := range s.text[i:end] {
		v = v<<4 | uint64(nibble(c))
	}
	return v, end, true
}

// isWord reports whether a byte after a number makes it part of a word.
func isWord(c byte) bool { return isSymbol(c) && c != '.' }

// prefixed is number for digits after 0x.
func (s *scanner) prefixed(i int) (v uint64, end int, ok bool) {
	if i+2 >= len(s.text) || s.text[i] != '0' || s.text[i+1] != 'x' {
		return 0, 0, false
	}
	return s.number(i + 2)
}

// after is prefixed for a number after a text at i.
func (s *scanner) after(i int, text string) (v uint64, end int, ok bool) {
	if i > len(s.text) || !bytes.HasPrefix(s.text[i:], []byte(text)) {
		return 0, 0, false
	}
	return s.prefixed(i + len(text))
}

// decimal reads decimal digits at i, as bpftrace prints offsets.
func (s *scanner) decimal(i int) (v uint64, end int, ok bool) {
	const most = 10 // digits; no function is longer
	for end = i; end < len(s.text) && s.text[end] >= '0' && s.text[end] <= '9'; end++ {
		if end-i == most {
			return 0, 0, false
		}
		v = 10*v + uint64(s.text[end]-'0')
	}
	return v, end, end > i && (end == len(s.text) || !isWord(s.text[end]))
}

// tokenBefore returns the start of the symbol that ends at i.
func (s *scanner) tokenBefore(i int) int {
	for i > s.floor && isSymbol(s.text[i-1]) {
		i--
	}
	return i
}

// idToken reports whether a token is a build ID, and strong if it can hardly be anything else.
func (s *scanner) idToken(from, to int) (strong, ok bool) {
	n := to - from
	if n < minIDDigits || n > maxIDDigits || n%2 != 0 || hexLen(s.text[from:to]) != n {
		return false, false
	}
	return n == sha1Digits || n == md5Digits, true
}

// sanitizer reads "(PATH+0xOFF) (BuildId: ID)", with the plus at i and the end of the offset at
// end.
func (s *scanner) sanitizer(i, end int) (p place, next int, ok bool) {
	const between = ") (BuildId: "
	if !bytes.HasPrefix(s.text[end:], []byte(between)) {
		return p, 0, false
	}
	from := bytes.LastIndexByte(s.text[s.floor:i], '(')
	at := end + len(between)
	n := hexLen(s.text[at:])
	if from < 0 || n == 0 || n%2 != 0 || n > maxIDDigits || at+n == len(s.text) ||
		s.text[at+n] != ')' {
		return p, 0, false
	}
	next = at + n + 1
	return place{start: s.floor + from, end: next, form: formAddress, keep: true, exact: true,
		id: s.text[at : at+n]}, next, true
}
