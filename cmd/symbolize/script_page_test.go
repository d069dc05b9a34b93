package main

import (
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdPageData is `page-data PAGE FILE`: writes the data in a page of a graph, as JSON. Characters
// that JSON may have as they are stand as they are.
func cmdPageData(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: page-data PAGE FILE")
	}
	_, rest, ok := strings.Cut(ts.ReadFile(args[0]), `id="data">`)
	text, _, ok2 := strings.Cut(rest, "</script>")
	if !ok || !ok2 {
		ts.Fatalf("%s has no data", args[0])
	}
	packed := base64.NewDecoder(base64.StdEncoding, strings.NewReader(strings.TrimSpace(text)))
	data, err := io.ReadAll(flate.NewReader(packed))
	ts.Check(err)
	if !json.Valid(data) {
		ts.Fatalf("the data of %s is no JSON", args[0])
	}
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(data))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(plain), 0o644))
}
