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

var (
	//go:embed page.css
	pageCSS string
	// CodeStyle is the style of code, which other pages can have inside an element of their own. It
	// needs the colours of CodeScheme, --faint, --line and --link.
	//
	//go:embed code.css
	CodeStyle string
)

// CodeScheme has the colours for the shares of annotated code, from few samples to many, and for
// marked lines.
var CodeScheme = page.Scheme{
	Light: "--mark:#fff3c4;--h1:#fdf3e7;--h2:#fbe0c3;--h3:#f6c08a;--h4:#ee9455;--h5:#dd5a33;",
	Dark:  "--mark:#4a4218;--h1:#2b2520;--h2:#43301f;--h3:#6b4420;--h4:#8f4d1f;--h5:#b2401f;",
}

var styleCSS = page.Style(pageCSS+CodeStyle, page.Scheme{
	Light: "--back:#fff;--text:#1b1b1b;--faint:#767676;--line:#ddd;--link:#0b57a4;",
	Dark:  "--back:#1b1d21;--text:#e3e3e3;--faint:#979797;--line:#3a3d43;--link:#8ab8ef;",
}, CodeScheme)

var pageTemplate = page.Parse(&pageHTML)

// listing is the data of the template.
type listing struct {
	page.Head
	Event, Samples, Total string
	Others                string
	Skid, Children        bool
	Functions             []function
	Missing               []missing
	Types                 []typePage
	Unnamed               string // the share of samples that no function has, or ""
	Left                  string
}

// typePage is a type that samples access.
type typePage struct {
	Name, Share, Title string
	Columns            []string // before the member
	Rows               []typeRow
}

type missing struct{ Share, Name, Object, Reason, Hint string }

// function is one function of the page.
type function struct {
	Event                                  string
	ID, Name, Share, Heat, Samples, Weight string
	Object, BuildID, Origin, Address       string
	Length                                 string
	Warnings, Notes                        []string
	Source                                 []source
	BPFTitle                               string
	BPF                                    []bpfRow
	Rows                                   []row
	Arrows                                 []arrow
	Gutter, Height                         int
}

// WriteHTML writes the page.
func WriteHTML(w io.Writer, a *Annotation) error {
	return pageTemplate().Execute(w, newPage(a))
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
	for i := range a.Types {
		t := &a.Types[i]
		p.Types = append(p.Types, typePage{t.Name, percent(t.Share), t.title(), t.titles(), t.rows()})
	}
	return &p
}

func newFunction(a *Annotation, i int) function {
	f := &a.Functions[i]
	value := f.Weight
	if a.Unit == "samples" {
		value = f.Samples
	}
	out := function{Event: a.Event, ID: fmt.Sprintf("f%d", i+1), Name: f.Name + f.into(), Share: percent(f.Share),
		Heat: heat(f.Share), Samples: table.Thousands(f.Samples),
		Weight: table.Quantity(value, a.Unit), Object: f.Object, BuildID: f.BuildID,
		Origin: f.Origin, Address: f.Address,
		Length:   table.Count(f.Length, "byte", "bytes"),
		Warnings: slices.Clone(f.Disagreements), Notes: slices.Clone(f.Notes)}
	for i, x := range f.Images {
		note := fmt.Sprintf("image %d: %s, %s", i+1, percent(x.Percent), x.Origin)
		if x.Shown {
			note += "; its instructions follow"
		}
		out.Notes = append(out.Notes, note)
	}
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
	l.bpf()
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
