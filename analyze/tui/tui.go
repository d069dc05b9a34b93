// Package tui shows a named profile in a terminal: a table of functions that unfold into their
// callers, trees of calls in both directions, annotated code, and the missing names. The keys are
// those of perf report where it has them.
package tui

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/gdamore/tcell/v2"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Options are for New.
type Options struct {
	Title string           // first in the top line, as a file's name
	Calls calltree.Options // the first event, filters and granularity
	Color bool
	// Annotate returns the annotated code of a function for a terminal with colours, as annotate
	// prints it. stacks counts samples for all frames of their stacks. nil: there is no code.
	Annotate func(n *calltree.Node, event int, stacks bool) (string, error)
	// Missing returns the reasons of frames without names, as missing prints them.
	Missing func(width int) (string, error)
}

// UI is the state of the terminal view of one profile. Not safe for concurrent use.
type UI struct {
	profile *ingest.Profile
	options Options
	screen  tcell.Screen
	stacks  *calltree.Stacks
	labels  map[calltree.NodeID]string // of nodes that look alike
	pages   []*page                    // the last one is shown
	message string                     // in the bottom line until the next key
	prompt  bool                       // keys edit the search of the last page
	done    bool
}

// New folds a named profile for a screen, and shows the functions.
func New(p *ingest.Profile, screen tcell.Screen, o Options) *UI {
	u := &UI{profile: p, options: o, screen: screen}
	u.fold()
	return u
}

// Run initializes the screen, draws and handles keys until the user quits, or ctx is done, the
// error of which is returned. It leaves the terminal as it was.
func (u *UI) Run(ctx context.Context) error {
	if err := u.screen.Init(); err != nil {
		return err
	}
	defer u.screen.Fini()
	stop := context.AfterFunc(ctx, func() { u.screen.PostEvent(tcell.NewEventInterrupt(nil)) })
	defer stop()
	for !u.done && ctx.Err() == nil {
		u.draw()
		switch ev := u.screen.PollEvent().(type) {
		case *tcell.EventKey:
			u.key(ev)
		case *tcell.EventResize:
			u.screen.Sync()
		case nil: // the screen is closed
			u.done = true
		}
	}
	return ctx.Err()
}

// fold adds up the event that the options name and shows its functions.
func (u *UI) fold() {
	u.stacks = calltree.Fold(u.profile, &u.options.Calls)
	rows := u.stacks.Table(false)
	nodes := make([]calltree.NodeID, len(rows))
	for i := range rows {
		nodes[i] = rows[i].Node
	}
	u.labels = calltree.LookAlikes(u.stacks.Nodes, nodes, demangle.New(demangle.Full))
	u.pages = []*page{u.functions(false)}
}

func (u *UI) page() *page { return u.pages[len(u.pages)-1] }

// show puts a page over the others.
func (u *UI) show(p *page) { u.pages = append(u.pages, p) }

// replace shows a page alone.
func (u *UI) replace(p *page) { u.pages = []*page{p} }

// nextEvent shows the next event that has samples.
func (u *UI) nextEvent() {
	n := len(u.profile.Events)
	for i := 1; i < n; i++ {
		event := (u.options.Calls.Event + i) % n
		for k := range u.profile.Samples {
			if int(u.profile.Samples[k].Event) == event {
				u.options.Calls.Event = event
				u.fold()
				return
			}
		}
	}
	u.message = "no other event has samples"
}

// annotate shows the code of a node.
func (u *UI) annotate(e *entry) {
	n := &u.stacks.Nodes[e.node]
	switch {
	case u.options.Annotate == nil:
		u.message = "no code: this profile has names alone; its capture has code"
		return
	case n.By != calltree.Function || n.Unresolved:
		u.message = n.Name + " is not a function with a name"
		return
	}
	flat, _ := u.stacks.Sums()
	text, err := u.options.Annotate(n, u.options.Calls.Event, flat[e.node] == 0)
	if err != nil {
		u.message = texts.Printable(err.Error())
		return
	}
	p := newText("code of "+n.Name, text)
	p.code, p.hint = true, codeHint
	u.show(p)
	u.hottest(p)
}

// missing shows the reasons of frames without names.
func (u *UI) missing() {
	width, _ := u.screen.Size()
	text, err := u.options.Missing(width)
	if err != nil {
		u.message = texts.Printable(err.Error())
		return
	}
	u.show(newText("frames without names", text))
}

// draw draws the last page: a title, its rows, and a line of messages.
func (u *UI) draw() {
	s, p := u.screen, u.page()
	width, height := s.Size()
	s.Clear()
	s.HideCursor()
	p.fit(max(1, height-3))
	s.PutStrStyled(0, 0, u.head(p), tcell.StyleDefault.Bold(true))
	s.PutStrStyled(0, 1, p.columns(width), tcell.StyleDefault.Bold(true))
	for y := 0; y < height-3 && p.first+y < p.len(); y++ {
		x, selected := 0, p.first+y == p.cursor
		for _, part := range p.row(u, p.first+y, width) {
			s.PutStrStyled(x, y+2, part.text, u.style(part.color, selected))
			x += len([]rune(part.text))
		}
		if selected {
			s.PutStrStyled(x, y+2, strings.Repeat(" ", max(0, width-x)), u.style(table.Plain, true))
		}
	}
	u.drawBottom(p, height-1)
	s.Show()
}

// head is the top line.
func (u *UI) head(p *page) string {
	text := texts.Printable(u.options.Title) + ": no samples"
	if s := u.stacks; s.Samples > 0 {
		text = fmt.Sprintf("%s: %s, %s samples, total %s", texts.Printable(u.options.Title), s.Event,
			table.Thousands(s.Samples), table.Quantity(s.Total, s.Unit))
	}
	text += ": " + p.title
	if p.object != nil {
		text += " of " + ingest.BaseName(p.object.Object)
	}
	return text
}

func (u *UI) drawBottom(p *page, y int) {
	switch {
	case u.prompt:
		text := "/" + p.search
		u.screen.PutStr(0, y, text)
		u.screen.ShowCursor(len([]rune(text)), y)
	case u.message != "":
		u.screen.PutStr(0, y, u.message)
	case p.search != "":
		u.screen.PutStr(0, y, "/"+texts.Printable(p.search)+"  n: next, N: previous, ESC: clear")
	default:
		u.screen.PutStrStyled(0, y, fmt.Sprintf("%s/%s  %s", table.Thousands(uint64(min(p.cursor+1,
			p.len()))), table.Thousands(uint64(p.len())), cmp.Or(p.hint, listHint)),
			tcell.StyleDefault.Dim(true))
	}
}

// style is the style of a text of a row.
func (u *UI) style(c table.Color, selected bool) tcell.Style {
	s := tcell.StyleDefault.Reverse(selected)
	switch {
	case c == table.Bold:
		return s.Bold(true)
	case c == table.Faint:
		return s.Dim(true)
	case !u.options.Color || selected:
		return s
	case c == table.Red:
		return s.Foreground(tcell.ColorMaroon)
	case c == table.Green:
		return s.Foreground(tcell.ColorGreen)
	case c == table.Blue:
		return s.Foreground(tcell.ColorNavy)
	}
	return s
}
