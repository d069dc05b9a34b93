package tracefmt

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"

	"symbolize/ingest/format/perfdata"
)

// Format is a parsed print format.
type Format struct {
	pieces []piece
	args   []node
}

// Sample is a sample to be printed.
type Sample struct {
	Fields    []perfdata.TracepointField
	Raw       []byte // the RAW data
	BigEndian bool
	// Symbol returns the text of a kernel address: "tcp_v4_rcv+0x91", without the offset if it is not
	// asked for; "" if it is unknown. nil knows none.
	Symbol func(address uint64, offset bool) string
}

// value is a number or a text.
type value struct {
	number uint64
	signed bool
	text   string
	isText bool
	bytes  []byte // of an array, with isText not set
	elem   int    // bytes of an element
	scaled bool   // a pointer to more than bytes, with which C counts otherwise
}

// Append appends the text of a sample. ok is false if the format has an argument that is not
// understood; dst is then returned as it was.
func (f *Format) Append(dst []byte, s *Sample) (text []byte, ok bool) {
	out, next := dst, 0
	for i := range f.pieces {
		p := &f.pieces[i]
		if p.verb == 0 {
			out = append(out, p.text...)
			continue
		}
		stars := make([]int, p.stars)
		for k := range stars {
			v, ok := s.argument(f, next)
			if next++; !ok || v.isText || v.number > 1<<10 {
				return dst, false
			}
			stars[k] = int(v.number)
		}
		v, ok := s.argument(f, next)
		if next++; !ok {
			return dst, false
		}
		if out, ok = p.append(out, v, stars, s); !ok {
			return dst, false
		}
	}
	return out, true
}

func (s *Sample) argument(f *Format, i int) (v value, ok bool) {
	if i >= len(f.args) {
		return v, false
	}
	return s.eval(&f.args[i])
}

// Field is the way in which a format prints one field.
type Field struct {
	parts  []part
	Symbol bool // the field is an address in the kernel's code
}

// part is a conversion and its argument.
type part struct {
	piece *piece
	arg   *node
}

// Field returns how the format prints a field alone: by names of values, by flags, as the symbol of
// its address, or as a network address and the like; nil if it is printed as a number or a text.
// Conversions that follow each other are one text: sched_switch prints prev_state with "%s%s". A
// single one must be of the whole field, as else different values had the same text.
func (f *Format) Field(name string) *Field {
	next := 0
	for i := range f.pieces {
		p := &f.pieces[i]
		if p.verb == 0 {
			continue
		}
		next += p.stars
		if next >= len(f.args) {
			return nil
		}
		a := &f.args[next]
		next++
		if p.verb == 'p' && p.kind != "" && a.isField(name) {
			return &Field{parts: []part{{p, a}}, Symbol: p.kind == "S" || p.kind == "s"}
		}
		if !a.names(name) {
			continue
		}
		x := &Field{parts: []part{{p, a}}}
		for k := i + 1; k < len(f.pieces) && next < len(f.args); k++ {
			p, a := &f.pieces[k], &f.args[next]
			if p.verb == 0 || p.stars != 0 || !a.only(name) {
				break
			}
			x.parts = append(x.parts, part{p, a})
			next++
		}
		if len(x.parts) == 1 && !a.whole(name) {
			continue
		}
		return x
	}
	return nil
}

// Text returns the text of the field in a sample; ok is false if it cannot be evaluated.
func (x *Field) Text(s *Sample) (text string, ok bool) {
	var b []byte
	for _, p := range x.parts {
		v, ok := s.eval(p.arg)
		if !ok {
			return "", false
		}
		if b, ok = p.piece.append(b, v, nil, s); !ok {
			return "", false
		}
	}
	return strings.TrimSpace(string(b)), true
}

// isField reports whether an expression is the field, of any type.
func (n *node) isField(name string) bool {
	for n.op == "cast" {
		n = &n.parts[0]
	}
	return n.op == "field" && n.text == name
}

// only reports whether an expression has the field, and no other.
func (n *node) only(name string) bool {
	found := false
	for other := range n.fields() {
		if other != name {
			return false
		}
		found = true
	}
	return found
}

// fields returns the names of the fields in an expression.
func (n *node) fields() iter.Seq[string] {
	return func(yield func(string) bool) { n.eachField(yield) }
}

