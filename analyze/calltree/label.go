package calltree

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/ingest/texts"
)

// labelKey is the printed label of a function in a table.
type labelKey struct{ name, suffix string }

// LookAlikes renames the functions of a table of nodes that would look alike: several functions of
// one object have the same short name if they differ in template arguments or parameters. These
// are shown with their template arguments, if that is not enough whole, and else with their
// symbols, as constructors of complete objects and of bases, or with the hashes of Rust's. Others
// keep their name, and so do functions with one symbol, which their own suffixes or files tell
// apart. (pprof adds up functions with one name, and loses which of the instances is hot.) The map
// has the names that change, by node.
func LookAlikes(all []Node, nodes []NodeID,
	full *demangle.Demangler) map[NodeID]string {
	list := make(map[NodeID]string)
	forms := []func(string) string{demangle.New(demangle.Templates).Name, full.Name,
		func(symbol string) string {
			part := cmp.Or(demangle.RustHash(symbol), symbol)
			return full.Name(symbol) + " [" + texts.Printable(part) + "]"
		}}
	for i := 0; ; i++ {
		alike := make(map[labelKey]map[string][]NodeID)
		for _, id := range nodes {
			n := &all[id]
			if n.By != Function || n.Unresolved || n.SystemName == "" {
				continue
			}
			name := n.Name
			if label, ok := list[id]; ok {
				name = label
			}
			key := labelKey{name, ObjectSuffix(n)}
			if alike[key] == nil {
				alike[key] = make(map[string][]NodeID)
			}
			alike[key][n.SystemName] = append(alike[key][n.SystemName], id)
		}
		if i == len(forms) {
			return list
		}
		for key, bySymbol := range alike {
			if len(bySymbol) < 2 {
				continue
			}
			names := make(map[string]string, len(bySymbol))
			for symbol := range bySymbol {
				names[symbol] = forms[i](symbol)
			}
			if distinctNames(names) < 2 {
				continue // the next form makes them differ
			}
			shorten(names, key.name)
			for symbol, ids := range bySymbol {
				for _, id := range ids {
					list[id] = names[symbol]
				}
			}
		}
	}
}

// distinctNames counts the different values of a map.
func distinctNames(names map[string]string) int {
	seen := make(map[string]bool)
	for _, name := range names {
		seen[name] = true
	}
	return len(seen)
}

// longLabel is how many bytes of a label are read at a glance. Of longer ones the part is shown
// that differs.
const longLabel = 80

// shorten replaces names that are too long to read, if they are after that still different: by the
// short name that they share, and in brackets the part that they do not.
func shorten(names map[string]string, short string) {
	list := slices.Sorted(maps.Values(names))
	if len(slices.MaxFunc(list, func(a, b string) int { return len(a) - len(b) })) <= longLabel {
		return
	}
	first, last := list[0], list[len(list)-1]
	head := 0
	for head < min(len(first), len(last)) && first[head] == last[head] {
		head++
	}
	for head > 0 && isWord(first[head-1]) {
		head--
	}
	closes := func(s string) bool { return strings.HasPrefix(s[head:], ")") }
	if head > 0 && first[head-1] == '(' && slices.ContainsFunc(list, closes) {
		head-- // "() const" and "(int)" rather than ") const" and "int)"
	}
	tail := commonTail(list, head)
	parts := make(map[string]string)
	for symbol, name := range names {
		part := strings.TrimSpace(name[head : len(name)-tail])
		part = table.Style{Width: longLabel / 2}.Fit(part, 0)
		parts[symbol] = short + " [" + part + "]"
	}
	if distinctNames(parts) == len(names) {
		maps.Copy(names, parts)
	}
}

// commonTail returns how many bytes names have in common at their ends, after the first head and
// beginning with no part of an identifier.
func commonTail(list []string, head int) (tail int) {
	first := list[0]
	for {
		for _, name := range list {
			at := len(name) - 1 - tail
			if at < head || name[at] != first[len(first)-1-tail] {
				for tail > 0 && isWord(first[len(first)-tail]) {
					tail--
				}
				return tail
			}
		}
		tail++
	}
}

// isWord reports whether a byte is part of an identifier.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// distinct lists the nodes of a tree, each once.
func distinct(nodes []TreeNode) []NodeID {
	var list []NodeID
	for i := range nodes {
		if nodes[i].Parent >= 0 {
			list = append(list, nodes[i].Node)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
