package reportcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/flame"
	"symbolize/analyze/resolve"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// heatOptions are of heatmap and timeline.
type heatOptions struct {
	cli.InputOptions
	output string
	format string
	by     string // of timeline: the attribute of its rows
	of     string // of heatmap: the event or field to draw, in place of when samples were taken
}

const heatmapLong = `heatmap draws when samples were taken: each column is a second, or 200 or
100 ms of a recording of less than ten seconds; its 50 rows are parts of that time. Idle phases and
periodic work show as patterns. The page is the one of flamegraph, opened at this map: a range
selected in it selects in the graph too, and is printed as --time FROM,TO, an option of all reports.
The perf.data must have sample times.` + cli.CaptureStatus

const timelineLong = `timeline draws when samples were taken, with a row for each thread, process or CPU, and when the BPF
programs of the capture were loaded, with a row for each. The page is the one of flamegraph, opened
at these rows: a range selected in them selects in the graph too, and is printed as --time FROM,TO,
an option of all reports. The perf.data must have sample times.` + cli.CaptureStatus

// timelineRows are the words of --by, with the names of the rows.
var timelineRows = []string{"thread", "process", "comm", "cpu"}

// NewHeatmap makes the command `heatmap`.
func NewHeatmap(a *cli.App) *cobra.Command {
	o := &heatOptions{}
	cmd := newHeatCommand(a, &cobra.Command{
		Use: "heatmap [CAPTURE]", Short: "Draw when samples were taken, within each second",
		Long: heatmapLong,
		Example: "  symbolize heatmap -o x.html perf.data\n  symbolize heatmap --of run-queue perf.data\n" +
			"  symbolize heatmap --of field:bytes_alloc kmem.data",
	}, o)
	cmd.Flags().StringVar(&o.of, "of", "", "draw how long the waits of `EVENT` last, with the longest: "+
		strings.Join(latencyWords, ", ")+" (of --pair), or the values of a tracepoint's field: field:NAME; "+
		"as text without -o")
	cli.Complete(cmd, "of", latencyWords)
	return cmd
}

// NewTimeline makes the command `timeline`.
func NewTimeline(a *cli.App) *cobra.Command {
	o := &heatOptions{}
	cmd := newHeatCommand(a, &cobra.Command{
		Use: "timeline [CAPTURE]", Short: "Draw when samples were taken, by thread or CPU",
		Long:    timelineLong,
		Example: "  symbolize timeline --by cpu -o x.html perf.data",
	}, o)
	o.by = timelineRows[0]
	cli.AddChoice(cmd, &o.by, "by", "a row for each `ATTRIBUTE`: "+strings.Join(timelineRows, ", "),
		timelineRows...)
	return cmd
}

func newHeatCommand(a *cli.App, cmd *cobra.Command, o *heatOptions) *cobra.Command {
	cmd.GroupID = cli.GroupMain
	cmd.RunE = a.RunE(func(ctx context.Context, args []string) error {
		if err := o.validate(args); err != nil {
			return err
		}
		return runHeat(ctx, a, o, args)
	})
	fs := cmd.Flags()
	fs.SortFlags = false
	cli.AddOutput(fs, &o.output)
	if cmd.Name() == "heatmap" {
		cli.AddFileFormat(cmd, &o.format, cli.HTML, cli.JSON, cli.Text)
	} else {
		cli.AddFileFormat(cmd, &o.format, cli.HTML, cli.JSON)
	}
	o.AddNoCommand(fs, false)
	o.Timed = true
	o.InputOptions.AddFlags(cmd)
	return cmd
}

func (o *heatOptions) validate(args []string) error {
	words := []string{cli.HTML, cli.JSON, cli.Text}
	field, ofField := strings.CutPrefix(o.of, ingest.FieldTag)
	switch {
	case ofField && (field == "" || o.Weight != ""):
		return cli.Usagef("--of field:NAME needs a name, and excludes --weight")
	case ofField:
		o.Weight = field
	case o.of != "" && !slices.Contains(latencyWords, o.of):
		return cli.Usagef("--of %s: it is one of %s, field:NAME", o.of, strings.Join(latencyWords, ", "))
	case o.of != "" && o.of != "pair" && o.Event != "" && o.Event != o.of:
		return cli.Usagef("--of and --event exclude each other")
	case o.of != "" && o.of != "pair":
		o.Event = o.of
	}
	if o.of == "" {
		o.Keep = ingest.Keep{PID: true, Tags: ingest.AllLabels}
	}
	if err := o.InputOptions.Validate(args); err != nil {
		return err
	}
	switch {
	case o.of == "pair" && !strings.HasPrefix(o.Event, ingest.PairEvent):
		return cli.Usagef("--of pair needs --pair")
	case o.of == "" && o.format == cli.Text:
		return cli.Usagef("--format text needs --of")
	case o.of != "" && (o.output == "" || o.output == "-"):
		words = []string{cli.Text, cli.JSON, cli.HTML}
	case o.of == "":
		words = words[:2]
	}
	return cli.FormatByName(&o.format, o.output, false, words...)
}

