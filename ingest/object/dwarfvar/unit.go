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
	imports []*dwarf.Root // imported units, with Options.Types
	uses    uses          // with Options.Values
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
	tree     *dwarf.Tree
	u        *unit
	values   bool // Options.Values
	root     *dwarf.Root
	open     []open   // by depth: what is around an entry
	inside   []int    // by depth, indices in the unit's functions, -1 outside of them
	files    [][]bool // by Options.Lines: which of the unit's files have the line
	declared []definition
	named    bool // names have scopes
	deep     bool // types can have entries of interest in them
}

// open is an entry with entries in it.
type open struct {
	off    uint64
	scope  int32 // index in the unit's names, or one of the constants below
	silent bool  // a function that is only declared: its parameters are no variables
}

// Scopes that are not known yet, because no entry needed them: a new one, or the one around.
const (
	newScope   int32 = -1
	outerScope int32 = -2
)

// opened returns the open of an entry.
func opened(e *dwarf.Entry) open {
	in := open{off: e.Off, scope: outerScope, silent: e.Tag == tagSubprogram && e.Flag(atDeclaration)}
	if isScope(e.Tag) {
		in.scope = newScope
	}
	return in
}

// walk reads a unit.
func (r *reader) walk(root *dwarf.Root) *unit {
	u := &unit{names: scopeNames{list: make([]scopeName, 1)}}
	r.units[root] = u // of entries that refer to one another
	lang := r.language(root)
	w := unitWalk{r: r, tree: r.tree, values: r.opts.Values, u: u, root: root, named: qualifies(lang), open: []open{{}}, inside: []int{-1},
		deep: qualifies(lang) || !isC(lang), files: r.lineFiles(root)}
	var e dwarf.Entry
	if r.tree.Read(root.First(), &e) {
		r.tree.Kids(&e, w.visit, nil)
	}
	w.complete()
	return u
}

// complete finds the definitions of declared types.
func (w *unitWalk) complete() {
	byName := make(map[string]uint64, len(w.u.defined))
	for _, d := range w.u.defined {
		if _, dup := byName[d.name]; !dup {
			byName[d.name] = d.off
		}
	}
	for _, d := range w.declared {
		if off, ok := byName[d.name]; ok {
			w.alias(d.off, dwarf.Pos{Root: w.root, Off: off})
		}
	}
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
	outer := &w.open[depth-1]
	if w.values && !(outer.silent && e.Tag == tagFormalParameter) {
		w.u.uses.note(w.tree, e)
	}
	if w.named && hasScope(e.Tag) {
		w.u.names.add(e.Off, w.scope(depth-1))
	}
	funcs := len(w.u.funcs)
	step := w.entry(e, depth == 1)
	w.note(e, depth, funcs)
	if step == dwarf.Into {
		w.open = append(w.open[:depth], opened(e))
	}
	return step
}

// hasScope reports whether the name of an entry with this tag can be asked for.
func hasScope(tag uint16) bool {
	switch tag {
	case tagFormalParameter, tagInlinedSubroutine, tagLexicalBlock, tagCallSite, tagGNUCallSite, tagTemplateType,
		tagTemplateValue, tagMember, tagInheritance, tagEnumerator, tagUnspecifiedParams, tagGNUFormalPack,
		tagGNUParameterPack:
		return false
	}
	return true
}

// scope returns the scope of the entries in the open entry at a depth.
func (w *unitWalk) scope(depth int) int32 {
	x := &w.open[depth]
	switch x.scope {
	case newScope:
		x.scope = w.u.names.begin(x.off, w.scope(depth-1))
	case outerScope:
		x.scope = w.scope(depth - 1)
	}
	return x.scope
}

// entry notes an entry, and decides whether those in it matter.
func (w *unitWalk) entry(e *dwarf.Entry, outermost bool) dwarf.Step {
	switch e.Tag {
	case tagStructureType, tagClassType, tagUnionType, tagInterfaceType, tagEnumerationType:
		w.structure(e)
		if w.deep && e.Tag != tagEnumerationType {
			return dwarf.Into
		}
	case tagImportedUnit:
		if len(w.r.opts.Types) > 0 && !w.r.opts.All {
			if p, ok := w.tree.Ref(e, atImport); ok {
				w.u.imports = append(w.u.imports, p.Root)
			}
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
		tagTryBlock, tagCatchBlock, tagWithStmt, tagGNUFormalPack:
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

// unplaced reports whether a variable is defined without a place or a value.
func (w *unitWalk) unplaced(e *dwarf.Entry) bool {
	return !e.Flag(atDeclaration) && e.Class(atLocation) == 0 && e.Class(atConstValue) == 0
}

// fixed reports whether a variable has an address, or a place in thread-local storage.
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
