package advice

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// summaryMissing is how many rows of missing objects the summary shows.
const summaryMissing = 10

// WriteShort writes the coverage in four lines at most, broken at words on a terminal: the samples,
// the named part of them, checked callers, and what is missing most, with its fix.
func (c *Coverage) WriteShort(w io.Writer, style table.Style) error {
	lost := ""
	if c.Lost > 0 {
		lost = "; " + table.Thousands(c.Lost) + " records lost"
	}
	lines := []string{"samples    " + table.Thousands(c.Samples) + c.events() + lost}
	if c.Frames > 0 {
		lines = append(lines, fmt.Sprintf("named      %s of the samples by their innermost frame, %s of "+
			"%s", share100(c.Named), share100(c.NamedFrames), table.Count(int(c.Frames), "frame", "frames")))
	} else {
		lines = append(lines, "named      none: there are no frames")
	}
	if c.Callers != nil {
		lines = append(lines, "callers    "+c.Callers.String())
	}
	if len(c.Missing) > 0 {
		m := &c.Missing[0]
		line := fmt.Sprintf("missing    %s in %s: %s", share100(m.SampleShare), m.Object, m.Reason)
		if m.Found != "" {
			line += ", the file there is now " + m.Found
		}
		if m.Why != "" {
			line += ", " + m.Why
		}
		if m.Hint != "" {
			line += "; " + m.Hint
		}
		if n := len(c.Missing) - 1; n > 0 {
			line += fmt.Sprintf(" (%d more: -v)", n)
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, table.Wrap(line, style.Width, shortIndent)); err != nil {
			return err
		}
	}
	return nil
}

// maxUnproven is how many rows of unproven callers WriteMissing shows; JSON has all.
const maxUnproven = 20

// shortIndent is the width of the words before the lines of WriteShort.
const shortIndent = "           "

// WriteSummary writes the whole coverage, as resolve -v prints it on stderr.
func (c *Coverage) WriteSummary(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "samples    %s%s\n", table.Thousands(c.Samples), c.events())
	if c.Frames > 0 {
		fmt.Fprintf(out, "named      %s of the samples by their innermost frame\n", share100(c.Named))
	}
	named := share100(c.NamedFrames) + " named"
	if c.Frames == 0 {
		named = "none to be named"
	}
	fmt.Fprintf(out, "frames     %s, %s\n", table.Thousands(c.Frames), named)
	for _, d := range c.Domains {
		fmt.Fprintf(out, "  %-8s %s named, %s of all\n", d.Domain, share100(d.Named),
			share100(d.Share))
	}
	if len(c.BuildIDs) > 0 {
		words := make([]string, len(c.BuildIDs))
		for i, b := range c.BuildIDs {
			words[i] = fmt.Sprintf("%s %s", b.Source, share100(b.Share))
		}
		fmt.Fprintf(out, "build IDs  %s\n", strings.Join(words, ", "))
	}
	if len(c.Objects) > 0 {
		words := make([]string, len(c.Objects))
		for i, o := range c.Objects {
			from := "from " + o.From
			if o.From == notFound {
				from = notFound
			}
			words[i] = fmt.Sprintf("%d %s", o.Objects, from)
		}
		fmt.Fprintf(out, "objects    %s\n", strings.Join(words, ", "))
	}
	if n := len(c.Probable); n > 0 {
		sum := ingest.FrameSum{}
		for _, o := range c.Probable {
			sum.Add(ingest.FrameSum{Frames: o.Frames, Weight: o.Share})
		}
		fmt.Fprintf(out, "probable   lines of %d BPF functions, %s of the frames: of other loads with "+
			"their name, tag and length\n", n, share100(sum.Weight))
	}
	if c.Copied != nil {
		fmt.Fprintf(out, "stacks     %s\n", c.Copied)
	}
	if c.Callers != nil {
		fmt.Fprintf(out, "callers    %s\n", c.Callers)
	}
	if losses := c.losses(); losses != "" {
		fmt.Fprintf(out, "losses     %s\n", losses)
	}
	if len(c.Missing) > 0 {
		out.WriteString("not named, heaviest first by the samples that end there:\n")
		c.writeMissing(out, summaryMissing, table.Style{})
	}
	return out.Flush()
}

// events names the events of the samples.
func (c *Coverage) events() string {
	words := make([]string, len(c.Events))
	for i, e := range c.Events {
		words[i] = fmt.Sprintf("%s %s (%s)", table.Thousands(e.Samples), e.Name,
			table.Quantity(e.Weight, e.Unit))
		if e.Unit == "count" {
			words[i] = fmt.Sprintf("%s %s (weight %s)", table.Thousands(e.Samples), e.Name,
				table.Thousands(e.Weight))
		}
	}
	switch len(words) {
	case 0:
		return ""
	case 1:
		return strings.TrimPrefix(words[0], table.Thousands(c.Samples))
	}
	return ": " + strings.Join(words, ", ")
}

