package annotate

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/analyze/page"
	"symbolize/analyze/table"
)

//go:embed page.html
var pageHTML string

// The style of a page, and of the code in it, which other pages can have inside an element of
// their own: its colours are variables of pageCSS.
var (
	//go:embed page.css
	pageCSS string
	//go:embed code.css
	CodeStyle string
)

// styleCSS is the style of a page.
var styleCSS = strings.NewReplacer("/*light code*/", page.LightCode,
	"/*dark code*/", page.DarkCode).Replace(pageCSS) + CodeStyle

var pageTemplate = page.Parse(&pageHTML)

// listing is the data of the template.
type listing struct {
	page.Head
	Event, Samples, Total string
	Others                string
	Skid, Children        bool
	Functions             []function
	Missing               []missing
	Unnamed               string // the share of samples that no function has, or ""
	Left                  string
}

type missing struct{ Share, Name, Object, Reason, Hint string }

// function is one function of the page.
type function struct {
	ID, Name, Share, Heat, Samples, Weight string
	Object, BuildID, Origin, Address       string
	Length                                 string
	Warnings, Notes                        []string
	Source                                 []source
	Rows                                   []row
	Arrows                                 []arrow
	Gutter, Height                         int
}

// WriteHTML writes the page.
func WriteHTML(w io.Writer, a *Annotation) error {
	return pageTemplate().Execute(w, newPage(a))
}

// WriteParts writes the parts of the page about functions, for another page: their list and code.
// It needs CodeStyle. All texts are escaped.
func WriteParts(w io.Writer, a *Annotation) error {
	p := newPage(a)
	if err := pageTemplate().ExecuteTemplate(w, "list", p); err != nil {
		return err
	}
	return pageTemplate().ExecuteTemplate(w, "functions", p)
}

func newPage(a *Annotation) *listing {
	title := "Annotated functions"
	if len(a.Functions) == 1 {
		title = a.Functions[0].Name
	}
	p := listing{Head: page.NewHead(title, styleCSS),
		Event: a.Event, Samples: table.Thousands(a.Samples) + " samples",
		Total: table.Quantity(a.Total, a.Unit), Others: strings.Join(a.Others, ", "),
		Skid: a.SkidPossible(), Children: a.Children}
	if a.Left > 0 {
		p.Left = table.Count(a.Left, "function", "functions")
	}
	if a.Unnamed != nil {
		p.Unnamed = percent(a.Unnamed.Share)
	}
	for i := range a.Functions {
		p.Functions = append(p.Functions, newFunction(a, i))
	}
	for _, m := range a.Missing {
		p.Missing = append(p.Missing, missing{percent(m.Share), m.Name, m.Object, m.Reason, m.Hint})
	}
	return &p
}

func newFunction(a *Annotation, i int) function {
	f := &a.Functions[i]
	value := f.Weight
	if a.Unit == "samples" {
		value = f.Samples
	}
	out := function{ID: fmt.Sprintf("f%d", i+1), Name: f.Name, Share: percent(f.Share),
		Heat: heat(f.Share), Samples: table.Thousands(f.Samples),
		Weight: table.Quantity(value, a.Unit), Object: f.Object, BuildID: f.BuildID,
		Origin: f.Origin, Address: f.Address,
		Length:   table.Count(f.Length, "byte", "bytes"),
		Warnings: slices.Clone(f.Disagreements), Notes: slices.Clone(f.Notes)}
	if f.Outside > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("behind these bytes: %s samples",
			table.Thousands(f.Outside)))
	}
	if f.Unknown > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("no known instruction: %d bytes", f.Unknown))
	}
	l := newLayout(&out, f)
	l.rows()
	l.source()
	l.arrows()
	return out
}

func percent(v float64) string { return fmt.Sprintf("%.2f%%", v) }

// heat is the class of a share: the levels are those at which people look.
func heat(percent float64) string {
	level := 0
	for _, least := range []float64{0.5, 2, 5, 10, 25} {
		if percent >= least {
			level++
		}
	}
	if level == 0 {
		return ""
	}
	return fmt.Sprintf("h%d", level)
}
