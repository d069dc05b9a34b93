package itanium

import "strings"

// encoding reads <encoding>. params is false where the parameters are left out and what follows the
// name is not read; local is set around a local name.
func (p *parser) encoding(params, local bool) ref {
	defer func() { p.depth-- }()
	if !p.enter() {
		return 0
	}
	if c := p.peek(); c == 'T' || c == 'G' {
		return p.special()
	}
	name := p.name()
	if p.bad {
		return 0
	}
	c := p.peek()
	if params && (c == 0 || c == 'E') {
		return name
	}
	name, quals := p.cutMethod(name)
	if !params {
		return name
	}
	seen := p.params
	t := p.templateOf(name)
	if t != 0 {
		p.templates = append(p.templates, t)
	}
	f := p.function(p.hasReturn(name))
	if t != 0 {
		p.templates = p.templates[:len(p.templates)-1]
	}
	if p.params != seen && p.depth > 1 {
		if p.kindOf(name) != kindTemplate {
			return p.fail()
		}
		p.params = seen // they are bound
	}
	return p.add(node{kind: kindTyped, a: name, b: f, text: quals, local: local})
}

// cutMethod takes the qualifiers of this off a name.
func (p *parser) cutMethod(name ref) (ref, string) {
	switch n := p.nodes[name]; n.kind {
	case kindMethod:
		return n.a, n.text
	case kindLocal:
		if m := p.nodes[n.b]; m.kind == kindMethod {
			n.b = m.a
			return p.add(n), m.text
		}
	}
	return name, ""
}

// templateOf returns the template that a function's name is an instance of, 0 if it is none.
func (p *parser) templateOf(name ref) ref {
	switch n := &p.nodes[name]; n.kind {
	case kindTemplate:
		return name
	case kindLocal:
		return p.templateOf(n.b)
	}
	return 0
}

// hasReturn reports whether the type of a function begins with its result.
func (p *parser) hasReturn(name ref) bool {
	switch n := &p.nodes[name]; n.kind {
	case kindLocal:
		return p.hasReturn(n.b)
	case kindTemplate:
		return !p.isCtor(n.a)
	}
	return false
}

// isCtor reports whether a name is that of a constructor, a destructor or a conversion.
func (p *parser) isCtor(name ref) bool {
	n := &p.nodes[name]
	switch n.kind {
	case kindQualified, kindLocal:
		return p.isCtor(n.b)
	case kindDestructor, kindCast:
		return true
	}
	return n.kind == kindName && n.local
}

// name reads <name>.
func (p *parser) name() ref {
	seen := p.params
	var n ref
	sub := false
	switch c := p.peek(); c {
	case 'N':
		return p.nestedName()
	case 'Z':
		return p.localName()
	case 'U':
		return p.unqualifiedName()
	case 'S':
		if p.peekAt(1) == 't' {
			p.at += 2
			n = p.unqualifiedName()
			n = p.add(node{kind: kindQualified, a: p.addText(kindName, 0, "std"), b: n})
		} else {
			n, sub = p.substitution(), true
		}
	default:
		n = p.unqualifiedName()
	}
	if p.peek() == 'I' {
		if !sub {
			p.candidate(n, seen)
		}
		n = p.templateArgs(node{kind: kindTemplate, a: n})
	}
	return n
}

// nestedName reads <nested-name>.
func (p *parser) nestedName() ref {
	p.expect('N')
	quals := p.qualifiers()
	switch p.peek() {
	case 'R':
		p.at++
		quals += " &"
	case 'O':
		p.at++
		quals += " &&"
	}
	n := p.prefix()
	p.expect('E')
	if quals != "" {
		n = p.addText(kindMethod, n, quals)
	}
	return n
}

// qualifiers reads <CV-qualifiers> and returns them as they are printed, with a blank before each.
func (p *parser) qualifiers() string {
	const restrict, volatile, constant = 1, 2, 4
	had := 0
	for {
		bit := 0
		switch p.peek() {
		case 'r':
			bit = restrict
		case 'V':
			bit = volatile
		case 'K':
			bit = constant
		default:
			return [...]string{"", " restrict", " volatile", " volatile restrict", " const",
				" const restrict", " const volatile", " const volatile restrict"}[had]
		}
		if had >= bit { // out of order, or twice
			p.bad = true
		}
		had |= bit
		p.at++
	}
}

