package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/flags"
	"symbolize/cmd/symbolize/internal/help"
	"symbolize/cmd/symbolize/internal/version"
	"symbolize/ingest"
)

func newVersionCommand(a *cli.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  help.NoArgs,
		RunE: a.RunE(func(context.Context, []string) error {
			if format == flags.JSON {
				return ingest.WriteJSON(a.Stdout(), version.Read())
			}
			if err := flags.CheckFormat(format, flags.Text, flags.JSON); err != nil {
				return err
			}
			_, err := fmt.Fprintln(a.Stdout(), version.Text())
			return err
		}),
	}
	flags.AddFormat(cmd, &format, flags.Text, flags.JSON)
	return cmd
}
