package tui

import (
	"fmt"
	"slices"
	"strings"

	"symbolize/analyze/calltree"
	"symbolize/analyze/table"
)

// page is a list of rows with a cursor: of entries, or of lines of text.
type page struct {
	title, hint   string
	cursor, first int
	search        string

	// Of a list of entries: the outermost ones, and those that are visible.
	roots, visible []*entry
	table          bool // functions, of which the search selects some
	object         *calltree.Node

	// Of a text.
	lines []line
	code  bool
	left  int // columns that are scrolled out
}

// entry is a function of a table, or a node of a tree.
type entry struct {
	node      calltree.NodeID
	flat, cum uint64
	inlined   bool
	caller    bool // of a tree of callers, which has no flat values
	rest      bool // of several subtrees that were left out
	parent    *entry
	indent    int
	open      bool
	expand    func(*entry) []*entry // nil: there are no children
	children  []*entry              // of an entry that was opened
}

// part is a text of a row in a colour.
type part struct {
	text  string
	color table.Color
}

const (
	listHint = "q: quit  h: keys  ENTER: unfold  a: code  < >: callers, callees  /: search"
	codeHint = "q: back  TAB: next hottest  s: only instructions  /: search"
	textHint = "q: back  /: search"
)

// minShare is the share of a tree's root below which subtrees are left out: it bounds the memory of
// trees of recordings with millions of stacks.
const minShare = 0.0005

// functions is the page of all functions, which unfold into their callers.
func (u *UI) functions(cum bool) *page {
	p := &page{title: "functions by flat", table: true}
	if cum {
		p.title = "functions by cum"
	}
	for _, r := range u.stacks.Table(cum) {
		p.roots = append(p.roots, &entry{node: r.Node, flat: r.Flat, cum: r.Cum,
			expand: func(e *entry) []*entry {
				return u.children(u.stacks.TreeOf(r.Node, calltree.TreeOptions{Reverse: true,
					MinShare: minShare}), 0, e)
			}})
	}
	p.refresh(u)
	return p
}

// tree is the page of all calls from the outermost functions.
func (u *UI) tree() *page {
	p := &page{title: "callees"}
	p.roots = u.children(u.stacks.Tree(calltree.TreeOptions{MinShare: minShare}), 0, nil)
	p.openAlone()
	p.refresh(u)
	return p
}

// around is the page of the callers or callees of an entry's function.
func (u *UI) around(of *entry, callers bool) *page {
	name := u.stacks.Nodes[of.node].Name
	p := &page{title: "callees of " + name}
	if callers {
		p.title = "callers of " + name
	}
	t := u.stacks.TreeOf(of.node, calltree.TreeOptions{Reverse: callers, MinShare: minShare})
	p.roots = []*entry{u.entryOf(t, 0, nil)}
	p.openAlone()
	p.refresh(u)
	return p
}

// entryOf is a node of a tree.
func (u *UI) entryOf(t *calltree.Tree, i int32, parent *entry) *entry {
	n := &t.Nodes[i]
	e := &entry{node: n.Node, flat: n.Flat, cum: n.Cum, inlined: 2*n.Inlined > n.Cum, parent: parent,
		caller: t.Reverse}
	if n.Children > 0 || n.Left > 0 {
		e.expand = func(e *entry) []*entry { return u.children(t, i, e) }
	}
	return e
}

// children are the children of a node of a tree; an only child is not indented further.
func (u *UI) children(t *calltree.Tree, i int32, parent *entry) (list []*entry) {
	n := &t.Nodes[i]
	for c := n.First; c < n.First+n.Children; c++ {
		list = append(list, u.entryOf(t, c, parent))
	}
	if n.Left > 0 {
		list = append(list, &entry{cum: n.Left, rest: true, parent: parent})
	}
	for _, e := range list {
		switch {
		case parent == nil:
		case len(list) == 1 && parent.parent != nil && len(parent.parent.children) == 1:
			e.indent = parent.indent
		default:
			e.indent = parent.indent + 1
		}
	}
	return list
}

// openAlone opens entries without siblings, as a program's first functions are.
func (p *page) openAlone() {
	for list := p.roots; len(list) == 1 && list[0].expand != nil; list = list[0].children {
		list[0].fill()
		list[0].open = true
	}
}

