package mapdump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/decode"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/btf"
)

// A dump of a map with BTF that bpftool prints by default has names and values of members, without
// their bytes. It is read into bytes of our own: a number has 8 bytes, a truth 1, a text as many as
// the longest one and a zero; structures and arrays have their members in the order of the text.
// Types describes them. Values that only bytes show (padding, and of unions everything but what was
// printed) are not there.

// kind is the form of a printed value.
type kind uint8

const (
	noValue kind = iota
	aNumber
	aTruth
	aText
	anEnum // of shapes: numbers, and names of others
	aStruct
	anArray
	aSection // of shapes: the variables of a section of data
)

// node is a printed value.
type node struct {
	kind   kind
	number uint64
	signed bool   // number is negative
	text   string // as printed; of numbers, too
	names  []string
	parts  []node

	section bool // an array that is the member of a name with a dot: ".data"
}

// shape is what all values at one place have in common.
type shape struct {
	kind   kind
	signed bool
	large  bool     // a number that no signed one of 64 bits is
	length int      // of texts, in bytes
	words  []string // distinct texts
	names  []string
	parts  []*shape // members; of an array the only element
	count  int      // of an array

	id   btf.ID
	size int
}

// Bounds of formatted dumps.
const (
	maxFormattedNest  = 16
	maxFormattedParts = 1 << 12
	maxFormattedText  = 1 << 12
	maxWords          = 1 << 12 // distinct names of an enumeration
	maxFormattedSize  = 1 << 20 // bytes that are made of a key or value
)

// textDump is a formatted dump that was read whole.
type textDump struct {
	pairs []textPair
	key   *shape
	value *shape
	at    int
	lost  map[string]uint64
}

type textPair struct {
	key    *node // nil for none
	values []node
}

// openText reads a formatted dump.
func openText(name string, r io.ReaderAt, size int64) (*Dump, error) {
	if size > maxFormatted {
		return nil, &decode.Error{Name: name, Reason: fmt.Sprintf("a map printed by its BTF, of more than %d MiB: "+
			"dump it with `bpftool -j map dump`", maxFormatted>>20)}
	}
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	} else {
		data = data[:n]
	}
	p := &textParser{data: data}
	t := &textDump{key: &shape{}, value: &shape{}, lost: make(map[string]uint64)}
	damage := t.parse(p)
	d := &Dump{name: name, Form: Text, text: t, facts: &facts{}, scan: newScanner(name, r, size)}
	d.facts.Entries = rawdump.UnknownEntries
	if damage != "" {
		d.damage = &decode.Error{Name: name, Offset: int64(p.at), Reason: damage}
	}
	if err := t.describe(d); err != nil {
		return nil, err
	}
	if d.ahead = t.next(&d.pair); !d.ahead && d.damage != nil {
		return nil, d.damage
	}
	d.facts.Lost = t.lost
	if len(t.lost) == 0 {
		d.facts.Lost = nil
	}
	types, key, value := d.Types, d.facts.KeyType, d.facts.ValueType
	d.measure()
	d.Types, d.Header.KeyType, d.Header.ValueType = types, key, value
	return d, nil
}

// parse reads the pairs up to damage, which it describes.
func (t *textDump) parse(p *textParser) (damage string) {
	if !p.token('[') {
		return "no '[' where the elements begin"
	}
	for p.skip(); !p.token(']'); p.skip() {
		if len(t.pairs) > 0 || len(t.lost) > 0 {
			if !p.token(',') {
				return "no ',' or ']' behind an element"
			}
		}
		e, ok := p.value(0)
		switch {
		case !ok:
			return "the dump is cut off, or no value of bpftool"
		case e.kind != aStruct:
			return "an element that is not a structure"
		}
		if why := t.element(&e); why != "" {
			return why
		}
	}
	return ""
}

// element adds an element: {"key": …, "value": …}, or "values": [{"cpu": 0, "value": …}, …].
func (t *textDump) element(e *node) (damage string) {
	pair := textPair{key: e.member("key")}
	if v := e.member("value"); v != nil {
		if why := v.member("error"); why != nil && len(v.parts) == 1 {
			t.lost[why.text]++
			return ""
		}
		pair.values = append(pair.values, *v)
	}
	if list := e.member("values"); list != nil {
		for i := range list.parts {
			if v := list.parts[i].member("value"); v != nil {
				pair.values = append(pair.values, *v)
			}
		}
	}
	switch {
	case len(pair.values) == 0:
		return "an element without a value"
	case pair.key != nil && !t.key.add(pair.key):
		return "a key of another form than those before"
	}
	for i := range pair.values {
		if !t.value.add(&pair.values[i]) {
			return "a value of another form than those before"
		}
	}
	t.pairs = append(t.pairs, pair)
	return ""
}

