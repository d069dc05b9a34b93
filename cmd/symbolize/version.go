package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
)

func newVersionCommand(a *cli.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArgs,
		RunE: a.RunE(func(context.Context, []string) error {
			if format == cli.JSON {
				return ingest.WriteJSON(a.Stdout(), cli.ReadVersion())
			}
			_, err := fmt.Fprintln(a.Stdout(), cli.VersionText())
			return err
		}),
	}
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	return cmd
}
