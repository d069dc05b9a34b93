package main

import (
	"context"
	"io"
	"os"

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

// Main runs the command line in env and returns the exit status (package exit). It
// touches nothing but env, the files that it is given, and the store.
func Main(ctx context.Context, env *Env) int { return newProgram(env).main(ctx) }

// program is the command line with all its commands.
type program struct {
	*app
	root *cobra.Command
}

func newProgram(env *Env) *program {
	a := &app{env: env}
	return &program{a, newRootCommand(a)}
}

func (p *program) main(ctx context.Context) int {
	a, root, env := p.app, p.root, p.env
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(&pipeWriter{w: env.Stdout})
	root.SetErr(env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = exit.AsUsage(cmd, err)
	}
	return a.writeSummary(a.finish(ctx, err))
}

const rootLong = `symbolize gives names to the addresses in profiles: offline, in batches, by
build ID.

  symbolize top perf.data               where the time went, on the host that recorded
  symbolize index --for perf.data       keep the symbols that the capture needs
  symbolize index /usr/lib /usr/bin     put the symbols of this machine into the store
  symbolize resolve perf.data -o x.pb.gz   name a capture from any host

Exit status:
` + exit.Help

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "symbolize",
		Short:         "Names for the addresses in profiles, offline and by build ID",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          needSubcommand,
		Args:          cobra.ArbitraryArgs,
		Version:       versionText(),
	}
	root.SuggestionsMinimumDistance = help.SuggestionDistance
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().SortFlags = false
	a.addFlags(root.PersistentFlags())
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		width := 0
		if a.env.StdoutTerminal {
			width = a.env.StdoutWidth
		}
		return help.PrintUsage(cmd, width)
	})
	root.SetFlagErrorFunc(help.FlagError)
	root.SetHelpCommand(help.NewCommand())
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Main commands:"},
		&cobra.Group{ID: groupLook, Title: "Looking into things:"},
	)
	naming := []*cobra.Command{
		newResolveCommand(a),
		newTopCommand(a),
		newFlamegraphCommand(a),
		newReportCommand(a),
		newHeatmapCommand(a),
		newTimelineCommand(a),
		newTreeCommand(a),
		newPeekCommand(a),
		newDiffCommand(a),
		newWebCommand(a),
		newAnnotateCommand(a),
		newMissingCommand(a),
	}
	batch := newBatchCommand(a)
	a.withSummary(append(naming, batch.Commands()...)...)
	root.AddCommand(newIndexCommand(a))
	root.AddCommand(naming...)
	root.AddCommand(
		batch,
		newFetchCommand(a),
		newCaptureCommand(a),
		newLookupCommand(a),
		newFilterCommand(a),
		newBTFCommand(a),
		newMapCommand(a),
		newInfoCommand(a),
		newStoreCommand(a),
		newVersionCommand(a),
		newManCommand(a),
		newPerfToProfileCommand(a),
	)
	if isCompleting(a.env.Args) {
		a.completeFlags(root)
		a.completeInputs(root)
	}
	return root
}

// The groups of the help text.
const (
	groupMain = "main"
	groupLook = "look"
)

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

// writesStore reports whether a command line is that of a command that writes a store.
func (p *program) writesStore(args []string) bool {
	cmd, _, err := p.root.Find(args)
	return err == nil && (cmd.Annotations[writesAnnotation] != "" ||
		writesRemote(cmd.Flags(), args, os.Getenv))
}

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