// member returns a member of a structure, nil if it has none.
func (n *node) member(name string) *node {
	if i := slices.Index(n.names, name); i >= 0 && n.kind == aStruct {
		return &n.parts[i]
	}
	return nil
}

// add widens the shape for one more value. It returns false for a value of another form.
func (s *shape) add(n *node) bool {
	if n.kind == anArray && s.kind == aText || s.kind == anArray && n.kind == aText {
		return s.addCharacters(n)
	}
	kind := n.kind
	if kind == anArray && n.isSection() {
		return s.addSection(n)
	}
	switch {
	case s.kind == noValue:
		s.kind, s.names = kind, n.names
	case s.kind == kind, s.kind == anEnum && (kind == aNumber || kind == aText):
	case s.kind == aNumber && kind == aText, s.kind == aText && kind == aNumber:
		s.kind = anEnum // values without a name are numbers
	default:
		return false
	}
	switch kind {
	case aNumber:
		s.signed = s.signed || n.signed
		s.large = s.large || !n.signed && n.number > math.MaxInt64
		return !s.signed || !s.large
	case aText:
		s.length = max(s.length, len(n.text))
		if len(s.words) < maxWords && !slices.Contains(s.words, n.text) {
			s.words = append(s.words, n.text)
		}
		return s.kind != anEnum || slices.Contains(s.words, n.text)
	case aStruct:
		return slices.Equal(s.names, n.names) && s.addParts(n)
	case anArray:
		s.count = max(s.count, len(n.parts))
		if len(s.parts) == 0 {
			s.parts = []*shape{{}}
		}
		for i := range n.parts {
			if !s.parts[0].add(&n.parts[i]) {
				return false
			}
		}
	}
	return true
}

// addParts adds the members of a structure.
func (s *shape) addParts(n *node) bool {
	for len(s.parts) < len(n.parts) {
		s.parts = append(s.parts, &shape{})
	}
	for i := range n.parts {
		if !s.parts[i].add(&n.parts[i]) {
			return false
		}
	}
	return true
}

// addCharacters adds an array of characters, which bpftool prints as a text or as numbers.
func (s *shape) addCharacters(n *node) bool {
	if s.kind == anArray {
		if len(s.parts) != 1 || s.parts[0].kind != aNumber && s.parts[0].kind != aText {
			return false
		}
		*s = shape{kind: aText, length: s.count}
	}
	s.length = max(s.length, len(n.text))
	if n.kind == anArray {
		s.length = max(s.length, len(n.parts))
	}
	return !slices.ContainsFunc(n.parts, func(p node) bool { return p.kind != aNumber && p.kind != aText })
}

// isSection reports whether an array lists the variables of a section: structures of one member,
// with other names each.
func (n *node) isSection() bool {
	for i := range n.parts {
		p := &n.parts[i]
		if p.kind != aStruct || len(p.parts) != 1 || i > 0 && p.names[0] == n.parts[0].names[0] {
			return false
		}
	}
	return len(n.parts) > 0 && n.section
}

// addSection adds the variables of a section.
func (s *shape) addSection(n *node) bool {
	all := node{kind: aStruct}
	for i := range n.parts {
		all.names = append(all.names, n.parts[i].names[0])
		all.parts = append(all.parts, n.parts[i].parts[0])
	}
	if s.kind == noValue {
		s.kind, s.names = aSection, all.names
	}
	return s.kind == aSection && slices.Equal(s.names, all.names) && s.addParts(&all)
}

// describe makes the types of keys and values.
func (t *textDump) describe(d *Dump) error {
	b := &typeBuilder{strings: []byte{0}, next: 1, integers: make(map[Inferred]btf.ID)}
	for _, s := range []*shape{t.key, t.value} {
		if b.shape(s); b.large {
			return &decode.Error{Name: d.name, Reason: fmt.Sprintf("keys or values of more than %d bytes",
				maxFormattedSize)}
		}
	}
	types, err := b.parse()
	if err != nil {
		return err
	}
	d.Types, d.facts.KeyType, d.facts.ValueType = types, uint32(t.key.id), uint32(t.value.id)
	d.facts.perCPU = len(t.pairs) > 0 && len(t.pairs[0].values) > 1
	return nil
}

