package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
	"symbolize/ingest"
)

// Bounds of the pages of the manual and of README.md, in lines and columns. Rows of tables may be
// longer than a line.
const (
	maxPageLines = 150
	maxColumns   = 100
)

// manualPages returns the absolute paths of the manual's pages, sorted.
func manualPages(t *testing.T) []string {
	t.Helper()
	dir, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages in %s, %v", len(pages), dir, err)
	}
	return pages
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b := must.Read(t, name)
	return string(b)
}

// flagBlock is the block of a page that lists flags, with the heading above it.
var flagBlock = regexp.MustCompile("(?m)^## (Options|Options of ([a-z]+)|symbolize store ([a-z]+)|Flags)" +
	"\n\n```text\n((?s:.*?))```\n")

// TestManualFlags compares the lists of flags in the manual with the help texts. With -update it
// writes them.
func TestManualFlags(t *testing.T) {
	env, _, _ := inProcess()
	root := newRootCommand(&cli.App{Env: env})
	for _, page := range manualPages(t) {
		text := readText(t, page)
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		now := flagBlock.ReplaceAllStringFunc(text, func(block string) string {
			m := flagBlock.FindStringSubmatch(block)
			flags := cli.SharedFlags(root, maxColumns-2)
			if m[1] != "Flags" {
				command := strings.Fields(strings.TrimPrefix(name, "symbolize-") + " " + m[2] + m[3])
				cmd, rest, err := root.Find(command)
				if err != nil || len(rest) > 0 {
					t.Errorf("%s: no command %v", name, command)
					return block
				}
				cmd.InitDefaultHelpFlag()
				flags = cli.OwnFlags(cmd, maxColumns-2)
			}
			return fmt.Sprintf("## %s\n\n```text\n%s```\n", m[1], flags)
		})
		if now == text {
			continue
		}
		if !golden.Update() {
			t.Errorf("%s: flags are not those of the command; run the test with -update", name)
		} else if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManualCommands: each command has a page, which begins with its short description and its
// command line, or its subcommands' lines, and has a list of flags for each.
func TestManualCommands(t *testing.T) {
	env, _, _ := inProcess()
	for _, cmd := range newRootCommand(&cli.App{Env: env}).Commands() {
		if cmd.Hidden || cmd.Name() == "version" || cmd.Name() == "help" {
			continue
		}
		text := readText(t, "../../docs/symbolize-"+cmd.Name()+".md")
		title := "# " + cmd.CommandPath() + "\n\n" + cmd.Short + ".\n\n```text\n"
		if !strings.HasPrefix(text, title) {
			t.Errorf("the page of %s does not begin with\n%s", cmd.Name(), title)
		}
		for _, c := range append([]*cobra.Command{cmd}, cmd.Commands()...) {
			switch {
			case !c.HasParent() || c.Hidden:
			case c.HasSubCommands() || cmd.Name() == "store":
				if !strings.Contains(text, "`"+c.CommandPath()) && !strings.Contains(text, c.CommandPath()+" ") {
					t.Errorf("the page of %s does not name `%s`", cmd.Name(), c.CommandPath())
				}
			case !strings.Contains(text, "\n"+c.UseLine()+"\n"):
				t.Errorf("the page of %s lacks the command line\n%s", cmd.Name(), c.UseLine())
			case !strings.Contains(text, "\n## Options"):
				t.Errorf("the page of %s has no options", cmd.Name())
			}
		}
	}
}

// manualLink is a link to a file.
var manualLink = regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`)

// TestManualForm: pages and README.md are short, in short lines, and their links lead to files.
func TestManualForm(t *testing.T) {
	for _, page := range append(manualPages(t), "../../README.md", "../../ARCHITECTURE.md") {
		text := readText(t, page)
		if n := strings.Count(text, "\n"); n > maxPageLines {
			t.Errorf("%s has %d lines, more than %d", page, n, maxPageLines)
		}
		inBlock, output := false, false
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "```") {
				inBlock, output = !inBlock, strings.HasPrefix(line, "```console")
			}
			if utf8.RuneCountInString(line)-1 > maxColumns && !strings.HasPrefix(line, "|") &&
				!(inBlock && output) {
				t.Errorf("%s: a line of more than %d columns:\n%s", page, maxColumns, line)
			}
			if strings.HasPrefix(line, "|") && strings.Contains(line, "| not run: ") {
				t.Errorf("%s: a row of make bench that was not run:\n%s", page, line)
			}
		}
		for _, m := range manualLink.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: link: %v", page, err)
			}
		}
	}
	index := readText(t, "../../docs/README.md")
	for _, page := range manualPages(t) {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// TestManualReasons: the page of missing has every reason, docs/README.md every exit status.
func TestManualReasons(t *testing.T) {
	text := readText(t, "../../docs/symbolize-missing.md")
	for r := ingest.ReasonNone + 1; r.String() != "unknown reason"; r++ {
		if !strings.Contains(text, "- **"+r.String()+"**: ") {
			t.Errorf("symbolize-missing.md lacks the reason %q", r)
		}
	}
	text = readText(t, "../../docs/README.md")
	for _, status := range []int{cli.OK, cli.Failed, cli.Usage, cli.Partial, cli.Unresolved, cli.Grown,
		cli.Interrupted} {
		if !strings.Contains(text, fmt.Sprintf("\n| %d | ", status)) {
			t.Errorf("docs/README.md lacks exit status %d", status)
		}
	}
}
