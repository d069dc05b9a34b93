package itanium

// builtins holds <builtin-type> by its letter.
var builtins = [256]string{
	'a': "signed char", 'b': "bool", 'c': "char", 'd': "double", 'e': "long double",
	'f': "float", 'g': "__float128", 'h': "unsigned char", 'i': "int", 'j': "unsigned int",
	'l': "long", 'm': "unsigned long", 'n': "__int128", 'o': "unsigned __int128", 's': "short",
	't': "unsigned short", 'v': "void", 'w': "wchar_t", 'x': "long long",
	'y': "unsigned long long", 'z': "...",
}

// typeName reads <type>.
func (p *parser) typeName() ref {
	defer func() { p.depth-- }()
	if !p.enter() {
		return 0
	}
	seen := p.params
	quals := p.qualifiers()
	c := p.peek()
	if text := builtins[c]; text != "" {
		p.at++
		n := p.addText(kindBuiltin, 0, text)
		if quals != "" {
			n = p.addText(kindQual, n, quals)
			p.candidate(n, seen)
		}
		return n
	}
	if c == 'F' && quals != "" {
		n := p.addText(kindMethod, p.functionType(), quals)
		p.candidate(n, seen)
		return n
	}
	n, again := p.compound(c)
	if p.bad {
		return 0
	}
	if again {
		p.candidate(n, seen)
	}
	if quals != "" {
		if k := p.kindOf(n); k == kindFunction || k == kindQual || k == kindMethod {
			return p.fail()
		}
		n = p.addText(kindQual, n, quals)
		p.candidate(n, seen)
	}
	return n
}

// compound reads a <type> that begins with c, without qualifiers. again is whether substitutions
// may name it.
func (p *parser) compound(c byte) (n ref, again bool) {
	switch c {
	case 'N', 'Z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.name(), true
	case 'P':
		p.at++
		return p.add(node{kind: kindPointer, a: p.typeName()}), true
	case 'R':
		p.at++
		return p.add(node{kind: kindLvalue, a: p.typeName()}), true
	case 'O':
		p.at++
		return p.add(node{kind: kindRvalue, a: p.typeName()}), true
	case 'F':
		return p.functionType(), true
	case 'A':
		return p.arrayType(), true
	case 'M':
		return p.memberType(), true
	case 'T':
		n = p.templateParam()
		if p.peek() == 'I' { // a template template parameter
			return p.fail(), false
		}
		return n, true
	case 'S':
		return p.classType()
	case 'D':
		return p.typeD()
	}
	return p.fail(), false
}

// classType reads a <type> that begins with a substitution.
func (p *parser) classType() (n ref, again bool) {
	if p.peekAt(1) == 't' {
		return p.name(), true
	}
	n = p.substitution()
	if p.peek() != 'I' {
		return n, false
	}
	return p.templateArgs(node{kind: kindTemplate, a: n}), true
}

// typeD reads a <type> that begins with D.
func (p *parser) typeD() (n ref, again bool) {
	c := p.peekAt(1)
	p.at += 2
	switch c {
	case 'a':
		return p.addText(kindName, 0, "auto"), false
	case 'n':
		return p.addText(kindBuiltin, 0, nullptr), false
	case 'u':
		return p.addText(kindBuiltin, 0, "char8_t"), false
	case 's':
		return p.addText(kindBuiltin, 0, "char16_t"), false
	case 'i':
		return p.addText(kindBuiltin, 0, "char32_t"), false
	case 'p':
		return p.expansion(), true
	}
	return p.fail(), false
}

// nullptr is the type std::nullptr_t as GNU spells it.
const nullptr = "decltype(nullptr)"

// expansion reads the pattern of a pack expansion.
func (p *parser) expansion() ref {
	if p.pattern || p.lambdas > 0 {
		return p.fail()
	}
	p.pattern, p.pack = true, 0
	pattern := p.typeName()
	pack := p.pack
	p.pattern, p.pack = false, 0
	if pack == 0 {
		return p.fail()
	}
	return p.add(node{kind: kindExpansion, a: pattern, b: pack})
}

// functionType reads <function-type>.
func (p *parser) functionType() ref {
	p.expect('F')
	if p.lambdas > 0 {
		return p.fail()
	}
	p.accept('Y') // extern "C"
	n := p.function(true)
	p.expect('E') // else a ref-qualifier
	return n
}

// function reads <bare-function-type>.
func (p *parser) function(result bool) ref {
	f := node{kind: kindFunction}
	if result {
		f.a = p.typeName()
	}
	from := len(p.stack)
	p.paramList()
	return p.endList(f, from)
}

// paramList pushes the <type>s of parameters to the stack, none for void.
func (p *parser) paramList() {
	from := len(p.stack)
	for {
		c := p.peek()
		if c == 0 || c == 'E' {
			break
		}
		if (c == 'R' || c == 'O') && p.peekAt(1) == 'E' || c == 'Q' {
			p.bad = true
			return
		}
		p.stack = append(p.stack, p.typeName())
	}
	switch len(p.stack) - from {
	case 0:
		p.bad = true
	case 1:
		if n := &p.nodes[p.stack[from]]; n.kind == kindBuiltin && n.text == "void" {
			p.stack = p.stack[:from]
		}
	}
}

