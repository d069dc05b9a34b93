package report

// builtinTypes are the types of one lower-case letter.
var builtinTypes = ['z' + 1]string{
	'a': "signed char", 'b': "bool", 'c': "char", 'd': "double",
	'e': "long double", 'f': "float", 'g': "__float128",
	'h': "unsigned char", 'i': "int", 'j': "unsigned int", 'l': "long",
	'm': "unsigned long", 'n': "__int128", 'o': "unsigned __int128",
	's': "short", 't': "unsigned short", 'v': "void", 'w': "wchar_t",
	'x': "long long", 'y': "unsigned long long", 'z': "...",
}

// standardNames are the substitutions with a letter of their own.
var standardNames = map[byte]string{
	'a': "allocator", 'b': "basic_string", 's': "string", 'i': "istream", 'o': "ostream",
	'd': "iostream",
}

// typ prints the left part of a type.
func (p *itanium) typ() (t typeEnd, ok bool) {
	if p.depth++; p.depth > maxItaniumDepth || len(p.out) > maxItaniumText ||
		len(p.arena) > maxItaniumArena {
		return t, false
	}
	defer func() { p.depth-- }()
	mark, last := len(p.out), ""
	switch c := p.peek(); c {
	case 'K', 'V':
		p.pos++
		if t, ok = p.typ(); !ok || t.kind != plainType || t.right != (piece{}) {
			return t, false
		}
		word := " const"
		if c == 'V' {
			word = " volatile"
		}
		p.out = append(p.out, word...)
		t.kind = qualifiedType
	case 'P', 'R', 'O':
		p.pos++
		if t, ok = p.typ(); ok {
			t, ok = p.pointer(t, c)
		}
	case 'F':
		t, ok = p.function()
	case 'T':
		t, ok = p.templateParam()
	case 'D':
		return t, p.twoLetters()
	case 'S':
		return p.standard()
	case 'N':
		_, ok = p.nested(false)
	default:
		if c >= 'a' && c <= 'z' {
			p.pos++
			p.out = append(p.out, builtinTypes[c]...)
			return t, len(p.out) > mark
		}
		if !isDigit(c) {
			return t, false
		}
		if last, ok = p.unqualified(); ok && p.peek() == 'I' {
			p.add(mark, t, last)
			ok = p.templateArgs(false)
		}
	}
	if ok {
		p.add(mark, t, last)
	}
	return t, ok
}

// pointer makes a type a pointer to it, or a reference. References to references are
// one.
func (p *itanium) pointer(t typeEnd, c byte) (typeEnd, bool) {
	if t.kind == functionType {
		p.out = append(p.out, '(')
		from := len(p.arena)
		p.arena = append(append(p.arena, ')'), p.arena[t.right.from:t.right.to]...)
		t.right = piece{int32(from), int32(len(p.arena))}
	}
	switch ref := t.kind == lvalueRef || t.kind == rvalueRef; {
	case ref && p.naming: // only T_ can stand for a reference
		return t, false
	case c == 'P':
		p.out = append(p.out, '*')
		t.kind = plainType
		return t, !ref
	case c == 'O' && ref || c == 'R' && t.kind == lvalueRef:
		return t, true
	case c == 'R' && ref:
		p.out = p.out[:len(p.out)-1]
		t.kind = lvalueRef
	case c == 'R':
		p.out = append(p.out, '&')
		t.kind = lvalueRef
	default:
		p.out = append(p.out, "&&"...)
		t.kind = rvalueRef
	}
	return t, true
}

// function is the type of a function.
func (p *itanium) function() (t typeEnd, ok bool) {
	p.pos++
	if t, ok = p.typ(); !ok || t.right != (piece{}) || t.kind == functionType {
		return t, false
	}
	p.out = append(p.out, ' ')
	mark := len(p.out)
	if !p.params('E') {
		return t, false
	}
	p.pos++
	t = typeEnd{right: p.keep(mark), kind: functionType}
	p.out = p.out[:mark]
	return t, true
}

// twoLetters are the types that begin with D and are built in.
func (p *itanium) twoLetters() bool {
	name := ""
	switch p.peekAt(1) {
	case 's':
		name = "char16_t"
	case 'i':
		name = "char32_t"
	case 'u':
		name = "char8_t"
	}
	p.pos += 2
	p.out = append(p.out, name...)
	return name != ""
}

// templateParam is T_: an argument of the function's own name.
func (p *itanium) templateParam() (t typeEnd, ok bool) {
	p.pos++
	n, ok := p.index()
	if !ok || n >= len(p.args) || p.naming || p.peek() == 'I' {
		return t, false
	}
	a := p.args[n]
	if a.pack {
		count := int(a.to - a.from)
		if !p.expanding || p.numElems >= 0 && p.numElems != count {
			return t, false
		}
		if p.numElems = count; count == 0 {
			return t, true
		}
		a = p.elems[int(a.from)+p.element]
	}
	if a.from == a.to {
		return t, false
	}
	t.kind = a.kind
	p.out = append(p.out, p.out[a.from:a.to-a.right]...)
	if a.right > 0 {
		from := len(p.arena)
		p.arena = append(p.arena, p.out[a.to-a.right:a.to]...)
		t.right = piece{int32(from), int32(len(p.arena))}
	}
	return t, true
}

