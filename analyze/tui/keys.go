package tui

import (
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
)

// key handles a key.
func (u *UI) key(ev *tcell.EventKey) {
	u.message = ""
	if ev.Key() == tcell.KeyCtrlC {
		u.done = true
		return
	}
	if u.prompt {
		u.edit(ev)
		return
	}
	p := u.page()
	if u.move(p, ev) {
		return
	}
	switch ev.Key() {
	case tcell.KeyEscape:
		if p.search != "" || p.object != nil {
			p.search, p.object = "", nil
			p.reload(u)
			return
		}
		u.back(false)
	case tcell.KeyTab:
		if p.code {
			u.hottest(p)
		} else {
			u.nextEvent()
		}
	case tcell.KeyF1:
		u.show(newText("keys", helpText))
	case tcell.KeyEnter, tcell.KeyRight, tcell.KeyLeft:
		u.fold1(p, ev.Key())
	case tcell.KeyRune:
		u.command(p, ev.Rune())
	}
}

// move moves the cursor, and reports whether the key is one that does.
func (u *UI) move(p *page, ev *tcell.EventKey) bool {
	_, height := u.screen.Size()
	screenful := max(1, height-4)
	switch {
	case ev.Key() == tcell.KeyUp, ev.Rune() == 'k':
		p.cursor--
	case ev.Key() == tcell.KeyDown, ev.Rune() == 'j':
		p.cursor++
	case ev.Key() == tcell.KeyPgUp, ev.Key() == tcell.KeyCtrlB:
		p.cursor -= screenful
	case ev.Key() == tcell.KeyPgDn, ev.Key() == tcell.KeyCtrlF, ev.Rune() == ' ':
		p.cursor += screenful
	case ev.Key() == tcell.KeyHome:
		p.cursor = 0
	case ev.Key() == tcell.KeyEnd:
		p.cursor = p.len()
	default:
		return false
	}
	p.fit(max(1, height-3))
	return true
}

// back removes the last page; quit ends the program at the first one.
func (u *UI) back(quit bool) {
	if len(u.pages) > 1 {
		u.pages = u.pages[:len(u.pages)-1]
	} else if quit {
		u.done = true
	}
}

// fold1 folds and unfolds the entry at the cursor; a text is scrolled sideways.
func (u *UI) fold1(p *page, key tcell.Key) {
	const step = 16
	e := p.current()
	switch {
	case p.roots == nil && key == tcell.KeyRight:
		p.left += step
	case p.roots == nil && key == tcell.KeyLeft && p.left > 0:
		p.left -= step
	case p.roots == nil && key == tcell.KeyLeft:
		u.back(false)
	case e == nil:
	case key == tcell.KeyLeft && e.open:
		e.open = false
		p.refresh(u)
	case key == tcell.KeyLeft && e.parent != nil:
		p.goTo(u, e.parent)
	case key == tcell.KeyLeft:
		u.back(false)
	case e.open && key == tcell.KeyEnter:
		e.open = false
		p.refresh(u)
	default:
		e.fill()
		e.open = e.expand != nil
		p.refresh(u)
	}
}

// command handles the keys that are letters.
func (u *UI) command(p *page, r rune) {
	e := p.current()
	switch {
	case r == 'q':
		u.back(true)
	case r == 'h' || r == '?':
		u.show(newText("keys", helpText))
	case r == '/':
		u.prompt, p.search = true, ""
	case r == 'n' || r == 'N':
		u.find(p, r == 'n', true)
	case r == '1' || r == '2':
		u.replace(u.functions(r == '2'))
	case r == '3':
		u.replace(u.tree())
	case r == 'm':
		u.missing()
	case r == 's' && p.code:
		p.onlyInstructions()
	case e != nil:
		u.entryCommand(p, e, r)
	}
}

// entryCommand handles the letters that are about the entry at the cursor.
func (u *UI) entryCommand(p *page, e *entry, r rune) {
	switch r {
	case '+', 'e', 'c':
		if r == '+' {
			u.fold1(p, tcell.KeyEnter)
			return
		}
		e.setOpen(r == 'e')
		p.refresh(u)
	case 'E', 'C':
		for _, root := range p.roots {
			if !p.table || r == 'C' || p.selects(u, root) {
				root.setOpen(r == 'E')
			}
		}
		p.refresh(u)
	case 'd':
		if p.table && p.object == nil && !e.rest {
			p.object = &u.stacks.Nodes[e.node]
		} else {
			p.object = nil
		}
		p.refresh(u)
	case 'a', '<', '>':
		switch {
		case e.rest:
			u.message = "several functions"
		case r == 'a':
			u.annotate(e)
		default:
			u.show(u.around(e, r == '<'))
		}
	}
}

// current is the entry at the cursor, nil for none.
func (p *page) current() *entry {
	if p.roots == nil || p.cursor >= len(p.visible) {
		return nil
	}
	return p.visible[p.cursor]
}

// reload lists the entries of a page anew, if it has any.
func (p *page) reload(u *UI) {
	if p.roots != nil {
		p.refresh(u)
	}
}

// edit changes the search text. A table shows what matches at once; other pages move to the first
// match when the text is complete.
func (u *UI) edit(ev *tcell.EventKey) {
	p := u.page()
	switch ev.Key() {
	case tcell.KeyEscape:
		u.prompt, p.search = false, ""
	case tcell.KeyEnter:
		u.prompt = false
		if !p.table && p.search != "" {
			u.find(p, true, false)
		}
	case tcell.KeyBackspace, tcell.KeyBackspace2:
		_, n := utf8.DecodeLastRuneInString(p.search)
		p.search = p.search[:len(p.search)-n]
	case tcell.KeyRune:
		p.search += string(ev.Rune())
	}
	if p.table {
		p.refresh(u)
	}
}
