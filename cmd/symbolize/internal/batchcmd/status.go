package batchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"symbolize/analyze/batch"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

func newBatchPlanCommand(a *cli.App) *cobra.Command {
	o := &batchInputs{}
	out := ""
	cmd := &cobra.Command{
		Use:   "plan -o DIR CAPTURE|DIR…",
		Short: "Note which captures the tasks of collect are to read",
		Long: `plan notes in a directory which captures are expected there, so that batch status and batch merge
know of them before the first task of batch collect has ended. Each task notes it, too.`,
		Example: "  symbolize batch plan -o collected captures",
		RunE: a.RunE(func(_ context.Context, args []string) error {
			if out == "" {
				return texts.WithHint(cli.Usagef("no directory is named"), "name one with -o DIR")
			}
			_, all, err := o.captures(a, args)
			if err != nil {
				return err
			}
			if err := files.MakeDir(out); err != nil {
				return err
			}
			_, err = batch.WritePlan(out, all)
			a.Note(table.Count(len(all), "capture", "captures") + " planned")
			return err
		}),
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "directory of the files of batch collect: `DIR`")
	o.addFilesFrom(cmd.Flags())
	return cmd
}

func newBatchStatusCommand(a *cli.App) *cobra.Command {
	var names []string
	format := ""
	cmd := &cobra.Command{
		Use:   "status DIR",
		Short: "Show how much of a batch is done",
		Long: `status shows which captures of a batch are collected, failed or missing, and how many parts are
named. DIR is the output of batch run or batch collect. The exit status is 3 if captures are missing,
failed or damaged.`,
		Example: "  symbolize batch status --names names collected",
		Args:    cli.OneArg("DIR"),
		RunE: a.RunE(func(_ context.Context, args []string) error {
			if len(names) > 0 {
				var err error
				if names, err = batch.Captures(names); err != nil {
					return err
				}
			}
			s, err := batch.ReadStatus(args[0], names)
			if err != nil {
				return err
			}
			run := a.Facts()
			run.Captures, run.Failed, run.Absent, run.Batch = s.Expected, len(s.Failed), len(s.Missing), s
			a.Partial = a.Partial || len(s.Failed)+len(s.Missing)+len(s.Damaged) > 0
			return a.WriteFacts(format, "batch-status/1", s, func(w io.Writer) error { return writeStatus(w, s) })
		}),
	}
	cmd.Flags().StringSliceVar(&names, "names", nil, "files of \"batch name\", or `DIR` with them")
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	return cmd
}

// writeStatus prints a status.
func writeStatus(w io.Writer, s *batch.Status) error {
	fmt.Fprintf(w, "captures   %d expected, %d collected, %d failed, %d missing; %s ended\n",
		s.Expected, s.Collected, len(s.Failed), len(s.Missing), table.Count(s.Shares, "task", "tasks"))
	fmt.Fprintf(w, "stacks     %s; the store lacked something for %s\n",
		table.Count(s.Packs, "pack", "packs"), table.Count(s.Outdated, "capture", "captures"))
	_, err := fmt.Fprintf(w, "parts      %d of %d named\n", s.Named, s.Parts)
	for _, f := range s.Failed {
		_, err = fmt.Fprintf(w, "failed     %s: %s\n", texts.Printable(f.Path), texts.Printable(f.Reason))
	}
	for _, f := range s.Damaged {
		_, err = fmt.Fprintf(w, "damaged    %s: %s\n", texts.Printable(f.Path), texts.Printable(f.Reason))
	}
	for _, f := range s.Warned {
		_, err = fmt.Fprintf(w, "warning    %s: %s\n", texts.Printable(f.Path), texts.Printable(f.Reason))
	}
	for _, path := range s.Missing {
		_, err = fmt.Fprintf(w, "missing    %s\n", texts.Printable(path))
	}
	return err
}

func newBatchPruneCommand(a *cli.App) *cobra.Command {
	var keep cli.Days
	dry := false
	cmd := &cobra.Command{
		Use:   "prune --keep TIME DIR…",
		Short: "Remove what old runs keep next to their profiles",
		Long: `prune removes .batch from the outputs of batch run with captures before the last days, in
directories and below them. Profiles stay, but are not named again by new symbols.`,
		Example: "  symbolize batch prune --keep 30d /srv/profiles",
		Args:    cli.SomeArgs("DIR"),
		RunE: a.RunE(func(_ context.Context, args []string) error {
			if keep == 0 {
				return texts.WithHint(cli.Usagef("no time is named"), "name one with --keep 30d")
			}
			var nights []*batch.Night
			for _, dir := range args {
				list, err := batch.Nights([]string{dir}, func(err error) { reportNight(a, err) })
				switch {
				case errors.Is(err, batch.ErrNoNight): // it was pruned before
					a.Note(err.Error() + ": nothing to remove")
				case err != nil:
					return err
				}
				nights = append(nights, list...)
			}
			for _, n := range nights {
				if n.Last >= keep.Since().Format(time.DateOnly) {
					continue
				}
				if !dry {
					if err := n.Prune(); err != nil {
						return err
					}
				}
				fmt.Fprintln(a.Stdout(), n.Out)
			}
			return nil
		}),
	}
	cmd.Flags().Var(&keep, "keep", "keep what has captures of the last `TIME`: 30d, 8w")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list the outputs, and change nothing")
	return cmd
}