// arrayType reads <array-type> of a number of elements or an unknown one.
func (p *parser) arrayType() ref {
	p.expect('A')
	if p.lambdas > 0 {
		return p.fail()
	}
	from := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	dimension := p.s[from:p.at]
	p.expect('_')
	of := p.typeName()
	if p.bad {
		return 0
	}
	if e := p.nodes[of]; e.kind == kindQual { // its qualifiers are those of the array
		array := p.addText(kindArray, e.a, dimension)
		return p.addText(kindQual, array, e.text)
	}
	return p.addText(kindArray, of, dimension)
}

// memberType reads <pointer-to-member-type>.
func (p *parser) memberType() ref {
	p.expect('M')
	if p.lambdas > 0 {
		return p.fail()
	}
	class := p.typeName()
	return p.add(node{kind: kindMember, a: class, b: p.typeName()})
}

// templateParam reads <template-param>.
func (p *parser) templateParam() ref {
	p.expect('T')
	n := p.compactNumber()
	if p.bad || p.cast {
		return p.fail()
	}
	p.params++
	if p.lambdas > 0 {
		if len(p.templates) > 0 {
			return p.fail()
		}
		return p.add(node{kind: kindAuto, n: int32(n)})
	}
	t := p.template()
	if t == 0 || n >= len(p.list(t)) {
		return p.fail()
	}
	arg := p.list(t)[n]
	if p.kindOf(arg) != kindPack {
		return p.add(node{kind: kindParam, a: arg})
	}
	if !p.usePack(arg) {
		return 0
	}
	return p.add(node{kind: kindPackParam, a: arg})
}

// usePack notes the pack of a pattern.
func (p *parser) usePack(pack ref) bool {
	if !p.pattern || p.pack != 0 && p.pack != pack {
		p.bad = true
	}
	p.pack = pack
	return !p.bad
}

// templateArgs reads <template-args> into the list of a node.
func (p *parser) templateArgs(n node) ref {
	defer func() { p.depth-- }()
	if !p.enter() {
		return 0
	}
	p.at++ // I or J
	from := len(p.stack)
	for !p.accept('E') {
		if p.peek() == 0 {
			return p.fail()
		}
		p.stack = append(p.stack, p.templateArg())
	}
	return p.endList(n, from)
}

// templateArg reads <template-arg>.
func (p *parser) templateArg() ref {
	switch p.peek() {
	case 'L':
		return p.literal()
	case 'X':
		p.at++
		return p.expression()
	case 'I', 'J':
		n := p.templateArgs(node{kind: kindPack})
		if p.bad {
			return 0
		}
		for _, arg := range p.list(n) {
			if p.kindOf(arg) == kindPack {
				return p.fail()
			}
		}
		return n
	case 'T':
		switch p.peekAt(1) {
		case 'y', 'n', 't', 'p', 'k':
			return p.fail()
		}
	}
	return p.typeName()
}

// expression reads the <expression>s that are known, up to the E after it: a template parameter
// and the address of a function.
func (p *parser) expression() ref {
	var n ref
	switch {
	case p.peek() == 'T':
		n = p.templateParam()
	case p.peek() == 'a' && p.peekAt(1) == 'd' && p.peekAt(2) == 'L':
		p.at += 2
		n = p.add(node{kind: kindAddress, a: p.literal()})
	default:
		return p.fail()
	}
	p.expect('E')
	return n
}

// literal reads <expr-primary>.
func (p *parser) literal() ref {
	p.expect('L')
	if p.accept('_') || p.peek() == 'Z' {
		p.expect('Z')
		if p.lambdas > 0 {
			return p.fail()
		}
		n := p.encoding(true, false)
		p.expect('E')
		return n
	}
	t := p.typeName()
	if p.bad {
		return 0
	}
	sign := p.accept('n')
	from := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	text := p.s[from:p.at]
	if text == "" || !p.accept('E') {
		return p.fail()
	}
	n := node{kind: kindLiteral, a: t, text: text}
	if sign {
		n.n = 1
	}
	return p.add(n)
}

// substitution reads <substitution>, but for St before a name.
func (p *parser) substitution() ref {
	p.expect('S')
	c := p.peek()
	if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
		p.at++
		return p.standard(c)
	}
	id, from := 0, p.at
	for ; c != '_'; c = p.peek() {
		switch {
		case c >= '0' && c <= '9':
			id = id*36 + int(c-'0')
		case c >= 'A' && c <= 'Z':
			id = id*36 + int(c-'A') + 10
		default:
			return p.fail()
		}
		p.at++
		if id > len(p.subs) {
			return p.fail()
		}
	}
	if p.at > from {
		id++
	}
	p.at++
	if id >= len(p.subs) {
		return p.fail()
	}
	sub := p.subs[id]
	if sub.template != 0 {
		// Template parameters mean those of the template here: only the same one is known.
		if p.template() != sub.template || sub.pack != 0 && !p.usePack(sub.pack) {
			return p.fail()
		}
		p.params++
	}
	return sub.node
}

// standard returns the name of an abbreviation of std.
func (p *parser) standard(c byte) ref {
	text := ""
	switch c {
	case 't':
		return p.addText(kindName, 0, "std")
	case 'a':
		text = "allocator"
	case 'b':
		text = "basic_string"
	case 's':
		text = "string"
	case 'i':
		text = "istream"
	case 'o':
		text = "ostream"
	case 'd':
		text = "iostream"
	default:
		return p.fail()
	}
	if p.peek() == 'B' { // its tag makes it a candidate
		return p.fail()
	}
	std := p.addText(kindName, 0, "std")
	return p.add(node{kind: kindQualified, a: std, b: p.addText(kindName, 0, text)})
}
