package tracefmt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of a print format. The longest of Linux 6.18 have some 10 KB.
const (
	maxText  = 1 << 20
	maxNest  = 64
	maxNodes = 1 << 14
	maxWidth = 3 // digits of a width or precision
)

// node is an expression, or an argument that cannot be evaluated.
type node struct {
	op       string // an operator, "number", "text", "field", "index", "cast", "call", "list", "unknown"
	text     string // of a text, a field, the type of a cast, the name of a call
	value    uint64 // of a number
	unsigned bool   // the number is
	parts    []node // operands; arguments of a call; of a list pairs of a number and a text
}

// errSyntax is the error of a text that is not a print format.
var errSyntax = errors.New("not a print format")

// parser reads a print format.
type parser struct {
	text  string
	at    int
	nest  int
	nodes int
}

// Parse parses the print format of a tracepoint.
func Parse(text string) (*Format, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%w: more than %d bytes", errSyntax, maxText)
	}
	p := &parser{text: text}
	format, ok := p.quoted()
	if !ok {
		return nil, fmt.Errorf("%w: it begins without a text", errSyntax)
	}
	f := &Format{}
	for p.accept(",") {
		from := p.at
		n, ok := p.expression()
		if p.space(); !ok || p.at < len(p.text) && p.text[p.at] != ',' {
			n = node{op: "unknown"}
			if p.at = from; !p.passArgument() {
				return nil, fmt.Errorf("%w: brackets that do not match", errSyntax)
			}
		}
		n.fold()
		f.args = append(f.args, n)
	}
	if p.space(); p.at < len(p.text) {
		return nil, fmt.Errorf("%w: %q behind it", errSyntax, p.text[p.at:min(len(p.text), p.at+20)])
	}
	f.pieces = split(format)
	return f, nil
}

// fold replaces expressions of numbers, such as the masks of flags, by their values.
func (n *node) fold() {
	numbers := len(n.parts) > 0
	for i := range n.parts {
		n.parts[i].fold()
		numbers = numbers && n.parts[i].op == "number"
	}
	switch n.op {
	case "call", "list", "index":
		return
	}
	if !numbers {
		return
	}
	if v, ok := (&Sample{}).eval(n); ok && !v.scaled {
		*n = node{op: "number", value: v.number, unsigned: !v.signed}
	}
}

// passArgument skips an argument that is not understood.
func (p *parser) passArgument() bool {
	depth := 0
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			if depth--; depth < 0 {
				return false
			}
		case ',':
			if depth == 0 {
				return true
			}
		case '"':
			if _, ok := p.quoted(); !ok {
				return false
			}
			p.at--
		}
	}
	return depth == 0
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// accept reads a token if it is the next one.
func (p *parser) accept(token string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

// quoted reads adjacent texts in quotes.
func (p *parser) quoted() (text string, ok bool) {
	var b strings.Builder
	for p.accept(`"`) {
		ok = false
		for p.at < len(p.text) && !ok {
			c := p.text[p.at]
			p.at++
			switch {
			case c == '"':
				ok = true
			case c == '\\' && p.at < len(p.text):
				b.WriteByte(unescape(p.text[p.at]))
				p.at++
			default:
				b.WriteByte(c)
			}
		}
		if !ok {
			return "", false
		}
	}
	return b.String(), ok
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	}
	return c
}

