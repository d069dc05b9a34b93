package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/ingest/newfile"
)

// manSection is the section of the manual that has commands.
const manSection = "1"

// WriteManPages writes the pages of root and its subcommands into dir, which is made if it is
// missing. Their date is that of the revision the binary was built from, so that the same sources
// give the same bytes.
func WriteManPages(root *cobra.Command, dir, version string, revision time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if revision.IsZero() {
		revision = time.Unix(0, 0).UTC()
	}
	head := fmt.Sprintf(".nh\n.TH %q %q %q %q %q", "SYMBOLIZE", manSection,
		revision.Format("Jan 2006"), "symbolize "+version, "symbolize")
	return writeManTree(root, dir, head)
}

// writeManTree writes the pages of a command and those below it. head is the first lines of all.
func writeManTree(cmd *cobra.Command, dir, head string) error {
	cmd.InitDefaultHelpCmd()
	cmd.InitDefaultHelpFlag()
	for _, sub := range shown(cmd) {
		if err := writeManTree(sub, dir, head); err != nil {
			return err
		}
	}
	name := filepath.Join(dir, pageName(cmd)+"."+manSection)
	f, err := newfile.Create(name, 0o666)
	if err != nil {
		return err
	}
	if _, err = f.WriteString(head + manPageOf(cmd)); err == nil {
		err = f.Commit(name)
	}
	return errors.Join(err, f.Discard())
}

// shown are the subcommands that have pages, by name.
func shown(cmd *cobra.Command) (list []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			list = append(list, sub)
		}
	}
	slices.SortFunc(list, func(a, b *cobra.Command) int {
		return strings.Compare(a.Name(), b.Name())
	})
	return list
}

// pageName is the name of a command's page: "symbolize-store-ls".
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPageOf returns a command's page behind its head.
func manPageOf(cmd *cobra.Command) string {
	p := &manPage{}
	p.section("NAME")
	p.paragraph(manText(pageName(cmd) + " - " + cmd.Short))
	p.section("SYNOPSIS")
	p.paragraph(bold(cmd.UseLine()))
	p.section("DESCRIPTION")
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	p.description(text)
	p.options("OPTIONS", cmd.NonInheritedFlags())
	p.options("OPTIONS INHERITED FROM PARENT COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		p.section("EXAMPLE")
		p.example(cmd.Example)
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, bold(pageName(cmd.Parent())+"("+manSection+")"))
	}
	for _, sub := range shown(cmd) {
		others = append(others, bold(pageName(sub)+"("+manSection+")"))
	}
	if len(others) > 0 {
		p.section("SEE ALSO")
		p.paragraph(strings.Join(others, ", "))
	}
	return p.b.String()
}

// options lists the flags of a set, if it has any.
func (p *manPage) options(title string, fs *pflag.FlagSet) {
	if !fs.HasAvailableFlags() {
		return
	}
	p.section(title)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Deprecated != "" || f.Hidden {
			return
		}
		name := bold("--" + f.Name)
		if f.Shorthand != "" && f.ShorthandDeprecated == "" {
			name = bold("-"+f.Shorthand) + ", " + name
		}
		value := "=" + f.DefValue
		if f.Value.Type() == "string" {
			value = fmt.Sprintf("=%q", f.DefValue)
		}
		if f.NoOptDefVal != "" {
			value = "[" + value + "]"
		}
		usage := f.Usage
		if g := GroupOf(f); g != "" { // pages list all flags in one run
			usage = g + ": " + usage
		}
		p.paragraph(name + manText(value) + "\n\t" + manText(usage))
	})
}
