package report

// itanium demangles the everyday part of C++ names by the Itanium C++ ABI, in one walk
// over the name and without a tree: nested names, templates, types, function types,
// literals, argument packs and their expansion. It leaves the rest (lambdas, local
// names, expressions, arrays, member pointers, the special names) to the library, and
// prints what the library prints, which a test holds over recorded names and a fuzz
// target over others. The library takes 25 µs and 135 allocations for a name of a large
// C++ program, which made names cost more than all the rest of a look-up.
//
// Text is only ever appended to out, but for what a return type moves. A type is what
// comes before a name of it and what comes after, as in "void (*" and ")(int)".
type itanium struct {
	in  string
	pos int

	out   []byte // the name so far
	arena []byte // texts of subs, and right parts
	subs  []substitution
	args  []templateArg // of the function's own name: what T_ stands for
	elems []templateArg // of packs among args

	depth     int // of types and names within each other
	templates int // of template arguments within each other
	noParams  bool
	naming    bool // in the function's own name, where T_ stands for nothing yet

	// A pack expansion: which element T_ stands for, and how many there are; −1 if no
	// pack has been met.
	expanding          bool
	element, numElems  int
	constant, volatile bool   // qualifiers of the method
	ref                string // its reference qualifier
}

// Bounds; what is beyond them is left to the library, which has its own.
const (
	maxItaniumDepth = 96
	maxItaniumText  = 1<<maxDemangledShift - 1
	maxItaniumArena = 1 << 20
)

// piece is a range of arena.
type piece struct{ from, to int32 }

// typeKind says what a further modifier of a type has to know.
type typeKind uint8

const (
	plainType typeKind = iota
	qualifiedType
	lvalueRef
	rvalueRef
	functionType
)

// typeEnd is a type whose left part stands at the end of out.
type typeEnd struct {
	right piece
	kind  typeKind
}

// substitution is what a later S_ stands for.
type substitution struct {
	left piece
	typeEnd
	last string // the last name in it, for a constructor's
	pack bool   // it was part of a pack expansion: not the same the next time
}

// templateArg is a template argument in out, or a pack of them.
type templateArg struct {
	from, to int32 // in out; of a pack: in elems
	right    int32 // length of the right part, at the end
	kind     typeKind
	pack     bool
}

// demangle returns a readable name, or false for one that is left to the library.
func (p *itanium) demangle(name string, noParams bool) (string, bool) {
	if len(name) < 3 || name[:2] != "_Z" || isOldRust(name) {
		return "", false
	}
	*p = itanium{
		in: name, pos: 2, out: p.out[:0], arena: p.arena[:0], subs: p.subs[:0],
		args: p.args[:0], elems: p.elems[:0], noParams: noParams,
	}
	if !p.encoding() || len(p.out) > maxItaniumText {
		return "", false
	}
	return string(p.out), true
}

// peek returns the next byte, 0 at the end.
func (p *itanium) peek() byte { return p.peekAt(0) }

func (p *itanium) peekAt(n int) byte {
	if p.pos+n < len(p.in) {
		return p.in[p.pos+n]
	}
	return 0
}

// encoding is the name of a function with its type, or that of a variable.
func (p *itanium) encoding() bool {
	p.naming = true
	returns, ok := p.functionName()
	p.naming = false
	if !ok {
		return false
	}
	if p.noParams {
		return true
	}
	if p.pos == len(p.in) {
		return !p.constant && !p.volatile && p.ref == ""
	}
	if returns && !p.returnType() {
		return false
	}
	if !p.params(0) {
		return false
	}
	if p.constant {
		p.out = append(p.out, " const"...)
	}
	if p.volatile {
		p.out = append(p.out, " volatile"...)
	}
	p.out = append(p.out, p.ref...)
	return p.pos == len(p.in)
}

// returnType puts the return type before the name. Template arguments are where they
// were, seen from the name's start.
func (p *itanium) returnType() bool {
	name := len(p.out)
	t, ok := p.typ()
	if !ok || t.right != (piece{}) || t.kind == functionType {
		return false
	}
	p.out = append(p.out, ' ')
	own := len(p.out) - name
	from := len(p.arena)
	p.arena = append(p.arena, p.out[name:]...)
	p.out = append(p.out, p.out[:own]...)[:len(p.out)]
	copy(p.out[own:], p.out[:name])
	copy(p.out, p.arena[from:])
	for _, list := range [][]templateArg{p.args, p.elems} {
		for i := range list {
			if !list[i].pack {
				list[i].from += int32(own)
				list[i].to += int32(own)
			}
		}
	}
	return true
}