// operators are the binary operators by precedence, weakest first; longer ones before their beginnings.
var operators = [][]string{{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"},
	{"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}}

func (p *parser) expression() (node, bool) {
	if p.nest++; p.nest > maxNest {
		return node{}, false
	}
	defer func() { p.nest-- }()
	n, ok := p.level(0)
	if !ok || !p.accept("?") {
		return n, ok
	}
	yes, ok1 := p.expression()
	if !ok1 || !p.accept(":") {
		return node{}, false
	}
	no, ok2 := p.expression()
	return node{op: "?", parts: []node{n, yes, no}}, ok2
}

// level parses operators of a precedence and above.
func (p *parser) level(k int) (node, bool) {
	if k == len(operators) {
		return p.unary()
	}
	left, ok := p.level(k + 1)
	for ok {
		op := p.operator(operators[k])
		if op == "" {
			break
		}
		var right node
		if right, ok = p.level(k + 1); ok {
			left = node{op: op, parts: []node{left, right}}
		}
	}
	return left, ok
}

// operator reads one of some operators that is not the beginning of another.
func (p *parser) operator(list []string) string {
	p.space()
	for _, op := range list {
		rest, ok := strings.CutPrefix(p.text[p.at:], op)
		if ok && (len(op) > 1 || rest == "" || strings.IndexByte("&|<>=", rest[0]) < 0 || op == "<" || op == ">") {
			p.at += len(op)
			return op
		}
	}
	return ""
}

func (p *parser) unary() (node, bool) {
	if p.nodes++; p.nodes > maxNodes {
		return node{}, false
	}
	for _, op := range []string{"!", "~", "-", "+"} {
		if p.accept(op) {
			p.nest++
			defer func() { p.nest-- }()
			if p.nest > maxNest {
				return node{}, false
			}
			n, ok := p.unary()
			return node{op: "u" + op, parts: []node{n}}, ok
		}
	}
	if n, ok := p.cast(); ok {
		return n, true
	}
	n, ok := p.primary()
	for ok && p.accept("[") {
		index, okIndex := p.expression()
		ok = okIndex && p.accept("]")
		n = node{op: "index", parts: []node{n, index}}
	}
	return n, ok
}

// cast reads "(TYPE)EXPRESSION" of an integer type, or of a pointer, which changes nothing.
func (p *parser) cast() (n node, ok bool) {
	from := p.at
	if !p.accept("(") {
		return n, false
	}
	end := strings.IndexByte(p.text[p.at:], ')')
	if end < 0 {
		p.at = from
		return n, false
	}
	name := strings.TrimSpace(p.text[p.at : p.at+end])
	if !isType(name) {
		p.at = from
		return n, false
	}
	p.at += end + 1
	p.nest++
	defer func() { p.nest-- }()
	if p.nest > maxNest {
		return n, false
	}
	x, ok := p.unary()
	return node{op: "cast", text: name, parts: []node{x}}, ok
}

// isType reports whether a text is the name of an integer or pointer type.
func isType(name string) bool {
	words := strings.Fields(strings.ReplaceAll(name, "*", " * "))
	for _, w := range words {
		if _, known := typeSizes[w]; !known && w != "unsigned" && w != "signed" && w != "const" &&
			w != "void" && w != "*" && w != "long" && w != "struct" {
			return false
		}
	}
	return len(words) > 0 && words[0] != "*" && words[0] != "struct"
}

// sizeOf returns the size of a type in bytes.
func sizeOf(name string) (size int, signed bool) {
	if strings.Contains(name, "*") {
		return 8, false
	}
	size, signed = 4, true
	for word := range strings.FieldsSeq(name) {
		switch n := typeSizes[word]; {
		case word == "long":
			size = 8
		case n != 0 && word != "int":
			size, signed = max(n, -n), n < 0
		}
	}
	return size, signed && !strings.Contains(name, "unsigned")
}

// typeSizes are the sizes of integers in bytes, negative for signed ones.
var typeSizes = map[string]int{"char": -1, "short": -2, "int": -4, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
	"__u8": 1, "__u16": 2, "__u32": 4, "__u64": 8, "s8": -1, "s16": -2, "s32": -4, "s64": -8, "__s32": -4,
	"__s64": -8, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8, "size_t": 8, "ssize_t": -8,
	"dev_t": 4, "pid_t": -4, "loff_t": -8, "sector_t": 8, "ino_t": 8, "gfp_t": 4, "bool": 1, "uintptr_t": 8, "uint": 4,
	"int8_t": -1, "int16_t": -2, "int32_t": -4, "int64_t": -8, "__s8": -1, "__s16": -2, "__kernel_rwf_t": -4,
	"umode_t": 2, "__le16": 2, "__le32": 4, "__le64": 8, "__be16": 2, "__be32": 4, "__be64": 8}

func (p *parser) primary() (node, bool) {
	switch {
	case p.accept("("):
		n, ok := p.expression()
		return n, ok && p.accept(")")
	case p.accept("REC->"):
		name := p.word()
		return node{op: "field", text: name}, name != ""
	case p.accept("'"):
		if p.at+1 < len(p.text) && p.text[p.at+1] == '\'' {
			p.at += 2
			return node{op: "number", value: uint64(p.text[p.at-2])}, true
		}
		return node{}, false
	}
	p.space()
	if p.at < len(p.text) && p.text[p.at] == '"' {
		text, ok := p.quoted()
		return node{op: "text", text: text}, ok
	}
	word := p.word()
	if word == "" {
		return node{}, false
	}
	if word[0] >= '0' && word[0] <= '9' {
		v, err := strconv.ParseUint(strings.TrimRight(word, "uUlL"), 0, 64)
		return node{op: "number", value: v}, err == nil
	}
	if p.accept("(") {
		if word == "sizeof" {
			return p.sizeOf()
		}
		return p.call(word)
	}
	return node{op: "unknown"}, true // a constant of the kernel's source
}

// sizeOf reads the type of sizeof.
func (p *parser) sizeOf() (node, bool) {
	name, _, ok := strings.Cut(p.text[p.at:], ")")
	if !ok || !isType(name) {
		return node{}, false
	}
	p.at += len(name) + 1
	size, _ := sizeOf(name)
	return node{op: "number", value: uint64(size)}, true
}

// call reads the arguments of a helper.
func (p *parser) call(name string) (node, bool) {
	n := node{op: "call", text: name}
	if p.accept(")") {
		return n, true
	}
	for {
		var part node
		var ok bool
		switch {
		case p.accept("{"):
			part, ok = p.pair()
		case strings.HasPrefix(name, "__get_"): // the name of a field, without REC->
			part = node{op: "field", text: p.word()}
			ok = part.text != ""
		default:
			part, ok = p.expression()
		}
		if !ok || len(n.parts) == maxNodes {
			return n, false
		}
		n.parts = append(n.parts, part)
		if !p.accept(",") {
			return n, p.accept(")")
		}
	}
}

// pair reads "NUMBER, TEXT }". The end of some lists, "-1, NULL }", is a pair without a number.
func (p *parser) pair() (n node, ok bool) {
	number, ok := p.expression()
	if !ok || !p.accept(",") {
		return n, false
	}
	if text, ok := p.quoted(); ok {
		return node{op: "list", text: text, parts: []node{number}}, p.accept("}")
	}
	_, ok = p.expression()
	return node{op: "list"}, ok && p.accept("}")
}

// word reads letters and digits.
func (p *parser) word() string {
	p.space()
	from := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			break
		}
		p.at++
	}
	return p.text[from:p.at]
}

// piece is a text, or a conversion of an argument.
type piece struct {
	text  string // as it is, if verb is 0
	flags string // "-08", with width and precision
	size  int    // bytes of an integer: 4 or 8
	verb  byte   // d, u, x, X, o, c, s, p; 0 for a text
	kind  string // of p: "S" or "s" for symbols, "" for an address, else see bytesText
	stars int    // width or precision are arguments
}

// unknownKind is the kind of conversions that are not understood.
const unknownKind = "?"

// split splits a format of printf.
func split(format string) (list []piece) {
	for format != "" {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			return append(list, piece{text: format})
		}
		if at > 0 {
			list = append(list, piece{text: format[:at]})
		}
		var x piece
		x, format = conversion(format[at+1:])
		list = append(list, x)
	}
	return list
}

