package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
)

// example is one `$ command` of a document with the output printed below it.
type example struct {
	line   int // of the file, from 0
	args   []string
	output []string // the lines up to the next command or the block's end
	now    []string // their replacement with -update; nil for none
}

// readExamples returns the examples of the ```console blocks, in order.
func readExamples(t *testing.T, path string, lines []string) []example {
	t.Helper()
	var out []example
	inside := false
	for i, line := range lines {
		switch {
		case line == "```console":
			inside = true
		case line == "```":
			inside = false
		case inside && strings.HasPrefix(line, "$ "):
			out = append(out, example{line: i, args: strings.Fields(line[2:])})
		case inside && len(out) == 0:
			t.Fatalf("%s:%d: output without a command", path, i+1)
		case inside:
			last := &out[len(out)-1]
			last.output = append(last.output, line)
		}
	}
	return out
}

// TestDocuments runs each command of README.md and of the manual's pages and compares stdout and
// stderr with the printed output; "…" on a line of its own matches any lines. With -update the
// outputs are written anew, except those with "…".
//
// The commands of a document run in a small machine of newMachine: /usr/… is inside it. The pages
// of the manual share one, with the page of index first.
func TestDocuments(t *testing.T) {
	makefile := must.Read(t, "../../Makefile")
	readme, err := filepath.Abs("../../README.md") // the machine changes the working directory
	if err != nil {
		t.Fatal(err)
	}
	pages := manualPages(t)
	first := slices.IndexFunc(pages, func(name string) bool {
		return filepath.Base(name) == "symbolize-index.md"
	})
	pages = slices.Concat(pages[first:first+1], pages[:first], pages[first+1:])
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	runDocument(t, readme, string(makefile), newMachine(t))
	t.Chdir(root)
	machine := newMachine(t)
	for _, page := range pages {
		runDocument(t, page, string(makefile), machine)
	}
}

// runDocument runs the commands of one document.
func runDocument(t *testing.T, path, makefile string, machine *machine) {
	t.Helper()
	text := must.Read(t, path)
	lines := strings.Split(string(text), "\n")
	examples := readExamples(t, path, lines)
	name := filepath.Base(path)
	for i := range examples {
		ex := &examples[i]
		var got []string
		switch ex.args[0] {
		case "make":
			if !regexp.MustCompile(`(?m)^` + ex.args[1] + `:`).MatchString(makefile) {
				t.Errorf("%s:%d: the Makefile has no target %s", name, ex.line+1, ex.args[1])
			}
			continue
		case "symbolize":
			got = machine.run(t, ex.args[1:])
		default:
			t.Fatalf("%s:%d: the test cannot run %q", name, ex.line+1, ex.args[0])
		}
		if !matchLines(withoutSizes(ex.output), withoutSizes(got)) && !golden.Update() {
			t.Errorf("%s:%d: `%s` prints\n%s\nand not\n%s", name, ex.line+1,
				strings.Join(ex.args, " "), strings.Join(got, "\n"), strings.Join(ex.output, "\n"))
		}
		if !slices.Contains(ex.output, "…") {
			ex.now = got
		}
	}
	if golden.Update() {
		writeExamples(t, path, lines, examples)
	}
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// storeBytes is a size in the output of store verify. Stores hold paths, and the temporary
// directory's path has another length in each run.
var storeBytes = regexp.MustCompile(`[0-9.]+ KiB read`)

func withoutSizes(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = storeBytes.ReplaceAllString(line, "some KiB read")
	}
	return out
}

// matchLines compares lines with a pattern in which "…" matches any lines.
func matchLines(pattern, lines []string) bool {
	i := slices.Index(pattern, "…")
	if i < 0 {
		return slices.Equal(pattern, lines)
	}
	if len(lines) < i || !slices.Equal(pattern[:i], lines[:i]) {
		return false
	}
	for from := i; from <= len(lines); from++ {
		if matchLines(pattern[i+1:], lines[from:]) {
			return true
		}
	}
	return false
}

// writeExamples replaces the outputs of the examples in a file.
func writeExamples(t *testing.T, path string, lines []string, examples []example) {
	t.Helper()
	for _, ex := range slices.Backward(examples) {
		if ex.now != nil {
			from := ex.line + 1
			lines = slices.Replace(lines, from, from+len(ex.output), ex.now...)
		}
	}
	must.Write(t, path, []byte(strings.Join(lines, "\n")))
}

func TestMatchLines(t *testing.T) {
	for _, c := range []struct {
		pattern, lines string
		want           bool
	}{
		{pattern: "a b", lines: "a b", want: true},
		{pattern: "a b", lines: "a"},
		{pattern: "a … d", lines: "a b c d", want: true},
		{pattern: "a …", lines: "a", want: true},
		{pattern: "… d", lines: "a d e"},
		{pattern: "a … c … e", lines: "a b c d d e", want: true},
		{pattern: "a … c …", lines: "b c"},
	} {
		if got := matchLines(strings.Fields(c.pattern), strings.Fields(c.lines)); got != c.want {
			t.Errorf("matchLines(%q, %q) = %v", c.pattern, c.lines, got)
		}
	}
}
