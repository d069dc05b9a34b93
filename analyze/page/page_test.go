package page_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"symbolize/analyze/page"
)

func ExamplePolicy() {
	// The sums are those of `printf TEXT | openssl dgst -sha256 -binary | base64`.
	fmt.Println(page.Policy(""))
	fmt.Println(page.Policy("", "", "f()"))
	// Output:
	// default-src 'none'; style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; base-uri 'none'; form-action 'none'
	// default-src 'none'; script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-GcEEE0IkDzIP5EQ6DXZaDPORqT5RTBELX8Fyzyg9yvo='; style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; base-uri 'none'; form-action 'none'
}

// TestOrder: pages from templates and others have the same head, in any order.
func TestOrder(t *testing.T) {
	h := page.NewHead("a <title>", "body{}")
	head := string(h.Append(nil))
	for range 2 {
		html := `{{template "head" .}}<p>text`
		var b bytes.Buffer
		if err := page.Parse(&html)().Execute(&b, h); err != nil {
			t.Fatal(err)
		}
		if got, ok := strings.CutSuffix(b.String(), "<p>text"); !ok || got != head {
			t.Errorf("%q, want the head %q", b.String(), head)
		}
	}
}

// TestStyle: a page is dark only if it has dark colours, and its own rules are the last.
func TestStyle(t *testing.T) {
	light := page.Style("p{}", page.Scheme{Light: "--a:#111;"})
	both := page.Style("p{}", page.Scheme{Light: "--a:#111;", Dark: "--a:#eee;"}, page.Scheme{Light: "--b:#222;"})
	for _, tt := range []struct {
		style, has string
		want       bool
	}{
		{style: light, has: ":root{--a:#111;}\n", want: true},
		{style: light, has: "dark"},
		{style: both, has: ":root{color-scheme:light dark;--a:#111;--b:#222;}\n", want: true},
		{style: both, has: ":root[data-theme=dark]{color-scheme:dark;--a:#eee;}\n", want: true},
		{style: both, has: "@media screen and (prefers-color-scheme:dark){:root:not([data-theme]){--a:#eee;}}", want: true},
	} {
		if strings.Contains(tt.style, tt.has) != tt.want || !strings.HasSuffix(tt.style, "}\np{}") {
			t.Errorf("%q has %q: %v, want %v", tt.style, tt.has, !tt.want, tt.want)
		}
	}
}