// conversion reads a conversion after its '%'.
func conversion(s string) (x piece, rest string) {
	i, digits, wide := 0, 0, false
	for i < len(s) && strings.IndexByte("-+ #0123456789.*", s[i]) >= 0 {
		digits++
		if s[i] < '0' || s[i] > '9' {
			digits = 0
		}
		if s[i] == '*' {
			x.stars++
		}
		wide = wide || digits > maxWidth
		i++
	}
	if x.flags, x.size = s[:i], 4; wide {
		return piece{verb: 'p', kind: unknownKind}, s[i:]
	}
	for i < len(s) && strings.IndexByte("hlzjtqL", s[i]) >= 0 {
		if s[i] != 'h' {
			x.size = 8
		}
		i++
	}
	if i == len(s) {
		return piece{verb: 'p', kind: unknownKind}, ""
	}
	switch c := s[i]; c {
	case '%':
		return piece{text: "%"}, s[i+1:]
	case 'd', 'i':
		x.verb = 'd'
	case 'u', 'x', 'X', 'o', 'c', 's':
		x.verb = c
	case 'p':
		x.verb = c
		end := i + 1
		for end < len(s) && (s[end] >= 'a' && s[end] <= 'z' || s[end] >= 'A' && s[end] <= 'Z' || s[end] >= '0' && s[end] <= '9') {
			end++
		}
		switch x.kind = s[i+1 : end]; x.kind {
		case "S", "F", "SR", "B":
			x.kind = "S"
		case "s", "f":
			x.kind = "s"
		case "K", "x":
			x.kind = ""
		}
		return x, s[end:]
	default:
		x.verb, x.kind = 'p', unknownKind
	}
	return x, s[i+1:]
}
