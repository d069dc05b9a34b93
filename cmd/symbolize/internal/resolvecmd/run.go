package resolvecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/analyze/advice"
	"symbolize/analyze/calltree"
	"symbolize/analyze/columns"
	"symbolize/analyze/demangle"
	"symbolize/analyze/export"
	"symbolize/analyze/resolve"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/texts"
)

// resolveRun is one run of `resolve`.
type resolveRun struct {
	a         *cli.App
	o         *resolveOptions
	s         *cli.Session
	demangler *demangle.Demangler
	screen    bool // print the heaviest functions on the terminal in place of a profile

	below error // --min-resolved was not met
}

// outputs returns the file of each capture's result; one for all without --each.
func (o *resolveOptions) outputs(paths []string) ([]string, error) {
	if !o.each || o.output == "-" && o.format != cli.Pprof {
		return []string{o.output}, nil
	}
	if o.output == "-" {
		return nil, texts.WithHint(cli.Usagef("--each: several pprof profiles make no stream"),
			"name a directory with -o DIR, or leave -o out")
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p + cli.Extensions[o.format]
		if o.output != "" {
			out[i] = filepath.Join(o.output, filepath.Base(out[i]))
		}
		if j := slices.Index(out[:i], out[i]); j >= 0 {
			return nil, texts.WithHint(
				cli.Usagef("--each: %s and %s would both be written to %s", paths[j], p, out[i]),
				"without -o each is written next to its capture")
		}
	}
	if o.output == "" {
		return out, nil
	}
	return out, files.MakeDir(o.output)
}

// merged writes one result for all captures.
func (r *resolveRun) merged(ctx context.Context, paths []string, output string) error {
	p, err := r.s.Load(ctx, paths)
	if err != nil {
		return err
	}
	return r.write(ctx, p, output)
}

// each writes a result for each capture.
func (r *resolveRun) each(ctx context.Context, paths, outputs []string) error {
	return r.s.Each(ctx, paths, func(c *input.Capture, p *ingest.Profile) error {
		if _, err := r.s.Name(ctx, p); err != nil {
			return err
		}
		output := outputs[0]
		if len(outputs) > 1 {
			output = outputs[slices.Index(paths, c.Path())]
		}
		return r.write(ctx, p, output)
	})
}

// write writes the result for a profile, then its warnings and coverage.
func (r *resolveRun) write(ctx context.Context, p *ingest.Profile, output string) error {
	r.dropInlines(p)
	if r.screen {
		return r.printTop(p)
	}
	if r.o.otlp() {
		if err := r.writeOTLP(ctx, p, output); err != nil {
			return err
		}
		return r.summarize(p)
	}
	write := func() error {
		return r.a.WriteOutput(output, r.o.binary(), func(w io.Writer) error { return r.encode(ctx, w, p) })
	}
	if r.o.builds() {
		write = func() error { return r.compilerCounts(p).writeBuilds(ctx, output) }
	}
	err := write()
	if err != nil {
		return err
	}
	return r.summarize(p)
}

// screenRows is how many functions are printed on a terminal.
const screenRows = 20

// printTop prints the heaviest functions, as top does, and how the profile is written.
func (r *resolveRun) printTop(p *ingest.Profile) error {
	top := calltree.NewTop(p, calltree.TopOptions{Limit: screenRows, Options: calltree.Options{
		Event: r.s.Event(p), Count: r.o.count, By: []calltree.By{calltree.Function}, Demangler: r.demangler}})
	err := r.a.WriteOutput("", false, func(w io.Writer) error { return top.WriteText(w, r.a.Style()) })
	if err != nil {
		return err
	}
	r.a.Note("`-o x.pb.gz` writes the profile")
	return r.summarize(p)
}

// dropInlines leaves out inlined calls under --no-inlines.
func (r *resolveRun) dropInlines(p *ingest.Profile) {
	if r.o.NoInlines {
		p.Names = p.Names.WithoutInlines()
	}
}

