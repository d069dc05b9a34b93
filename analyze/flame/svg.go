package flame

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"symbolize/analyze/calltree"
	"symbolize/analyze/table"
	"symbolize/ingest"
)

// The measures of the picture, in pixels.
const (
	svgWidth   = 1200
	svgMargin  = 10
	svgRow     = 17
	svgHead    = 46
	svgFoot    = 28
	svgLeast   = 0.4 // narrower frames are left out
	svgLetter  = 6.3 // mean width of a character, to the safe side
	svgMostBox = 20_000
)

// kindStyles are the kinds of frames: the name, the colour in SVG, and the Firefox Profiler's name
// of a colour, which needs a grey one. The page has hues of its own, page/format.js.
var kindStyles = [...]struct{ name, colour, gecko string }{
	kindUser:       {"user", "#f8c868", "yellow"},
	kindKernel:     {"kernel", "#85b5ea", "orange"},
	kindBPF:        {"BPF", "#d3a0e4", "purple"},
	kindJIT:        {"JIT", "#84cd98", "green"},
	kindInlined:    {"inlined", "#f4eaa6", "lightblue"},
	kindUnresolved: {"unresolved", "#c3c5ca", "grey"},
	kindLabel:      {"label", "#d5d8de", "darkgrey"},
}

// stateStyles are the states of threads in pictures of ingest.WallEvent, as in page/format.js; the
// last one has all others.
var stateStyles = [...]struct{ name, states, colour string }{
	{"running", " running ", "#f4914b"}, {"sleeping (S)", " S ", "#6fc0e8"},
	{"disk (D)", " D ", "#dd9fc2"}, {"ready (R)", " R R+ new ", "#ecd93a"},
	{"idle (I)", " I ", "#3fca9f"}, {"other", "", "#c3c5ca"},
}

// picture writes the tree of one event as SVG.
type picture struct {
	g     *Graph
	out   *bufio.Writer
	t     *tree
	event int
	cum   map[*node]uint64
	base  map[*node]uint64 // of the base's side in a differential graph
	total uint64
	used  [len(kindStyles)]bool
	// states has the state that most of each node is in, of a picture of ingest.WallEvent.
	states map[*node]int
	stated [len(stateStyles)]bool // the used ones
}

// WriteSVG writes a still picture of the event that is shown first: each frame with its
// weight as the title that viewers show under the pointer. It has no script.
func (g *Graph) WriteSVG(w io.Writer) error {
	if len(g.Events) == 0 {
		g.Events = []Event{{Name: "no event", Unit: "count"}}
	}
	share := max(g.minShare, svgLeast/(svgWidth-2*svgMargin))
	p := &picture{g: g, out: bufio.NewWriter(w), event: g.Shown,
		t: newTree(g.rows, g.StartReversed, svgMostBox, share)}
	p.cum = p.weigh(func(c *column) bool { return c.Event == p.event })
	switch {
	case g.Scaling != nil:
		p.base = p.weigh(func(c *column) bool { return c.Event == baseSide })
	case g.Events[p.event].Name == ingest.WallEvent:
		p.weighStates()
	}
	p.total = p.cum[&p.t.nodes[0]]
	deepest := int32(0)
	p.t.preorder(func(n *node) {
		if p.cum[n] > 0 {
			deepest = max(deepest, n.depth)
		}
	})
	height := svgHead + svgFoot + int(deepest+1)*svgRow
	p.head(height)
	p.boxes(height)
	p.foot(height)
	p.out.WriteString("</svg>\n")
	return p.out.Flush()
}

// weighStates finds the state that most of each node is in.
func (p *picture) weighStates() {
	at := slices.IndexFunc(p.g.Labels, func(l Label) bool { return l.Name == ingest.StateTag })
	if at < 0 {
		return
	}
	p.states = make(map[*node]int)
	most := make(map[*node]uint64)
	for i := range stateStyles {
		weights := p.weigh(func(c *column) bool {
			n := len(stateStyles) - 1
			if v := c.Values[at]; v >= 0 {
				n = stateOf(p.g.Labels[at].Values[v])
			}
			return c.Event == p.event && n == i
		})
		for n, w := range weights {
			if w > most[n] {
				most[n], p.states[n] = w, i
			}
		}
	}
}

// stateOf returns the number of a state in stateStyles.
func stateOf(state string) int {
	for i := range stateStyles {
		if strings.Contains(stateStyles[i].states, " "+state+" ") {
			return i
		}
	}
	return len(stateStyles) - 1
}

// weigh adds up the nodes for the selected columns.
func (p *picture) weigh(selected func(*column) bool) map[*node]uint64 {
	cum := make(map[*node]uint64)
	var list []*node
	p.t.preorder(func(n *node) { list = append(list, n) })
	for i := len(list) - 1; i >= 0; i-- {
		n := list[i]
		for _, c := range n.cells {
			if selected(&p.g.Columns[c.column]) {
				cum[n] += c.self + c.left
			}
		}
		for _, c := range n.children {
			cum[n] += cum[&p.t.nodes[c]]
		}
	}
	return cum
}