// index is what stands between T and _: nothing for 0, else one less in decimal.
func (p *itanium) index() (n int, ok bool) {
	if p.peek() == '_' {
		p.pos++
		return 0, true
	}
	for isDigit(p.peek()) && n < 1000 {
		n = n*10 + int(p.peek()-'0')
		p.pos++
	}
	ok = p.peek() == '_' && p.in[p.pos-1] != 'T'
	p.pos++
	return n + 1, ok
}

// standard is a type that begins with S.
func (p *itanium) standard() (t typeEnd, ok bool) {
	mark := len(p.out)
	s, ok := p.substituted()
	if !ok {
		return t, false
	}
	t = s.typeEnd
	if s.last == "" && s.left == (piece{}) { // St: the name follows
		p.out = append(p.out, "::"...)
		last, ok := p.unqualified()
		if !ok {
			return t, false
		}
		if p.peek() == 'I' {
			p.add(mark, t, last)
			ok = p.templateArgs(false)
		}
		if ok {
			p.add(mark, t, last)
		}
		return t, ok
	}
	if p.peek() == 'B' {
		return t, false
	}
	if p.peek() == 'I' {
		if t.kind != plainType || t.right != (piece{}) || !p.templateArgs(false) {
			return t, false
		}
		p.add(mark, t, s.last)
	}
	return t, true
}

// substituted prints what S and its letters stand for. Of St both parts are empty.
func (p *itanium) substituted() (s substitution, ok bool) {
	c := p.peekAt(1)
	if c == 't' {
		p.pos += 2
		p.out = append(p.out, "std"...)
		return s, true
	}
	if name := standardNames[c]; name != "" {
		p.pos += 2
		p.out = append(append(p.out, "std::"...), name...)
		// A constructor would need the long form.
		return substitution{last: name}, p.peek() != 'C' && p.peek() != 'D'
	}
	p.pos++
	n := 0
	if p.peek() != '_' {
		for ; n < 1<<20; p.pos++ {
			c := p.peek()
			if isDigit(c) {
				n = n*36 + int(c-'0')
			} else if c >= 'A' && c <= 'Z' {
				n = n*36 + int(c-'A') + 10
			} else {
				break
			}
		}
		if p.in[p.pos-1] == 'S' {
			return s, false
		}
		n++
	}
	if p.peek() != '_' || n >= len(p.subs) || p.subs[n].pack {
		return s, false
	}
	p.pos++
	s = p.subs[n]
	p.out = append(p.out, p.arena[s.left.from:s.left.to]...)
	return s, s.left != (piece{})
}

// add makes out from a place on what a later S_ stands for.
func (p *itanium) add(mark int, t typeEnd, last string) {
	p.subs = append(p.subs, substitution{left: p.keep(mark), typeEnd: t, last: last})
}

// keep copies out from a place on.
func (p *itanium) keep(mark int) piece {
	from := len(p.arena)
	p.arena = append(p.arena, p.out[mark:]...)
	return piece{int32(from), int32(len(p.arena))}
}

// literal is a number as a template argument.
func (p *itanium) literal() bool {
	p.pos++
	c := p.peek()
	if c == 'L' || c == '_' || c == 'Z' {
		return false
	}
	suffix, short := "", true
	switch c {
	case 'b':
		value := p.peekAt(1)
		if value != '0' && value != '1' || p.peekAt(2) != 'E' {
			return false
		}
		p.pos += 3
		p.out = append(p.out, [...]string{"false", "true"}[value-'0']...)
		return true
	case 'i':
	case 'j':
		suffix = "u"
	case 'l':
		suffix = "l"
	case 'm':
		suffix = "ul"
	case 'x':
		suffix = "ll"
	case 'y':
		suffix = "ull"
	case 'd', 'e', 'f', 'g', 'D', 'P', 'R', 'O', 'T', 'F', 'K', 'V':
		return false
	default:
		short = false
		p.out = append(p.out, '(')
		if t, ok := p.typ(); !ok || t.kind != plainType || t.right != (piece{}) {
			return false
		}
		p.out = append(p.out, ')')
	}
	if short {
		p.pos++
	}
	if p.peek() == 'n' {
		p.out = append(p.out, '-')
		p.pos++
	}
	from := p.pos
	for isDigit(p.peek()) {
		p.pos++
	}
	p.out = append(append(p.out, p.in[from:p.pos]...), suffix...)
	p.pos++
	return p.pos > from+1 && p.in[p.pos-1:min(p.pos, len(p.in))] == "E"
}
