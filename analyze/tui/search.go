package tui

import (
	"slices"
	"strings"
)

// find moves to the next row that matches the search, or to the previous one: from the cursor on,
// or after it. In trees it looks into closed entries, too, and opens those around a match.
func (u *UI) find(p *page, forward, after bool) {
	if p.search == "" {
		u.message = "/ searches"
		return
	}
	n, at, matches, goTo := p.len(), p.cursor, u.matchRow, p.goToRow
	var all []*entry
	if p.roots != nil && !p.table {
		all = p.all()
		n, at = len(all), slices.Index(all, p.current())
		matches = func(_ *page, i int) bool { return u.matches(all[i], p.search) }
		goTo = func(i int) { p.goTo(u, all[i]) }
	}
	for i := range n {
		if after {
			i++
		}
		if !forward {
			i = n - i%n
		}
		if i = (at + i) % n; matches(p, i) {
			goTo(i)
			return
		}
	}
	u.message = "not found: " + p.search
}

// matchRow reports whether a visible row matches the search of its page.
func (u *UI) matchRow(p *page, i int) bool {
	if p.roots != nil {
		return u.matches(p.visible[i], p.search)
	}
	return contains(p.lines[i].text(), p.search)
}

// matches reports whether an entry's name or object contains a text.
func (u *UI) matches(e *entry, text string) bool {
	name, suffix := u.label(e)
	return contains(name+suffix, text)
}

// contains reports whether text contains part, in any case of letters.
func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func (p *page) goToRow(i int) { p.cursor = i }

// goTo moves to an entry and opens those around it.
func (p *page) goTo(u *UI, e *entry) {
	for above := e.parent; above != nil; above = above.parent {
		above.open = true
	}
	p.refresh(u)
	p.cursor = max(0, slices.Index(p.visible, e))
}

// all returns the entries of a tree, also of closed ones, in the order of rows.
func (p *page) all() (list []*entry) {
	var add func([]*entry)
	add = func(entries []*entry) {
		for _, e := range entries {
			list = append(list, e)
			e.fill()
			add(e.children)
		}
	}
	add(p.roots)
	return list
}