func (n *node) eachField(yield func(string) bool) bool {
	if n.op == "field" {
		return yield(n.text)
	}
	for i := range n.parts {
		if !n.parts[i].eachField(yield) {
			return false
		}
	}
	return true
}

// names reports whether an expression is names of the field's values or flags, perhaps under a
// condition: "REC->mask ? __print_flags(REC->mask & 7, …) : "none"".
func (n *node) names(name string) bool {
	if !n.only(name) {
		return false
	}
	for n.op == "?" {
		n = &n.parts[1]
	}
	return n.op == "call" && (n.text == "__print_symbolic" || n.text == "__print_flags")
}

// whole reports whether an expression that names uses the whole field, not of some of its bits.
func (n *node) whole(name string) bool {
	if n.op == "?" {
		return n.parts[0].isField(name) && n.parts[1].whole(name)
	}
	return len(n.parts) > 0 && n.parts[0].isField(name)
}

// append appends a value as its conversion prints it.
func (p *piece) append(dst []byte, v value, stars []int, s *Sample) ([]byte, bool) {
	flags := p.flags
	for _, n := range stars {
		flags = strings.Replace(flags, "*", strconv.Itoa(n), 1)
	}
	number := v.number
	if p.size == 4 {
		if number = uint64(uint32(number)); p.verb == 'd' {
			number = uint64(int64(int32(number)))
		}
	}
	if number == 0 { // as C has it: 0, not 0x0
		flags = strings.ReplaceAll(flags, "#", "")
	}
	switch p.verb {
	case 's':
		if !v.isText {
			return dst, false
		}
		return fmt.Appendf(dst, "%"+flags+"s", v.text), true
	case 'p':
		return p.pointer(dst, v, s)
	case 'c':
		return append(dst, byte(number)), !v.isText
	case 'd':
		return fmt.Appendf(dst, "%"+flags+"d", int64(number)), !v.isText && v.bytes == nil
	case 'u':
		return fmt.Appendf(dst, "%"+flags+"d", number), !v.isText && v.bytes == nil
	}
	return fmt.Appendf(dst, "%"+flags+string(p.verb), number), !v.isText && v.bytes == nil
}

// pointer appends an address, the symbol there, or what the bytes there are.
func (p *piece) pointer(dst []byte, v value, s *Sample) ([]byte, bool) {
	if p.kind != "" && p.kind != "S" && p.kind != "s" {
		text := bytesText(p.kind, v.bytes)
		return append(dst, text...), text != ""
	}
	if v.isText || v.bytes != nil {
		return dst, false
	}
	if p.kind != "" && s.Symbol != nil {
		if text := s.Symbol(v.number, p.kind == "S"); text != "" {
			return append(dst, text...), true
		}
	}
	if v.number == 0 && p.kind == "" {
		return append(dst, "(nil)"...), true
	}
	return fmt.Appendf(dst, "%#x", v.number), true
}

// bytesText returns the text of bytes by a conversion that follows %p, "" if it is not known or the
// bytes are too few: network and hardware addresses, and UUIDs (Documentation/core-api/printk-formats
// of Linux).
func bytesText(kind string, b []byte) string {
	const inet, inet6 = 2, 10
	switch {
	case kind == "I4" && len(b) >= 4:
		return netip.AddrFrom4([4]byte(b)).String()
	case kind == "I6c" && len(b) >= 16:
		return netip.AddrFrom16([16]byte(b)).String()
	case kind == "M" && len(b) >= 6:
		return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5])
	case (kind == "U" || kind == "Ub") && len(b) >= 16:
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
	case kind == "ISpc" && len(b) >= 8: // a sockaddr
		port := binary.BigEndian.Uint16(b[2:])
		switch family := b[0] | b[1]; { // one of both is 0, in either byte order
		case family == inet:
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:])), port).String()
		case family == inet6 && len(b) >= 24:
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:])), port).String()
		}
	}
	return ""
}