// functionName is the name itself; returns reports whether a return type follows.
func (p *itanium) functionName() (returns, ok bool) {
	last := ""
	switch c := p.peek(); {
	case c == 'N':
		return p.nested(true)
	case c == 'S' && p.peekAt(1) == 't':
		p.pos += 2
		p.out = append(p.out, "std::"...)
		last, ok = p.unqualified()
	case isDigit(c) || c >= 'a' && c <= 'z':
		last, ok = p.unqualified()
	}
	if !ok {
		return false, false
	}
	if p.peek() != 'I' {
		return false, true
	}
	p.add(0, typeEnd{}, last)
	return true, p.templateArgs(true)
}

// params are the parameters, to the end or a byte.
func (p *itanium) params(stop byte) bool {
	p.out = append(p.out, '(')
	if p.peek() == 'v' && p.peekAt(1) == stop {
		p.pos++
	} else if p.peek() == stop || !p.list(stop, false) {
		return false
	}
	p.out = append(p.out, ')')
	return true
}

// list is a list of types, or of template arguments, up to a byte that is not taken.
func (p *itanium) list(stop byte, args bool) bool {
	first := true
	for p.peek() != stop {
		mark := len(p.out)
		if !first {
			p.out = append(p.out, ", "...)
		}
		from := len(p.out)
		if args && !p.templateArg() || !args && !p.whole() {
			return false
		}
		if len(p.out) == from { // an empty pack
			p.out = p.out[:mark]
		} else {
			first = false
		}
	}
	return true
}

// whole is a type with both its parts.
func (p *itanium) whole() bool {
	t, ok := p.item()
	p.out = append(p.out, p.arena[t.right.from:t.right.to]...)
	return ok
}

// item is a type or the expansion of a pack.
func (p *itanium) item() (typeEnd, bool) {
	if p.peek() == 'D' && p.peekAt(1) == 'p' {
		return typeEnd{}, p.expansion()
	}
	return p.typ()
}

// expansion prints its pattern once for each element of a pack.
func (p *itanium) expansion() bool {
	if p.expanding {
		return false
	}
	p.pos += 2
	start, subs, mark := p.pos, len(p.subs), len(p.out)
	p.expanding, p.numElems = true, -1
	for p.element = 0; ; {
		p.pos, p.subs = start, p.subs[:subs]
		if !p.whole() || p.numElems < 0 || len(p.out) > maxItaniumText {
			return false
		}
		if p.element++; p.element >= p.numElems {
			break
		}
		p.out = append(p.out, ", "...)
	}
	if p.numElems == 0 {
		p.out = p.out[:mark]
	}
	p.expanding = false
	for i := subs; i < len(p.subs); i++ {
		p.subs[i].pack = true
	}
	p.subs = append(p.subs, substitution{pack: true})
	return true
}

// templateArgs prints <…>. Those of the function's own name are kept for T_.
func (p *itanium) templateArgs(own bool) bool {
	if own {
		p.args, p.elems = p.args[:0], p.elems[:0]
	}
	p.pos++
	if p.out[len(p.out)-1] == '<' { // operator<
		p.out = append(p.out, ' ')
	}
	p.out = append(p.out, '<')
	p.templates++
	ok := p.list('E', true)
	p.templates--
	p.pos++
	p.closeAngle()
	return ok
}

// closeAngle prints '>', apart from one before it.
func (p *itanium) closeAngle() {
	if p.out[len(p.out)-1] == '>' {
		p.out = append(p.out, ' ')
	}
	p.out = append(p.out, '>')
}

// templateArg is one argument; one of the function's own name is noted.
func (p *itanium) templateArg() bool {
	if p.peek() != 'J' {
		a, ok := p.singleArg()
		if p.naming && p.templates == 1 {
			p.args = append(p.args, a)
		}
		return ok
	}
	p.pos++
	first := len(p.elems)
	for n := 0; p.peek() != 'E'; n++ {
		if n > 0 {
			p.out = append(p.out, ", "...)
		}
		a, ok := p.singleArg()
		if !ok || a.from == a.to {
			return false
		}
		if p.naming && p.templates == 1 {
			p.elems = append(p.elems, a)
		}
	}
	p.pos++
	if p.naming && p.templates == 1 {
		p.args = append(p.args, templateArg{
			from: int32(first), to: int32(len(p.elems)), pack: true,
		})
	}
	return true
}

// singleArg is an argument that is no pack.
func (p *itanium) singleArg() (templateArg, bool) {
	from := len(p.out)
	switch p.peek() {
	case 'L':
		ok := p.literal()
		return templateArg{from: int32(from), to: int32(len(p.out))}, ok
	case 'X', 'J', 'I':
		return templateArg{}, false
	}
	t, ok := p.item()
	right := p.arena[t.right.from:t.right.to]
	p.out = append(p.out, right...)
	return templateArg{
		from: int32(from), to: int32(len(p.out)), right: int32(len(right)), kind: t.kind,
	}, ok
}