func (p *picture) head(height int) {
	e := &p.g.Events[p.event]
	fmt.Fprintf(p.out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`width="%[1]d" height="%d" role="img">`+"\n", svgWidth, height, height)
	fmt.Fprintf(p.out, "<title>%s of %s: %s</title>\n", p.g.kind("Flame graph"), escape(p.g.Title),
		escape(e.Name))
	p.out.WriteString("<style>text{font:11px sans-serif;fill:#16181d}" +
		".head{font-size:15px;font-weight:600}.dim{fill:#5c6370}")
	for _, k := range kindStyles {
		fmt.Fprintf(p.out, ".%s{fill:%s}", strings.ToLower(k.name), k.colour)
	}
	for i, s := range stateStyles {
		if p.states != nil {
			fmt.Fprintf(p.out, ".s%d{fill:%s}", i, s.colour)
		}
	}
	for i, colour := range changeColours {
		if p.base != nil {
			fmt.Fprintf(p.out, ".c%d{fill:%s}", i, colour)
		}
	}
	fmt.Fprintf(p.out, "</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"+
		"<text class=\"head\" x=\"%d\" y=\"20\">%s</text>\n", svgMargin,
		escape(fit(p.g.kind("Flame graph")+": "+p.g.Title, svgWidth*0.8)))
	words := []string{e.Name + ", " + table.Quantity(p.total, e.Unit)}
	for _, f := range p.g.About {
		if f.Name == "host" || f.Name == "began" || f.Name == "duration" {
			words = append(words, f.Text)
		}
	}
	fmt.Fprintf(p.out, "<text class=\"dim\" x=\"%d\" y=\"36\">%s</text>\n", svgMargin,
		escape(fit(strings.Join(words, " · "), svgWidth-2*svgMargin)))
}

// boxes draws the nodes: callers below, as flames.
func (p *picture) boxes(height int) {
	if p.total == 0 {
		return
	}
	scale := float64(svgWidth-2*svgMargin) / float64(p.total)
	left := []float64{svgMargin} // by depth: where the next node begins
	p.t.preorder(func(n *node) {
		for int(n.depth)+1 >= len(left) {
			left = append(left, 0)
		}
		x, w := left[n.depth], float64(p.cum[n])*scale
		left[n.depth] += w
		left[n.depth+1] = x
		if w >= svgLeast {
			p.box(n, x, float64(height-svgFoot-int(n.depth+1)*svgRow), w)
		}
	})
}

func (p *picture) box(n *node, x, y, w float64) {
	e := &p.g.Events[p.event]
	name, kind, object := "all", kindLabel, ""
	if n.frame != calltree.NoNode {
		f := &p.g.rows.nodes[n.frame]
		name, kind = cutMiddle(f.Name, maxName), kindOf(f)
		if n.inlined && kind != kindUnresolved {
			kind = kindInlined
		}
		if f.Object != "" && !f.Unresolved {
			object = " (" + ingest.BaseName(f.Object) + ")"
		}
	}
	p.used[kind] = true
	class := strings.ToLower(kindStyles[kind].name)
	values := table.Quantity(p.cum[n], e.Unit) + ", " + table.Percent(p.cum[n], p.total)
	switch {
	case p.base != nil:
		class, values = p.changed(n)
	case p.states != nil && n.frame != calltree.NoNode:
		class = "s" + strconv.Itoa(p.states[n])
		p.stated[p.states[n]] = true
	}
	fmt.Fprintf(p.out, `<g><title>%s%s: %s</title><rect class="%s" x="%.1f" y="%.0f" `+
		`width="%.1f" height="%d"/>`, escape(name), escape(object), escape(values), class, x, y,
		max(w-0.5, 0.3), svgRow-1)
	if text := fit(name, w-6); text != "" {
		fmt.Fprintf(p.out, `<text x="%.1f" y="%.0f">%s</text>`, x+3, y+svgRow-5, escape(text))
	}
	p.out.WriteString("</g>\n")
}

// foot writes the legend, and notes on frames that are left out.
func (p *picture) foot(height int) {
	x, y := float64(svgMargin), height-9
	item := func(class, text string) {
		fmt.Fprintf(p.out, "<rect class=\"%s\" x=\"%.0f\" y=\"%d\" width=\"10\" height=\"10\"/>"+
			"<text x=\"%.0f\" y=\"%d\">%s</text>\n", class, x, y-9, x+14, y, text)
		x += 30 + svgLetter*float64(len(text))
	}
	var words []string
	if p.t.leftOut > 0 {
		words = append(words, leftOutText(p.t))
	}
	if p.base != nil {
		p.changeLegend(item)
		words = append(words, p.goneText()...)
	} else {
		for i, s := range stateStyles {
			if p.stated[i] {
				item("s"+strconv.Itoa(i), s.name)
			}
		}
		for i, k := range kindStyles {
			if p.used[i] && i != kindLabel && p.states == nil {
				item(strings.ToLower(k.name), k.name)
			}
		}
		for _, e := range p.g.Events[1:] {
			words = append(words, "also recorded: "+e.Name)
		}
	}
	if text := strings.Join(words, "; "); text != "" {
		fmt.Fprintf(p.out, "<text class=\"dim\" x=\"%.0f\" y=\"%d\">%s</text>\n", x+10, y,
			escape(fit(text, svgWidth-x-20)))
	}
}

// fit cuts a text to a width by the mean width of characters.
func fit(s string, width float64) string {
	most := int(width / svgLetter)
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	if most < 3 {
		return ""
	}
	return string([]rune(s)[:most-1]) + "…"
}

// escape makes a printable text fit for SVG.
func escape(s string) string { return svgEscaper.Replace(s) }

var svgEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;",
	"'", "&#39;", "\ufffe", "?", "\uffff", "?")
