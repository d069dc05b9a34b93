// Package storecmd has the commands of `store`.
package storecmd

import (
	"context"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/cli"
)

const storeLong = `store lists, checks, copies and cleans the store. The commands that read use the newest published
generation, also while another process writes.

Exit status: 0 done; 1 failed, or verify found damage; 2 usage; 3 partial; 130 interrupted.`

// New makes the command `store` with its subcommands.
func New(a *cli.App, index func(context.Context, *cli.App, []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "store",
		Short:   "List, check, copy and clean the store",
		Long:    storeLong,
		GroupID: cli.GroupLook,
		RunE:    cli.NeedSubcommand,
		Args:    cobra.ArbitraryArgs,
	}
	cmd.SuggestionsMinimumDistance = cli.SuggestionDistance
	cmd.AddCommand(
		newStoreLsCommand(a),
		newStoreShowCommand(a),
		newStoreStatsCommand(a),
		newStoreVerifyCommand(a),
		newStoreDigestCommand(a),
		newStoreRebuildCommand(a),
		newStoreRmCommand(a),
		newStoreGCCommand(a),
		newStoreExportCommand(a, index),
		newStoreImportCommand(a),
		newStorePushCommand(a),
		newStorePullCommand(a),
	)
	return cmd
}
