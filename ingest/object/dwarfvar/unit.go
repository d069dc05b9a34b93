package dwarfvar

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
)

// unit is what one walk through the entries of a unit finds.
type unit struct {
	names   scopeNames
	alias   map[uint64]dwarf.Pos // definitions of declared types, by offset
	funcs   []found
	globals []uint64   // entries of variables with a fixed address
	extern  []uint64   // entries of variables that are only declared
	calls   []lineCall // inlined calls in Options.Lines
	inlines []inlined  // all, with Options.Inlined
	lists   bool       // a variable has a list of places, as optimizing compilers write them
	types   []uint64   // entries of types with a name
	defined []definition
}

// found is a function with code.
type found struct {
	ranges  []addr.Range
	pos     dwarf.Pos
	inlines bool // one of Options.Names, with Options.Inlined
}

// inlined is a call in function in of the unit.
type inlined struct {
	origin dwarf.Pos
	in     int
}

// definition is a defined structure, class, union or enumeration.
type definition struct {
	name string
	off  uint64
}

// unitWalk walks a unit.
type unitWalk struct {
	r        *reader
	u        *unit
	root     *dwarf.Root
	scopes   []int32  // by depth, indices in the unit's names
	inside   []int    // by depth, indices in the unit's functions, -1 outside of them
	files    [][]bool // by Options.Lines: which of the unit's files are that of the line
	declared []definition
	named    bool // names have scopes
	deep     bool // types can have entries of interest in them
}

// walk reads a unit.
func (r *reader) walk(root *dwarf.Root) *unit {
	u := &unit{names: scopeNames{list: make([]scopeName, 1)}}
	r.units[root] = u // of entries that refer to one another
	lang := r.language(root)
	w := unitWalk{r: r, u: u, root: root, named: qualifies(lang), scopes: []int32{0}, inside: []int{-1},
		deep: qualifies(lang) || !isC(lang), files: r.lineFiles(root)}
	var e dwarf.Entry
	if r.tree.Read(root.First(), &e) {
		r.tree.Kids(&e, w.visit, nil)
	}
	byName := make(map[string]uint64, len(u.defined))
	for _, d := range u.defined {
		if _, dup := byName[d.name]; !dup {
			byName[d.name] = d.off
		}
	}
	for _, d := range w.declared {
		if off, ok := byName[d.name]; ok {
			w.alias(d.off, dwarf.Pos{Root: root, Off: off})
		}
	}
	return u
}

// isC reports whether types of a language have no entries of interest in them.
func isC(lang uint16) bool {
	switch lang {
	case dwarf.LangC89, dwarf.LangC, dwarf.LangC99, dwarf.LangC11, dwarf.LangC17, dwarf.LangGo,
		dwarf.LangMips:
		return true
	}
	return false
}

func (w *unitWalk) alias(off uint64, to dwarf.Pos) {
	if w.u.alias == nil {
		w.u.alias = make(map[uint64]dwarf.Pos)
	}
	w.u.alias[off] = to
}

func (w *unitWalk) visit(e *dwarf.Entry, depth int) dwarf.Step {
	outer := w.scopes[depth-1]
	w.u.names.add(e.Off, outer)
	funcs := len(w.u.funcs)
	step := w.entry(e, depth == 1)
	w.note(e, depth, funcs)
	if step == dwarf.Into {
		in := outer
		if isScope(e.Tag) && w.named {
			in = w.u.names.begin(e.Off, outer)
		}
		w.scopes = append(w.scopes[:depth], in)
	}
	return step
}