// encode writes the result in the requested format.
func (r *resolveRun) encode(ctx context.Context, w io.Writer, p *ingest.Profile) error {
	switch r.o.format {
	case cli.Folded:
		event := r.s.Event(p)
		r.a.PrintOtherEvents(p, event)
		return export.Folded(w, p, export.FoldedOptions{
			Event: event, Count: r.o.count, Annotate: r.o.annotate, Addresses: r.o.addresses,
			PID: r.o.Keep.PID, Demangler: r.demangler,
		})
	case cli.JSON:
		return export.JSON(w, p, r.demangler)
	case cli.AutoFDO, cli.Preagg, cli.Fdata, cli.LLVM, cli.GCOV:
		return r.compilerCounts(p).writeChosen(ctx, w)
	case cli.Parquet:
		return columns.Write(w, p, columns.Options{Demangler: r.demangler})
	}
	opts := resolve.Layout(r.s.View(), p)
	r.demangler.Warm(p)
	opts.Demangle, opts.Count = r.demangler.Name, r.o.count
	return pprof.Write(w, p, opts)
}

// script writes the captures' samples one after another. They are named capture by
// capture: samples refer to the profile of their own.
func (r *resolveRun) script(ctx context.Context, paths, outputs []string) error {
	run := func(w io.Writer, paths []string) error {
		return r.s.Each(ctx, paths, func(c *input.Capture, p *ingest.Profile) error {
			if _, err := r.s.Name(ctx, p); err != nil {
				return err
			}
			r.dropInlines(p)
			if err := r.replay(ctx, w, c, p); err != nil {
				return err
			}
			return r.summarize(p)
		})
	}
	if len(outputs) == 1 {
		return r.a.WriteOutputOf(paths, outputs[0], false, func(w io.Writer) error { return run(w, paths) })
	}
	for i, path := range paths {
		err := r.a.WriteOutputOf([]string{path}, outputs[i], false, func(w io.Writer) error {
			return run(w, []string{path})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *resolveRun) replay(ctx context.Context, w io.Writer, c *input.Capture,
	p *ingest.Profile) error {
	symbol, failed := r.s.Symbols(ctx)
	err := export.Script(w, p, func(f func(*input.ReplaySample) error) error {
		return c.Replay(ctx, f)
	}, export.ScriptOptions{Demangler: r.demangler, Chains: chains(c.PerfData(), p), Payloads: true,
		Symbol: symbol, Lines: r.o.srcline})
	return errors.Join(err, failed())
}

// chains reports by event of the profile whether its samples carry call chains.
func chains(f *perfdata.File, p *ingest.Profile) []bool {
	if f == nil {
		return nil
	}
	has := make([]bool, len(p.Events))
	for i, e := range p.Events {
		has[i] = slices.ContainsFunc(f.Events, func(ev perfdata.Event) bool {
			return ev.Name == e.Name && ev.HasChains()
		})
	}
	return has
}

// summarize prints warnings and the coverage of a profile with names on stderr, and checks it
// against --min-resolved.
func (r *resolveRun) summarize(p *ingest.Profile) error {
	if r.o.Unnamed {
		r.s.PrintWarnings(p)
		return nil
	}
	a := r.a
	a.PrintWarnings(p)
	c := r.s.Coverage(p, r.o.count)
	a.AddCoverage(c, len(p.Meta.Captures))
	captures := strings.Join(p.Meta.Captures, " ")
	if !a.Quiet {
		if r.o.each || r.o.format == cli.Script {
			fmt.Fprintf(a.Env.Stderr, "capture    %s\n", texts.OneLine(captures))
		}
		if r.a.Verbose { // there is nowhere to report a failure to
			c.WriteSummary(a.Env.Stderr)
		} else {
			c.WriteShort(a.Env.Stderr, table.Style{Width: a.Env.StderrWidth})
		}
	}
	if c.Named < r.o.minResolved {
		r.below = belowMinimum(captures, c, r.o.minResolved)
	}
	return nil
}

// belowMinimum is the error of a profile with fewer names than --min-resolved.
func belowMinimum(captures string, c *advice.Coverage, min float64) error {
	err := fmt.Errorf("%s: %.2f%% of the samples are named by their innermost frame, "+
		"--min-resolved asks for %v%%",
		captures, c.Named, min)
	hint := "`symbolize missing " + captures + "` lists the fixes"
	return &cli.ExitError{Code: cli.Unresolved, Err: texts.WithHint(err, "%s", hint)}
}
