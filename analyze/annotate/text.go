package annotate

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest/texts"
)

// TextStyle configures Annotation.WriteText.
type TextStyle struct {
	Addresses bool // whole addresses in place of offsets from the function's start
	Bytes     bool // the code bytes of each instruction
	Colour    bool // for a terminal
	Layers    Layers
}

// The shares from which instructions are red and green, as perf annotate has them.
const hotPercent, warmPercent = 5, 0.5

// summaryLines is how many of the hottest lines are above a listing.
const summaryLines = 5

// bytesColumn is the width of the code bytes of an ordinary instruction.
const bytesColumn = 20

// WriteText writes the functions one after another, each with its source lines, and
// those without code at the end.
func (a *Annotation) WriteText(w io.Writer, style TextStyle) error {
	t := &annotateWriter{Writer: bufio.NewWriter(w), a: a, style: style}
	t.head()
	for i := range a.Functions {
		t.function(&a.Functions[i])
	}
	t.missing()
	if a.Left > 0 {
		fmt.Fprintf(t, "\nwith samples, and left off: %s\n", counted(uint64(a.Left), "function"))
	}
	if u := a.Unnamed; u != nil {
		fmt.Fprintf(t, "\nwithout a name: %s of the samples; %s\n",
			table.Percent(t.value(u.Samples, u.Weight), a.Total), UnnamedHint)
	}
	t.layouts(a.Types)
	return t.Flush()
}

// WriteJSON writes the annotation as one JSON object.
func (a *Annotation) WriteJSON(w io.Writer) error { return texts.WriteJSON(w, "annotate/1", a) }

type annotateWriter struct {
	*bufio.Writer
	a     *Annotation
	style TextStyle
}

func (t *annotateWriter) colour(c table.Color, text string) string {
	if text == "" {
		return text
	}
	return table.Style{Color: t.style.Colour}.Paint(c, text)
}

func (t *annotateWriter) head() {
	a := t.a
	fmt.Fprintf(t, "event: %s, %s, total %s\n", a.Event, counted(a.Samples, "sample"),
		table.Quantity(a.Total, a.Unit))
	if len(a.Others) > 0 {
		fmt.Fprintf(t, "other events: %s (--event)\n", strings.Join(a.Others, ", "))
	}
	if a.Children {
		t.WriteString("calls count the samples of what they called, too, and so percentages " +
			"may sum to more than 100\n")
	}
	if a.Skid == skidPossible {
		t.WriteString("skid is not corrected: " +
			"a sample may lie behind the instruction that caused it\n")
	}
}

// value is the weight that percentages are of.
func (t *annotateWriter) value(samples, weight uint64) uint64 {
	if t.a.Unit == "samples" {
		return samples
	}
	return weight
}

func (t *annotateWriter) function(f *Function) {
	fmt.Fprintf(t, "\n%s%s: %s of %s, %s, %s\n", t.colour(table.Bold, f.Name), f.into(),
		table.Percent(t.value(f.Samples, f.Weight), t.a.Total), t.a.Event, counted(f.Samples, "sample"),
		table.Quantity(t.value(f.Samples, f.Weight), t.a.Unit))
	fmt.Fprintf(t, "  object: %s", f.Object)
	if f.BuildID != "" {
		fmt.Fprintf(t, ", build ID %s", f.BuildID)
	}
	fmt.Fprintf(t, "\n  code: %s, %s at %s\n", f.Origin, counted(uint64(f.Length), "byte"),
		f.Address)
	t.images(f)
	for _, n := range f.Disagreements {
		fmt.Fprintf(t, "  %s: %s\n", t.colour(table.Bold, "warning"), n)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(t, "  note: %s\n", n)
	}
	if f.Outside > 0 {
		fmt.Fprintf(t, "  note: behind these bytes: %s\n", counted(f.Outside, "sample"))
	}
	if f.Unknown > 0 {
		fmt.Fprintf(t, "  note: no known instruction: %s\n", counted(uint64(f.Unknown), "byte"))
	}
	t.layerNote(f)
	t.summary(f)
	t.columns(f)
	if f.BPF != nil && t.has(BPFInstructions) {
		t.layers(f)
	} else {
		t.listing(f)
	}
}