// entry notes an entry, and decides whether those in it matter.
func (w *unitWalk) entry(e *dwarf.Entry, outermost bool) dwarf.Step {
	switch e.Tag {
	case tagStructureType, tagClassType, tagUnionType, tagInterfaceType, tagEnumerationType:
		w.structure(e)
		if w.deep && e.Tag != tagEnumerationType {
			return dwarf.Into
		}
	case tagTypedef, tagBaseType, tagTemplateAlias:
		w.u.types = append(w.u.types, e.Off)
	case tagSubprogram:
		if rs := w.r.tree.Ranges(e); len(rs) > 0 {
			w.u.funcs = append(w.u.funcs, found{ranges: append([]addr.Range(nil), rs...), pos: e.Pos})
		}
		return dwarf.Into
	case tagVariable:
		if w.fixed(e) {
			w.u.globals = append(w.u.globals, e.Off)
		} else if w.r.opts.Linked && (e.Flag(atDeclaration) && e.Flag(atExternal) || outermost && w.unplaced(e)) {
			w.u.extern = append(w.u.extern, e.Off)
		}
	case tagNamespace, tagModule, tagLexicalBlock, tagInlinedSubroutine, tagCommonBlock,
		tagTryBlock, tagCatchBlock, tagWithStmt:
		return dwarf.Into
	}
	return dwarf.Over
}

// note notes what an entry is for Options.Inlined and Options.Lines; funcs is the number of functions before it.
func (w *unitWalk) note(e *dwarf.Entry, depth, funcs int) {
	in := w.inside[depth-1]
	switch e.Tag {
	case tagSubprogram:
		if len(w.u.funcs) > funcs {
			in = funcs
		}
	case tagInlinedSubroutine:
		w.inlined(e, in)
	case tagFormalParameter, tagVariable:
		w.u.lists = w.u.lists || e.Class(atLocation) == dwarf.ClassList
	}
	w.inside = append(w.inside[:depth], in)
}

// inlined notes a call in function in that Options may select.
func (w *unitWalk) inlined(e *dwarf.Entry, in int) {
	if w.r.opts.Inlined && in >= 0 {
		if p, ok := w.r.tree.Ref(e, atAbstractOrigin); ok {
			w.u.inlines = append(w.u.inlines, inlined{p, in})
		}
	}
	if w.files != nil {
		w.calls(e)
	}
}

// calls notes a call in Options.Lines.
func (w *unitWalk) calls(e *dwarf.Entry) {
	file, line := callOf(e)
	for i, l := range w.r.opts.Lines {
		if line != l.Line || file >= uint64(len(w.files[i])) || !w.files[i][file] {
			continue
		}
		if a, ok := entryOf(w.r.tree, e); ok {
			w.u.calls = append(w.u.calls, lineCall{l, a})
		}
	}
}

// selectInlined selects the functions of a unit with calls of Options.Names.
func (r *reader) selectInlined(u *unit) {
	for _, c := range u.inlines {
		named, known := r.named[c.origin]
		if !known {
			named = r.wants(c.origin, &r.names)
			r.named[c.origin] = named
		}
		u.funcs[c.in].inlines = u.funcs[c.in].inlines || named
	}
	u.inlines = nil
}

// structure notes a type by its name.
func (w *unitWalk) structure(e *dwarf.Entry) {
	if p, ok := w.r.tree.Ref(e, atSignature); ok { // a type unit has the definition
		w.alias(e.Off, p)
		return
	}
	name, deep := "", w.deep
	if deep {
		name = w.r.qualified(e)
	}
	switch {
	case e.Flag(atDeclaration):
		if name != "" {
			w.declared = append(w.declared, definition{name, e.Off})
		}
		return
	case name != "":
		w.u.defined = append(w.u.defined, definition{name, e.Off})
	}
	if e.Has(atName) || e.Has(atSpecification) {
		w.u.types = append(w.u.types, e.Off)
	}
}

// fixed reports whether a variable has an address, or a place in thread-local storage.
// unplaced reports whether a variable is defined without a place or a value.
func (w *unitWalk) unplaced(e *dwarf.Entry) bool {
	return !e.Flag(atDeclaration) && e.Class(atLocation) == 0 && e.Class(atConstValue) == 0
}

func (w *unitWalk) fixed(e *dwarf.Entry) bool {
	b, ok := e.Block(atLocation)
	if !ok || len(b) == 0 {
		return false
	}
	switch b[0] {
	case opAddr, opAddrx, opGNUAddrIndex, opConst4u, opConst8u, opConstx, opGNUConstIdx, opConstu:
		k := evaluate(w.r.tree, w.root, unknown, b).Kind
		return k == Static || k == ThreadLocal
	}
	return false
}
