package flame

import (
	"io"

	"symbolize/ingest/texts"
)

// WriteSpeedscope writes all stacks in speedscope's file format: a sampled profile for each
// event, the frames shared (https://www.speedscope.app/file-format-schema.json).
func (g *Graph) WriteSpeedscope(w io.Writer) error {
	j := newJSONWriter(w)
	j.WriteString(`{"$schema":"https://www.speedscope.app/file-format-schema.json","name":`)
	j.str(g.Title)
	j.WriteString(`,"activeProfileIndex":`)
	j.num(int64(g.Shown))
	j.WriteString(`,"exporter":"symbolize","shared":{"frames":`)
	nodes := g.rows.nodes
	j.list(len(nodes), func(i int) {
		j.WriteString(`{"name":`)
		j.str(nodes[i].Name)
		if file := texts.Printable(nodes[i].File); file != "" {
			j.WriteString(`,"file":`)
			j.str(file)
		}
		if nodes[i].Line > 0 {
			j.WriteString(`,"line":`)
			j.num(int64(nodes[i].Line))
		}
		j.WriteByte('}')
	})
	j.WriteString(`},"profiles":`)
	j.list(len(g.Events), func(e int) { g.speedscopeEvent(j, e) })
	j.WriteString("}\n")
	return j.Flush()
}

func (g *Graph) speedscopeEvent(j *jsonWriter, e int) {
	order := g.byStack(e)
	unit := "none"
	if u := g.Events[e].Unit; u == "nanoseconds" || u == "bytes" {
		unit = u
	}
	j.WriteString(`{"type":"sampled","name":`)
	j.str(g.Events[e].Name)
	j.WriteString(`,"unit":"` + unit + `","startValue":0,"endValue":`)
	j.count(g.Events[e].Kept)
	j.WriteString(`,"samples":`)
	j.list(len(order), func(i int) {
		r := &g.rows.rows[order[i]]
		stack := g.rows.frames[r.from:r.to]
		j.list(len(stack), func(k int) {
			frame, _ := stack[k].Inlined()
			j.num(int64(frame))
		})
	})
	j.WriteString(`,"weights":`)
	j.list(len(order), func(i int) { j.count(g.rows.rows[order[i]].value) })
	j.WriteByte('}')
}
