// Package page has the parts that all pages of HTML share: their head, the Content-Security-Policy
// of pages that load nothing, and the colours of annotated code.
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

// The variables of a style sheet for the shares of annotated code, from few samples to many, and
// for marked lines.
const (
	LightCode = "--mark:#fff3c4;--h1:#fdf3e7;--h2:#fbe0c3;--h3:#f6c08a;--h4:#ee9455;--h5:#dd5a33;"
	DarkCode  = "--mark:#4a4218;--h1:#2b2520;--h2:#43301f;--h3:#6b4420;--h4:#8f4d1f;--h5:#b2401f;"
)

// InlineStyles is the policy of a page without scripts that has elements with style attributes.
const InlineStyles = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

//go:embed head.html
var headHTML string

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
