package report

import "strings"

// operatorNames are those whose printed form does not end in '>', which would have to be
// kept apart from the one that ends template arguments.
var operatorNames = map[string]string{
	"aN": "&=", "aS": "=", "aa": "&&", "ad": "&", "an": "&", "cl": "()", "cm": ",", "co": "~",
	"dV": "/=", "da": " delete[]", "de": "*", "dl": " delete", "dv": "/", "eO": "^=", "eo": "^",
	"eq": "==", "ge": ">=", "ix": "[]", "lS": "<<=", "le": "<=", "ls": "<<", "lt": "<",
	"mI": "-=", "mL": "*=", "mi": "-", "ml": "*", "mm": "--", "na": " new[]", "ne": "!=",
	"ng": "-", "nt": "!", "nw": " new", "oR": "|=", "oo": "||", "or": "|", "pL": "+=",
	"pl": "+", "pp": "++", "ps": "+", "rM": "%=", "rS": ">>=", "rm": "%",
}

// nested is a name of several parts. own says that it is the function's: then its
// qualifiers and template arguments are kept.
func (p *itanium) nested(own bool) (returns, ok bool) {
	if p.depth++; p.depth > maxItaniumDepth {
		return false, false
	}
	defer func() { p.depth-- }()
	p.pos++
	if !p.methodQualifiers(own) {
		return false, false
	}
	mark := len(p.out)
	last := ""
	structor := false // the last part is a constructor or destructor
	args := false     // … template arguments
	for {
		c := p.peek()
		first := len(p.out) == mark
		if c == 'E' {
			p.pos++
			if own && !args {
				p.args, p.elems = p.args[:0], p.elems[:0]
			}
			return args && !structor, !first
		}
		if len(p.out) > maxItaniumText || len(p.arena) > maxItaniumArena ||
			first && (c == 'I' || c == 'C' || c == 'D') || structor && c != 'I' {
			return false, false
		}
		switch {
		case c == 'I':
			ok = !args && p.templateArgs(own)
			args = true
		case c == 'S' && first:
			var s substitution
			s, ok = p.substituted()
			ok = ok && s.kind == plainType && s.right == (piece{}) && p.peek() != 'B' &&
				p.peek() != 'E'
			last, args = s.last, false
		case c == 'T' && first:
			var t typeEnd
			t, ok = p.templateParam()
			ok = ok && t.kind == plainType && t.right == (piece{})
			last, args = "", false
		case c == 'C' || c == 'D':
			args, structor = false, true
			ok = p.structor(last)
		default:
			if !first {
				p.out = append(p.out, "::"...)
			}
			args, structor = false, false
			last, ok = p.unqualified()
		}
		if !ok {
			return false, false
		}
		if c != 'S' && p.peek() != 'E' {
			p.add(mark, typeEnd{}, last)
		}
	}
}

// methodQualifiers are those of a method, before its name.
func (p *itanium) methodQualifiers(own bool) bool {
	from := p.pos
	if p.peek() == 'V' {
		p.volatile = true
		p.pos++
	}
	if p.peek() == 'K' {
		p.constant = true
		p.pos++
	}
	switch p.peek() {
	case 'R':
		p.ref = " &"
		p.pos++
	case 'O':
		p.ref = " &&"
		p.pos++
	}
	// Both: the library prints them in the order in which they stand.
	return p.pos == from || own && !(p.constant && p.volatile)
}

// structor is a constructor or destructor of the class named last.
func (p *itanium) structor(last string) bool {
	if last == "" || p.peekAt(1) < '0' || p.peekAt(1) > '5' || p.peekAt(1) == '3' {
		return false
	}
	p.out = append(p.out, "::"...)
	switch {
	case p.peek() == 'D':
		p.out = append(p.out, '~')
	case p.peekAt(1) == '0':
		return false
	}
	p.out = append(p.out, last...)
	p.pos += 2
	return p.peek() != 'B'
}

// unqualified is one part of a name: one from the source, or, of a function, that of an
// operator.
func (p *itanium) unqualified() (name string, ok bool) {
	if isDigit(p.peek()) {
		name, ok = p.source()
		p.out = append(p.out, name...)
	} else if p.naming && p.templates == 0 && p.pos+2 <= len(p.in) {
		op := operatorNames[p.in[p.pos:p.pos+2]]
		ok = op != ""
		p.pos += 2
		p.out = append(append(p.out, "operator"...), op...)
	}
	for ok && p.peek() == 'B' {
		var tag string
		p.pos++
		tag, ok = p.source()
		p.out = append(append(append(p.out, "[abi:"...), tag...), ']')
	}
	return name, ok
}

// source is a name from the source, after its length.
func (p *itanium) source() (string, bool) {
	n := 0
	for isDigit(p.peek()) && n <= maxMangled {
		n = n*10 + int(p.peek()-'0')
		p.pos++
	}
	if n == 0 || n > len(p.in)-p.pos {
		return "", false
	}
	name := p.in[p.pos : p.pos+n]
	p.pos += n
	if strings.HasPrefix(name, "_GLOBAL_") {
		return "(anonymous namespace)", name == "_GLOBAL__N_1"
	}
	for i := range len(name) { // angle brackets would be taken for our own
		if c := name[i]; c != '_' && c != '.' && c != '$' && c < 0x80 && !isDigit(c) &&
			(c|0x20 < 'a' || c|0x20 > 'z') {
			return "", false
		}
	}
	return name, true
}

// isOldRust reports whether a name may be one of Rust's old mangling, which looks like
// C++ and ends with a hash.
func isOldRust(s string) bool {
	n := len(s)
	return n > 23 && s[n-1] == 'E' && s[n-20:n-17] == "17h"
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
