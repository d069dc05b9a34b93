package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// newManCommand makes the command behind `make man`: a man page for each subcommand, from the
// texts that --help prints. It is hidden, since packagers alone need it.
func newManCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages into a directory",
		Long:   "man writes a man page for each subcommand into DIR, which it makes if it is missing.",
		Hidden: true,
		Args:   oneArg("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runE(func(context.Context, []string) error {
				return writeManPages(cmd.Root(), args[0])
			})(cmd, args)
		},
	}
}

// addGroups puts the names of groups before the descriptions of their flags: pages list all flags
// in one run.
func addGroups(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if g := groupOf(f); g != "" {
			f.Usage = g + ": " + f.Usage
		}
	})
	for _, sub := range cmd.Commands() {
		addGroups(sub)
	}
}

// writeManPages writes the pages of root and its subcommands. Their date is that of the
// revision the binary was built from, so that the same sources give the same bytes.
func writeManPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	date := time.Unix(0, 0).UTC()
	v := readVersion()
	if !v.Time.IsZero() {
		date = v.Time
	}
	addGroups(root)
	return doc.GenManTree(root, &doc.GenManHeader{
		Title: "SYMBOLIZE", Section: "1", Date: &date,
		Source: "symbolize " + v.Version, Manual: "symbolize",
	}, dir)
}
