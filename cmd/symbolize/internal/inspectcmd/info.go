// Package inspectcmd has the commands that describe single files: `info`, `map` and `btf`.
package inspectcmd

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"symbolize/analyze/inspect"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
)

const infoLong = `info describes a file. Captures: recorder, events, counts of records, time span, the objects in
stacks with their build IDs, and the BPF programs with what was captured of each. Object files: kind,
machine, build ID, segments, symbol sources, and DWARF versions, compression and missing files; BPF
objects: programs with their tags, maps, BTF. Perf maps and jitdump files: process, functions,
addresses.

Exit status: 0 done; 1 failed; 2 usage; 3 the file is damaged, the readable part is printed;
130 interrupted.`

// NewInfo makes the command `info`.
func NewInfo(a *cli.App) *cobra.Command {
	var to cli.Result
	var inputs cli.InputOptions
	stacks := &inputs.Stacks
	cmd := &cobra.Command{
		Use:     "info [FILE]",
		Short:   "Describe a capture or an object file",
		Long:    infoLong,
		GroupID: cli.GroupLook,
		Example: "  symbolize info perf.data\n  symbolize info --format json /usr/bin/perf",
		Args:    cli.OneArg("FILE"),
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := cmp.Or(stacks.Parse(nil), to.Check(args), inputs.CheckChains()); err != nil {
				return err
			}
			process.SetGC(a.Env.Getenv, process.FoldGC)
			opts := input.Options{Stacks: stacks.Parsed, Stdin: a.Env.Stdin}
			info, err := describe(ctx, a, &inputs, args[0], opts)
			if errors.Is(err, input.ErrNotCapture) {
				return texts.WithHint(err,
					"info knows perf.data files, pprof profiles, stack maps, ELF files, perf maps and jitdump files")
			}
			if err != nil {
				return err
			}
			a.Partial = info.Damaged()
			return a.WriteOutput(to.Output, false, func(w io.Writer) error {
				if to.Format == cli.JSON {
					return texts.WriteJSON(w, "info/1", info)
				}
				return info.WriteText(w)
			})
		}),
	}
	to.AddFlags(cmd, cli.Text, cli.JSON)
	cmd.Flags().SortFlags = false
	stacks.AddTo(cmd.Flags())
	inputs.AddChains(cmd.Flags(), "recorded (default), proven")
	return cmd
}

// describe describes a file; with --chains proven its stacks are checked by the tables of a session.
func describe(ctx context.Context, a *cli.App, o *cli.InputOptions, path string, opts input.Options) (
	inspect.Info, error) {
	if o.Chains == "" || o.Chains == cli.ChainsRecorded {
		return inspect.File(ctx, path, opts)
	}
	s, err := a.OpenSession(ctx, o)
	if err != nil {
		return nil, err
	}
	opts.Callers = s.InputOptions().Callers
	info, err := inspect.File(ctx, path, opts)
	return info, errors.Join(err, s.Close())
}
