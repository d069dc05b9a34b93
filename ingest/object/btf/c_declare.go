package btf

import (
	"fmt"
	"strconv"
	"strings"
)

// declare prints a declaration of name with a type. A type without a name is defined within it,
// at a level of indentation; bits is its offset in the enclosing structure. Behind a pointer,
// offsets count from 0.
func (p *cPrinter) declare(id ID, name string, level int, bits uint64) {
	d := p.declarator(id, name)
	p.add(d.before)
	switch kind := p.t.Kind(d.base); kind {
	case KindStruct, KindUnion, KindEnum, KindEnum64:
		switch {
		case p.t.Name(d.base) != "" || p.isOnce(d.base):
			p.add(p.baseName(d.base))
		case d.behind:
			p.definition(d.base, level, 0)
		default:
			p.definition(d.base, level, bits)
		}
	default:
		p.add(p.baseName(d.base))
	}
	p.add(d.after)
	if d.inner != "" {
		p.add(" " + d.inner)
	}
}

// isOnce reports whether a C file already has the names of an enumeration.
func (p *cPrinter) isOnce(id ID) bool {
	return p.names != nil && p.names.once[id]
}

// baseName returns the name of a type that is named without a declarator.
func (p *cPrinter) baseName(id ID) string {
	name := p.t.Name(id)
	switch kind := p.t.Kind(id); kind {
	case KindVoid:
		return "void"
	case KindFwd, KindStruct, KindUnion:
		return p.tag(id)
	case KindEnum, KindEnum64:
		if name == "" {
			size, _ := p.t.Size(id)
			return integerOf(size, p.t.EnumSigned(id)) + " /* enum */"
		}
		return p.tag(id)
	case KindInt, KindFloat:
		if p.names != nil {
			if word, ok := p.t.basic(id); ok {
				return word
			}
		}
		if name != "" {
			return intName(p.t.Int(id), name)
		}
		return "/* " + kind.String() + " */ void"
	case KindTypedef:
		if name != "" {
			return p.nameOf(id)
		}
		return "/* " + kind.String() + " */ void"
	default:
		if name != "" {
			return cName(name)
		}
		return "/* " + kind.String() + " */ void"
	}
}

// intName returns a name that C compilers know; DWARF's and Clang's names of int128 are not.
func intName(n Int, name string) string {
	if n.Size == 16 && (name == "__int128 unsigned" || name == "unsigned __int128") {
		return "unsigned __int128"
	}
	return cName(name)
}

// declarator is a C declaration, which is built from the inside out.
type declarator struct {
	base          ID
	before, after string // qualifiers and type tags around the base type
	inner         string // the name with the syntax around it
	behind        bool   // values of the base type are elsewhere: behind a pointer
}

// declarator builds the declarator of a type.
func (p *cPrinter) declarator(id ID, name string) declarator {
	d := declarator{inner: name}
	for range maxRefs {
		if p.spend(len(d.inner)) {
			return declarator{}
		}
		switch kind := p.t.Kind(id); kind {
		case KindConst:
			d.qualify("const ")
		case KindVolatile:
			d.qualify("volatile ")
		case KindRestrict:
			d.qualify("restrict ")
		case KindTypeTag:
			d.after += ` __attribute__((btf_type_tag("` + quoteless(p.t.Name(id)) + `")))`
		case KindPtr:
			d.pointer(p.t.Kind(p.t.unqualified(p.t.Ref(id))))
		case KindArray:
			d.inner += "[" + strconv.FormatUint(uint64(p.t.Array(id).Len), 10) + "]"
			id = p.t.Array(id).Elem
			continue
		case KindFuncProto:
			d.inner += "(" + p.params(id) + ")"
			d.before, d.after, d.behind = "", "", true // a function has no qualifiers
		default:
			d.base = id
			return d
		}
		id = p.t.Ref(id)
	}
	p.fail(errEndless)
	return declarator{}
}

// qualify adds a qualifier once: arrays that are const have elements that are const too.
func (d *declarator) qualify(word string) {
	if !strings.Contains(d.before, word) {
		d.before += word
	}
}

// pointer adds a pointer to a kind of type around the declarator.
func (d *declarator) pointer(to Kind) {
	d.inner = "*" + strings.TrimPrefix(d.after+" ", " ") + d.before + d.inner
	d.inner = strings.TrimSuffix(d.inner, " ")
	d.before, d.after, d.behind = "", "", true
	if to == KindArray || to == KindFuncProto {
		d.inner = "(" + d.inner + ")"
	}
}

// unqualified follows qualifiers, not names.
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

// param returns one parameter. A type without a name is not defined within it: C would treat it as
// another type, and compilers write none.
func (p *cPrinter) param(param Param) string {
	d := p.declarator(param.Type, p.local(param.Name))
	name := p.baseName(d.base)
	if k := p.t.Kind(d.base); p.t.Name(d.base) == "" && (k == KindStruct || k == KindUnion) {
		name = "/* " + name + " */ void"
		if size, err := p.t.Size(d.base); err == nil && !d.behind {
			name = fmt.Sprintf("struct { unsigned char bytes[%d]; }", size)
		}
	}
	s := d.before + name + d.after
	if d.inner != "" {
		s += " " + d.inner
	}
	p.spend(len(s))
	return s
}

// spend counts the bytes for building declarators, so that hostile types cannot cause unbounded
// work for text that is never printed. It reports whether to stop.
func (p *cPrinter) spend(n int) bool {
	if p.budget -= n; p.budget < 0 {
		p.fail(ErrLongC)
	}
	return p.err != nil
}

// quoteless replaces the quotes in a name that is printed within quotes.
func quoteless(s string) string {
	return strings.NewReplacer(`"`, "?", `\`, "?").Replace(cName(s))
}

// TypeName returns the C name of a type without its definition: "struct point", "int [6]"; without
// a name of its own "struct {…}". A type with C over the limit is "?".
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

// maxTypeName bounds the work of TypeName, bytes.
const maxTypeName = 4 << 10
