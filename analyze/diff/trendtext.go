package diff

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"symbolize/analyze/table"
	"symbolize/ingest/texts"
)

// PeriodText is the start of a period: "2026-11-02", with the time if it is not midnight.
func (t *Trend) PeriodText(i int) string {
	start := t.Periods[i].Start
	if start.Equal(start.Truncate(24 * time.Hour)) {
		return start.Format(time.DateOnly)
	}
	return start.Format("2006-01-02 15:04")
}

// mostBars is the number of periods of a sparkline, the last ones.
const mostBars = 40

// bars returns the shares as a sparkline from 0 to the greatest.
func (t *Trend) bars(s *Series) string {
	const heights = "▁▂▃▄▅▆▇█"
	levels := []rune(heights)
	most := slices.Max(s.Share)
	var b strings.Builder
	for i := max(0, len(s.Share)-mostBars); i < len(s.Share); i++ {
		b.WriteRune(levels[int(math.Round(s.Share[i]/most*float64(len(levels)-1)))])
	}
	return b.String()
}

// WriteText writes the changes as a table.
func (t *Trend) WriteText(w io.Writer, style table.Style) error {
	out := bufio.NewWriter(w)
	t.writeTitle(out, style)
	changes := t.Changes()
	left := 0
	if t.limit > 0 && len(changes) > t.limit {
		left = len(changes) - t.limit
		changes = changes[:t.limit]
	}
	bars := min(mostBars, len(t.Periods))
	if style.Width > 0 && style.Width < narrow {
		bars = 0
	}
	if len(changes) > 0 {
		fmt.Fprintf(out, "%8s %8s %9s %6s  %-*s  ", "before", "after", "change", "p",
			len(t.PeriodText(0)), "since")
		if bars > 0 {
			fmt.Fprintf(out, "%-*s  ", bars, "share")
		}
		out.WriteString("name\n")
	}
	for _, c := range changes {
		t.writeChange(out, style, c, bars > 0)
	}
	if left > 0 {
		fmt.Fprintf(out, "%s more changes\n", table.Thousands(uint64(left)))
	}
	fmt.Fprintln(out, table.Wrap(t.steadyText(), style.Width, titleIndent))
	return out.Flush()
}

// steadyText counts the rows without changes.
func (t *Trend) steadyText() string {
	steady := 0
	for i := range t.Series {
		if len(t.Series[i].Changes) == 0 {
			steady++
		}
	}
	return fmt.Sprintf("%s without a change; not judged: %s with less than %.4g%% in every period "+
		"(--min-share)", table.Count(steady, "row", "rows"), table.Count(t.Small, "row", "rows"),
		100*t.MinShare)
}

func (t *Trend) writeTitle(w *bufio.Writer, style table.Style) {
	for _, text := range t.facts() {
		w.WriteString(table.Wrap(text, style.Width, titleIndent) + "\n")
	}
}

// facts describe the comparison, a line each.
func (t *Trend) facts() []string {
	profiles, samples := 0, uint64(0)
	for i := range t.Periods {
		profiles += len(t.Periods[i].Profiles)
		samples += t.Periods[i].Samples
	}
	facts := []string{table.Join(", ", table.Count(len(t.Periods), "period", "periods"),
		t.PeriodText(0)+" to "+t.PeriodText(len(t.Periods)-1),
		table.Count(profiles, "profile", "profiles"), table.Thousands(samples)+" samples"),
		fmt.Sprintf("event: %s, by %s: shares of the total, %s", t.Event, t.By, t.Value)}
	for _, f := range t.Filters {
		facts = append(facts, "filter: "+texts.Printable(f))
	}
	if n := len(t.Periods); n < 2*leastPeriods {
		return append(facts, fmt.Sprintf("no test: that needs %d periods", 2*leastPeriods))
	}
	return append(facts, fmt.Sprintf("p is corrected for all rows and times, changes are "+
		"significant at %g", t.Alpha))
}

// writeChange writes a change, growth red and decline green; a cost that moved is faint.
func (t *Trend) writeChange(w *bufio.Writer, style table.Style, c *Change, bars bool) {
	color := table.Green
	switch {
	case c.Rest == 0:
		color = table.Faint
	case c.Rest > 0:
		color = table.Red
	}
	numbers := fmt.Sprintf("%8s %8s %9s %6s  %s  ", percent(c.Level.Base), percent(c.Level.New),
		t.changeText(c), pText(c.P), t.PeriodText(c.At))
	if bars {
		numbers += t.bars(c.series) + "  "
	}
	// The bars are of several bytes, and one column each.
	text := style.FitBoth(c.Name, c.series.suffix, len([]rune(numbers)))
	w.WriteString(style.Paint(color, numbers+text) + "\n")
	if text := c.movedText(); text != "" {
		fmt.Fprintf(w, "%34s  %s\n", "", table.Wrap(text, max(0, style.Width-36), ""))
	}
}

func (t *Trend) changeText(c *Change) string {
	if c.Status != "" {
		return c.Status
	}
	return changeText(&c.Level)
}

func pText(p float64) string {
	if p < 0.001 {
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", p)
}

// movedText names the functions that changed the other way: "moved from inflate, inflate_fast".
func (c *Change) movedText() string {
	if len(c.Moved) == 0 {
		return ""
	}
	word := "moved from "
	if c.Level.Delta < 0 {
		word = "moved to "
	}
	text := word + strings.Join(c.Moved, ", ")
	if c.Rest != 0 {
		text += fmt.Sprintf("; %+.2f%% of the total remains", 100*c.Rest)
	}
	return text
}

// WriteJSON writes the trend as one JSON object.
func (t *Trend) WriteJSON(w io.Writer) error { return texts.WriteJSON(w, "trend/1", t) }
