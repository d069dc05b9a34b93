package diff

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"symbolize/analyze/calltree"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// quantity prints a value, which scaling may have left between two whole numbers.
func (d *Diff) quantity(v float64) string {
	return table.Quantity(uint64(math.Round(math.Abs(v))), d.Unit)
}

func (d *Diff) signed(v float64) string {
	sign := "+"
	if v < 0 {
		sign = "-"
	}
	if text := d.quantity(v); strings.Trim(text, "0ns") != "" {
		return sign + text
	}
	return "0"
}

// changeText prints the growth of a pair: "+5.00%".
func changeText(p *Pair) string {
	switch {
	case p.Change == nil && p.New == 0:
		return "0%"
	case p.Change == nil:
		return StatusNew
	case p.New == 0:
		return StatusGone
	}
	if text := fmt.Sprintf("%+.2f%%", 100**p.Change); strings.Trim(text, "+-0.%") != "" {
		return text
	}
	return "0%"
}

// WriteText writes the comparison as a table.
func (d *Diff) WriteText(w io.Writer, style table.Style) error {
	out := bufio.NewWriter(w)
	d.writeTitle(out, style)
	if style.Width > 0 && style.Width < narrow {
		d.writeNarrow(out, style)
	} else if d.Tested {
		d.writeTested(out, style)
	} else {
		d.writePlain(out, style)
	}
	if d.Left > 0 {
		fmt.Fprintf(out, "%s more rows\n", table.Thousands(uint64(d.Left)))
	}
	if d.Small.Rows > 0 {
		text := fmt.Sprintf("not shown: %s with less than %.4g%% on both sides (--min-share): "+
			"flat %s before, %s now", table.Count(d.Small.Rows, "row", "rows"), 100*d.MinShare,
			d.quantity(d.Small.Base), d.quantity(d.Small.New))
		out.WriteString(table.Wrap(text, style.Width, titleIndent) + "\n")
	}
	return out.Flush()
}

// writeTitle names both sides and how they are compared.
func (d *Diff) writeTitle(w *bufio.Writer, style table.Style) {
	line := func(format string, args ...any) {
		w.WriteString(table.Wrap(fmt.Sprintf(format, args...), style.Width, titleIndent) + "\n")
	}
	for _, text := range d.Base.Lines(d.Unit) {
		line("base: %s", text)
	}
	for _, text := range d.New.Lines(d.Unit) {
		line("new:  %s", text)
	}
	line("event: %s, by %s", d.Event, d.By)
	for _, f := range d.Filters {
		line("filter: %s", texts.Printable(f))
	}
	if d.Normalized {
		line("the totals differ: each profile is scaled to %s, so that shares compare",
			d.quantity(d.Total))
	} else if d.TotalsDiffer() {
		line("the totals differ, values are as measured: --normalize compares shares")
	}
	if d.Tested {
		line("medians of %d and %d profiles; p is corrected for the number of rows, ~ is not "+
			"significant at %g", len(d.Base.Profiles), len(d.New.Profiles), d.Alpha)
		return
	}
	line("no test of significance: that needs several profiles of a side (--base)")
}

// titleIndent is before the second and further lines of a wrapped line.
const titleIndent = "      "

// maxTitle is how many profiles of a side are named.
const maxTitle = 10

// Lines describes the profiles of a side, a line each: file, host, start, main program, samples
// and total. Of many the first are named.
func (s *Side) Lines(unit string) (lines []string) {
	for i := range s.Profiles {
		if i == maxTitle {
			return append(lines, fmt.Sprintf("and %d more", len(s.Profiles)-i))
		}
		p := &s.Profiles[i]
		other := ""
		if p.Event != "" {
			other = "event " + p.Event
		}
		lines = append(lines, table.Join(", ", ingest.BaseName(p.Name), p.Host,
			startText(p.StartNanos), programText(p), other,
			table.Thousands(p.Samples)+" samples", table.Quantity(p.Total, unit)))
	}
	return lines
}

