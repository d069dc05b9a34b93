package flame

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"

	"symbolize/ingest/texts"
)

// value is the text of a column's label.
func (g *Graph) value(c *column, label int) string {
	if i := c.Values[label]; i >= 0 {
		return g.Labels[label].Values[i]
	}
	return "others"
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