// fill makes the children of an entry.
func (e *entry) fill() {
	if e.expand != nil && e.children == nil {
		e.children = e.expand(e)
	}
}

// setOpen opens or closes an entry and all below it.
func (e *entry) setOpen(open bool) {
	if open {
		e.fill()
	}
	e.open = open && e.expand != nil
	for _, c := range e.children {
		c.setOpen(open)
	}
}

// refresh lists the visible entries and keeps the cursor at its entry.
func (p *page) refresh(u *UI) {
	var at *entry
	if p.cursor < len(p.visible) {
		at = p.visible[p.cursor]
	}
	p.visible = p.visible[:0]
	var list func([]*entry)
	list = func(entries []*entry) {
		for _, e := range entries {
			p.visible = append(p.visible, e)
			if e.open {
				list(e.children)
			}
		}
	}
	for _, e := range p.roots {
		if !p.table || p.selects(u, e) {
			list([]*entry{e})
		}
	}
	p.cursor = max(0, slices.Index(p.visible, at))
}

// selects reports whether a table shows a function: if the search and the object match.
func (p *page) selects(u *UI, e *entry) bool {
	n := &u.stacks.Nodes[e.node]
	if p.object != nil && (n.Object != p.object.Object || n.BuildID != p.object.BuildID) {
		return false
	}
	return u.matches(e, p.search)
}

// label returns the name of an entry, and its object in brackets.
func (u *UI) label(e *entry) (name, suffix string) {
	if e.rest {
		return fmt.Sprintf("less than %.2g%% each", 100*minShare), ""
	}
	n := &u.stacks.Nodes[e.node]
	name = n.Name
	if text, ok := u.labels[e.node]; ok {
		name = text
	}
	if e.inlined {
		name += " [inlined]"
	}
	return name, calltree.ObjectSuffix(n)
}

func (p *page) len() int {
	if p.roots != nil {
		return len(p.visible)
	}
	return len(p.lines)
}

// fit keeps the cursor in the page and the first row such that the cursor is visible.
func (p *page) fit(height int) {
	p.cursor = max(0, min(p.cursor, p.len()-1))
	p.first = max(p.cursor-height+1, min(p.first, p.cursor))
	p.first = max(0, min(p.first, p.len()-height))
}

// columns is the line above the rows.
func (p *page) columns(width int) string {
	switch {
	case p.roots == nil:
		return ""
	case width < narrow:
		return fmt.Sprintf("  %6s %6s  name", "flat%", "cum%")
	}
	return fmt.Sprintf("  %9s %6s %9s %6s  name", "flat", "flat%", "cum", "cum%")
}

// narrow is the width of terminals for which shares suffice.
const narrow = 72

// maxIndent bounds the indentation of deep trees.
const maxIndent = 20

// row returns row i in the width of the terminal.
func (p *page) row(u *UI, i, width int) []part {
	if p.roots == nil {
		return p.lines[i].cut(p.left, width)
	}
	e, s := p.visible[i], u.stacks
	flat, flatShare := table.Quantity(e.flat, s.Unit), table.Percent(e.flat, s.Total)
	color := table.Heat(e.flat, s.Total)
	switch {
	case e.rest:
		flat, flatShare, color = "", "", table.Faint
	case e.caller:
		flat, flatShare, color = "", "", table.Heat(e.cum, s.Total)
	}
	numbers := fmt.Sprintf("  %6s %6s  ", flatShare, table.Percent(e.cum, s.Total))
	if width >= narrow {
		numbers = fmt.Sprintf("  %9s %6s %9s %6s  ", flat, flatShare, table.Quantity(e.cum, s.Unit),
			table.Percent(e.cum, s.Total))
	}
	mark := "  "
	switch {
	case e.open:
		mark = "- "
	case e.expand != nil:
		mark = "+ "
	}
	lead := strings.Repeat("  ", min(e.indent, maxIndent)) + mark
	name, suffix := u.label(e)
	style := table.Style{Width: width}
	return []part{{numbers, color}, {lead, table.Plain},
		{style.FitBoth(name, suffix, len(numbers)+len(lead)), color}}
}
