package btf

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// cNames gives each type of a C file a unique name: BTF merges many compilation units, so that
// two of its types can share a name, which C does not allow. The second one is NAME___2, as in
// bpftool; loaders of BPF ignore the suffix from ___ on.
type cNames struct {
	t *Types
	// of has the names of structures, unions, enumerations and typedefs.
	of map[ID]string
	// values has the names of enumerators where one of them was changed.
	values map[ID][]string
	// once are the enumerations without a name that are printed: a second print would
	// declare their enumerators again.
	once map[ID]bool
}

// newNames names all types of t, whichever of them are printed: a type has the same name
// in each C file.
func newNames(t *Types) *cNames {
	n := &cNames{t: t, of: make(map[ID]string), values: make(map[ID][]string),
		once: make(map[ID]bool)}
	n.tags()
	used := make(map[string]int)
	for id := range ID(t.Len()) {
		if t.Kind(id) == KindTypedef {
			n.of[id] = unique(used, t.Name(id))
		}
	}
	for id := range ID(t.Len()) {
		if k := t.Kind(id); k == KindEnum || k == KindEnum64 {
			n.enumerators(id, used)
		}
	}
	return n
}

// tags names the types in C's name space of tags. A declaration has the name of the first
// definition that matches.
func (n *cNames) tags() {
	used, first := make(map[string]int), make(map[string]string)
	for _, definitions := range []bool{true, false} {
		for id := range ID(n.t.Len()) {
			name := n.t.Name(id)
			if name == "" || !n.t.hasTag(id) || n.t.isDefinition(id) != definitions {
				continue
			}
			known, ok := first[n.t.tag(id)]
			if !ok || definitions {
				known = unique(used, name)
			}
			if !ok {
				first[n.t.tag(id)] = known
			}
			n.of[id] = known
		}
	}
}

func (n *cNames) enumerators(id ID, used map[string]int) {
	var names []string
	changed := false
	for _, e := range n.t.Enumerators(id) {
		name := unique(used, e.Name)
		changed = changed || name != e.Name
		names = append(names, name)
	}
	if changed {
		n.values[id] = names
	}
}

// hasTag reports whether the name of a kind is a tag of C.
func (t *Types) hasTag(id ID) bool {
	switch t.Kind(id) {
	case KindStruct, KindUnion, KindEnum, KindEnum64, KindFwd:
		return true
	}
	return false
}

// isDefinition reports whether a type is a definition, not a declaration: an enumeration without
// enumerators is a declaration in C.
func (t *Types) isDefinition(id ID) bool {
	switch t.Kind(id) {
	case KindStruct, KindUnion:
		return true
	case KindEnum, KindEnum64:
		return t.enumTable(id).n > 0
	}
	return false
}

// unique returns an identifier that is not in used, and adds it with its last number.
func unique(used map[string]int, name string) string {
	name = identifier(name)
	out := name
	for used[out] > 0 {
		used[name] = max(used[name], 1) + 1
		out = fmt.Sprintf("%s___%d", name, used[name])
	}
	used[out] = 1
	return out
}

// identifier returns a valid C name: other languages have types with brackets in their names, and
// members that are called "int".
func identifier(name string) string {
	out := strings.Map(func(r rune) rune {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) ||
			r == unicode.ReplacementChar {
			return '_'
		}
		return r
	}, name)
	switch {
	case out == "":
		return "_"
	case unicode.IsDigit(rune(out[0])):
		return "_" + out
	case slices.Contains(keywords, out):
		return out + "___2"
	}
	return out
}

// keywords are the keywords of C before C23, which added bool, false and true (see cFile.guarded),
// and the type that compilers know without a declaration.
var keywords = strings.Fields(`auto break case char const continue default do double else enum
	extern float for goto if inline int long register restrict return short signed sizeof static
	struct switch typedef union unsigned void volatile while asm typeof _Alignas _Alignof _Atomic
	_Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local __int128
	__builtin_va_list`)

// integers are the names of integers that compilers know.
var integers = strings.Fields(`_Bool char short int long unsigned signed
	signed-char unsigned-char char-signed char-unsigned
	short-int short-unsigned-int unsigned-short unsigned-short-int short-signed-int
	unsigned-int signed-int
	long-int long-unsigned-int unsigned-long unsigned-long-int
	long-long long-long-int long-long-unsigned-int unsigned-long-long unsigned-long-long-int
	__int128 __int128-unsigned unsigned-__int128`)

// basic returns C's name of an integer or a float, and whether that type has its size.
func (t *Types) basic(id ID) (string, bool) {
	name := t.Name(id)
	if t.Kind(id) == KindFloat {
		if slices.Contains([]string{"float", "double", "long double"}, name) {
			return name, true
		}
		size, _ := t.Size(id)
		name, ok := map[uint64]string{2: "_Float16", 4: "float", 8: "double", 16: "__float128"}[size]
		return name, ok
	}
	n := t.Int(id)
	if slices.Contains(integers, strings.ReplaceAll(name, " ", "-")) {
		return intName(n, name), true
	}
	word, ok := map[uint32]string{1: "char", 2: "short", 4: "int", 8: "long long",
		16: "__int128"}[n.Size]
	switch {
	case !ok:
		return "", false
	case n.Bool && n.Size == 1:
		return "_Bool", true
	case n.Signed:
		return "signed " + word, true
	}
	return "unsigned " + word, true
}