func runHeat(ctx context.Context, a *cli.App, o *heatOptions, paths []string) error {
	err := cmp.Or(a.RefuseTerminal(o.output, o.format == cli.HTML, "; --format json is text"),
		cli.RefuseOverwrite(paths, []string{o.output}))
	if err != nil {
		return err
	}
	return a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session, captures []string) error {
		if len(captures) != 1 {
			return texts.WithHint(cli.Usagef("%d captures: their clocks may differ", len(captures)),
				"name one perf.data")
		}
		if o.format == cli.HTML {
			return writePage(ctx, s, captures, o.output,
				pageOptions{keep: o.Keep, view: o.view(), rows: o.by, of: o.of})
		}
		return s.Each(ctx, captures, func(c *input.Capture, p *ingest.Profile) error {
			if o.of != "" {
				if _, err := s.Name(ctx, p); err != nil {
					return err
				}
			}
			s.PrintWarnings(p)
			event := s.Event(p)
			a.PrintOtherEvents(p, event)
			write, err := o.count(ctx, s, c, p, event)
			if err != nil {
				return err
			}
			return a.WriteOutput(o.output, false, write)
		})
	})
}

// view is what the page shows first.
func (o *heatOptions) view() string {
	if o.by != "" || o.of != "" {
		return flame.Timeline
	}
	return flame.HeatView
}

// count replays the samples of an event, and returns what writes them.
func (o *heatOptions) count(ctx context.Context, s *cli.Session, c *input.Capture, p *ingest.Profile,
	event int) (write func(io.Writer) error, err error) {
	counter := flame.NewHeatOffsets()
	add := func(s *input.ReplaySample) { counter.Add(s.Time, rowOf(o.by, s)) }
	var values *latencies
	if o.of != "" {
		event = max(event, 0)
		values = newLatencies(p, event, o.of)
		counter, add = values.counter, values.add
	} else if o.by != "" {
		counter = flame.NewHeatRows(flame.MaxColumns)
	}
	err = c.Replay(ctx, func(s *input.ReplaySample) error {
		if int(s.Event) == event {
			add(s)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	grid := counter.Grid()
	if values == nil {
		if o.by != "" {
			grid.SetLives(livesOf(c, s.View()))
		}
		return flame.NewHeatMap(p, event, grid).WriteJSON, nil
	}
	values.finish(s.App, c, p)
	if o.format != cli.JSON {
		return func(w io.Writer) error { return values.writeText(w, grid) }, nil
	}
	name := o.Event
	if o.Weight != "" {
		name = p.Events[event].Name + " " + o.of
	}
	return func(w io.Writer) error { return values.writeJSON(w, name, grid) }, nil
}

// livesOf returns when the BPF programs of a capture were loaded. Their damage is in the profile's
// warnings. Those of which the capture has neither a record nor the program are left out.
func livesOf(c *input.Capture, view store.View) (lives []flame.HeatLife) {
	programs, _ := c.Programs()
	for i := range programs {
		p := &programs[i]
		if p.ID == 0 || p.Loaded == 0 && p.Unloaded == 0 && p.Missing == bpf.MissingGone {
			continue
		}
		symbol := resolve.WholeSymbol(view, p.Symbol(0))
		_, name, _ := bpf.SplitSymbol(symbol)
		lives = append(lives, flame.HeatLife{ID: p.ID, Name: texts.Printable(cmp.Or(name, symbol)),
			Tag: p.Tag.String(), Loaded: p.Loaded, Unloaded: p.Unloaded})
	}
	return lives
}

// rowOf names the row of a sample by a word of timelineRows.
func rowOf(by string, s *input.ReplaySample) string {
	switch by {
	case "thread":
		return fmt.Sprintf("%s %d", texts.Printable(s.Comm), s.TID)
	case "process":
		return fmt.Sprintf("pid %d", s.PID)
	case "comm":
		return texts.Printable(s.Comm)
	case "cpu":
		return fmt.Sprintf("cpu %d", s.CPU)
	}
	return ""
}
