package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/analyze/advice"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/cmd/symbolize/internal/summary"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// outcome collects the facts that --summary and --metrics write at the end of a run.
type outcome struct {
	summary string
	metrics string
	start   time.Time
	run     summary.Run
}

// Facts are the facts about the run that --summary and --metrics write, for commands to enter.
func (a *App) Facts() *summary.Run { return &a.outcome.run }

// wanted reports whether anything is to be written.
func (o *outcome) wanted() bool { return o.summary != "" || o.metrics != "" }

// WithSummary adds --summary and --metrics to commands that name captures, and has their runs
// described.
func (a *App) WithSummary(commands ...*cobra.Command) {
	for _, cmd := range commands {
		fs := cmd.Flags()
		AddGroup(fs, GroupLimits, func(fs *pflag.FlagSet) {
			fs.StringVar(&a.outcome.summary, "summary", "", "write the counts of the run to `FILE`, as JSON: "+
				"samples and frames with and without names, memory, exit status; - is standard output")
			fs.StringVar(&a.outcome.metrics, "metrics", "",
				"write the same to `FILE` for the node exporter of Prometheus")
		})
		body := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.outcome.run.Command = commandName(cmd)
			a.outcome.start = time.Now()
			if err := a.checkSummary(cmd, args); err != nil {
				return err
			}
			return body(cmd, args)
		}
	}
}

// commandName is a command without the name of the program: "batch run".
func commandName(cmd *cobra.Command) string {
	if !cmd.HasParent() || !cmd.Parent().HasParent() {
		return cmd.Name()
	}
	return commandName(cmd.Parent()) + " " + cmd.Name()
}

// checkSummary refuses to write a summary over a capture, or where the result is.
func (a *App) checkSummary(cmd *cobra.Command, args []string) error {
	o := &a.outcome
	if !o.wanted() {
		return nil
	}
	if o.metrics == "-" {
		return Usagef("--metrics -: the node exporter reads files")
	}
	out := cmd.Flags().Lookup("output")
	each := cmd.Flags().Lookup("each")
	toFile := out != nil && out.Value.String() != "-" && (out.Value.String() != "" ||
		each != nil && each.Value.String() == "true")
	if o.summary == "-" && !toFile {
		return texts.WithHint(Usagef("--summary -: standard output has the result"),
			"name a file with --summary FILE")
	}
	return RefuseOverwrite(args, []string{o.summary, o.metrics})
}

// writeSummary writes the results, when the exit status is known, which it returns.
func (a *App) writeSummary(code int) int {
	o := &a.outcome
	if !o.wanted() || !a.started || code == Usage {
		return code
	}
	now := time.Now()
	o.run.Exit, o.run.Seconds, o.run.Finished = code, now.Sub(o.start).Seconds(), now.Unix()
	cpu, memory := process.Usage()
	o.run.CPU, o.run.Memory = cpu.Seconds(), memory
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{{o.summary, o.run.WriteJSON}, {o.metrics, o.run.WriteMetrics}} {
		if f.path == "" {
			continue
		}
		if err := a.WriteOutput(f.path, false, f.write); err != nil {
			a.PrintError(err)
			if code == OK || code == Partial {
				code = Failed
			}
		}
	}
	return code
}

// AddCoverage enters a profile.
func (a *App) AddCoverage(c *advice.Coverage, captures int) {
	a.outcome.run.Captures += captures
	a.outcome.run.Add(c)
	a.outcome.run.Profiles = append(a.outcome.run.Profiles, c)
}

// PrintWarnings prints the warnings of a profile and enters it into the summary.
func (s *Session) PrintWarnings(p *ingest.Profile) {
	s.App.PrintWarnings(p)
	if !s.App.outcome.wanted() {
		return
	}
	c := s.Coverage(p, false)
	if p.Names == nil { // of a report that needs none: its frames are not unnamed
		c.Frames, c.Domains, c.Missing = 0, nil, []advice.Missing{}
	}
	s.App.AddCoverage(c, len(p.Meta.Captures))
}
