package flame

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/report"
	"symbolize/ingest/texts"
)

// WriteFolded writes the event that is shown first as folded stacks: a line for each, with the
// comm, the frames from the root on, and the weight, in bytewise order.
func (g *Graph) WriteFolded(w io.Writer) error {
	texts := make([]string, len(g.rows.nodes))
	for i := range g.rows.nodes {
		texts[i] = report.FoldedName(g.rows.nodes[i].Name)
	}
	sums := make(map[string]uint64)
	var line []byte
	named := false // a sample has a comm
	for i := range g.rows.rows {
		r := &g.rows.rows[i]
		c := &g.Columns[r.column]
		if c.Event != g.Shown {
			continue
		}
		line = append(line[:0], foldedComm(g.value(c, 0))...)
		named = named || string(line) != report.NoComm
		for _, marked := range g.rows.frames[r.from:r.to] {
			frame, _ := marked.Inlined()
			line = append(append(line, ';'), texts[frame]...)
		}
		sums[string(line)] += r.value
	}
	lines := make([][]byte, 0, len(sums))
	for stack, v := range sums {
		if !named { // as report.Folded
			stack = strings.TrimPrefix(stack, report.NoComm+";")
		}
		lines = append(lines, strconv.AppendUint([]byte(stack+" "), v, 10))
	}
	slices.SortFunc(lines, bytes.Compare)
	out := bufio.NewWriter(w)
	for _, l := range lines {
		out.Write(l)
		out.WriteByte('\n')
	}
	return out.Flush()
}

// value is the text of a column's label.
func (g *Graph) value(c *column, label int) string {
	if i := c.Values[label]; i >= 0 {
		return g.Labels[label].Values[i]
	}
	return "others"
}

func foldedComm(comm string) string {
	if comm == "[no comm]" {
		comm = ""
	}
	return report.FoldedComm(comm)
}

// byStack returns the numbers of the rows of an event in the order of their stacks, so that
// those which begin alike are neighbours.
func (g *Graph) byStack(event int) []uint32 {
	var order []uint32
	for i := range g.rows.rows {
		if g.Columns[g.rows.rows[i].column].Event == event {
			order = append(order, uint32(i))
		}
	}
	slices.SortFunc(order, func(a, b uint32) int {
		x, y := &g.rows.rows[a], &g.rows.rows[b]
		return cmp.Or(slices.Compare(g.rows.frames[x.from:x.to], g.rows.frames[y.from:y.to]),
			cmp.Compare(x.column, y.column))
	})
	return order
}

// jsonWriter writes large JSON piece by piece.
type jsonWriter struct {
	*bufio.Writer
	scratch []byte
}

func newJSONWriter(w io.Writer) *jsonWriter {
	return &jsonWriter{Writer: bufio.NewWriterSize(w, 64<<10)}
}

// str writes a string.
func (j *jsonWriter) str(s string) {
	j.scratch = texts.AppendJSONString(j.scratch[:0], s)
	j.Write(j.scratch)
}

// list writes an array of n items in brackets.
func (j *jsonWriter) list(n int, item func(i int)) {
	j.WriteByte('[')
	for i := range n {
		if i > 0 {
			j.WriteByte(',')
		}
		item(i)
	}
	j.WriteByte(']')
}

// num writes a number.
func (j *jsonWriter) num(v int64) {
	j.scratch = strconv.AppendInt(j.scratch[:0], v, 10)
	j.Write(j.scratch)
}

// count writes a number without a sign.
func (j *jsonWriter) count(v uint64) {
	j.scratch = strconv.AppendUint(j.scratch[:0], v, 10)
	j.Write(j.scratch)
}
