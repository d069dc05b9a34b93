package chart

import (
	"fmt"
	"html/template"

	"symbolize/analyze/page"
)

// htmlScheme has no dark colours, as the picture has none.
var htmlScheme = page.Scheme{Light: "--back:#fff;--text:#222;--faint:#555;--line:#ddd"}

const htmlRules = `body{font-family:sans-serif;margin:1em auto;max-width:1100px;padding:0 1em}
svg{width:100%;height:auto}
table{font-size:14px}
td,th{padding:2px 12px;border-bottom:1px solid var(--line);text-align:right;font-weight:normal}
.bar{width:320px;text-align:left}
.bar div{height:10px;background:#fd8d3c}
`

// AppendHTML appends the heat map as a complete page: the picture, its description, and the
// sums over all time. It loads nothing and runs no script.
func (m *HeatMap) AppendHTML(dst []byte) []byte {
	head := page.Head{Title: printable(m.heading()), Policy: page.InlineStyles,
		Style: template.CSS(page.Style(htmlRules, htmlScheme))}
	dst = append(head.Append(dst), "\n<body>\n"...)
	dst = m.appendSVG(dst)
	if len(m.Notes) > 0 {
		dst = append(dst, "<ul>\n"...)
		for _, note := range m.Notes {
			dst = fmt.Appendf(dst, "<li>%s</li>\n", escape(note))
		}
		dst = append(dst, "</ul>\n"...)
	}
	sums := &Histogram{}
	for i := range m.Columns {
		for slot, n := range m.Columns[i].Counts {
			if n > 0 {
				sums.Add(slot, n)
			}
		}
	}
	first, last, most := sums.used()
	if first < 0 {
		return append(dst, "<p>There are no counts.</p>\n</body>\n</html>\n"...)
	}
	dst = append(dst, "<h2>All intervals</h2>\n<table>\n"...)
	dst = fmt.Appendf(dst, "<tr><th>%s</th><th>counts</th><th></th></tr>\n", escape(m.unitHead()))
	for slot := first; slot <= last; slot++ {
		low, high := m.Scale.Bounds(slot)
		if low == "" && high == "" && sums.Counts[slot] == 0 {
			continue
		}
		dst = fmt.Appendf(dst,
			"<tr><td>%s</td><td>%d</td><td class=\"bar\"><div style=\"width:%d%%\">"+
				"</div></td></tr>\n", escape(m.slotLabel(slot)), sums.Counts[slot],
			scaled(sums.Counts[slot], most, 100))
	}
	return append(dst, "</table>\n</body>\n</html>\n"...)
}

func (m *HeatMap) unitHead() string {
	if m.Unit == "" {
		return "value"
	}
	return m.Unit
}
