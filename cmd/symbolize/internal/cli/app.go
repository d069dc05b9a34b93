// Package cli has what the commands share: the run of a command (App) with its environment,
// messages, output files and exit status; flags; help and completion; access to the store; sessions
// over captures.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// App is one run of the command line: its environment, the options of every subcommand, and facts
// for the messages at its end.
type App struct {
	Env *Env
	// Quiet is --quiet: only errors are printed on standard error.
	Quiet bool
	// Verbose is --verbose: reports print all warnings, not only the heaviest.
	Verbose bool
	// Partial: an input is damaged or unreadable, the others were used. The exit status is 3.
	Partial bool

	store   string          // of --store
	printed map[string]bool // texts of warnings and notes
	holds   bool            // warnings are held back until the end of the run
	held    []message
	alike   int     // warnings left out by WarnAlike
	started bool    // a subcommand's own code runs: errors are no longer usage errors
	outcome outcome // for --summary and --metrics
}

// Execute runs the command line with all its commands, writes --summary and --metrics, and returns
// the exit status.
func (a *App) Execute(ctx context.Context, root *cobra.Command) int {
	root.SetArgs(a.Env.Args)
	root.SetIn(a.Env.Stdin)
	root.SetOut(a.Stdout())
	root.SetErr(a.Env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = AsUsage(cmd, err)
	}
	return a.writeSummary(a.finish(ctx, err))
}

// AddFlags adds the flags of all commands.
func (a *App) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.store, "store", "",
		"`DIR` of the store (default $SYMBOLIZE_STORE, else $XDG_DATA_HOME/symbolize)")
	fs.BoolVarP(&a.Quiet, "quiet", "q", false,
		"print errors only: no progress, summary or warnings")
	fs.BoolVarP(&a.Verbose, "verbose", "v", false, "print all warnings of a report and all counts of resolve")
}

// RunE wraps a subcommand's body: from here on an error is a failure of the work, not of the
// command line.
func (a *App) RunE(body func(ctx context.Context, args []string) error) func(
	*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		if cmd.Name() != "capture" { // which writes its recording after an interrupt
			defer a.endOverdue(cmd.Context(), grace)()
		}
		return body(cmd.Context(), args)
	}
}

// WritesAnnotation marks commands that open the store for writing.
const WritesAnnotation = "writes"

// The groups of commands in the help text.
const (
	GroupMain = "main"
	GroupLook = "look"
)

// NeedSubcommand is the body of commands that only group others.
func NeedSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		if err := cmd.Help(); err != nil {
			return err
		}
		return SilentUsage()
	}
	return UnknownCommand(cmd, args[0])
}

// Stdout is where results go.
func (a *App) Stdout() io.Writer { return &pipeWriter{w: a.Env.Stdout} }