// shape makes the type of a shape, and sets its ID and size.
func (b *typeBuilder) shape(s *shape) {
	defer func() {
		if b.large = b.large || s.size > maxFormattedSize; b.large {
			s.size = 0 // so that no product of sizes overflows
		}
	}()
	switch s.kind {
	case noValue:
		s.id, s.size = 0, 0
	case aNumber:
		s.id, s.size = b.integer(Inferred{Size: 8, Signed: s.signed}), 8
	case aTruth:
		s.id, s.size = b.integer(Inferred{Size: 1, Bool: true}), 1
	case aText:
		s.size = s.length + 1
		s.id = b.integer(Inferred{Size: s.size, Text: true})
	case anEnum:
		s.id, s.size = b.enum(s.words, s.signed), 8
	case aStruct:
		if len(s.parts) == 1 && s.parts[0].kind == aSection {
			s.id, s.size = b.section(s.names[0], s.parts[0])
			break
		}
		var words []uint32
		for i, part := range s.parts {
			b.shape(part)
			words = append(words, b.name(s.names[i]), uint32(part.id), uint32(8*s.size))
			s.size += part.size
		}
		s.id = b.add(btf.KindStruct, "", len(s.parts), uint32(s.size), words...)
	case anArray:
		if len(s.parts) == 0 || s.parts[0].kind == noValue {
			s.parts = []*shape{{kind: aTruth}}
		}
		b.shape(s.parts[0])
		index := uint32(b.integer(Inferred{Size: 4}))
		s.size = s.count * s.parts[0].size
		s.id = b.add(btf.KindArray, "", 0, 0, uint32(s.parts[0].id), index, uint32(s.count))
	}
}

// append appends the bytes of a value.
func (s *shape) append(dst []byte, n *node) []byte {
	end := len(dst) + s.size
	switch s.kind {
	case aNumber:
		dst = binary.LittleEndian.AppendUint64(dst, n.number)
	case aTruth:
		dst = append(dst, byte(n.number))
	case anEnum:
		if n.kind == aText {
			n = &node{number: wordValue(slices.Index(s.words, n.text))}
		}
		dst = binary.LittleEndian.AppendUint64(dst, n.number)
	case aText:
		dst = append(dst, n.text...)
		for i := range n.parts { // printed one by one
			dst = append(dst, n.parts[i].text[:min(1, len(n.parts[i].text))]...)
			if n.parts[i].kind == aNumber {
				dst[len(dst)-1] = byte(n.parts[i].number)
			}
		}
	case aSection:
		for i := range n.parts {
			dst = s.parts[i].append(dst, &n.parts[i].parts[0])
		}
	case aStruct:
		for i := range n.parts {
			dst = s.parts[i].append(dst, &n.parts[i])
		}
	case anArray:
		for i := range n.parts {
			dst = s.parts[0].append(dst, &n.parts[i])
		}
	}
	return append(dst, make([]byte, max(0, end-len(dst)))...)
}

// next reads a pair.
func (t *textDump) next(p *pair) bool {
	if t.at == len(t.pairs) {
		return false
	}
	x := &t.pairs[t.at]
	t.at++
	p.reset()
	if x.key != nil {
		p.key = t.key.append(p.key, x.key)
	}
	for i := range x.values {
		if p.n == len(p.values) {
			p.values = append(p.values, nil)
		}
		p.values[p.n] = t.value.append(p.values[p.n][:0], &x.values[i])
		p.n++
	}
	return true
}

// textParser reads what bpftool prints, which is JSON but for numbers in hexadecimal and characters
// in single quotes.
type textParser struct {
	data  []byte
	at    int
	parts int // of the element
}

func (p *textParser) skip() {
	for p.at < len(p.data) && isSpace(p.data[p.at]) {
		p.at++
	}
}

// token reads one byte behind blanks, if it is the next one.
func (p *textParser) token(c byte) bool {
	p.skip()
	if p.at == len(p.data) || p.data[p.at] != c {
		return false
	}
	p.at++
	return true
}