// eval evaluates an expression.
func (s *Sample) eval(n *node) (v value, ok bool) {
	switch n.op {
	case "number":
		return value{number: n.value, signed: !n.unsigned}, true
	case "text":
		return value{text: n.text, isText: true}, true
	case "field":
		return s.field(n.text)
	case "index":
		return s.index(n)
	case "call":
		return s.call(n)
	case "unknown", "list":
		return v, false
	}
	a, ok := s.eval(&n.parts[0])
	if !ok {
		return v, false
	}
	if n.op == "?" {
		if a.isText || a.number != 0 {
			return s.eval(&n.parts[1])
		}
		return s.eval(&n.parts[2])
	}
	if n.op == "cast" {
		return cast(n.text, a)
	}
	if a.isText || a.bytes != nil {
		return v, false
	}
	switch n.op {
	case "u!":
		return value{number: truth(a.number == 0), signed: true}, true
	case "u~":
		return value{number: ^a.number, signed: a.signed}, true
	case "u-":
		return value{number: -a.number, signed: true}, true
	case "u+":
		return a, true
	}
	b, ok := s.eval(&n.parts[1])
	if !ok || b.isText || b.bytes != nil || a.scaled || b.scaled {
		return v, false
	}
	return operate(n.op, a, b)
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// operate applies a binary operator. Operands are extended to 64 bits.
func operate(op string, a, b value) (v value, ok bool) {
	x, y := a.number, b.number
	signed := a.signed && b.signed
	less := x < y
	if signed {
		less = int64(x) < int64(y)
	}
	v.signed = signed
	switch op {
	case "||":
		v.number = truth(x != 0 || y != 0)
	case "&&":
		v.number = truth(x != 0 && y != 0)
	case "|":
		v.number = x | y
	case "^":
		v.number = x ^ y
	case "&":
		v.number = x & y
	case "==":
		v.number = truth(x == y)
	case "!=":
		v.number = truth(x != y)
	case "<":
		v.number = truth(less)
	case ">=":
		v.number = truth(!less)
	case ">":
		v.number = truth(!less && x != y)
	case "<=":
		v.number = truth(less || x == y)
	case "<<":
		v.number = x << min(y, 64)
	case ">>":
		if v.number = x >> min(y, 64); a.signed {
			v.number = uint64(int64(x) >> min(y, 63))
		}
	case "+":
		v.number = x + y
	case "-":
		v.number = x - y
	case "*":
		v.number = x * y
	case "/", "%":
		if y == 0 || signed && int64(y) == -1 {
			return v, false
		}
		switch {
		case op == "/" && signed:
			v.number = uint64(int64(x) / int64(y))
		case op == "/":
			v.number = x / y
		case signed:
			v.number = uint64(int64(x) % int64(y))
		default:
			v.number = x % y
		}
	}
	return v, true
}

// cast converts a number to an integer type; arrays and pointers stay as they are.
func cast(name string, v value) (value, bool) {
	if v.isText || v.bytes != nil || strings.Contains(name, "*") {
		v.scaled = !v.isText && v.bytes == nil && !strings.Contains(name, "void") && !strings.Contains(name, "char")
		return v, true
	}
	size, signed := sizeOf(name)
	v.signed = signed
	shift := 64 - 8*size
	if v.number <<= shift; signed {
		v.number = uint64(int64(v.number) >> shift)
	} else {
		v.number >>= shift
	}
	return v, true
}

// lookup returns a field.
func (s *Sample) lookup(name string) *perfdata.TracepointField {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// field reads a field: a number, a text, or an array.
func (s *Sample) field(name string) (v value, ok bool) {
	x := s.lookup(name)
	if x == nil {
		return v, false
	}
	if n, ok := x.Number(s.Raw, s.BigEndian); ok {
		return value{number: n, signed: x.Signed}, true
	}
	if x.Text {
		return value{text: x.String(s.Raw, s.BigEndian), isText: true}, true
	}
	b, ok := x.Bytes(s.Raw, s.BigEndian)
	elem := 1
	if open := strings.IndexByte(x.Type, '['); open >= 0 && !x.Dynamic {
		if n, err := strconv.Atoi(strings.TrimSuffix(x.Type[open+1:], "]")); err == nil && n > 0 {
			elem = x.Size / n
		}
	}
	return value{bytes: b, elem: elem, signed: x.Signed}, ok && b != nil
}

// index reads an element of an array.
func (s *Sample) index(n *node) (v value, ok bool) {
	a, ok := s.eval(&n.parts[0])
	i, okIndex := s.eval(&n.parts[1])
	if !ok || !okIndex || a.bytes == nil || i.isText || a.elem < 1 || a.elem > 8 ||
		i.number >= uint64(len(a.bytes)/a.elem) {
		return v, false
	}
	return value{number: s.number(a.bytes[int(i.number)*a.elem:][:a.elem]), signed: a.signed}, true
}

// number reads a number of up to 8 bytes.
func (s *Sample) number(b []byte) uint64 {
	x := perfdata.TracepointField{Type: "u", Size: len(b)}
	v, _ := x.Number(b, s.BigEndian)
	return v
}

// call evaluates one of the kernel's helpers.
func (s *Sample) call(n *node) (v value, ok bool) {
	if len(n.parts) == 0 {
		return v, false
	}
	switch n.text {
	case "__get_str", "__get_dynamic_array", "__get_rel_str", "__get_rel_dynamic_array":
		return s.field(n.parts[0].text)
	case "__get_dynamic_array_len", "__get_rel_dynamic_array_len":
		x := s.lookup(n.parts[0].text)
		if x == nil {
			return v, false
		}
		b, ok := x.Bytes(s.Raw, s.BigEndian)
		return value{number: uint64(len(b)), signed: true}, ok
	}
	a, ok := s.eval(&n.parts[0])
	if !ok {
		return v, false
	}
	switch n.text {
	case "__builtin_expect":
		return a, true
	case "__print_symbolic":
		return s.symbolic(a, n.parts[1:])
	case "__print_flags":
		return s.flags(a, n.parts[1:])
	case "__print_hex", "__print_hex_str", "__print_array":
		var args []value
		for i := range n.parts[1:] {
			x, ok := s.eval(&n.parts[i+1])
			if !ok {
				break
			}
			args = append(args, x)
		}
		return s.array(n, a, args)
	}
	return v, false
}

// symbolic is the name of a number, else the number. Names of constants that the format does not
// define match nothing.
func (s *Sample) symbolic(a value, list []node) (v value, ok bool) {
	if a.isText || a.bytes != nil {
		return v, false
	}
	for i := range list {
		if list[i].op != "list" {
			return v, false
		}
		if len(list[i].parts) == 0 {
			break
		}
		if x, ok := s.eval(&list[i].parts[0]); ok && x.number == a.number {
			return value{text: list[i].text, isText: true}, true
		}
	}
	return value{text: fmt.Sprintf("0x%x", a.number), isText: true}, true
}

// flags are the names of the bits of a number, and the rest of it.
func (s *Sample) flags(a value, list []node) (v value, ok bool) {
	if a.isText || a.bytes != nil || len(list) == 0 {
		return v, false
	}
	between, ok := s.eval(&list[0])
	if !ok || !between.isText {
		return v, false
	}
	var names []string
	rest := a.number
	for i := range list[1:] {
		x := &list[i+1]
		if x.op != "list" {
			return v, false
		}
		if len(x.parts) == 0 {
			break
		}
		mask, ok := s.eval(&x.parts[0])
		switch {
		case !ok:
		case a.number == 0 && mask.number == 0:
			return value{text: x.text, isText: true}, true
		case mask.number != 0 && rest&mask.number == mask.number:
			names = append(names, x.text)
			rest &^= mask.number
		}
	}
	if rest != 0 {
		names = append(names, fmt.Sprintf("0x%x", rest))
	}
	return value{text: strings.Join(names, between.text), isText: true}, true
}

// array prints bytes, or the elements of an array. args are the arguments after it: the number of
// elements, and their size.
func (s *Sample) array(n *node, a value, args []value) (v value, ok bool) {
	if a.bytes == nil || len(args) == 0 {
		return v, false
	}
	count := args[0]
	elem, between, form := 1, " ", "%02x"
	if n.text == "__print_hex_str" {
		between = ""
	}
	if n.text == "__print_array" {
		if len(n.parts) != 3 || len(args) != 2 {
			return v, false
		}
		size := args[1]
		if size.number > 8 || size.number == 0 {
			return v, false
		}
		elem, between, form = int(size.number), ",", "0x%x"
	}
	if count.isText || count.number > uint64(len(a.bytes)/elem) {
		return v, false
	}
	var parts []string
	for i := range int(count.number) {
		parts = append(parts, fmt.Sprintf(form, s.number(a.bytes[i*elem:][:elem])))
	}
	text := strings.Join(parts, between)
	if n.text == "__print_array" {
		text = "{" + text + "}"
	}
	return value{text: text, isText: true}, true
}
