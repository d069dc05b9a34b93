package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
)

const mapLong = `map shows what dumps of BPF maps hold: keys and values by BTF; counts by code
address with functions and lines (--symbols); histograms as bcc and bpftrace draw them (--hist);
values against time (--heatmap), on a terminal or as a picture.

DUMP is a raw dump, what bpftool -j map dump printed, or the plain text that it prints of maps
without BTF. BUNDLE is what capture wrote: with --maps it has dumps of maps at intervals; if they
are several they are listed, and --map chooses one. Of a
BPF OBJECT the maps are shown that it defines, and what its variables are at the beginning.

Exit status: 0 done; 1 failed; 2 usage; 3 a dump was damaged, all before the damage was done; 130
interrupted.`

// mapOptions are the flags of map.
type mapOptions struct {
	mapChartOptions
	source mapSource
}

func newMapCommand(a *app) *cobra.Command {
	o := &mapOptions{}
	cmd := &cobra.Command{
		Use:     "map DUMP…|BUNDLE|OBJECT",
		Short:   "Show BPF maps: values, counts by address, histograms, heat maps",
		Long:    mapLong,
		GroupID: groupLook,
		Example: "  symbolize map --symbols location drops.json\n" +
			"  symbolize map --hist --unit usecs lat.data\n" +
			"  symbolize map --heatmap --unit us -o heat.svg lat.data",
		Args: cobra.MinimumNArgs(1),
		RunE: a.runE(func(ctx context.Context, args []string) error {
			return runMap(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.source.name, "map", "", "of several maps that of this `NAME|ID`; "+
		"ID=NAME where the kernel cut the name")
	fs.StringVar(&o.source.btf, "btf", "",
		"the BPF object `FILE`, or BTF, that tells the types of a dump without them")
	addOutputFlag(fs, &o.output)
	fs.StringVar(&o.format, "format", "",
		"`FORMAT` of the result: text or json; for --heatmap also svg or html (default text, or "+
			"by the name of -o)")
	completeFixed(cmd, "format", []string{formatText, formatJSON, formatSVG, formatHTML})
	o.addFlags(cmd)
	return cmd
}

func runMap(ctx context.Context, a *app, o *mapOptions, paths []string) error {
	if o.format != "" {
		if err := checkFormat(o.format, formatText, formatJSON, formatSVG, formatHTML); err != nil {
			return err
		}
	}
	if err := cmp.Or(o.validate(), o.checkHist(paths)); err != nil {
		return err
	}
	if len(paths) == 1 && isObject(paths[0]) {
		if o.wanted() {
			return usagef("%s is an object: --symbols, --hist and --heatmap want dumps", paths[0])
		}
		return runMapObject(ctx, a, o, paths[0])
	}
	o.source.list = len(paths) == 1 && o.source.name == "" && !o.wanted()
	in, err := a.openMaps(ctx, paths, o.source)
	if err != nil {
		return err
	}
	defer in.Close()
	if o.wanted() {
		return o.run(ctx, a, in, paths)
	}
	if o.source.list && in.several() {
		return runMapList(a, o, in)
	}
	return runMapValues(a, o, in)
}
