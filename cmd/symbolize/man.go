package main

import (
	"context"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/cli"
)

// newManCommand makes the command behind `make man`: a man page for each subcommand, from the
// texts that --help prints. It is hidden, since packagers alone need it.
func newManCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages into a directory",
		Long:   "man writes a man page for each subcommand into DIR, which it makes if it is missing.",
		Hidden: true,
		Args:   cli.OneArg("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.RunE(func(context.Context, []string) error {
				v := cli.ReadVersion()
				return cli.WriteManPages(cmd.Root(), args[0], v.Version, v.Time)
			})(cmd, args)
		},
	}
}
