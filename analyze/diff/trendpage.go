package diff

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"symbolize/analyze/page"
	"symbolize/analyze/table"
)

//go:embed trend.html
var trendHTML string

var trendTemplate = page.Parse(&trendHTML)

var trendScheme = page.Scheme{
	Light: "--back:#f6f7f9;--panel:#fff;--text:#1b1e24;--faint:#5c6370;--line:#dfe2e8;" +
		"--grew:#b3261e;--fell:#2a63c8;--band:#dfe6f2;--shares:#5c6370",
	Dark: "--back:#14161b;--panel:#1c1f26;--text:#e6e8ec;--faint:#9aa2b1;--line:#2e333d;" +
		"--grew:#ff8a80;--fell:#6aa0ff;--band:#2b3445;--shares:#9aa2b1",
}

const trendRules = `body{font:15px/1.4 system-ui,sans-serif;margin:0}
main{max-width:1240px;margin:0 auto;padding:1em}
h1{font-size:1.3em}h2{font-size:1.1em;margin:2em 0 .4em}
.faint{color:var(--faint)}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,320px),1fr));gap:12px}
figure{margin:0;padding:10px;background:var(--panel);border:1px solid var(--line);border-radius:6px}
figcaption{overflow-wrap:anywhere}
figure p{margin:2px 0}
figure svg{width:100%;height:auto;display:block}
figure text{font:11px sans-serif;fill:var(--faint)}
.band{fill:var(--band)}
.line{fill:none;stroke:var(--shares);stroke-width:1.2}
.level{stroke:var(--text);stroke-width:1.6}
.mark{stroke-dasharray:3 2;stroke:currentColor}
.grew,.grew a{color:var(--grew)}.fell,.fell a{color:var(--fell)}.moved,.moved a{color:var(--faint)}
.flame{background:#fff;color:#16181d;overflow-x:auto;border:1px solid var(--line)}
summary{cursor:pointer;margin:2em 0 1em}
`

// The measures of a chart, in pixels.
const (
	chartWidth  = 360.0
	chartTop    = 14.0
	chartBottom = 92.0
)

// mostSteady is how many series without a change a page has.
const mostSteady = 200

type trendPage struct {
	Head            page.Head
	Title           string
	Facts           []string
	Changed, Steady []trendChart
	SteadyText      string
	Moments         []trendMoment
}

type trendChart struct {
	Label, Object, Range string
	Band, Line           string
	Levels               []string
	Marks                []trendMark
	Most, First, Last    string
}

type trendMark struct {
	ID, Class, Text string
	X               float64
}

type trendMoment struct {
	ID, Text, Span string
	Changes        []trendMark
	Picture        template.HTML
}

// Moment is a period in which levels change, for a picture of the difference: of the periods from
// Before on to At, and from At on to After.
type Moment struct{ Before, At, After int }

// The pictures of a page: for how many moments, the last ones, and how many periods they add up on
// each side.
const (
	mostPictures   = 12
	picturePeriods = 7
)

