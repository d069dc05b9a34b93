package resolvecmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/advice"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

type missingOptions struct {
	cli.InputOptions
	cli.Result
	rows  int
	by    string
	count bool
	over  bool
}

const missingLong = `missing lists the code without names by object and reason, heaviest first, each with the build ID
and the command that fixes it. --by lists it for each program, service or other label: heaviest
first, with the share of its samples. --over reads many profiles or captures one after another,
also all below directories, and lists objects by their samples in all of them, with the numbers of
captures and hosts and the first day: what to fetch first for a fleet.` + cli.CaptureStatus

// labelWords are the words of --by.
var labelWords = strings.Join(ingest.FieldLabels[:], ", ") + ", " + ingest.TagWords()

// NewMissing makes the command `missing`.
func NewMissing(a *cli.App) *cobra.Command {
	o := &missingOptions{}
	cmd := &cobra.Command{
		Use:     "missing [CAPTURE…]",
		Short:   "List code without names, the reasons, and the commands that fix them",
		Long:    missingLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize missing perf.data\n  symbolize missing --format json perf.data\n" +
			"  symbolize missing --by label:service.name profiles.otlp\n" +
			"  symbolize missing --over --format json profiles >missing.json",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			if o.over {
				return runMissingOver(ctx, a, o, args)
			}
			return runMissing(ctx, a, o, args)
		}),
	}
	cli.AddLimit(cmd.Flags(), &o.rows, 0, "print the `N` heaviest; 0 for all")
	o.Result.AddFlags(cmd, cli.Text, cli.JSON)
	o.InputOptions.AddFlags(cmd)
	cmd.Flags().StringVar(&o.by, "by", "", "a list for each value of `LABEL`: "+labelWords)
	cli.AddCount(cmd.Flags(), &o.count)
	cmd.Flags().BoolVar(&o.over, "over", false,
		"rank what is missing over many profiles, also all below directories")
	return cmd
}

func (o *missingOptions) validate(args []string) (err error) {
	if o.over && (o.by != "" || o.count) {
		return cli.Usagef("--over excludes --by, and counts samples")
	}
	if o.by != "" {
		if o.Keep, err = cli.ParseLabels([]string{o.by}); err != nil {
			return cli.Usagef("--by %q: it is one of %s", o.by, labelWords)
		}
	}
	return cmp.Or(cli.CheckLimit(o.rows), o.InputOptions.Validate(args), o.Result.Check(args))
}

func runMissing(ctx context.Context, a *cli.App, o *missingOptions, paths []string) error {
	return a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session,
		captures []string) error {
		p, err := s.Load(ctx, captures)
		if err != nil {
			return err
		}
		s.PrintWarnings(p)
		if s.Elsewhere(p) && advice.FromHost(p) != "" {
			a.Note(advice.FromHost(p))
		}
		return a.WriteOutput(o.Output, false, func(w io.Writer) error {
			if o.by != "" {
				return o.writeParts(w, s, p)
			}
			c := s.Coverage(p, o.count)
			c.Cut(o.rows)
			if o.Format == cli.JSON {
				return c.WriteMissingJSON(w)
			}
			return c.WriteMissing(w)
		})
	})
}

// part is what is missing in the samples with one value of a label.
type part struct {
	Value   string  `json:"value"`
	Percent float64 `json:"samples_percent"`
	*advice.Coverage
}

// partsFacts is the JSON of --by.
type partsFacts struct {
	Label string `json:"label"`
	Parts []part `json:"parts"`
}

// writeParts writes a list for each value of the label, heaviest first.
func (o *missingOptions) writeParts(w io.Writer, s *cli.Session, p *ingest.Profile) error {
	samples, weights, all := make(map[string][]ingest.Sample), make(map[string]uint64), uint64(0)
	label := ingest.CanonicalLabel(o.by)
	for i := range p.Samples {
		sample := &p.Samples[i]
		value, weight := p.LabelValue(sample, label), sample.Weight
		if o.count {
			weight = sample.Count
		}
		samples[value] = append(samples[value], *sample)
		weights[value] += weight
		all += weight
	}
	parts := make([]part, 0, len(samples))
	for value, list := range samples {
		of := *p
		of.Samples = list
		of.Stats = ingest.Stats{NoStarts: p.Stats.NoStarts, NoReturns: p.Stats.NoReturns}
		parts = append(parts, part{texts.Printable(value), 100 * float64(weights[value]) / float64(max(all, 1)),
			s.Coverage(&of, o.count)})
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), cmp.Compare(a.Value, b.Value))
	})
	for i := range parts {
		parts[i].Cut(o.rows)
	}
	if o.Format == cli.JSON {
		return texts.WriteJSON(w, "missing-by/1", partsFacts{ingest.TagKey(label), parts})
	}
	for _, part := range parts {
		if _, err := fmt.Fprintf(w, "%s: %s, %.2f%% of the samples\n", ingest.TagKey(label),
			cmp.Or(part.Value, "none"), part.Percent); err != nil {
			return err
		}
		if err := part.WriteMissing(w); err != nil {
			return err
		}
	}
	return nil
}
