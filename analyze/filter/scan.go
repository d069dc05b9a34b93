package filter

import (
	"bytes"

	"symbolize/buildid"
	"symbolize/ingest/object/bpf"
)

// Numbers of digits of a build ID in text.
const (
	minIDDigits  = 16 // 8 bytes, as lld makes them
	md5Digits    = 32
	sha1Digits   = 2 * buildid.KeyLen
	maxIDDigits  = 2 * buildid.MaxLen
	maxOffDigits = 16
)

// Classes of bytes.
const (
	classHex    = 1 << iota // a hexadecimal digit
	classSymbol             // may be in a kernel symbol
	classAnchor             // a form may begin here
)

var classes = func() (c [256]uint8) {
	for _, b := range []byte("0123456789abcdefABCDEF") {
		c[b] |= classHex
	}
	for b := range 256 {
		if b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' && b < 0x80 ||
			b == '_' || b == '.' || b == '$' {
			c[b] |= classSymbol
		}
	}
	for _, b := range []byte("+ [{bC#") {
		c[b] |= classAnchor
	}
	return c
}()

func isHex(c byte) bool    { return classes[c]&classHex != 0 }
func isSymbol(c byte) bool { return classes[c]&classSymbol != 0 }

// scanner finds places in lines of text. Its state depends on earlier lines.
type scanner struct {
	kernel  buildid.ID // of symbols without a module; zero if unknown
	unnamed buildid.ID // the kernel of traces with a head without a build ID
	image   []byte     // name of its file, by the release in the head of the trace; nil for none
	exact   bool       // no address is a return address

	line    int // number of the current line
	lastAt  int // number of the line with the last frame of a stack; 0 for none
	markup  markup
	modules modules
	process process

	// Of the current line.
	text    []byte
	floor   int // everything before it belongs to a place
	mark    int // end of the first of exactMarks, len(text) for none; -1: unknown
	frameAt int // after the number of the frame
	frameNo int // number of the line's frame plus 1; 0 for none; -1: unknown
	places  []place
}

// scan returns the places in a line, in order. They are valid until the next call.
func (s *scanner) scan(text []byte) []place {
	s.line++
	s.text, s.floor, s.mark, s.frameNo, s.places = text, 0, -1, -1, s.places[:0]
	s.endModules()
	s.lineStart()
	for i := 0; i < len(text); i++ {
		if classes[text[i]]&classAnchor == 0 {
			continue
		}
		switch text[i] {
		case '+':
			s.plus(i)
		case ' ':
			s.space(i)
		case '[':
			s.bracket(i)
		case '{':
			s.braces(i)
		case 'b':
			s.program(i)
		case 'C':
			s.kernelLine(i)
		case '#':
			s.numberSign(i)
		}
		i = max(i, s.floor-1)
	}
	if len(s.places) == 0 && rawFrame(text) &&
		(s.lastAt > 0 && s.lastAt == s.line-1 || text[0] == ' ' || text[0] == '\t') {
		s.lastAt = s.line // a frame without a build ID; tools indent the first of a run
	}
	return s.places
}

// rawFrame reports whether a line is only an address, as bpftrace prints frames without a build ID.
func rawFrame(text []byte) bool {
	text = bytes.TrimSpace(text)
	n := hexLen(text)
	return n == len(text) && n >= 6 && n <= maxOffDigits
}

// add adds a place. Scanning continues at next.
func (s *scanner) add(p place, next int) {
	p.exact = p.exact || s.exact
	s.places = append(s.places, p)
	s.floor = next
}

// frame notes a frame in the line, and reports whether it is the first one of a run.
func (s *scanner) frame() (first bool) {
	first = s.lastAt < s.line-1 || s.lastAt == 0
	s.lastAt = s.line
	return first
}

// plus reads "…+0xOFF…", with the plus at i.
func (s *scanner) plus(i int) {
	offset, end, ok := s.prefixed(i + 1)
	if !ok {
		if i+1 < len(s.text) && s.text[i+1] == ' ' {
			if !s.breakpad(i) {
				s.coredump(i)
			}
		}
		return
	}
	from := s.tokenBefore(i)
	token := s.text[from:i]
	if p, next, ok := s.sanitizer(i, end); ok {
		p.offset = offset
		s.add(p, next)
		return
	}
	if s.backtrace(i, end, offset) || s.sanitizerFile(i, end, offset) || s.jvm(i, end, offset) {
		return
	}
	if len(token) == 0 {
		return
	}
	if strong, ok := s.idToken(from, i); ok {
		p := place{start: from, end: end, form: formOffset, id: token, offset: offset,
			weak: !strong}
		s.unwrap(&p)
		p.exact = s.frame()
		s.add(p, p.end)
		return
	}
	s.symbol(place{start: from, end: end, form: formSymbol, symbol: token, offset: offset})
}

// unwrap adds "buildid:" before a build ID, and brackets around both, to the place.
func (s *scanner) unwrap(p *place) {
	const prefix = "buildid:"
	at := p.start - len(prefix)
	if at < s.floor || string(s.text[at:p.start]) != prefix {
		return
	}
	p.start, p.weak = at, false
	if at > s.floor && s.text[at-1] == '[' && p.end < len(s.text) && s.text[p.end] == ']' {
		p.start, p.end = at-1, p.end+1
	}
}