// Title names a side in a few words: file, host and start of its first profile, and how many
// others there are.
func (s *Side) Title() string {
	p := &s.Profiles[0]
	more := ""
	if n := len(s.Profiles) - 1; n > 0 {
		more = fmt.Sprintf("and %d more", n)
	}
	return table.Join(", ", ingest.BaseName(p.Name), p.Host, startText(p.StartNanos), more)
}

func startText(nanos int64) string {
	if nanos == 0 {
		return ""
	}
	return time.Unix(0, nanos).UTC().Format("2006-01-02 15:04:05Z")
}

func programText(p *Described) string {
	if p.MainProgram == "" {
		return ""
	}
	text := ingest.BaseName(p.MainProgram)
	if p.BuildID != "" {
		text += " " + p.BuildID
	}
	return text
}

// narrow is the width of terminals that have fewer columns: those of the value by which rows are
// sorted. With all, each row would be longer than the terminal.
const narrow = 80

// writeNarrow writes the rows for a narrow terminal.
func (d *Diff) writeNarrow(w *bufio.Writer, style table.Style) {
	const form = "%9s %8s %9s %9s"
	fmt.Fprintf(w, form, d.Value, "change", "base", "new")
	if d.Tested {
		fmt.Fprintf(w, " %5s", "p")
	}
	w.WriteString("  name\n")
	for i := range d.Rows {
		r := &d.Rows[i]
		v := r.Value()
		numbers := fmt.Sprintf(form, d.signed(v.Delta), changeText(v), d.quantity(v.Base),
			d.quantity(v.New))
		if d.Tested {
			numbers += fmt.Sprintf(" %5s", r.pText())
		}
		d.writeRow(w, style, numbers+"  ", r)
	}
}

// pText is the probability of a row, if it is significant.
func (r *Row) pText() string {
	if r.Significant {
		return fmt.Sprintf("%.3f", *r.P)
	}
	return "~"
}

// writePlain writes the rows of one profile a side.
func (d *Diff) writePlain(w *bufio.Writer, style table.Style) {
	fmt.Fprintf(w, "%10s %9s %10s %10s %10s %9s  %s\n", "flat", "change", "base", "new", "cum",
		"change", "name")
	for i := range d.Rows {
		r := &d.Rows[i]
		numbers := fmt.Sprintf("%10s %9s %10s %10s %10s %9s  ", d.signed(r.Flat.Delta),
			changeText(&r.Flat), d.quantity(r.Flat.Base), d.quantity(r.Flat.New),
			d.signed(r.Cum.Delta), changeText(&r.Cum))
		d.writeRow(w, style, numbers, r)
	}
}

// writeTested writes the rows of several profiles a side.
func (d *Diff) writeTested(w *bufio.Writer, style table.Style) {
	fmt.Fprintf(w, "%10s %9s %8s %16s %16s  %s\n", d.Value, "change", "p", "base", "new", "name")
	for i := range d.Rows {
		r := &d.Rows[i]
		v := r.Value()
		numbers := fmt.Sprintf("%10s %9s %8s %16s %16s  ", d.signed(v.Delta), changeText(v), r.pText(),
			d.spreadText(v.Base, v.BaseSpread), d.spreadText(v.New, v.NewSpread))
		d.writeRow(w, style, numbers, r)
	}
}

func (d *Diff) spreadText(v, spread float64) string {
	return fmt.Sprintf("%s ±%3.0f%%", d.quantity(v), 100*spread)
}

// writeRow colours growth red and decline green; where there is a test, only significant ones.
func (d *Diff) writeRow(w *bufio.Writer, style table.Style, numbers string, r *Row) {
	color := table.Plain
	switch v := r.Value(); {
	case d.Tested && !r.Significant:
		color = table.Faint
	case v.Delta > 0:
		color = table.Red
	case v.Delta < 0:
		color = table.Green
	}
	calltree.WriteRow(w, style, numbers, color, r.label, r.suffix)
}

// WriteJSON writes the comparison as one JSON object.
func (d *Diff) WriteJSON(w io.Writer) error { return texts.WriteJSON(w, "diff/1", d) }
