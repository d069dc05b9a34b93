package btf

import (
	"strconv"
	"strings"
)

// declare prints a declaration of name with a type. A type without a name is defined
// within it, at a level of indentation; bits is where it begins in the structure around.
func (p *cPrinter) declare(id ID, name string, level int, bits uint64) {
	base, before, after, inner := p.declarator(id, name)
	p.add(before)
	switch kind := p.t.Kind(base); kind {
	case KindStruct, KindUnion, KindEnum, KindEnum64:
		if p.t.Name(base) == "" {
			p.definition(base, level, bits)
		} else {
			p.add(p.t.tag(base))
		}
	default:
		p.add(p.t.baseName(base))
	}
	p.add(after)
	if inner != "" {
		p.add(" " + inner)
	}
}

// baseName returns the name of a type that is told by its name alone.
func (t *Types) baseName(id ID) string {
	switch kind := t.Kind(id); kind {
	case KindVoid:
		return "void"
	case KindFwd:
		return t.tag(id)
	default:
		if name := t.Name(id); name != "" {
			if kind == KindInt {
				return intName(t.Int(id), name)
			}
			return cName(name)
		}
		return "/* " + kind.String() + " */ void"
	}
}

// intName returns a name that C compilers know: DWARF's and Clang's name of int128 is none.
func intName(n Int, name string) string {
	if n.Size == 16 && (name == "__int128 unsigned" || name == "unsigned __int128") {
		return "unsigned __int128"
	}
	return cName(name)
}

// declarator turns a type inside out, as C wants it: the base type with the qualifiers
// before and the type tags after it, and what stands around the name.
func (p *cPrinter) declarator(id ID, name string) (base ID, before, after, inner string) {
	inner = name
	for range maxRefs {
		if p.spend(len(inner)) {
			return 0, "", "", ""
		}
		switch kind := p.t.Kind(id); kind {
		case KindConst:
			before += "const "
		case KindVolatile:
			before += "volatile "
		case KindRestrict:
			before += "restrict "
		case KindTypeTag:
			after += ` __attribute__((btf_type_tag("` + quoteless(p.t.Name(id)) + `")))`
		case KindPtr:
			inner = "*" + strings.TrimPrefix(after+" ", " ") + before + inner
			inner = strings.TrimSuffix(inner, " ")
			before, after = "", ""
			if next := p.t.Kind(p.t.unqualified(p.t.Ref(id))); next == KindArray ||
				next == KindFuncProto {
				inner = "(" + inner + ")"
			}
		case KindArray:
			inner += "[" + strconv.FormatUint(uint64(p.t.Array(id).Len), 10) + "]"
			id = p.t.Array(id).Elem
			continue
		case KindFuncProto:
			inner += "(" + p.params(id) + ")"
			before, after = "", "" // a function has no qualifiers
		default:
			return id, before, after, inner
		}
		id = p.t.Ref(id)
	}
	p.fail(errEndless)
	return 0, "", "", ""
}

// unqualified goes through qualifiers, not through names.
func (t *Types) unqualified(id ID) ID {
	for range maxRefs {
		switch t.Kind(id) {
		case KindConst, KindVolatile, KindRestrict, KindTypeTag:
			id = t.Ref(id)
		default:
			return id
		}
	}
	return 0
}

// params returns the parameters of a function.
func (p *cPrinter) params(id ID) string {
	if p.depth++; p.depth > maxNesting {
		p.fail(errNested)
	}
	var b strings.Builder
	n := 0
	for _, param := range p.t.Params(id) {
		if p.err != nil {
			break
		}
		if n++; n > 1 {
			b.WriteString(", ")
		}
		if param.Type == 0 && param.Name == "" {
			b.WriteString("...")
			continue
		}
		b.WriteString(p.param(param))
	}
	p.depth--
	if n == 0 {
		return "void"
	}
	return b.String()
}

// param returns one parameter. A type without a name is not defined within it: C would
// take it for another type, and compilers write none.
func (p *cPrinter) param(param Param) string {
	base, before, after, inner := p.declarator(param.Type, cName(param.Name))
	name := ""
	switch kind := p.t.Kind(base); kind {
	case KindStruct, KindUnion, KindEnum, KindEnum64:
		name = p.t.tag(base)
		if p.t.Name(base) == "" {
			name = "/* " + name + " */ void"
		}
	default:
		name = p.t.baseName(base)
	}
	s := before + name + after
	if inner != "" {
		s += " " + inner
	}
	p.spend(len(s))
	return s
}

// spend counts the bytes that declarators are made of, so that hostile types do not make
// many of what is never printed. It tells whether to stop.
func (p *cPrinter) spend(n int) bool {
	if p.budget -= n; p.budget < 0 {
		p.fail(ErrLongC)
	}
	return p.err != nil
}

// quoteless returns a name to stand within quotes.
func quoteless(s string) string {
	return strings.NewReplacer(`"`, "?", `\`, "?").Replace(cName(s))
}

// TypeName returns a type as C names it, without what it is made of: "struct point",
// "int [6]"; without a name of its own "struct {…}". A type of which C would be too long is
// "?".
func (t *Types) TypeName(id ID) string {
	switch kind := t.Kind(id); kind {
	case KindStruct, KindUnion, KindEnum, KindEnum64:
		if t.Name(id) == "" {
			return strings.ToLower(strings.TrimSuffix(kind.String(), "64")) + " {…}"
		}
	}
	p := cPrinter{t: t, plain: true, budget: maxTypeName, limit: maxTypeName}
	s := p.param(Param{Type: id})
	if p.err != nil {
		return "?"
	}
	return s
}

// maxTypeName bounds what TypeName builds, bytes.
const maxTypeName = 4 << 10
