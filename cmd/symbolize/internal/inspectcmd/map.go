package inspectcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"symbolize/analyze"
	"symbolize/analyze/bpfmap"
	"symbolize/analyze/chart"
	"symbolize/analyze/demangle"
	"symbolize/analyze/inspect"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/input/container"
	"symbolize/ingest/texts"
)

const mapLong = `map shows dumps of BPF maps: keys and values by BTF, the frames of stack maps with names, counts by
code address with names (--symbols), histograms as bcc and bpftrace draw them (--hist), values
against time (--heatmap).

DUMP is a raw dump or the output of bpftool map dump: with -j, or the text of a map with or without
BTF. BUNDLE is a file of capture --maps; --map selects one of several maps. Of a BPF OBJECT map shows
the maps that it defines and the initial values of its variables.

Exit status: 0 done; 1 failed; 2 usage; 3 a dump is damaged, the entries before the damage were used;
130 interrupted.`

// mapOptions are the flags of map.
type mapOptions struct {
	mapChartOptions
	name, btf string
}

// NewMap makes the command `map`.
func NewMap(a *cli.App) *cobra.Command {
	o := &mapOptions{}
	cmd := &cobra.Command{
		Use:     "map DUMP…|BUNDLE|OBJECT",
		Short:   "Show BPF maps: values, counts by address, histograms, heat maps",
		Long:    mapLong,
		GroupID: cli.GroupLook,
		Example: "  symbolize map --symbols location drops.json\n" +
			"  symbolize map --hist --unit usecs lat.data\n" +
			"  symbolize map --heatmap --unit us -o heat.svg lat.data",
		Args: cli.SomeArgs("DUMP"),
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			return runMap(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.name, "map", "", "select the map `NAME|ID`; ID=NAME where the kernel cut the name")
	fs.StringVar(&o.btf, "btf", "",
		"`FILE` is the BPF object, or BTF, with the types of a dump without BTF")
	cli.AddOutput(fs, &o.output)
	cli.AddChoice(cmd, &o.format, "format", "`FORMAT` of the result: text or json; for --heatmap also "+
		"svg or html (default text, or by the name of -o)", cli.Text, cli.JSON, cli.SVG, cli.HTML)
	o.addFlags(cmd)
	return cmd
}

func runMap(ctx context.Context, a *cli.App, o *mapOptions, paths []string) error {
	if err := cmp.Or(o.validate(), o.checkHist(paths)); err != nil {
		return err
	}
	if _, err := os.Stat(paths[0]); err != nil && slices.Contains([]string{"dump", "show", "list"}, paths[0]) {
		return texts.WithHint(cli.Usagef("no file is named %s", paths[0]),
			"`bpftool map dump id ID > FILE`, then `symbolize map FILE`; `symbolize capture --maps NAME` dumps, too")
	}
	if len(paths) == 1 && container.TypeOfPath(paths[0]) == container.TypeELF {
		if o.wanted() {
			return cli.Usagef("%s is an object file: --symbols, --hist and --heatmap need dumps",
				paths[0])
		}
		return runMapObject(ctx, a, o, paths[0])
	}
	src := bpfmap.Source{Map: o.name, File: o.btf,
		All: len(paths) == 1 && o.name == "" && !o.wanted()}
	if o.btf != "" {
		var err error
		if src.Types, err = inspect.ReadTypes(o.btf, nil); err != nil {
			return fmt.Errorf("--btf: %w", err)
		}
	}
	in, err := bpfmap.Open(ctx, paths, src, a)
	if err != nil {
		return err
	}
	defer in.Close()
	switch {
	case o.heatmap:
		return runHeatMap(a, o, in)
	case src.All && in.Several():
		list := in.Maps()
		return writeMap(a, o, func(w io.Writer) error { return texts.WriteJSON(w, "map-list/1", list) },
			list.WriteText)
	}
	m, err := in.Last(a)
	switch {
	case errors.Is(err, bpfmap.ErrSeveral):
		return texts.WithHint(cli.Usagef("%w", err), "--heatmap takes several")
	case err != nil:
		return err
	case o.hist != "":
		return runHist(a, o, m)
	case o.symbols != "":
		return runSymbols(ctx, a, o, m, paths)
	case m.HasStacks(a):
		return runStacks(ctx, a, o, m, paths)
	}
	return runMapValues(a, o, m)
}

// writeMap writes a result in the requested format.
func writeMap(a *cli.App, o *mapOptions, json, text func(io.Writer) error) error {
	if o.format == cli.JSON {
		text = json
	}
	return a.WriteOutput(o.output, false, text)
}

// runMapObject prints the maps that a BPF object defines, and its variables.
func runMapObject(ctx context.Context, a *cli.App, o *mapOptions, path string) error {
	found, err := bpfmap.ReadObject(ctx, path, o.name, a)
	if err != nil {
		return err
	}
	return writeMap(a, o, func(w io.Writer) error { return texts.WriteJSON(w, "map-object/1", found) },
		found.WriteText)
}

// runMapValues prints keys and values.
func runMapValues(a *cli.App, o *mapOptions, m *bpfmap.Dump) error {
	v, err := m.Values(o.format == cli.JSON, a)
	if err != nil {
		return err
	}
	err = writeMap(a, o, v.Write, v.Write)
	v.Report(a)
	return err
}

// runHist draws the histograms of a dump.
func runHist(a *cli.App, o *mapOptions, m *bpfmap.Dump) error {
	r, err := m.Histograms(o.chart(), a)
	if err != nil {
		return err
	}
	style := r.Style()
	if o.style != "" {
		style = chart.Style(slices.Index(chartStyles, o.style))
	}
	return writeMap(a, o, r.WriteJSON, func(w io.Writer) error { return r.WriteText(w, style) })
}

// runSymbols prints the counts of a map with code addresses as keys, with names.
func runSymbols(ctx context.Context, a *cli.App, o *mapOptions, m *bpfmap.Dump,
	paths []string) error {
	r, err := m.Addresses(bpfmap.SymbolOptions{Key: o.symbols, Count: o.count, Rows: o.rows,
		Returns: o.returns}, a)
	if err != nil {
		return err
	}
	var at []ingest.LocationID
	bundles, _ := analyze.SplitBundles(paths)
	err = nameMap(ctx, a, o, bundles, func(opts input.Options) (p *ingest.Profile, err error) {
		p, at, err = input.Addresses(ctx, m.Name, r.PCs(), opts)
		return p, err
	}, func(p *ingest.Profile, d *demangle.Demangler) (unplaced, all int) {
		r.Name(p, at, d)
		return r.Unplaced(), len(r.Rows)
	})
	if err != nil {
		return err
	}
	return writeMap(a, o, func(w io.Writer) error { return texts.WriteJSON(w, "map-symbols/1", r) }, r.WriteText)
}

// runStacks prints the stacks of a stack map, with names.
func runStacks(ctx context.Context, a *cli.App, o *mapOptions, m *bpfmap.Dump,
	paths []string) error {
	var r *bpfmap.StackReport
	err := nameMap(ctx, a, o, paths, func(opts input.Options) (p *ingest.Profile, err error) {
		r, p, err = m.Stacks(ctx, opts, a)
		return p, err
	}, func(p *ingest.Profile, d *demangle.Demangler) (unplaced, all int) {
		r.Name(p, d)
		return r.Unplaced(), r.NumFrames()
	})
	if err != nil {
		return err
	}
	return writeMap(a, o, func(w io.Writer) error { return texts.WriteJSON(w, "map-stacks/1", r) }, r.WriteText)
}

// nameMap names the profile that locate returns; paths are the files that have the build IDs. use gets
// the named profile, and returns how many addresses of all are in no known kernel.
func nameMap(ctx context.Context, a *cli.App, o *mapOptions, paths []string,
	locate func(input.Options) (*ingest.Profile, error),
	use func(*ingest.Profile, *demangle.Demangler) (unplaced, all int)) error {
	bundles, _ := analyze.SplitBundles(paths)
	inputs := cli.InputOptions{With: o.with, Kallsyms: o.kallsyms, Bundles: bundles,
		NoLocal: o.noLocal, Remote: o.remote}
	if len(o.kallsyms) > 0 {
		inputs.Stacks.Parsed.Kallsyms, inputs.Stacks.Parsed.KernelID = o.kallsyms[0], o.kernelID
	}
	s, err := a.OpenSession(ctx, &inputs)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := s.Locate(ctx, paths, locate)
	if err != nil {
		return err
	}
	a.PrintWarnings(p)
	if n, all := use(p, demangle.New(o.mode)); n > 0 {
		a.Warn(fmt.Sprintf("%d of %d addresses are not placed in a kernel: a dump has no addresses of its boot",
			n, all), "--kallsyms FILE has them: a copy of /proc/kallsyms, read as root in that boot")
	}
	return nil
}
