package dwarfvar

import (
	"slices"
	"strings"

	"symbolize/ingest/object/dwarf"
)

// scopeNames has the scopes of a unit's entries: a text for the entries from each offset on.
type scopeNames struct {
	at   []uint64
	text []string // "app::Box::"
}

// add notes the scopes of the entries from an offset on.
func (s *scopeNames) add(off uint64, text string) {
	if n := len(s.text); n > 0 && s.text[n-1] == text || n == 0 && text == "" {
		return
	}
	s.at, s.text = append(s.at, off), append(s.text, text)
}

// of returns the scopes of the entry at an offset.
func (s *scopeNames) of(off uint64) string {
	i, found := slices.BinarySearch(s.at, off)
	if found {
		return s.text[i]
	}
	if i == 0 {
		return ""
	}
	return s.text[i-1]
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
	name, at := r.name(e)
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

// name returns the name of an entry or of what it refers to as its declaration, and the entry that
// has the scopes: the last of them.
func (r *reader) name(e *dwarf.Entry) (name string, at dwarf.Pos) {
	var next dwarf.Entry
	at = e.Pos
	for range maxChain {
		if name == "" {
			name = r.tree.String(e, atName)
		}
		p, ok := r.origin(e)
		if !ok || !r.tree.Read(p, &next) {
			break
		}
		e, at = &next, p
	}
	return name, at
}

// origin returns the entry that one is an instance or the definition of.
func (r *reader) origin(e *dwarf.Entry) (dwarf.Pos, bool) {
	for _, a := range []uint16{atAbstractOrigin, atSpecification, atExtension} {
		if e.Has(a) {
			return r.tree.Ref(e, a)
		}
	}
	return dwarf.Pos{}, false
}

// qualified returns the name of an entry with its scopes, "" if it has no name.
func (r *reader) qualified(e *dwarf.Entry) string {
	name, at := r.name(e)
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
	return r.unit(p.Root).names.of(p.Off)
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
