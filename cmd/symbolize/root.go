package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/batchcmd"
	"symbolize/cmd/symbolize/internal/capturecmd"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/indexcmd"
	"symbolize/cmd/symbolize/internal/inspectcmd"
	"symbolize/cmd/symbolize/internal/lookupcmd"
	"symbolize/cmd/symbolize/internal/reportcmd"
	"symbolize/cmd/symbolize/internal/resolvecmd"
	"symbolize/cmd/symbolize/internal/storecmd"
	"symbolize/cmd/symbolize/internal/version"
)

// Main runs the command line in env and returns the exit status (package exit). It
// touches nothing but env, the files that it is given, and the store.
func Main(ctx context.Context, env *cli.Env) int { return newProgram(env).main(ctx) }

// program is the command line with all its commands.
type program struct {
	*cli.App
	root *cobra.Command
}

func newProgram(env *cli.Env) *program {
	a := &cli.App{Env: env}
	return &program{a, newRootCommand(a)}
}

func (p *program) main(ctx context.Context) int {
	return p.Execute(ctx, p.root)
}

const rootLong = `symbolize names the addresses in profiles: offline, in batches, by build ID.

  symbolize top perf.data                  where the time went, on the host that recorded
  symbolize index --for perf.data          keep the symbols that the capture needs
  symbolize index /usr/lib /usr/bin        put the symbols of this machine into the store
  symbolize resolve -o x.pb.gz perf.data   name a capture from any host

Exit status: 0 done, even if frames have no names; 1 failed; 2 usage; 3 partial: an input is damaged
or unreadable, the others were used; 4 fewer samples have names than --min-resolved; 5 a function
grew by more than --fail-above; 130 interrupted.`

func newRootCommand(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:           "symbolize",
		Short:         "Names for the addresses in profiles, offline and by build ID",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          cli.NeedSubcommand,
		Args:          cobra.ArbitraryArgs,
		Version:       version.Text(),
	}
	root.SuggestionsMinimumDistance = cli.SuggestionDistance
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().SortFlags = false
	a.AddFlags(root.PersistentFlags())
	width := func() int {
		if a.Env.StdoutTerminal {
			return a.Env.StdoutWidth
		}
		return 0
	}
	root.SetUsageFunc(func(cmd *cobra.Command) error { return cli.PrintUsage(cmd, width()) })
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpCommand(cli.NewHelpCommand(width))
	root.AddGroup(
		&cobra.Group{ID: cli.GroupMain, Title: "Main commands:"},
		&cobra.Group{ID: cli.GroupLook, Title: "Other commands:"},
	)
	naming := []*cobra.Command{
		resolvecmd.NewResolve(a),
		reportcmd.NewTop(a),
		reportcmd.NewFlamegraph(a),
		reportcmd.NewReport(a),
		reportcmd.NewHeatmap(a),
		reportcmd.NewTimeline(a),
		reportcmd.NewTUI(a),
		reportcmd.NewTree(a),
		reportcmd.NewPeek(a),
		reportcmd.NewDiff(a),
		reportcmd.NewTrend(a),
		reportcmd.NewWeb(a),
		reportcmd.NewAnnotate(a),
		resolvecmd.NewMissing(a),
	}
	batch := batchcmd.New(a)
	fetch, info := indexcmd.NewFetch(a), inspectcmd.NewInfo(a)
	for _, cmd := range append(naming, fetch, info) {
		if cmd.Name() != "trend" {
			cli.DefaultCapture(cmd)
		}
	}
	a.HoldWarnings(naming[1 : len(naming)-1]...) // but of resolve, which converts, and missing
	a.WithSummary(append(naming, batch.Commands()...)...)
	root.AddCommand(indexcmd.NewIndex(a))
	root.AddCommand(naming...)
	root.AddCommand(
		batch,
		fetch,
		capturecmd.New(a),
		lookupcmd.NewLookup(a),
		lookupcmd.NewFilter(a),
		inspectcmd.NewBTF(a),
		inspectcmd.NewMap(a),
		info,
		storecmd.New(a, indexcmd.For),
		newVersionCommand(a),
		resolvecmd.NewPerfToProfile(a),
	)
	if cli.CompletionRequested(a.Env.Args) {
		cli.CompleteFlags(root)
		cli.CompleteInputs(a, root)
	}
	return root
}

// writesStore reports whether a command line is of a command that writes a store.
func (p *program) writesStore(args []string) bool {
	cmd, _, err := p.root.Find(args)
	return err == nil && (cmd.Annotations[cli.WritesAnnotation] != "" ||
		cli.WritesRemote(cmd.Flags(), args, os.Getenv))
}