func (p *textParser) value(depth int) (n node, ok bool) {
	if depth == 0 {
		p.parts = 0
	}
	if p.parts++; depth > maxFormattedNest || p.parts > maxFormattedParts {
		return n, false
	}
	switch {
	case p.token('{'):
		return p.list(depth, '}')
	case p.token('['):
		return p.list(depth, ']')
	case p.token('"'):
		return p.quoted('"')
	case p.token('\''):
		return p.quoted('\'')
	}
	from := p.at
	for p.at < len(p.data) && !isSpace(p.data[p.at]) && p.data[p.at] != ',' && p.data[p.at] != ']' &&
		p.data[p.at] != '}' {
		p.at++
	}
	return wordNode(string(p.data[from:p.at]))
}

// list reads the members of a structure or an array.
func (p *textParser) list(depth int, end byte) (n node, ok bool) {
	n.kind = anArray
	if end == '}' {
		n.kind = aStruct
	}
	for !p.token(end) {
		if len(n.parts) > 0 && !p.token(',') {
			return n, false
		}
		if end == '}' {
			if !p.token('"') {
				return n, false
			}
			name, ok := p.quoted('"')
			if !ok || !p.token(':') {
				return n, false
			}
			n.names = append(n.names, name.text)
		}
		part, ok := p.value(depth + 1)
		if !ok {
			return n, false
		}
		part.section = end == '}' && strings.HasPrefix(n.names[len(n.names)-1], ".")
		n.parts = append(n.parts, part)
	}
	return n, true
}

// quoted reads a text after its first quote.
func (p *textParser) quoted(quote byte) (n node, ok bool) {
	n.kind = aText
	var text []byte
	for p.at < len(p.data) && len(text) <= maxFormattedText {
		c := p.data[p.at]
		p.at++
		switch {
		case c == quote && quote == '\'' && len(text) == 0: // the character is a quote
		case c == quote:
			n.text = string(text)
			return n, true
		case c == '\\' && p.at < len(p.data):
			c = p.escaped()
		}
		text = append(text, c)
	}
	return n, false
}

// escaped reads the rest of an escape of one byte.
func (p *textParser) escaped() byte {
	c := p.data[p.at]
	p.at++
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'u':
		if p.at+4 <= len(p.data) {
			if v, err := strconv.ParseUint(string(p.data[p.at:p.at+4]), 16, 16); err == nil && v < 256 {
				p.at += 4
				return byte(v)
			}
		}
	}
	return c
}

// wordNode is a number or a truth.
func wordNode(word string) (n node, ok bool) {
	n.text = word
	switch word {
	case "true", "false":
		n.kind = aTruth
		if word == "true" {
			n.number = 1
		}
		return n, true
	case "null":
		n.kind = aText
		return n, true
	}
	switch {
	case word == "(nil)":
		n.kind = aNumber
		return n, true
	case strings.HasPrefix(word, "("), strings.HasPrefix(word, "0x") && len(word) > len("0x")+16:
		n.kind = aText // not printed, or a number of 128 bits
		return n, len(word) <= maxWord
	}
	n.kind = aNumber
	if v, err := strconv.ParseUint(word, 0, 64); err == nil {
		n.number = v
		return n, true
	}
	v, err := strconv.ParseInt(word, 0, 64)
	n.number, n.signed = uint64(v), true
	return n, err == nil
}

// wordValue is the number of a name of an enumeration, which no printed number is likely to have.
func wordValue(i int) uint64 { return 1<<62 + uint64(i) }

// enum returns the type of an enumeration with these names.
func (b *typeBuilder) enum(words []string, signed bool) btf.ID {
	var list []uint32
	for i, w := range words {
		v := wordValue(i)
		list = append(list, b.name(w), uint32(v), uint32(v>>32))
	}
	kind := uint32(btf.KindEnum64)<<24 | uint32(len(words))
	if signed {
		kind |= 1 << 31
	}
	return b.addInfo(kind, "", 8, list...)
}

// section returns the type of a section of data, and its size.
func (b *typeBuilder) section(name string, s *shape) (btf.ID, int) {
	var words []uint32
	for i, part := range s.parts {
		b.shape(part)
		v := b.add(btf.KindVar, s.names[i], 0, uint32(part.id), 1)
		words = append(words, uint32(v), uint32(s.size), uint32(part.size))
		s.size += part.size
	}
	return b.add(btf.KindDatasec, name, len(s.parts), uint32(s.size), words...), s.size
}
