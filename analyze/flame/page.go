package flame

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"symbolize/analyze/annotate"
	"symbolize/analyze/page"
	"symbolize/ingest/texts"
)

// The page's own files.
var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/style.css
	styleCSS string
	//go:embed page/model.js
	modelJS string
	//go:embed page/format.js
	formatJS string
	//go:embed page/graph.js
	graphJS string
	//go:embed page/panels.js
	panelsJS string
	//go:embed page/compare.js
	compareJS string
	//go:embed page/address.js
	addressJS string
	//go:embed page/heat.js
	heatJS string
	//go:embed page/tables.js
	tablesJS string
	//go:embed page/ranges.js
	rangesJS string
	//go:embed page/times.js
	timesJS string
	//go:embed page/menu.js
	menuJS string
	//go:embed page/stacks.js
	stacksJS string
	//go:embed page/code.js
	codeJS string
	//go:embed page/extras.js
	extrasJS string
	//go:embed page/app.js
	appJS string
)

// scheme has the colours of all pages of this package.
var scheme = page.Scheme{
	Light: `--back:#f6f7f9;--panel:#ffffff;--text:#1b1e24;--faint:#5c6370;--line:#dfe2e8;` +
		`--accent:#2a63c8;--accent-text:#ffffff;--hover:#eef1f6;--bar:#f3b95a;--warn:#b3261e;` +
		`--shadow:0 1px 2px rgb(20 25 40 / 8%),0 6px 24px rgb(20 25 40 / 10%);`,
	Dark: `--back:#14161b;--panel:#1c1f26;--text:#e6e8ec;--faint:#9aa2b1;--line:#2e333d;` +
		`--accent:#6aa0ff;--accent-text:#10131a;--hover:#262b35;--bar:#a8741b;--warn:#ff8a80;` +
		`--shadow:0 1px 2px rgb(0 0 0 / 40%),0 6px 24px rgb(0 0 0 / 45%);`,
}

// graphCSS is the style of pages of graphs, with the style of code in reports.
func graphCSS() string {
	return page.Style(styleCSS+".listing {\n"+annotate.CodeStyle+"}\n", scheme, annotate.CodeScheme)
}

// pageTemplate has no input but texts that Go escapes; scripts and style are ours.
var pageTemplate = page.Parse(&pageHTML)

// kind is the first word of the title of a page or picture.
func (g *Graph) kind(usual string) string {
	if g.Scaling != nil {
		return "Differential flame graph"
	}
	return usual
}

// WriteHTML writes the page. It is one file that loads nothing.
func (g *Graph) WriteHTML(w io.Writer) error {
	scripts := []string{modelJS, formatJS, compareJS, rangesJS, graphJS, panelsJS, addressJS, heatJS,
		tablesJS, timesJS, menuJS, stacksJS, codeJS, extrasJS, appJS}
	style := graphCSS()
	most := maxPage - len(pageHTML) - len(style)
	for _, s := range scripts {
		most -= len(s)
	}
	data, ranges, err := g.pack(most)
	if err != nil {
		return err
	}
	code, err := g.packCode(maxReport - maxPage + most - len(data) - len(ranges))
	if err != nil {
		return err
	}
	title := g.kind("Profile") + ": " + g.Title
	content := struct {
		page.Head
		Data, Ranges, Code template.HTML // base64 needs no escaping
		Scripts            []template.JS
	}{Head: page.NewHead(title, style, scripts...), Data: template.HTML(data),
		Ranges: template.HTML(ranges), Code: template.HTML(code)}
	for _, s := range scripts {
		content.Scripts = append(content.Scripts, template.JS(s))
	}
	return pageTemplate().Execute(w, content)
}

// codeData is the code in a page; frames are numbered as in the graph.
type codeData struct {
	List      string         `json:"list"`
	Functions []codeFunction `json:"functions"`
}

type codeFunction struct {
	Frame int        `json:"frame"` // -1 if the page does not have it
	HTML  string     `json:"html"`
	Calls []codeCall `json:"calls,omitempty"`
}

// codeCall is an annotate.PartCall.
type codeCall struct {
	Frame int    `json:"frame"`
	Value uint64 `json:"value"`
	At    []int  `json:"at"`
}

// packCode returns the code of as many functions as fit, as base64 of deflated JSON; "" without. The
// graph was filled.
func (g *Graph) packCode(most int) (packed string, err error) {
	if g.Code == nil {
		return "", nil
	}
	data := g.numberCode()
	for {
		packed, err = deflate(data)
		if n := len(data.Functions); err == nil && len(packed) > most && n > 0 {
			data.Functions = data.Functions[:n*3/4]
			continue
		}
		return packed, err
	}
}

// numberCode finds the frames of the code's functions.
func (g *Graph) numberCode() codeData {
	type key struct{ object, name string }
	frames := make(map[key]int)
	for i, id := range g.Frames.nodes {
		n := &g.rows.nodes[id]
		frames[key{n.Object, n.SystemName}] = i
	}
	data := codeData{List: g.Code.List}
	for _, p := range g.Code.Functions {
		f := codeFunction{Frame: -1, HTML: p.HTML}
		if i, ok := frames[key{p.Object, p.SystemName}]; ok {
			f.Frame = i
		}
		for _, c := range p.Calls {
			if i, ok := frames[key{p.Object, c.SystemName}]; ok {
				f.Calls = append(f.Calls, codeCall{Frame: i, Value: c.Value, At: c.Offsets})
			}
		}
		data.Functions = append(data.Functions, f)
	}
	return data
}

// pack returns the data and the ranges as base64 of deflated JSON, in at most the bytes of most. Of
// a graph too large for a page it leaves more out until it fits. A page of ranges has fewer frames
// rather than coarse ranges.
func (g *Graph) pack(most int) (data, ranges string, err error) {
	for part := 1.0; ; part /= 2 {
		forward := g.fill(part)
		if data, err = deflate(g); err != nil {
			return "", "", err
		}
		if len(data) > most && part >= 0.001 {
			continue
		}
		var level int
		ranges, level, err = g.packRanges(forward, most-len(data))
		if level < fineLevels || part < 1 || err != nil {
			return data, ranges, err
		}
	}
}

// deflate returns a value as base64 of deflated JSON.
func deflate(v any) (string, error) {
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return "", err
	}
	if err := texts.NewJSONEncoder(z).Encode(v); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}
