package calls

import (
	"slices"

	"symbolize/analyze/calltree"
	"symbolize/analyze/report"
	"symbolize/ingest"
)

// labelKey is what a table shows of a function.
type labelKey struct{ name, suffix string }

// LookAlikes names those functions of a table of nodes that would look alike: several functions of
// one object have the same short name if they differ in template arguments or parameters. These
// are shown with their template arguments, if that is not enough whole, and else with their
// symbols, as constructors of complete objects and of bases. Others keep their name, and so do
// functions with one symbol, which their own suffixes or files tell apart. (pprof adds up what has
// one name: which of the instances is hot is lost.) The map has the names that change, by node.
func LookAlikes(all []calltree.Node, nodes []calltree.NodeID,
	full *report.Demangler) map[calltree.NodeID]string {
	list := make(map[calltree.NodeID]string)
	forms := []func(string) string{report.NewDemangler(report.Templates).Name, full.Name,
		func(symbol string) string {
			return full.Name(symbol) + " [" + ingest.Printable(symbol) + "]"
		}}
	for i := 0; ; i++ {
		alike := make(map[labelKey]map[string][]calltree.NodeID)
		for _, id := range nodes {
			n := &all[id]
			if n.By != calltree.Function || n.Unresolved || n.SystemName == "" {
				continue
			}
			name := n.Name
			if label, ok := list[id]; ok {
				name = label
			}
			key := labelKey{name, ObjectSuffix(n)}
			if alike[key] == nil {
				alike[key] = make(map[string][]calltree.NodeID)
			}
			alike[key][n.SystemName] = append(alike[key][n.SystemName], id)
		}
		if i == len(forms) {
			return list
		}
		for _, bySymbol := range alike {
			if len(bySymbol) < 2 {
				continue
			}
			for symbol, ids := range bySymbol {
				for _, id := range ids {
					list[id] = forms[i](symbol)
				}
			}
		}
	}
}

// distinct lists the nodes of a tree, each once.
func distinct(nodes []calltree.TreeNode) []calltree.NodeID {
	var list []calltree.NodeID
	for i := range nodes {
		if nodes[i].Parent >= 0 {
			list = append(list, nodes[i].Node)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
