package reportcmd

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"symbolize/analyze/demangle"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
)

type reportOptions struct {
	cli.InputOptions
	output    string
	count     bool
	demangle  string
	sourceDir []string

	mode demangle.Mode // demangle parsed
}

const reportLong = `report writes one HTML page about captures that loads nothing: what was recorded and where, the
share of samples with names, a flame graph, the code of the hottest functions, the cost of BPF
programs, a heat map, and the missing symbols with the commands that fix them.` + cli.CaptureStatus

// NewReport makes the command `report`.
func NewReport(a *cli.App) *cobra.Command {
	o := &reportOptions{}
	cmd := &cobra.Command{
		Use:     "report [CAPTURE…]",
		Short:   "Write one HTML page about captures",
		Long:    reportLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize report -o report.html perf.data",
		RunE: a.RunE(func(ctx context.Context, args []string) (err error) {
			if o.mode, err = cli.ParseDemangle(o.demangle, "simple"); err != nil {
				return err
			}
			o.Keep = ingest.Keep{PID: true, Tags: ingest.AllLabels}
			if err := o.InputOptions.Validate(args); err != nil {
				return err
			}
			return runReport(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	cli.AddOutput(fs, &o.output)
	fs.Var((*cli.Dirs)(&o.sourceDir), "source-dir",
		"search `DIR` for source files; may be repeated")
	cli.AddCount(fs, &o.count)
	cli.AddDemangle(cmd, &o.demangle, "simple")
	o.AddNoCommand(fs, false)
	o.InputOptions.AddFlags(cmd)
	return cmd
}

func runReport(ctx context.Context, a *cli.App, o *reportOptions, paths []string) error {
	err := cmp.Or(a.RefuseTerminal(o.output, true,
		"; `symbolize top` prints text, as perf report does"), cli.RefuseOverwrite(paths, []string{o.output}))
	if err != nil {
		return err
	}
	return a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session,
		captures []string) error {
		return writePage(ctx, s, captures, o.output, pageOptions{keep: o.Keep, count: o.count,
			code: true, sourceDir: o.sourceDir, demangler: demangle.New(o.mode)})
	})
}