// Moments returns the last periods with changes, with up to seven periods on each side up to the
// changes next to them.
func (t *Trend) Moments() (list []Moment) {
	var at []int
	for _, c := range t.Changes() {
		at = append(at, c.At)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	for i, m := range at {
		moment := Moment{max(0, m-picturePeriods), m, min(len(t.Periods), m+picturePeriods)}
		if i > 0 {
			moment.Before = max(moment.Before, at[i-1])
		}
		if i+1 < len(at) {
			moment.After = min(moment.After, at[i+1])
		}
		list = append(list, moment)
	}
	return list[max(0, len(list)-mostPictures):]
}

// WriteHTML writes a page that loads nothing and has no script: a chart of each series, and for
// each moment its changes and a picture. pictures has SVG by Moment.At.
func (t *Trend) WriteHTML(w io.Writer, pictures map[int][]byte) error {
	title := fmt.Sprintf("Trend of %s, %s to %s", t.Event, t.PeriodText(0),
		t.PeriodText(len(t.Periods)-1))
	p := trendPage{Title: title, Facts: t.facts(), Head: page.Head{Title: title,
		Policy: page.InlineStyles, Style: template.CSS(page.Style(trendRules, trendScheme))}}
	for i := range t.Series {
		switch s := &t.Series[i]; {
		case len(s.Changes) > 0:
			p.Changed = append(p.Changed, t.chart(s))
		case len(p.Steady) < mostSteady:
			p.Steady = append(p.Steady, t.chart(s))
		}
	}
	p.SteadyText = t.steadyText()
	for _, m := range t.Moments() {
		p.Moments = append(p.Moments, t.moment(m, pictures[m.At]))
	}
	return trendTemplate().Execute(w, p)
}

// chart draws the shares of a series: a line, a band of twice the noise of counting around it, and
// the levels between changes.
func (t *Trend) chart(s *Series) trendChart {
	most := 0.0
	for i, v := range s.Share {
		most = max(most, v+2*s.Noise[i])
	}
	n := len(s.Share)
	x := func(i int) float64 { return chartWidth * (float64(i) + 0.5) / float64(n) }
	y := func(v float64) float64 {
		return chartBottom - (chartBottom-chartTop)*max(0, v)/max(most, math.SmallestNonzeroFloat64)
	}
	c := trendChart{Label: s.label, Object: strings.TrimSpace(s.suffix), Most: percent(most),
		First: t.PeriodText(0), Last: t.PeriodText(n - 1),
		Range: percent(slices.Min(s.Share)) + " to " + percent(slices.Max(s.Share))}
	var line, above, below strings.Builder
	for i, v := range s.Share {
		command := "L"
		if line.Len() == 0 {
			command = "M"
		}
		fmt.Fprintf(&line, "%s%.1f %.1f", command, x(i), y(v))
		fmt.Fprintf(&above, "%s%.1f %.1f", command, x(i), y(v+2*s.Noise[i]))
		k := n - 1 - i
		fmt.Fprintf(&below, "L%.1f %.1f", x(k), y(s.Share[k]-2*s.Noise[k]))
	}
	c.Line, c.Band = line.String(), above.String()+below.String()+"Z"
	for _, change := range s.Changes {
		c.Levels = append(c.Levels,
			level(x(change.From), x(change.At-1), y(change.Level.Base)),
			level(x(change.At), x(change.To-1), y(change.Level.New)))
		c.Marks = append(c.Marks, t.mark(change, (x(change.At)+x(change.At-1))/2))
	}
	return c
}

func level(from, to, y float64) string { return fmt.Sprintf("M%.1f %.1fH%.1f", from, y, to) }

func (t *Trend) mark(c *Change, x float64) trendMark {
	m := trendMark{ID: t.momentID(c.At), X: x, Class: "fell", Text: fmt.Sprintf("%s since %s",
		t.changeText(c), t.PeriodText(c.At))}
	switch {
	case c.Rest == 0:
		m.Class = "moved"
	case c.Rest > 0:
		m.Class = "grew"
	}
	if text := c.movedText(); text != "" {
		m.Text += ", " + text
	}
	return m
}

func (t *Trend) momentID(at int) string { return fmt.Sprintf("period-%d", at) }

func (t *Trend) moment(m Moment, picture []byte) trendMoment {
	out := trendMoment{ID: t.momentID(m.At), Text: t.PeriodText(m.At),
		Picture: template.HTML(picture), Span: fmt.Sprintf("%s from %s on, against %s from %s on",
			table.Count(m.After-m.At, "period", "periods"), t.PeriodText(m.At),
			table.Count(m.At-m.Before, "period", "periods"), t.PeriodText(m.Before))}
	for _, c := range t.Changes() {
		if c.At == m.At {
			mark := t.mark(c, 0)
			mark.Text = fmt.Sprintf("%s%s: %s, from %s to %s (p %s)", c.Name, c.series.suffix,
				mark.Text, percent(c.Level.Base), percent(c.Level.New), pText(c.P))
			out.Changes = append(out.Changes, mark)
		}
	}
	return out
}
