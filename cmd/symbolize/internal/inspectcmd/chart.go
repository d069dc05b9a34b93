package inspectcmd

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/bpfmap"
	"symbolize/analyze/chart"
	"symbolize/analyze/demangle"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/texts"
)

// chartStyles are the words of --style, by chart.Style.
var chartStyles = []string{chart.StyleBCC: "bcc", chart.StyleBpftrace: "bpftrace"}

// autoScale is --hist without a scale: found by BTF.
const autoScale = "auto"

// mapChartOptions are the flags of `map` that make more of a dump than its values.
type mapChartOptions struct {
	output, format string // shared with the printing of values

	symbols  string
	returns  bool
	hist     string
	heatmap  bool
	cleared  bool
	slot     string
	count    string
	style    string
	unit     string
	rows     int
	with     []string
	kallsyms []string
	kernel   string
	noLocal  bool
	remote   cli.RemoteFlag
	demangle string

	scale    *chart.Scale
	kernelID buildid.ID // kernel parsed
	mode     demangle.Mode
}

// defaultSymbolRows is how many rows --symbols prints: a screenful.
const defaultSymbolRows = 30

func (o *mapChartOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&o.symbols, "symbols", "",
		"print counts by code address, with names; `FIELD` of the key is the address, or key")
	fs.BoolVar(&o.returns, "return-addresses", false,
		"addresses of --symbols are return addresses: print the line of the call")
	cli.AddLimit(fs, &o.rows, defaultSymbolRows, "print the `N` heaviest of --symbols; 0 for all")
	fs.StringVar(&o.hist, "hist", "",
		"draw histograms; `SCALE` of the slots: "+chart.ScaleNames)
	fs.Lookup("hist").NoOptDefVal = autoScale
	fs.BoolVar(&o.heatmap, "heatmap", false,
		"draw values against time, from several dumps or a bundle with a series")
	fs.BoolVar(&o.cleared, "cleared", false,
		"the map is cleared by its reader: each dump of --heatmap has the counts of one interval")
	fs.StringVar(&o.slot, "slot", "", "`FIELD` of the key is the slot of a histogram")
	fs.StringVar(&o.count, "count", "",
		"`FIELD` of the value is the count, or the array of slots")
	cli.AddChoice(cmd, &o.style, "style", "draw histograms as `TOOL` does: bcc or bpftrace",
		chartStyles...)
	fs.StringVar(&o.unit, "unit", "", "`UNIT` of values: ns, us, bytes …")
	fs.StringArrayVar(&o.with, "with", nil,
		"read symbols for --symbols and stacks from `PATH`; may be repeated")
	fs.StringArrayVar(&o.kallsyms, "kallsyms", nil,
		"read symbols for --symbols and stacks from `FILE`, a copy of /proc/kallsyms of that boot")
	fs.StringVar(&o.kernel, "kernel", "",
		"build `ID` of the kernel of --kallsyms, if no copy of /sys/kernel/notes is next to it")
	fs.BoolVar(&o.noLocal, "no-local", false,
		"do not search this host for files that the store and --with lack")
	o.remote.AddFlag(fs)
	cli.AddDemangle(cmd, &o.demangle, "simple")
	cli.Complete(cmd, "hist", strings.Fields("log2 bcc bpftrace linear lhist"))
}

// checkHist refuses `--hist log2 FILE`: a flag with an optional value needs "=" before it.
func (o *mapChartOptions) checkHist(paths []string) error {
	if o.hist != autoScale || len(paths) == 0 {
		return nil
	}
	if _, err := chart.ParseScale(paths[0]); err != nil {
		return nil
	}
	if _, err := os.Stat(paths[0]); err == nil {
		return nil
	}
	return texts.WithHint(cli.Usagef("--hist %s: no such file", paths[0]),
		"give the scale by --hist=%s",
		paths[0])
}

// wanted reports whether any of the views is requested.
func (o *mapChartOptions) wanted() bool { return o.symbols != "" || o.hist != "" || o.heatmap }

func (o *mapChartOptions) validate() error {
	switch {
	case o.symbols != "" && (o.hist != "" || o.heatmap):
		return cli.Usagef("--symbols goes with neither --hist nor --heatmap")
	case o.rows < 0:
		return cli.Usagef("-n %d: it is at least 0", o.rows)
	case o.cleared && !o.heatmap:
		return cli.Usagef("--cleared is for --heatmap")
	}
	if o.kernel != "" {
		var err error
		if o.kernelID, err = buildid.Parse(o.kernel); err != nil {
			return cli.Usagef("--kernel: %v", err)
		}
		if len(o.kallsyms) == 0 {
			return texts.WithHint(cli.Usagef("--kernel: a build ID does not tell at which address the "+
				"kernel ran"), "--kallsyms FILE does: a copy of /proc/kallsyms, read as root in that boot")
		}
	}
	if o.hist != "" && o.hist != autoScale {
		s, err := chart.ParseScale(o.hist)
		if err != nil {
			return cli.Usagef("--hist: %v", err)
		}
		o.scale = &s
	}
	if o.format == cli.SVG || o.format == cli.HTML {
		if !o.heatmap {
			return cli.Usagef("--format %s is for --heatmap", o.format)
		}
	}
	var err error
	o.mode, err = cli.ParseDemangle(o.demangle, "simple")
	return err
}

// chart returns the options of --hist and --heatmap.
func (o *mapChartOptions) chart() bpfmap.ChartOptions {
	return bpfmap.ChartOptions{Unit: o.unit, Cleared: o.cleared,
		PlanOptions: bpfmap.PlanOptions{Scale: o.scale, Slot: o.slot, Count: o.count}}
}

// runHeatMap draws the series of dumps.
func runHeatMap(a *cli.App, o *mapOptions, in *bpfmap.Dumps) error {
	m, err := in.HeatMap(o.chart(), a)
	if err != nil {
		return err
	}
	format := o.heatFormat()
	if format == cli.SVG { // the others hold them
		for _, note := range m.Notes {
			a.Note(m.Title + ": " + note)
		}
	}
	return a.WriteOutput(o.output, false, func(w io.Writer) error {
		var out []byte
		switch format {
		case cli.JSON:
			return texts.WriteJSON(w, "map-heatmap/1", in.HeatReport(m))
		case cli.SVG:
			out = m.AppendSVG(nil)
		case cli.HTML:
			out = m.AppendHTML(nil)
		default:
			terminal := a.Env.StdoutTerminal && (o.output == "" || o.output == "-")
			out = m.AppendText(nil, terminal && a.Env.Getenv("NO_COLOR") == "")
		}
		_, err := w.Write(out)
		return err
	})
}

// heatFormat returns the format of --format, else the one of the file's name.
func (o *mapChartOptions) heatFormat() string {
	if o.format != "" {
		return o.format
	}
	switch strings.ToLower(filepath.Ext(o.output)) {
	case ".svg":
		return cli.SVG
	case ".html", ".htm":
		return cli.HTML
	case ".json":
		return cli.JSON
	}
	return cli.Text
}
