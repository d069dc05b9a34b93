package help

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// addGroups puts the names of groups before the descriptions of their flags: pages list all flags
// in one run.
func addGroups(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if g := GroupOf(f); g != "" {
			f.Usage = g + ": " + f.Usage
		}
	})
	for _, sub := range cmd.Commands() {
		addGroups(sub)
	}
}

// WriteManPages writes the pages of root and its subcommands. Their date is that of the
// revision the binary was built from, so that the same sources give the same bytes.
func WriteManPages(root *cobra.Command, dir, version string, revision time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	date := time.Unix(0, 0).UTC()
	if !revision.IsZero() {
		date = revision
	}
	addGroups(root)
	return doc.GenManTree(root, &doc.GenManHeader{
		Title: "SYMBOLIZE", Section: "1", Date: &date,
		Source: "symbolize " + version, Manual: "symbolize",
	}, dir)
}
