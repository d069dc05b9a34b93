// Package csp makes the Content-Security-Policy of pages that load nothing: it allows their own
// scripts and style, by the sums of their bytes, and nothing else.
package csp

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

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