func (c *Coverage) losses() string {
	var words []string
	for _, l := range []struct {
		n    uint64
		what string
	}{{c.Lost, "records lost"}, {c.Throttled, "times throttled"},
		{c.CutChains, "stacks cut at an invalid address"}, {c.Unknown, "records of unknown types"}} {
		if l.n > 0 {
			words = append(words, table.Thousands(l.n)+" "+l.what)
		}
	}
	if u := c.Uncalled; u != nil {
		words = append(words, u.String())
	}
	return strings.Join(words, ", ")
}

// WriteMissing writes all missing objects as a table.
func (c *Coverage) WriteMissing(w io.Writer) error {
	out := bufio.NewWriter(w)
	if c.Copied != nil {
		fmt.Fprintf(out, "stacks: %s\n", c.Copied)
	}
	if c.Callers != nil {
		fmt.Fprintf(out, "callers: %s\n", c.Callers)
		c.Callers.writeUnproven(out, maxUnproven)
	}
	if u := c.Uncalled; u != nil {
		fmt.Fprintf(out, "callers: %s: words that code without frame pointers left\n%*s%s\n", u, 9, "", u.Hint)
	}
	if len(c.Missing) == 0 {
		if c.Frames == 0 {
			fmt.Fprintf(out, "there are no frames: nothing was sampled, or nothing is left by the filters\n")
			return out.Flush()
		}
		fmt.Fprintf(out, "nothing is missing: %s frames, all named\n", table.Thousands(c.Frames))
		return out.Flush()
	}
	c.writeMissing(out, len(c.Missing), table.StyleOf(w))
	if c.Left > 0 {
		fmt.Fprintf(out, "%d more rows\n", c.Left)
	}
	return out.Flush()
}

// writeMissing writes a row for each of the first rows. On a terminal objects are cut to its width;
// build IDs and commands are whole, for copying: an ID that does not fit has a line of its own.
func (c *Coverage) writeMissing(out *bufio.Writer, limit int, style table.Style) {
	const (
		row         = "  %8s  %7s  %-21s  %s%s\n"
		margin      = 2 + 8 + 2 + 7 + 2
		taken       = margin + 21 + 2 // before the object
		leastObject = 24

		narrowMargin = 4 // of commands that are longer than a terminal
	)
	fmt.Fprintf(out, row, "samples%", "frames%", "reason", "object, build ID", "")
	for i := range c.Missing {
		if i == limit {
			fmt.Fprintf(out, "  and %d more (symbolize missing)\n", len(c.Missing)-limit)
			return
		}
		m := &c.Missing[i]
		id := ""
		if m.BuildID != "" {
			id = "  " + m.BuildID
		}
		if m.Found != "" {
			id += ", the file there is now " + m.Found
		}
		if m.Why != "" {
			id += ", " + m.Why
		}
		width := utf8.RuneCountInString(id)
		if width > 0 && style.Width > 0 && style.Width < taken+leastObject+width {
			id, width = "\n"+strings.Repeat(" ", margin-2)+id, 0
		}
		object := style.Fit(m.Object, taken+width)
		fmt.Fprintf(out, row, share100(m.SampleShare), share100(m.Share), m.Reason, object, id)
		for _, step := range []string{m.Hint, m.Package} {
			switch n := utf8.RuneCountInString(step); {
			case step == "":
			case style.Width == 0 || margin+n <= style.Width:
				fmt.Fprintf(out, "%*s%s\n", margin, "", step)
			case narrowMargin+n <= style.Width:
				fmt.Fprintf(out, "%*s%s\n", narrowMargin, "", step)
			default: // a shell reads the lines as one
				fmt.Fprintf(out, "%*s%s\n", narrowMargin, "", strings.ReplaceAll(step, " && ", " &&\n    "))
			}
		}
	}
}

// WriteMissingJSON writes the missing objects as one JSON object.
func (c *Coverage) WriteMissingJSON(w io.Writer) error { return texts.WriteJSON(w, "missing/1", c) }

// share100 prints a percentage. A part is never printed as 100, nor as 0.
func share100(v float64) string {
	switch {
	case v == 100:
		return "100%"
	case v > 99.99:
		return ">99.99%"
	case v > 0 && v < 0.01:
		return "<0.01%"
	}
	return fmt.Sprintf("%.2f%%", v)
}
