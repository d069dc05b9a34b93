package main

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"symbolize/fixtures/profilebuild"
)

// cmdPageData is `page-data PAGE FILE [ID]`: writes the data in a page of a graph, or in its element
// with an ID, as JSON. Characters
// that JSON permits are not escaped, and $FIXTURES replaces its directory.
func cmdPageData(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: page-data PAGE FILE [ID]")
	}
	data, err := pageData(ts.ReadFile(args[0]), append(args, "data")[2])
	if err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	plain := strings.NewReplacer(ts.Getenv("FIXTURES"), "$FIXTURES", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(data))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(plain), 0o644))
}

// pageData returns the JSON in the element of a page with an ID.
func pageData(page, id string) ([]byte, error) {
	_, rest, ok := strings.Cut(page, `id="`+id+`">`)
	text, _, ok2 := strings.Cut(rest, "</script>")
	if !ok || !ok2 {
		return nil, errors.New("the page has no data")
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err == nil && !json.Valid(data) { // a heat map's is not deflated
		data, err = io.ReadAll(flate.NewReader(bytes.NewReader(data)))
	}
	if err == nil && !json.Valid(data) {
		err = errors.New("the data is not JSON")
	}
	return data, err
}

// cmdSameTests is `same-tests DIFF DATA`: the tests of functions in a differential page equal the
// tests of `diff --format json`.
func cmdSameTests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: same-tests DIFF DATA")
	}
	var d struct {
		Rows []struct {
			Name string
			Flat struct{ Base, New float64 }
			P    float64
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &d))
	var page struct {
		Frames  struct{ Name []string }
		Scaling struct{ Tests struct{ Flat [][]float64 } }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &page))
	same := 0
	for _, r := range d.Rows {
		for i, name := range page.Frames.Name {
			test := page.Scaling.Tests.Flat[i]
			if name != r.Name || len(test) == 0 {
				continue
			}
			for k, want := range []float64{0: r.Flat.Base, 1: r.Flat.New, 4: r.P} {
				if k != 2 && k != 3 && math.Abs(test[k]-want) > 1e-5*math.Abs(want) {
					ts.Fatalf("%s: %v in the page, value %d is %v", name, test, k, want)
				}
			}
			same++
		}
	}
	if same == 0 || same != len(d.Rows) {
		ts.Fatalf("%d of %d functions are in the page with their tests", same, len(d.Rows))
	}
}

// cmdLabelled is `labelled FILE`: writes a pprof file of another profiler, with labels.
func cmdLabelled(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: labelled FILE")
	}
	var b bytes.Buffer
	ts.Check(profilebuild.Labelled().Write(&b))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

// cmdSame is `same ARGUMENT…`: runs symbolize with these arguments on one core and on three, and
// fails where the bytes of standard output differ, or there are none.
func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	var first string
	for _, cores := range []string{"1", "3"} {
		ts.Setenv("GOMAXPROCS", cores)
		ts.Check(ts.Exec("symbolize", args...))
		out := ts.ReadFile("stdout")
		if cores == "1" {
			first = out
		}
		if out == "" || (out == first) == neg {
			ts.Fatalf("%d and %d bytes of standard output differ", len(first), len(out))
		}
	}
}
