package dwarfvar

import (
	"slices"
	"strings"

	"symbolize/ingest/object/dwarf"
)

// scopeNames has the scopes of a unit's entries: which one the entries from each offset on are in. Most are
// functions, and no type needs their names: the texts are made when they are asked for.
type scopeNames struct {
	at   []uint64
	in   []int32 // indices in list
	list []scopeName
}

// scopeName is a namespace, a type or a function with entries in it; the first one is the unit.
type scopeName struct {
	off   uint64
	outer int32
	made  bool
	text  string // "app::Box::"
}

// begin adds a scope and returns its index.
func (s *scopeNames) begin(off uint64, outer int32) int32 {
	s.list = append(s.list, scopeName{off: off, outer: outer})
	return int32(len(s.list) - 1)
}

// add notes the scope of the entries from an offset on.
func (s *scopeNames) add(off uint64, in int32) {
	if n := len(s.in); n > 0 && s.in[n-1] == in || n == 0 && in == 0 {
		return
	}
	s.at, s.in = append(s.at, off), append(s.in, in)
}

// of returns the scope of the entry at an offset.
func (s *scopeNames) of(off uint64) int32 {
	i, found := slices.BinarySearch(s.at, off)
	switch {
	case found:
		return s.in[i]
	case i == 0:
		return 0
	}
	return s.in[i-1]
}

// qualifies reports whether names of a language have scopes.
func qualifies(lang uint16) bool { return separator(lang) != "" }

// separator returns what separates scopes in a language, "" if it has none.
func separator(lang uint16) string {
	switch lang {
	case dwarf.LangCpp, dwarf.LangCpp03, dwarf.LangCpp11, dwarf.LangCpp14, dwarf.LangCpp17,
		dwarf.LangCpp20, dwarf.LangObjCpp, dwarf.LangRust:
		return "::"
	case dwarf.LangD:
		return "."
	}
	return ""
}

// unnamed are the texts for scopes without a name.
var unnamed = map[uint16]string{
	tagNamespace: "(anonymous namespace)", tagClassType: "(anonymous class)",
	tagStructureType: "(anonymous struct)", tagUnionType: "(anonymous union)",
	tagEnumerationType: "(anonymous enum)", tagInterfaceType: "(anonymous interface)",
	tagModule: "(anonymous module)",
}

// isScope reports whether names of entries within one with this tag are qualified by its name.
func isScope(tag uint16) bool { return tag == tagSubprogram || unnamed[tag] != "" }

// maxScopeText bounds the text of scopes, in bytes.
const maxScopeText = 16 << 10

// within returns the scopes of the entries in e.
func (r *reader) within(e *dwarf.Entry, outer string) string {
	sep := separator(r.language(e.Root))
	if sep == "" || !isScope(e.Tag) {
		return outer
	}
	name, at := entryName(r.tree, e)
	if at != e.Pos {
		outer = r.scopes(at)
	}
	switch {
	case e.Tag == tagSubprogram && name == "":
		return outer
	case e.Tag == tagSubprogram && name != "main":
		name += "()"
	case name == "":
		name = unnamed[e.Tag]
	}
	if len(outer)+len(name) > maxScopeText {
		return outer
	}
	return outer + name + sep
}

// entryName returns the name of an entry or of what it refers to as its declaration, and the entry that
// has the scopes: the last of them.
func entryName(t *dwarf.Tree, e *dwarf.Entry) (name string, at dwarf.Pos) {
	next := t.Entry()
	defer t.Release(next)
	at = e.Pos
	for range maxChain {
		if name == "" {
			name = t.String(e, atName)
		}
		p, ok := origin(t, e)
		if !ok || !t.Read(p, next) {
			break
		}
		e, at = next, p
	}
	return name, at
}

// origin returns the entry that one is an instance or the definition of.
func origin(t *dwarf.Tree, e *dwarf.Entry) (dwarf.Pos, bool) {
	for _, a := range []uint16{atAbstractOrigin, atSpecification, atExtension} {
		if e.Has(a) {
			return t.Ref(e, a)
		}
	}
	return dwarf.Pos{}, false
}

// qualified returns the name of an entry with its scopes, "" if it has no name.
func (r *reader) qualified(e *dwarf.Entry) string {
	name, at := entryName(r.tree, e)
	if name == "" || !qualifies(r.language(e.Root)) {
		return name
	}
	return r.scopes(at) + name
}

// typeName is qualified for types. Base types have no scopes.
func (r *reader) typeName(e *dwarf.Entry) string {
	if e.Tag == tagBaseType || e.Tag == tagUnspecifiedType {
		return r.tree.String(e, atName)
	}
	return r.qualified(e)
}

// scopes returns the scopes of an entry.
func (r *reader) scopes(p dwarf.Pos) string {
	if p.Root == nil || !qualifies(r.language(p.Root)) {
		return ""
	}
	u := r.unit(p.Root)
	return r.scopeText(p.Root, u, u.names.of(p.Off))
}

// scopeText returns the text of a scope of a unit.
func (r *reader) scopeText(root *dwarf.Root, u *unit, i int32) string {
	s := &u.names.list[i]
	if i == 0 || s.made {
		return s.text
	}
	s.made = true // of entries that refer to one another
	off, outer := s.off, r.scopeText(root, u, s.outer)
	e := r.tree.Entry()
	defer r.tree.Release(e)
	text := outer
	if r.tree.Read(dwarf.Pos{Root: root, Off: off}, e) {
		text = r.within(e, outer)
	}
	u.names.list[i].text = text // the list may have grown
	return text
}

// simple returns the last part of a qualified name.
func simple(name string) string {
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch name[i] {
		case '>', ')':
			depth++
		case '<', '(':
			depth--
		case ':':
			if depth == 0 && name[i-1] == ':' {
				return name[i+1:]
			}
		}
	}
	return strings.TrimSpace(name)
}
