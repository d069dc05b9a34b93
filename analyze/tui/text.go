package tui

import (
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/table"
)

// line is a line of text in colours.
type line struct {
	parts   []part
	percent float64 // of an instruction; -1 for other lines
}

// escapeColors are the colours of the escape sequences that package annotate writes.
var escapeColors = map[string]table.Color{"31": table.Red, "32": table.Green, "34": table.Blue,
	"1": table.Bold, "2": table.Faint}

// newText is the page of a text with escape sequences of colours.
func newText(title, text string) *page {
	p := &page{title: title, hint: textHint}
	for s := range strings.Lines(strings.TrimRight(text, "\n")) {
		p.lines = append(p.lines, parseLine(strings.TrimSuffix(s, "\n")))
	}
	return p
}

// parseLine splits a line at its escape sequences.
func parseLine(s string) line {
	l := line{percent: -1}
	color := table.Plain
	for s != "" {
		text, rest, found := strings.Cut(s, "\x1b[")
		if text != "" {
			l.parts = append(l.parts, part{text, color})
		}
		if !found {
			break
		}
		code, after, _ := strings.Cut(rest, "m")
		color, s = escapeColors[code], after
	}
	// "     3.25 |   1f | text", with > before the hottest.
	if number, _, ok := strings.Cut(l.text(), " |"); ok {
		if v, err := strconv.ParseFloat(strings.Trim(number, " >"), 64); err == nil {
			l.percent = v
		}
	}
	return l
}

func (l *line) text() string {
	var b strings.Builder
	for _, p := range l.parts {
		b.WriteString(p.text)
	}
	return b.String()
}

// cut leaves the columns from left on, at most width.
func (l *line) cut(left, width int) (list []part) {
	for _, p := range l.parts {
		r := []rune(strings.ReplaceAll(p.text, "\t", "    "))
		skip := min(left, len(r))
		left -= skip
		r = r[skip:]
		r = r[:min(len(r), width)]
		width -= len(r)
		list = append(list, part{string(r), p.color})
	}
	return list
}

// hottest moves to the hottest instruction, or from an instruction with samples to the next in
// the order of their shares, at the end to the first again.
func (u *UI) hottest(p *page) {
	var order []int
	for i := range p.lines {
		if p.lines[i].percent > 0 {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := p.lines[a].percent, p.lines[b].percent; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	p.cursor = order[(slices.Index(order, p.cursor)+1)%len(order)]
}

// onlyInstructions removes the lines between instructions.
func (p *page) onlyInstructions() {
	keep := p.lines[:0:0]
	for i, l := range p.lines {
		if i == p.cursor {
			p.cursor = len(keep)
		}
		if l.percent >= 0 || !strings.Contains(l.text(), " | ") {
			keep = append(keep, l)
		}
	}
	p.lines = keep
}

const helpText = `Keys, as in perf report where it has them:

  UP DOWN PGUP PGDN HOME END   move; also k and j
  ENTER RIGHT +                unfold or fold: into callers, trees further
  LEFT                         fold, or move to the caller; in code: scroll
  e c                          unfold, fold all below; E C: of all rows
  a                            code of the function with its samples
  < >                          callers, callees of the function, on a page
  1 2 3                        functions by flat, by cum; tree from the roots
  d                            only functions of this object, again: all
  / n N                        search: functions with the text, or the next
  TAB                          next event; in code the next hottest instruction
  s                            in code: only instructions
  m                            frames without names, and what fixes them
  ESC q                        back; q at the first page quits, as does ^C

flat is the weight of the samples in a function itself, cum includes the
functions that it called. Subtrees of less than 0.05 % of their tree are added
up in one row.`
