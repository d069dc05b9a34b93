// Package table lays out text in columns, as the reports for people print it.
package table

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"symbolize/ingest/texts"
)

// Table lays out rows of cells in columns, two spaces apart. Cells may come from
// captures and files: they are made printable. The last column is never padded.
type Table struct {
	rows    [][]string
	right   []bool // by column: right-aligned, for numbers
	names   []int  // the columns that may be cut
	wrapped bool
	whole   int   // see Without
	lesser  []int // its columns
}

// New returns an empty table; right has, by column, whether it is of numbers.
func New(right ...bool) *Table { return &Table{right: right} }

// Names are the columns that hold names: on a terminal that is too narrow they are cut in the
// middle, the last one of the list first. All others stay whole.
func (t *Table) Names(columns ...int) *Table {
	t.names = columns
	return t
}

// Wrapped makes the last column of a table of names and values break at words, to the width of a
// terminal.
func (t *Table) Wrapped() *Table {
	t.wrapped = true
	return t
}

// Without leaves columns out on terminals with fewer columns than a number. They are in ascending
// order.
func (t *Table) Without(terminal int, columns ...int) *Table {
	t.whole, t.lesser = terminal, columns
	return t
}

// leaveOut removes the columns of Without.
func (t *Table) leaveOut(terminal int) {
	if terminal == 0 || terminal >= t.whole {
		return
	}
	for _, c := range slices.Backward(t.lesser) {
		for i, row := range t.rows {
			t.rows[i] = slices.Delete(row, c, c+1)
		}
		if c < len(t.right) {
			t.right = slices.Delete(t.right, c, c+1)
		}
		t.names = slices.DeleteFunc(t.names, func(n int) bool { return n == c })
		for i, n := range t.names {
			if n > c {
				t.names[i]--
			}
		}
	}
	t.lesser = nil
}

// Row adds a row. It makes its cells printable.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, printable(cells)) }

// printable makes the cells of a row printable.
func printable(cells []string) []string {
	for i, c := range cells {
		cells[i] = texts.Printable(c)
	}
	return cells
}

// Field adds a row of a name and a value, unless the value is empty.
func (t *Table) Field(name, value string) {
	if value != "" {
		t.Row(name, value)
	}
}

// widen makes columns as wide as the cells of a row.
func widen(widths []int, row []string) []int {
	for i, c := range row {
		if i == len(widths) {
			widths = append(widths, 0)
		}
		widths[i] = max(widths[i], utf8.RuneCountInString(c))
	}
	return widths
}

// narrow cuts columns to the width of a terminal, where names allow that.
func (t *Table) narrow(widths []int, terminal int) {
	if terminal == 0 {
		return
	}
	over := 2*(len(widths)-1) - terminal
	for _, n := range widths {
		over += n
	}
	for _, i := range slices.Backward(t.names) {
		if over <= 0 || i >= len(widths) {
			continue
		}
		least := min(widths[i], max(minName, widths[i]-over))
		over -= widths[i] - least
		widths[i] = least
	}
}

// Print writes the rows, for a Styled writer cut to its width.
func (t *Table) Print(w io.Writer) error {
	return t.PrintAll(w, func(func([]string, error) bool) {})
}

// PrintAll is Print with further rows, which may be more than fit into memory: they are visited
// twice, first for the widths of the columns. It ends at the first error.
func (t *Table) PrintAll(w io.Writer, more iter.Seq2[[]string, error]) error {
	terminal := StyleOf(w).Width
	t.leaveOut(terminal)
	var widths []int
	err := t.each(more, func(row []string) { widths = widen(widths, row) })
	if err != nil {
		return err
	}
	t.narrow(widths, terminal)
	if t.wrapped {
		t.wrap(widths, terminal)
	}
	bw := bufio.NewWriter(w)
	err = t.each(more, func(row []string) { t.printRow(bw, row, widths) })
	return cmp.Or(err, bw.Flush())
}

// wrap breaks the last cells of rows.
func (t *Table) wrap(widths []int, terminal int) {
	before := 0
	for _, n := range widths[:max(0, len(widths)-1)] {
		before += n + 2
	}
	for _, row := range t.rows {
		if terminal > before+minName {
			row[len(row)-1] = strings.ReplaceAll(Wrap(row[len(row)-1], terminal-before, ""), "\n",
				"\n"+strings.Repeat(" ", before))
		}
	}
}

// each calls fn for all rows.
func (t *Table) each(more iter.Seq2[[]string, error], fn func(row []string)) error {
	for _, row := range t.rows {
		fn(row)
	}
	for row, err := range more {
		if err != nil {
			return err
		}
		fn(printable(row))
	}
	return nil
}

func (t *Table) printRow(bw *bufio.Writer, row []string, widths []int) {
	for i, c := range row {
		if slices.Contains(t.names, i) {
			c = cut(c, widths[i])
		}
		pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(c)))
		last := i == len(row)-1
		switch {
		case i < len(t.right) && t.right[i]:
			bw.WriteString(pad + c)
		case last:
			bw.WriteString(c)
		default:
			bw.WriteString(c + pad)
		}
		if !last {
			bw.WriteString("  ")
		}
	}
	bw.WriteByte('\n')
}

// Bytes returns a size with a unit of powers of 1,024: "12.3 MiB".
func Bytes[T int64 | uint64](n T) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, units := float64(n)/1024, "KMGTPE"
	for f >= 1023.95 && len(units) > 1 {
		f, units = f/1024, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", f, units[0])
}

// Join joins the words that are not empty.
func Join(sep string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), sep)
}

// Count returns a number with its noun: "1 file", "2 files".
func Count[T int | uint64](n T, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Some is Count, but "" for none.
func Some[T int | uint64](n T, one, many string) string {
	if n == 0 {
		return ""
	}
	return Count(n, one, many)
}

// Counts lists counts by name, the largest first, without zeros: "12 named, 3 lost".
func Counts[T int | uint64](m map[string]T) string {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		if m[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", m[name], name))
		}
	}
	return strings.Join(parts, ", ")
}
