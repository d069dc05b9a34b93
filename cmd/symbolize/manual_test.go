package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/cli"
)

// manualFlag is a flag as a table of MANUAL.md lists it.
type manualFlag struct{ name, arg, short string }

var (
	manualSection = regexp.MustCompile("(?m)^## symbolize ([a-z]+)$")
	manualRow     = regexp.MustCompile("(?m)^\\| (`-[^|]*) \\|")
	manualWord    = regexp.MustCompile("`(-[^`]*)`")
)

// manualFlags returns the flags in the tables of one section.
func manualFlags(section string) (flags []manualFlag) {
	for _, row := range manualRow.FindAllStringSubmatch(section, -1) {
		for _, word := range manualWord.FindAllStringSubmatch(row[1], -1) {
			text := word[1]
			if short, ok := strings.CutPrefix(text, "-"); ok && !strings.HasPrefix(short, "-") {
				if n := len(flags); n > 0 {
					flags[n-1].short = short
				}
				continue
			}
			name, arg, _ := strings.Cut(strings.TrimPrefix(text, "--"), " ")
			name, _, _ = strings.Cut(name, "=")
			flags = append(flags, manualFlag{name: name, arg: arg})
		}
	}
	return flags
}

// TestManualFlags compares the tables of flags in MANUAL.md with the flags of the commands: a
// row names a flag of its command with its letter, and each flag has a row, in the section of
// its command or in that of resolve or "Stack maps", to which the others refer.
func TestManualFlags(t *testing.T) {
	b, err := os.ReadFile("../../MANUAL.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	marks := manualSection.FindAllSubmatchIndex(b, -1)
	for _, m := range marks {
		text := string(b[m[1]:])
		if i := strings.Index(text, "\n## symbolize "); i >= 0 {
			text = text[:i]
		}
		sections[string(b[m[2]:m[3]])] = text
	}
	shared := manualFlags(sections["resolve"]) // "Stack maps" follows it
	env, _, _ := inProcess()
	for _, cmd := range newRootCommand(&cli.App{Env: env}).Commands() {
		if cmd.Hidden || cmd.HasSubCommands() || cmd.Name() == "version" {
			continue
		}
		section, ok := sections[cmd.Name()]
		if !ok {
			t.Errorf("MANUAL.md has no section for `%s`", cmd.Name())
			continue
		}
		compareFlags(t, cmd, manualFlags(section), shared, section)
	}
}

func compareFlags(t *testing.T, cmd *cobra.Command, own, shared []manualFlag, section string) {
	t.Helper()
	for _, row := range own {
		f := cmd.Flags().Lookup(row.name)
		switch {
		case f == nil && cmd.Name() == "resolve": // flags of stack maps are not all of resolve
		case f == nil:
			t.Errorf("%s: MANUAL.md lists --%s, which is no flag of it", cmd.Name(), row.name)
		case row.short != "" && f.Shorthand != row.short:
			t.Errorf("%s: MANUAL.md gives --%s the letter %q, the command %q", cmd.Name(),
				row.name, row.short, f.Shorthand)
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		is := func(row manualFlag) bool { return row.name == f.Name }
		switch {
		case f.Hidden || f.Name == "help":
		case slices.ContainsFunc(own, is), slices.ContainsFunc(shared, is):
		case strings.Contains(section, "`--"+f.Name):
		default:
			t.Errorf("%s: MANUAL.md does not describe --%s", cmd.Name(), f.Name)
		}
	})
}

// withoutRoff takes the requests and fonts out of a man page, and has one blank between words.
func withoutRoff(page string) string {
	var kept []string
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, ".") {
			kept = append(kept, line)
		}
	}
	text := strings.NewReplacer(`\fB`, "", `\fR`, "", `\fP`, "", `\&`, "", `\\`, `\`).Replace(
		strings.Join(kept, ""))
	return strings.Join(strings.Fields(text), " ")
}

// checkManText wants the words of a text in a page, paragraph by paragraph.
func checkManText(t *testing.T, name, page, text string) {
	t.Helper()
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "`", ""), "\n\n") {
		words := strings.Join(strings.Fields(part), " ")
		if !strings.HasPrefix(words, "####") && !strings.Contains(page, words) {
			t.Errorf("%s lacks the text\n%s", name, words)
		}
	}
}

// TestManPages checks that each visible command has a page with its help text and flags.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	env, _, stderr := inProcess("man", dir)
	if code := Main(t.Context(), env); code != cli.OK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			return
		}
		if !strings.HasPrefix(string(b), ".nh\n.TH ") {
			t.Errorf("%s is no man page of %q", name, cmd.CommandPath())
		}
		if strings.Contains(cmd.Long, "\n\t") && cmd.Parent().Name() != "completion" { // cobra's own
			t.Errorf("%s: a line of the text begins with a tab", cmd.CommandPath())
		}
		page := withoutRoff(string(b))
		for _, text := range []string{cmd.Short, cmd.Long, cmd.Example} {
			checkManText(t, name, page, text)
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			if !strings.Contains(page, "--"+f.Name) {
				t.Errorf("%s does not list --%s", name, f.Name)
			}
			checkManText(t, name, page, f.Usage)
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	env, _, _ = inProcess()
	visit(newRootCommand(&cli.App{Env: env}))
}
