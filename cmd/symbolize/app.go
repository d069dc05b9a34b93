package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/exit"
	"symbolize/cmd/symbolize/internal/help"
)

// app is one run of the command line: its surroundings, the options that every
// subcommand has, and the messages for its end.
type app struct {
	env   *Env
	store string
	quiet bool

	warned  map[string]bool // texts of warnings that were printed
	started bool            // a subcommand's own code runs: errors are no longer usage errors
	partial bool            // an input could not be read or was damaged, the rest was done
	outcome outcome         // for --summary and --metrics
}

// execute runs the command line with all its commands, writes --summary and --metrics, and returns
// the exit status.
func (a *app) execute(ctx context.Context, root *cobra.Command) int {
	root.SetArgs(a.env.Args)
	root.SetIn(a.env.Stdin)
	root.SetOut(a.stdout())
	root.SetErr(a.env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = exit.AsUsage(cmd, err)
	}
	return a.writeSummary(a.finish(ctx, err))
}

// addFlags adds the flags of all commands.
func (a *app) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.store, "store", "",
		"the store's `DIR` (default $SYMBOLIZE_STORE, else $XDG_DATA_HOME/symbolize)")
	fs.BoolVarP(&a.quiet, "quiet", "q", false,
		"print no progress, summary or warnings; errors are printed")
}

// runE wraps a subcommand's body: from here on an error is a failure of the work,
// not of the command line.
func (a *app) runE(body func(ctx context.Context, args []string) error) func(
	*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		if cmd.Name() != "capture" { // which writes its recording after an interrupt
			defer a.endOverdue(cmd.Context(), grace)()
		}
		return body(cmd.Context(), args)
	}
}

// writesAnnotation marks commands that open the store for writing.
const writesAnnotation = "writes"

// The groups of the help text.
const (
	groupMain = "main"
	groupLook = "look"
)

// needSubcommand is the body of commands that only group others.
func needSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		if err := cmd.Help(); err != nil {
			return err
		}
		return exit.SilentUsage()
	}
	return help.UnknownCommand(cmd, args[0])
}

// stdout is where results go.
func (a *app) stdout() io.Writer { return &pipeWriter{w: a.env.Stdout} }