// symbol reads the text after "SYM+0xOFF".
func (s *scanner) symbol(p place) {
	next := p.end
	if size, end, ok := s.after(p.end, "/"); ok {
		p.length, p.size, p.end, next = true, size, end, end
	}
	first := s.frame()
	module, id, end := s.moduleAt(p.end)
	if end > 0 {
		next = end
	}
	switch {
	case len(id) > 0:
		p.id, p.module = id, module
		if !p.length && bytes.Equal(module, p.symbol) {
			p.form, p.symbol = formOffset, nil
		}
	case !p.length:
		return // it may be any text
	case len(module) == 0:
		p.object, p.file = s.kernel, s.image
	default:
		p.module = module
	}
	p.exact = s.exactBefore(p.start) || p.offset == 0 || !p.length && first
	s.add(p, next)
}

// moduleAt reads " [MOD ID]" or " [MOD]" at i; end is 0 for neither.
func (s *scanner) moduleAt(i int) (module, id []byte, end int) {
	rest := s.text[i:]
	if !bytes.HasPrefix(rest, []byte(" [")) {
		return nil, nil, 0
	}
	n := 2
	for n < len(rest) && (isSymbol(rest[n]) || rest[n] == '-') {
		n++
	}
	module = rest[2:n]
	if len(module) == 0 || n == len(rest) {
		return nil, nil, 0
	}
	if rest[n] == ' ' {
		k := hexLen(rest[n+1:])
		if id = rest[n+1 : n+1+k]; k < minIDDigits || k%2 != 0 {
			return nil, nil, 0
		}
		n += 1 + k
	}
	if n == len(rest) || rest[n] != ']' {
		return nil, nil, 0
	}
	return module, id, i + n + 1
}

// space reads "ID 0xOFF" and "ID +OFF", with the space at i.
func (s *scanner) space(i int) {
	if i+2 >= len(s.text) || i-s.floor < minIDDigits || !isHex(s.text[i-1]) {
		return
	}
	var offset uint64
	var end int
	var ok bool
	switch s.text[i+1] {
	case '0':
		offset, end, ok = s.prefixed(i + 1)
	case '+':
		if offset, end, ok = s.prefixed(i + 2); !ok {
			offset, end, ok = s.number(i + 2)
		}
	}
	if !ok {
		return
	}
	from := s.tokenBefore(i)
	strong, ok := s.idToken(from, i)
	if !ok {
		return
	}
	p := place{start: from, end: end, form: formOffset, id: s.text[from:i], offset: offset,
		weak: !strong}
	first := s.frame()
	p.exact = first
	if n, numbered := s.numbered(from); numbered {
		p.exact = n == 0
	}
	s.unwrap(&p)
	s.add(p, p.end)
}

// numbered reads "[N]" that ends at i.
func (s *scanner) numbered(i int) (n int, ok bool) {
	if i-s.floor < 3 || s.text[i-1] != ']' {
		return 0, false
	}
	at := bytes.LastIndexByte(s.text[s.floor:i], '[') + s.floor
	digits := s.text[at+1 : i-1]
	if at < s.floor || s.text[at] != '[' || len(digits) == 0 || len(digits) > 4 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// bracket reads "[buildid:ID]" with an offset after it.
func (s *scanner) bracket(i int) {
	const head = "[buildid:"
	if !bytes.HasPrefix(s.text[i:], []byte(head)) {
		if !s.goSignal(i) && !s.fixedBacktrace(i) && !s.perfScript(i) {
			s.segfault(i)
		}
		return
	}
	from := i + len(head)
	n := hexLen(s.text[from:])
	end := from + n
	if n%2 != 0 || n < 2 || n > 2*buildid.MaxLen || end == len(s.text) || s.text[end] != ']' {
		return
	}
	p := place{start: i, form: formOffset, id: s.text[from:end]}
	const systing = "unknown ("
	if at := i - len(systing); at >= s.floor && string(s.text[at:i]) == systing {
		offset, last, ok := s.after(end+1, ") <")
		if ok && last < len(s.text) && s.text[last] == '>' {
			p.start, p.end, p.offset = at, last+1, offset
			s.frame()
			s.add(p, p.end)
			return
		}
	}
	for _, between := range [...]string{"+", " +", " ", " <"} {
		offset, last, ok := s.after(end+1, between)
		if !ok {
			continue
		}
		if between == " <" {
			if last == len(s.text) || s.text[last] != '>' {
				continue
			}
			last++
		}
		p.end, p.offset, p.exact = last, offset, s.frame()
		s.add(p, p.end)
		return
	}
}

// program reads "bpf_prog_TAG…", which begins at i.
func (s *scanner) program(i int) {
	if bytes.HasPrefix(s.text[i:], []byte("build-id")) {
		s.moduleLine(i)
		return
	}
	if !bpf.IsSymbol(s.text[i:]) || i > 0 && isSymbol(s.text[i-1]) {
		return
	}
	end := i + len(bpf.SymbolPrefix)
	for end < len(s.text) && isSymbol(s.text[end]) {
		end++
	}
	_, name, ok := bpf.SplitSymbol(string(s.text[i:end]))
	if !ok {
		return
	}
	p := place{start: i, end: end, form: formBPF, symbol: s.text[i:end]}
	if end < len(s.text) && s.text[end] == '+' {
		offset, last, ok := s.prefixed(end + 1)
		if !ok {
			offset, last, ok = s.decimal(end + 1)
		}
		if ok {
			p.offset, p.end = offset, last
			s.programOffset(&p)
			return
		}
	}
	if name == "" {
		p.form, p.exact = formTag, true
		s.add(p, p.end)
		return
	}
	s.floor = p.end
}

// programOffset reads the text after "bpf_prog_TAG_NAME+0xOFF".
func (s *scanner) programOffset(p *place) {
	if size, end, ok := s.after(p.end, "/"); ok {
		p.length, p.size, p.end = true, size, end
	}
	first := s.frame()
	p.exact = s.exactBefore(p.start) || p.offset == 0 || !p.length && first
	s.add(*p, p.end)
}
