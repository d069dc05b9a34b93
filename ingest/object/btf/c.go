package btf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// maxC bounds the output of AppendC, in bytes. The longest type of a kernel has 60 KB.
const maxC = 1 << 20

// ErrLongC is the error of a type with a declaration longer than AppendC prints.
var ErrLongC = errors.New("a declaration over the limit")

// COptions controls the format of AppendC.
type COptions struct {
	// Plain leaves out the comments on offsets, sizes, holes and padding.
	Plain bool
}

// AppendC appends the declaration of a type as C, with a final line break: the definition of a
// structure, union or enumeration, and the declaration of other named kinds. Types that it refers
// to are named; those without a name are defined in place. Nil options print comments on the
// layout as pahole does: offset and size of each member in bytes (offset:bit of bit fields),
// holes, padding.
//
// Compiled for a machine with the same basic types it has the same layout: where C would place
// members elsewhere, there is padding or the attribute packed. The error is ErrLongC, or one for
// types that are nested too deep; the output before it stays.
func (t *Types) AppendC(dst []byte, id ID, o *COptions) ([]byte, error) {
	if o == nil {
		o = &COptions{}
	}
	p := cPrinter{t: t, plain: o.Plain, layouts: layouts{t: t}, b: dst, limit: len(dst) + maxC,
		budget: maxC}
	p.top(id)
	if p.err != nil {
		return p.b, fmt.Errorf("type %d as C: %w", id, p.err)
	}
	return p.b, nil
}

// cPrinter prints one declaration.
type cPrinter struct {
	t     *Types
	plain bool
	names *cNames // of a C file; nil prints the original names

	layouts layouts
	b       []byte
	limit   int // length of b
	budget  int // remaining bytes for building declarators
	depth   int
	// cacheLine is the last cache line with a comment on its start.
	cacheLine uint64
	err       error
}

func (p *cPrinter) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *cPrinter) add(s string) {
	if len(p.b)+len(s) > p.limit {
		p.fail(ErrLongC)
		return
	}
	p.b = append(p.b, s...)
}

// line begins a line at a level of indentation.
func (p *cPrinter) line(level int) {
	p.add("\n")
	for range level {
		p.add("\t")
	}
}

// note appends a comment on the layout.
func (p *cPrinter) note(format string, args ...any) {
	if !p.plain {
		p.add("/* " + fmt.Sprintf(format, args...) + " */")
	}
}

// top prints a declaration without indentation.
func (p *cPrinter) top(id ID) {
	switch kind := p.t.Kind(id); kind {
	case KindStruct, KindUnion, KindEnum, KindEnum64:
		p.definition(id, 0, 0)
		p.add(";")
	case KindFwd:
		p.add(p.tag(id) + ";")
	case KindTypedef:
		p.add("typedef ")
		p.declare(p.t.Ref(id), p.nameOf(id), 0, 0)
		p.add(";")
	case KindFunc:
		p.add([...]string{"static ", "", "extern "}[min(p.t.FuncLinkage(id), 2)])
		p.declare(p.t.Ref(id), cName(p.t.Name(id)), 0, 0)
		p.add(";")
	case KindVar:
		p.variable(id)
	case KindDatasec:
		p.datasec(id)
	case KindDeclTag:
		p.declTag(id)
	default:
		p.declare(id, "", 0, 0)
		p.add(";")
		if size, err := p.t.Size(id); err == nil {
			p.add(" ")
			p.note("%s", amount(8*size))
		}
	}
	p.add("\n")
}

func (p *cPrinter) variable(id ID) {
	p.add([...]string{"static ", "", "extern "}[min(max(p.t.VarLinkage(id), 0), 2)])
	p.declare(p.t.Ref(id), cName(p.t.Name(id)), 0, 0)
	p.add(";")
}

// datasec prints the variables of a section as a comment. C has no syntax for it.
func (p *cPrinter) datasec(id ID) {
	size, _ := p.t.Size(id)
	p.add(fmt.Sprintf("/* section %s: %s */", comment(p.t.Name(id)), amount(8*size)))
	for _, s := range p.t.Sections(id) {
		if p.err != nil {
			return
		}
		p.add("\n")
		start := len(p.b)
		if p.t.Kind(s.Type) == KindVar {
			p.variable(s.Type)
		} else {
			p.declare(p.t.Ref(s.Type), cName(p.t.Name(s.Type)), 0, 0)
			p.add(";")
		}
		p.place(start, 0, uint64(s.Offset)*8, 0, uint64(s.Size))
	}
}

func (p *cPrinter) declTag(id ID) {
	of := p.t.Ref(id)
	where := p.t.Kind(of).String() + " " + comment(p.t.Name(of))
	if i := p.t.DeclTagComponent(id); i >= 0 {
		where += ", number " + strconv.Itoa(i)
	}
	p.add(fmt.Sprintf("/* tag \"%s\" of %s */", comment(p.t.Name(id)), where))
}

// tag returns the name of a type after its kind: "struct list_head".
func (t *Types) tag(id ID) string {
	word := "struct"
	switch kind := t.Kind(id); {
	case kind == KindUnion, kind == KindFwd && t.FwdUnion(id):
		word = "union"
	case kind == KindEnum, kind == KindEnum64:
		word = "enum"
	}
	if name := t.Name(id); name != "" {
		return word + " " + cName(name)
	}
	return word
}

// tag is Types.tag with the type's name in a C file.
func (p *cPrinter) tag(id ID) string {
	tag := p.t.tag(id)
	if p.names != nil && p.t.Name(id) != "" {
		word, _, _ := strings.Cut(tag, " ")
		return word + " " + p.names.of[id]
	}
	return tag
}

// nameOf returns the name of a typedef.
func (p *cPrinter) nameOf(id ID) string {
	if p.names != nil {
		return p.names.of[id]
	}
	return cName(p.t.Name(id))
}

// local returns the name of a member or parameter, which is not renamed.
func (p *cPrinter) local(name string) string {
	if p.names != nil && name != "" {
		return identifier(name)
	}
	return cName(name)
}

// cName replaces characters that end a line or control a terminal.
func cName(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s)
}

// comment returns a name that cannot end a comment.
func comment(s string) string { return strings.ReplaceAll(cName(s), "*/", "*?") }
