package main

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/flame"
	"symbolize/ingest"
)

type flamegraphOptions struct {
	inputOptions
	selectOptions
	output   string
	format   string
	reverse  bool
	minShare float64
	labels   []string
}

const flamegraphLong = `flamegraph draws where time went: each frame is as wide as what was sampled in it
and in what it called. The result is one file of HTML that loads nothing and opens in any
browser: with zoom, search, callers and callees of a function, a table of functions, and the list
of what is missing. It takes captures, and pprof files that resolve wrote.

The format is that of --format, else that of the -o file's name, else html: svg is a still
picture, folded are folded stacks, speedscope and gecko are files for speedscope and the
Firefox Profiler.

Exit status: 0 done; 1 failed; 2 usage; 3 a capture could not be read or was damaged, the rest
was done; 130 interrupted.`

// flamegraphFormats are the formats with their extensions; none of speedscope's and the
// Firefox Profiler's own.
var flamegraphFormats = []struct{ name, extension string }{
	{formatHTML, ".html"}, {"svg", ".svg"}, {formatFolded, ".folded"},
	{"speedscope", ".speedscope.json"}, {"gecko", ".gecko.json"},
}

func newFlamegraphCommand(a *app) *cobra.Command {
	o := &flamegraphOptions{}
	cmd := &cobra.Command{
		Use:     "flamegraph CAPTURE|PROFILE…",
		Short:   "Draw a flame graph: a page of HTML, or a file for another viewer",
		Long:    flamegraphLong,
		GroupID: groupMain,
		Example: "  symbolize flamegraph -o x.html perf.data\n" +
			"  symbolize flamegraph --focus malloc -o x.svg x.pb.gz",
		RunE: a.runE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return runFlamegraph(ctx, a, o, args)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *flamegraphOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	addOutputFlag(fs, &o.output)
	fs.StringVar(&o.format, "format", "", "`FORMAT`: html, svg, folded, speedscope or gecko "+
		"(default by the name of -o)")
	completeFixed(cmd, "format", o.formats())
	fs.BoolVar(&o.reverse, "reverse", false, "by leaf: what was sampled, and its callers above it")
	fs.Float64Var(&o.minShare, "min-share", 0,
		"leave out frames with less than `PCT` percent of each event")
	fs.StringSliceVar(&o.labels, "labels", []string{"pid"},
		"`LABELS` that the page can choose by: comm, pid, tid, cpu; the comm always is one")
	o.selectOptions.addFlags(cmd)
	o.inputOptions.addFlags(cmd)
	addNamesFlag(cmd, &o.names, "`symbols` (default) or dwarf")
}

func (o *flamegraphOptions) formats() (words []string) {
	for _, f := range flamegraphFormats {
		words = append(words, f.name)
	}
	return words
}

// chooseFormat decides by --format and the output's name.
func (o *flamegraphOptions) chooseFormat() error {
	if o.format != "" {
		return checkFormat(o.format, o.formats()...)
	}
	o.format = flamegraphFormats[0].name
	name := filepath.Base(o.output)
	for _, f := range flamegraphFormats {
		if strings.HasSuffix(name, f.extension) {
			o.format = f.name
			return nil
		}
	}
	if ext := filepath.Ext(name); ext != "" && o.output != "-" && name != ext {
		return withHint(usagef("-o %s: no format has the extension %s", o.output, ext),
			"name one with --format, or end the name in .html, .svg, .folded, .speedscope.json or "+
				".gecko.json")
	}
	return nil
}

func (o *flamegraphOptions) validate(args []string) (err error) {
	if o.keep, err = parseLabels(o.labels); err != nil {
		return err
	}
	return cmp.Or(
		o.inputOptions.validate(args),
		o.chooseFormat(),
		checkShare(o.minShare),
		o.selectOptions.parse(&o.keep),
	)
}

func runFlamegraph(ctx context.Context, a *app, o *flamegraphOptions, paths []string) error {
	page := o.format == flamegraphFormats[0].name
	err := cmp.Or(a.refuseTerminal(o.output, page), refuseOverwrite(paths, []string{o.output}))
	if err != nil {
		return err
	}
	return a.withProfile(ctx, &o.inputOptions, paths, func(s *session, p *ingest.Profile) error {
		opts := o.calls(s, p)
		opts.Demangler.Warm(p)
		g := flame.New(p, flame.Options{Event: -1, Shown: opts.Event, Count: opts.Count,
			Keep: o.keep, By: opts.By, Filter: opts.Filter, Name: opts.Demangler.Name,
			MinShare: o.minShare / 100, Reverse: o.reverse})
		a.warnUnmatched(g.Unmatched())
		if o.format == "svg" || o.format == formatFolded {
			a.sayOtherEvents(p, opts.Event)
		}
		return a.writeOutput(o.output, page, func(w io.Writer) error {
			return flamegraphWriters[slices.Index(o.formats(), o.format)](g, w)
		})
	})
}

// flamegraphWriters are in the order of flamegraphFormats.
var flamegraphWriters = []func(*flame.Graph, io.Writer) error{(*flame.Graph).WriteHTML,
	(*flame.Graph).WriteSVG, (*flame.Graph).WriteFolded, (*flame.Graph).WriteSpeedscope,
	(*flame.Graph).WriteGecko}
