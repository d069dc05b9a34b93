package resolvecmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/cli"
)

type missingOptions struct {
	cli.InputOptions
	format string
	count  bool
}

const missingLong = `missing lists the code without names by object and reason, heaviest first, each with the build ID
and the command that fixes it.` + cli.CaptureStatus

// NewMissing makes the command `missing`.
func NewMissing(a *cli.App) *cobra.Command {
	o := &missingOptions{}
	cmd := &cobra.Command{
		Use:     "missing CAPTURE…",
		Short:   "List code without names, the reasons, and the commands that fix them",
		Long:    missingLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize missing perf.data\n  symbolize missing --format json perf.data",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return runMissing(ctx, a, o, args)
		}),
	}
	cli.AddFormat(cmd, &o.format, cli.Text, cli.JSON)
	o.InputOptions.AddFlags(cmd)
	cli.AddCount(cmd.Flags(), &o.count)
	return cmd
}

func (o *missingOptions) validate(args []string) error {
	return o.InputOptions.Validate(args)
}

func runMissing(ctx context.Context, a *cli.App, o *missingOptions, paths []string) error {
	return a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session,
		captures []string) error {
		p, err := s.Load(ctx, captures)
		if err != nil {
			return err
		}
		s.PrintWarnings(p)
		c := s.Coverage(p, o.count)
		return a.WriteOutput("", false, func(w io.Writer) error {
			if o.format == cli.JSON {
				return c.WriteMissingJSON(w)
			}
			return c.WriteMissing(w)
		})
	})
}