// prefix reads <prefix> up to the E after it.
func (p *parser) prefix() ref {
	var all, last ref
	seen := p.params
	for p.peek() != 'E' && !p.bad {
		c := p.peek()
		var next ref
		switch {
		case c == 'C' || c == 'D' && p.peekAt(1) != 'C':
			next = p.ctorName(last)
		case c == 'S':
			next = p.prefixSubstitution()
		case c == 'I':
			if all == 0 {
				return p.fail()
			}
			next = p.templateArgs(node{kind: kindTemplate, a: all})
			all = 0
		case c == 'T':
			next = p.templateParam()
		case c == 'M' && all != 0: // the scope of a lambda in an initializer
			p.at++
			continue
		default:
			next = p.unqualifiedName()
		}
		last = next
		if all != 0 {
			next = p.add(node{kind: kindQualified, a: all, b: next})
		}
		all = next
		if c != 'S' && p.peek() != 'E' {
			p.candidate(all, seen)
		}
	}
	if all == 0 {
		return p.fail()
	}
	return all
}

// prefixSubstitution reads <substitution> in <prefix>.
func (p *parser) prefixSubstitution() ref {
	if c := p.peekAt(2); c == 'C' || c == 'D' {
		switch p.peekAt(1) {
		case 's', 'i', 'o', 'd': // spelt out before a constructor
			return p.fail()
		}
	}
	return p.substitution()
}

// ctorName reads <ctor-dtor-name> of the class last.
func (p *parser) ctorName(last ref) ref {
	ctor := p.accept('C')
	if !ctor {
		p.expect('D')
	}
	c := p.peek()
	p.at++
	if last == 0 || c < '0' || c > '5' || ctor && c == '0' || !ctor && c == '3' {
		return p.fail()
	}
	for {
		n := &p.nodes[last]
		switch n.kind {
		case kindTemplate, kindTagged:
			last = n.a
			continue
		case kindQualified, kindLocal:
			last = n.b
			continue
		}
		break
	}
	if !ctor {
		return p.tags(p.add(node{kind: kindDestructor, a: last}))
	}
	n := p.nodes[last]
	if n.kind != kindName {
		return p.fail()
	}
	n.local = true // marks a constructor
	return p.tags(p.add(n))
}

// tags reads <abi-tags> after a name.
func (p *parser) tags(n ref) ref {
	for p.accept('B') {
		n = p.addText(kindTagged, n, p.sourceName())
	}
	return n
}

// unqualifiedName reads <unqualified-name>.
func (p *parser) unqualifiedName() ref {
	c := p.peek()
	var n ref
	switch {
	case c >= '0' && c <= '9':
		n = p.addText(kindName, 0, p.sourceName())
	case c >= 'a' && c <= 'z':
		n = p.operatorName()
	case c == 'L':
		p.at++
		n = p.addText(kindName, 0, p.sourceName())
		p.discriminator()
	case c == 'U' && p.peekAt(1) == 'l':
		n = p.closure()
	case c == 'U' && p.peekAt(1) == 't':
		p.at += 2
		n = p.add(node{kind: kindUnnamed, n: int32(p.compactNumber())})
		p.candidate(n, p.params)
	default:
		return p.fail()
	}
	return p.tags(n)
}

// sourceName reads <source-name>.
func (p *parser) sourceName() string {
	n := p.number()
	if p.bad || n == 0 || n > len(p.s)-p.at {
		p.bad = true
		return ""
	}
	text := p.s[p.at : p.at+n]
	p.at += n
	const anonymous = "_GLOBAL_"
	if n > len(anonymous)+2 && strings.HasPrefix(text, anonymous) {
		c := text[len(anonymous)]
		if (c == '.' || c == '_' || c == '$') && text[len(anonymous)+1] == 'N' {
			return "(anonymous namespace)"
		}
	}
	return text
}

// discriminator skips <discriminator>, or digits that end the name, as clang writes them.
func (p *parser) discriminator() {
	if !p.accept('_') {
		if strings.Trim(p.s[p.at:], "0123456789") == "" {
			p.at = len(p.s)
		}
		return
	}
	long := p.accept('_')
	if n := p.number(); long && n >= 10 {
		p.expect('_')
	}
}