// summary lists the hottest lines, as `perf annotate -l` does.
func (t *annotateWriter) summary(f *Function) {
	for i := range f.Lines[:min(len(f.Lines), summaryLines)] {
		l := &f.Lines[i]
		if l.Samples == 0 {
			break
		}
		if i == 0 {
			t.WriteString("  hottest lines:\n")
		}
		fmt.Fprintf(t, "  %s  %s\n", t.percent(l.Percent), LineText(l.File, l.Line))
	}
}

// LineText is where a line is: without a file where only its number is known.
func LineText(file string, line uint32) string {
	if file == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// percent writes a share in the width of its column.
func (t *annotateWriter) percent(v float64) string {
	text := fmt.Sprintf("%8.2f", v)
	switch {
	case v >= hotPercent:
		return t.colour(table.Red, text)
	case v >= warmPercent:
		return t.colour(table.Green, text)
	}
	return text
}

// width of the column of offsets or addresses.
func (t *annotateWriter) width(f *Function) int {
	if n := len(f.Instructions); n > 0 && t.style.Addresses {
		return len(f.Instructions[n-1].Address) - len("0x")
	}
	return max(4, len(strconv.FormatInt(int64(f.Length), 16)))
}

// where is the title of the column of offsets or addresses.
func (t *annotateWriter) where() string {
	if t.style.Addresses {
		return "Address"
	}
	return "Offset"
}

// whereWidth is the width of that column with its title.
func (t *annotateWriter) whereWidth(f *Function) int { return max(t.width(f), len(t.where())) }

func (t *annotateWriter) columns(f *Function) {
	where, w := t.where(), t.whereWidth(f)
	fmt.Fprintf(t, "\n %8s | %*s | %s\n", "Percent", w, where, "Source code & disassembly")
	t.WriteString(strings.Repeat("-", 10) + "+" + strings.Repeat("-", w+2) + "+" +
		strings.Repeat("-", 50) + "\n")
}

// listing writes the instructions, and before each run of one line or of one inlined
// call where it comes from.
func (t *annotateWriter) listing(f *Function) {
	w := t.whereWidth(f)
	line, inlined := -1, []string(nil)
	for i := range f.Instructions {
		in := &f.Instructions[i]
		if i > 0 && f.gapBefore(i) {
			t.row(w, "", "…")
			line = -1
		}
		if !slices.Equal(in.Inlined, inlined) {
			t.row(w, "", t.colour(table.Blue, "; "+f.InlineText(in.Inlined)))
			inlined, line = in.Inlined, -1
		}
		if in.line != line && in.line >= 0 && t.has(Source) {
			t.sourceRow(w, &f.Lines[in.line])
		}
		line = in.line
		t.instruction(w, in, f)
	}
}

// gapBefore reports whether instructions of other functions are before instruction i.
func (f *Function) gapBefore(i int) bool {
	before := &f.Instructions[i-1]
	return before.Offset+before.inst.Len != f.Instructions[i].Offset
}

// InlineText names the inlined call, outermost first, or the function itself, that
// instructions belong to.
func (f *Function) InlineText(inlined []string) string {
	if len(inlined) == 0 {
		return "in " + cmp.Or(f.Into, f.Name)
	}
	text := "in " + inlined[len(inlined)-1] + " inlined into "
	for _, name := range slices.Backward(inlined[:len(inlined)-1]) {
		text += name + ", "
	}
	return text + cmp.Or(f.Into, f.Name)
}

// into is the text after the name of an inlined function.
func (f *Function) into() string {
	if f.Into == "" {
		return ""
	}
	return " inlined into " + f.Into
}

// row writes a row without an instruction.
func (t *annotateWriter) row(w int, percent, text string) {
	fmt.Fprintf(t, " %8s | %*s | %s\n", percent, w, "", strings.TrimRight(text, " "))
}

func (t *annotateWriter) sourceRow(w int, l *Line) {
	file := l.File
	if file != "" {
		file = path.Base(file)
	}
	text := "; " + LineText(file, l.Line)
	if l.Source != "" {
		text += "  " + l.Source
	}
	text = t.colour(table.Blue, text)
	if l.Hottest {
		text += t.colour(table.Bold, fmt.Sprintf("   <-- hottest line, %.2f%%", l.Percent))
	}
	t.row(w, "", text)
}

// accessColumn is the width of instructions with what they access behind them.
const accessColumn = 44

func (t *annotateWriter) instruction(w int, in *Inst, f *Function) {
	mark, where, arrow := ' ', strconv.FormatInt(int64(in.Offset), 16), "   "
	if in.Hottest {
		mark = '>'
	}
	if t.style.Addresses {
		where = in.Address[len("0x"):]
	}
	if in.JumpTarget {
		arrow = "-> "
	}
	if t.style.Bytes {
		arrow += fmt.Sprintf("%-*s  ", bytesColumn, in.Bytes)
	}
	text := arrow + f.InstText(in, t.style.Addresses)
	if in.Access != "" {
		text = fmt.Sprintf("%-*s  ; %s", accessColumn, text, in.Access)
	}
	if in.Hottest {
		text = t.colour(table.Bold, text)
	}
	fmt.Fprintf(t, "%c%s | %*s | %s\n", mark, t.percent(in.Percent), w, where, text)
}

// InstText is the text of an instruction with its target named: inside the function by offset
// or, with addresses, by address, else by symbol.
func (f *Function) InstText(in *Inst, addresses bool) string {
	to := in.Target
	if to == nil {
		return in.Text
	}
	address, symbol := to.Address[len("0x"):], ""
	if to.Symbol != "" {
		symbol = " <" + to.Symbol + ">"
	}
	if to.Offset != nil && to.Kind != "data" {
		symbol = " <" + cmp.Or(f.Into, f.Name)
		if *to.Offset > 0 {
			symbol += fmt.Sprintf("+0x%x", *to.Offset)
		}
		symbol += ">"
		if !addresses {
			address = strconv.FormatInt(int64(*to.Offset), 16)
		}
		if !addresses && to.Kind == "jump" {
			symbol = direction(in, *to.Offset)
		}
	}
	if to.Kind == "data" {
		return in.Text + "  # " + address + symbol
	}
	return in.inst.WithTarget(address + symbol)
}

// direction is the direction of a jump inside a function.
func direction(in *Inst, to int) string {
	if to > in.Offset {
		return " (down)"
	}
	return " (up)"
}

// counted is a number with its noun.
func counted(n uint64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return table.Thousands(n) + " " + noun
}

// missingRows is how many functions without code are listed for one reason.
const missingRows = 10

// missing lists the functions without code by reason, the heaviest first.
func (t *annotateWriter) missing() {
	byReason := make(map[string][]*NoCode)
	var reasons []string
	for i := range t.a.Missing {
		m := &t.a.Missing[i]
		if byReason[m.Reason] == nil {
			reasons = append(reasons, m.Reason)
		}
		byReason[m.Reason] = append(byReason[m.Reason], m)
	}
	if len(reasons) > 0 {
		t.WriteString("\nwithout code:\n")
	}
	for _, why := range reasons {
		list := byReason[why]
		fmt.Fprintf(t, "  %s\n", why)
		if hint := list[0].Hint; hint != "" {
			fmt.Fprintf(t, "  %s\n", hint)
		}
		rest := uint64(0)
		for i, m := range list {
			v := t.value(m.Samples, m.Weight)
			if i >= missingRows {
				rest += v
				continue
			}
			fmt.Fprintf(t, "  %8s  %s (%s)\n", table.Percent(v, t.a.Total), m.Name, path.Base(m.Object))
		}
		if n := len(list) - missingRows; n > 0 {
			fmt.Fprintf(t, "  %8s  %s more\n", table.Percent(rest, t.a.Total),
				counted(uint64(n), "function"))
		}
	}
}
