package btf

import (
	"bufio"
	"fmt"
	"io"
)

// Bounds of a C file: the depth of dependencies between types, and its bytes. That of a kernel
// has some 10 MB and a depth of some hundred.
const (
	maxNeeds = 1 << 13
	maxCFile = 64 << 20
)

// WriteC writes C that compiles: the definitions of types and all their dependencies, ordered as
// C requires. roots are the types to define, nil for all of t without its base. Names that C
// does not allow twice get a suffix, NAME___2. Variables, functions and sections are left out;
// CFileLeft counts them. The preamble is as in bpftool, so that the file can replace its
// vmlinux.h.
func (t *Types) WriteC(w io.Writer, roots []ID, o *COptions) error {
	if o == nil {
		o = &COptions{}
	}
	f := cFile{t: t, w: bufio.NewWriterSize(w, 64<<10), done: make([]cState, t.Len())}
	f.p = cPrinter{t: t, plain: o.Plain, layouts: layouts{t: t}, names: newNames(t)}
	f.text(cFileHead)
	if roots == nil {
		f.all()
	}
	for _, id := range roots {
		f.root(id)
	}
	f.text(cFileTail)
	if f.err == nil {
		f.err = f.w.Flush()
	}
	return f.err
}

// cBeforeC23 is true where bool is no keyword: compilers had the new keywords before the new
// version number.
const cBeforeC23 = "#if !defined(__STDC_VERSION__) || __STDC_VERSION__ <= 201710L || " +
	"(defined(__clang__) ? __clang_major__ < 15 : __GNUC__ < 13)\n"

// The pragma makes members of structures relocatable by the types of the running kernel.
const (
	cFileHead = `#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#if defined(__clang__) && defined(__bpf__) && !defined(BPF_NO_PRESERVE_ACCESS_INDEX)
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

`
	cFileTail = `#if defined(__clang__) && defined(__bpf__) && !defined(BPF_NO_PRESERVE_ACCESS_INDEX)
#pragma clang attribute pop
#endif

#endif /* __VMLINUX_H__ */
`
)

// CFileLeft counts the named variables, functions and sections of t, without its base's,
// that WriteC leaves out.
func (t *Types) CFileLeft() (variables, functions, sections int) {
	for id := t.first; id < ID(t.Len()); id++ {
		switch t.Kind(id) {
		case KindVar:
			variables++
		case KindFunc:
			functions++
		case KindDatasec:
			sections++
		}
	}
	return variables, functions, sections
}

// cState is the progress of a type: its dependencies behind pointers, all of them, and in a file
// its declaration or definition.
type cState uint8

const (
	cNamed cState = 1 << iota // dependencies of a pointer to it
	cWhole                    // dependencies of a value of it
	cDeclared
)

// cFile is a C file that is being written.
type cFile struct {
	t       *Types
	w       *bufio.Writer
	p       cPrinter
	done    []cState
	depth   int
	written int
	b       []byte // reused
	err     error
}

func (f *cFile) text(s string) {
	if f.written += len(s); f.written > maxCFile && f.err == nil {
		f.err = ErrLongC
	}
	if f.err == nil {
		_, f.err = f.w.WriteString(s)
	}
}

// all defines the types of t itself, and last the enumerations without a name that are in no
// other type: their enumerators are constants.
func (f *cFile) all() {
	for id := f.t.first; id < ID(f.t.Len()) && f.err == nil; id++ {
		switch f.t.Kind(id) {
		case KindStruct, KindUnion, KindTypedef, KindFwd, KindEnum, KindEnum64:
			if f.t.Name(id) != "" {
				f.need(id, true)
			}
		}
	}
	for id := f.t.first; id < ID(f.t.Len()) && f.err == nil; id++ {
		if f.t.Name(id) == "" && f.t.enumTable(id).n > 0 && !f.p.isOnce(id) {
			f.print(id)
		}
	}
}