// localName reads <local-name>.
func (p *parser) localName() ref {
	p.expect('Z')
	f := p.encoding(true, true)
	p.expect('E')
	var n ref
	switch p.peek() {
	case 'd': // a default argument
		return p.fail()
	case 's':
		p.at++
		n = p.addText(kindName, 0, "string literal")
	default:
		n = p.name()
	}
	if p.bad {
		return 0
	}
	p.discriminator()
	return p.add(node{kind: kindLocal, a: f, b: n})
}

// closure reads <closure-type-name>.
func (p *parser) closure() ref {
	p.at += 2
	seen, from := p.params, len(p.stack)
	p.lambdas++
	p.paramList()
	p.lambdas--
	p.params = seen // they are bound
	p.expect('E')
	n := p.compactNumber()
	r := p.endList(node{kind: kindClosure}, from)
	p.nodes[r].b = ref(n)
	return r
}

// operatorName reads <operator-name>.
func (p *parser) operatorName() ref {
	if p.peekAt(1) == 0 {
		return p.fail()
	}
	code := p.s[p.at : p.at+2]
	p.at += 2
	if code == "cv" {
		outer := p.cast
		p.cast = true
		t := p.typeName()
		p.cast = outer
		return p.add(node{kind: kindCast, a: t})
	}
	text, ok := operators[code]
	if !ok {
		return p.fail()
	}
	return p.addText(kindName, 0, text)
}

// operators holds the names of <operator-name>, but for conversions and literals.
var operators = map[string]string{
	"aN": "operator&=", "aS": "operator=", "aa": "operator&&", "ad": "operator&",
	"an": "operator&", "cl": "operator()", "cm": "operator,", "co": "operator~",
	"dV": "operator/=", "da": "operator delete[]", "de": "operator*", "dl": "operator delete",
	"dv": "operator/", "eO": "operator^=", "eo": "operator^", "eq": "operator==",
	"ge": "operator>=", "gt": "operator>", "ix": "operator[]", "lS": "operator<<=",
	"le": "operator<=", "ls": "operator<<", "lt": "operator<", "mI": "operator-=",
	"mL": "operator*=", "mi": "operator-", "ml": "operator*", "mm": "operator--",
	"na": "operator new[]", "ne": "operator!=", "ng": "operator-", "nt": "operator!",
	"nw": "operator new", "oR": "operator|=", "oo": "operator||", "or": "operator|",
	"pL": "operator+=", "pl": "operator+", "pm": "operator->*", "pp": "operator++",
	"ps": "operator+", "pt": "operator->", "rM": "operator%=", "rS": "operator>>=",
	"rm": "operator%", "rs": "operator>>", "ss": "operator<=>",
}

// special reads <special-name>.
func (p *parser) special() ref {
	if p.at+2 > len(p.s) {
		return p.fail()
	}
	code := p.s[p.at : p.at+2]
	p.at += 2
	switch code {
	case "TV":
		return p.addText(kindSpecial, p.typeName(), "vtable for ")
	case "TT":
		return p.addText(kindSpecial, p.typeName(), "VTT for ")
	case "TI":
		return p.addText(kindSpecial, p.typeName(), "typeinfo for ")
	case "TS":
		return p.addText(kindSpecial, p.typeName(), "typeinfo name for ")
	case "GV":
		return p.addText(kindSpecial, p.name(), "guard variable for ")
	case "Th", "Tv":
		p.at--
		text := "non-virtual thunk to "
		if code == "Tv" {
			text = "virtual thunk to "
		}
		p.callOffset()
		return p.addText(kindSpecial, p.encoding(true, false), text)
	case "Tc":
		p.callOffset()
		p.callOffset()
		return p.addText(kindSpecial, p.encoding(true, false), "covariant return thunk to ")
	case "TC":
		derived := p.typeName()
		p.number()
		p.expect('_')
		base := p.typeName()
		return p.add(node{kind: kindSpecial, text: "construction vtable for ", a: base, b: derived})
	}
	return p.fail()
}

// callOffset skips <call-offset>.
func (p *parser) callOffset() {
	virtual := p.accept('v')
	if !virtual {
		p.expect('h')
	}
	p.accept('n')
	p.number()
	p.expect('_')
	if virtual {
		p.accept('n')
		p.number()
		p.expect('_')
	}
}
