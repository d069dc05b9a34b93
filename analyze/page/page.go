// Package page has the parts that all pages of HTML share: their head, the Content-Security-Policy
// of pages that load nothing, the base of their style sheets, and how a page is light or dark.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"strings"
	"sync"
)

// InlineStyles is the policy of a page without scripts that has elements with style attributes.
const InlineStyles = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

var (
	//go:embed head.html
	headHTML string
	//go:embed base.css
	baseCSS string
)

// Scheme has the colours of a page: variables of its style sheet for a light and for a dark screen.
// A page has at least --back, --text, --faint and --line.
type Scheme struct{ Light, Dark string }

// Style returns the style sheet of a page: the variables of schemes, the rules of all pages, and
// its own rules. Without dark colours the page is light. Else it is dark if the system is, on the
// screen, unless the root element has the attribute data-theme, "light" or "dark".
func Style(rules string, schemes ...Scheme) string {
	var light, dark string
	for _, s := range schemes {
		light, dark = light+s.Light, dark+s.Dark
	}
	if dark == "" {
		return ":root{" + light + "}\n" + baseCSS + rules
	}
	return ":root{color-scheme:light dark;" + light + "}\n" +
		"@media screen and (prefers-color-scheme:dark){:root:not([data-theme]){" + dark + "}}\n" +
		":root[data-theme=light]{color-scheme:light}\n" +
		":root[data-theme=dark]{color-scheme:dark;" + dark + "}\n" + baseCSS + rules
}

// parseHead returns a new template of the head: one that was executed cannot be extended.
func parseHead() *template.Template { return template.Must(template.New("head").Parse(headHTML)) }

var head = sync.OnceValue(parseHead)

// Head is the data of the head of a page.
type Head struct {
	Title, Policy string
	Style         template.CSS
}

// NewHead returns the head of a page with this style and these scripts, and no others.
func NewHead(title, style string, scripts ...string) Head {
	return Head{Title: title, Policy: Policy(style, scripts...), Style: template.CSS(style)}
}

// Append appends the head to a page that is not made from a template.
func (h Head) Append(dst []byte) []byte {
	b := bytes.NewBuffer(dst)
	if err := head().Execute(b, h); err != nil {
		panic(err) // writes to a buffer do not fail
	}
	return b.Bytes()
}

// Parse returns the template of a page, in which {{template "head" .}} writes the embedded Head of
// its data. It is parsed by the first call: most runs write no page.
func Parse(html *string) func() *template.Template {
	return sync.OnceValue(func() *template.Template {
		return template.Must(parseHead().New("page").Parse(*html))
	})
}

// Policy returns the content of the meta element of a page with a style element and script
// elements of these texts.
func Policy(style string, scripts ...string) string {
	var b strings.Builder
	b.WriteString("default-src 'none'; ")
	if len(scripts) > 0 {
		b.WriteString("script-src")
		for _, s := range scripts {
			b.WriteString(" " + sum(s))
		}
		b.WriteString("; ")
	}
	b.WriteString("style-src " + sum(style) + "; base-uri 'none'; form-action 'none'")
	return b.String()
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(h[:]) + "'"
}