// root defines a type, or the types of a variable, function or section.
func (f *cFile) root(id ID) {
	switch f.t.Kind(id) {
	case KindDatasec:
		for _, s := range f.t.Sections(id) {
			f.root(s.Type)
		}
	case KindVar, KindFunc, KindDeclTag:
		f.need(f.t.Ref(id), true)
	default:
		f.need(id, true)
	}
}

// need writes the dependencies of a type's name, or of a value of it (whole), and the type itself
// if it has a name.
func (f *cFile) need(id ID, whole bool) {
	state := cNamed
	if whole {
		state = cWhole
	}
	if f.err != nil || f.done[id]&state != 0 {
		return
	}
	f.done[id] |= state
	if f.depth++; f.depth > maxNeeds {
		f.err = fmt.Errorf("type %d as C: %w", id, errNested)
		return
	}
	f.needs(id, whole)
	f.depth--
}

func (f *cFile) needs(id ID, whole bool) {
	t := f.t
	switch kind := t.Kind(id); kind {
	case KindStruct, KindUnion:
		f.group(id, whole)
	case KindFwd:
		f.declaration(id)
	case KindEnum, KindEnum64:
		f.enum(id)
	case KindTypedef:
		f.need(t.Ref(id), false)
		if f.done[id]&cDeclared == 0 {
			f.done[id] |= cDeclared
			f.print(id)
		}
		if whole {
			f.need(t.Ref(id), true)
		}
	case KindPtr:
		f.need(t.Ref(id), false)
	case KindArray:
		f.need(t.Array(id).Elem, true)
	case KindConst, KindVolatile, KindRestrict, KindTypeTag:
		f.need(t.Ref(id), whole)
	case KindFuncProto:
		f.need(t.Ref(id), false)
		for _, p := range t.Params(id) {
			f.need(p.Type, false)
		}
	}
}

// group defines a structure or union, or declares one that only pointers point to.
func (f *cFile) group(id ID, whole bool) {
	named := f.t.Name(id) != ""
	if named && !whole {
		f.declaration(id)
		return
	}
	for _, m := range f.t.Members(id) {
		f.need(m.Type, true)
	}
	if named {
		f.done[id] |= cDeclared
		f.print(id)
	}
}

// enum defines an enumeration, which C requires before any reference to it.
func (f *cFile) enum(id ID) {
	switch {
	case f.t.Name(id) == "" || f.done[id]&cDeclared != 0:
	case !f.t.isDefinition(id):
		f.declaration(id)
	default:
		f.done[id] |= cDeclared
		f.print(id)
	}
}

// declaration writes "struct NAME;" unless the type is there.
func (f *cFile) declaration(id ID) {
	if f.done[id]&cDeclared == 0 {
		f.done[id] |= cDeclared
		f.text(f.p.tag(id) + ";\n\n")
	}
}

// print writes the definition of a type.
func (f *cFile) print(id ID) {
	if f.t.Kind(id) == KindTypedef && f.t.Name(id) == "" {
		return
	}
	f.p.b, f.p.limit, f.p.budget, f.p.depth = f.b[:0], maxC, maxC, 0
	f.p.top(id)
	if f.b = f.p.b; f.p.err != nil {
		f.err = fmt.Errorf("type %d as C: %w", id, f.p.err)
		return
	}
	guarded := f.guarded(id)
	if guarded {
		f.text(cBeforeC23)
	}
	f.text(string(f.b))
	if guarded {
		f.text("#endif\n")
	}
	f.text("\n")
}

// guarded reports whether a type defines keywords of C23: bool and its two values.
func (f *cFile) guarded(id ID) bool {
	if f.t.Kind(id) == KindTypedef {
		return f.p.nameOf(id) == "bool"
	}
	n := 0
	for _, e := range f.t.Enumerators(id) {
		if e.Name != "false" && e.Name != "true" {
			return false
		}
		n++
	}
	return n > 0
}
