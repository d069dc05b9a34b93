package reportcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"symbolize/analyze/batch"
	"symbolize/analyze/diff"
	"symbolize/analyze/flame"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

type trendOptions struct {
	cli.InputOptions
	selectOptions
	output, format string
	every          time.Duration
	judgeOptions
}

const trendLong = `trend shows how the share of each function changed over nights: the profiles of a day, or of
another --every, are added up, and each function's shares are searched for changes of their level.
Directories are walked for profiles. A profile's day is the one in which it began, else a date in
its path.

p is the probability of such a change by chance, corrected for all functions and nights. A level has
two nights at least: a night that differs alone is not a change. A cost that moved between callers, callees
or functions with the same caller is marked, and not counted as growth.

The page (-o x.html) has a chart of each function, and the flame graph before and after each change.

--fail-above fails if a function grew by more than PCT percent, and this is significant only since
the last night is known: a job that runs each night fails once for each change.

Exit status: 0 done; 1 failed; 2 usage; 3 a profile is damaged or unreadable, the others were used;
5 a function grew by more than --fail-above; 130 interrupted.`

// trendFormats are the formats of trend.
var trendFormats = []string{cli.Text, cli.JSON, cli.HTML}

// NewTrend makes the command `trend`.
func NewTrend(a *cli.App) *cobra.Command {
	o := &trendOptions{}
	cmd := &cobra.Command{
		Use:     "trend DIR|PROFILE…",
		Short:   "Find changes in the profiles of many nights",
		Long:    trendLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize trend /srv/profiles\n" +
			"  symbolize trend -o trend.html --by object /srv/profiles/*/web.pb.gz\n" +
			"  symbolize trend -q --fail-above 5 /srv/profiles/*/web.pb.gz",
	}
	cmd.RunE = a.RunE(func(ctx context.Context, args []string) error {
		o.judged = cmd.Flags().Changed("fail-above")
		if err := o.validate(args); err != nil {
			return err
		}
		return runTrend(ctx, a, o, args)
	})
	fs := cmd.Flags()
	fs.SortFlags = false
	cli.AddOutput(fs, &o.output)
	cli.AddFileFormat(cmd, &o.format, trendFormats...)
	fs.DurationVar(&o.every, "every", 24*time.Hour,
		"add up the profiles of each `DURATION`, which begins at a multiple of it in UTC")
	cli.AddLimit(fs, &o.rows, defaultTopRows, "print the `N` largest changes; 0 for all")
	o.sort = topSorts[0]
	cli.AddChoice(cmd, &o.sort, "sort", "show and judge the shares of `COLUMN`: flat or cum", topSorts...)
	fs.Float64Var(&o.minShare, "min-share", defaultMin,
		"leave out functions with less than `PCT` percent in every night")
	fs.Float64Var(&o.alpha, "alpha", defaultAlpha,
		"a change with a corrected p below `P` is significant")
	fs.Float64Var(&o.failAbove, "fail-above", 0, "exit with 5 if a function grew by more than `PCT` "+
		"percent, and the last night shows it first")
	o.selectOptions.addFlags(cmd)
	o.InputOptions.AddFlags(cmd)
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
	return cmd
}

func (o *trendOptions) validate(args []string) error {
	if o.every < time.Minute {
		return cli.Usagef("--every %v: it is at least 1m", o.every)
	}
	return cmp.Or(
		o.check(),
		o.InputOptions.Validate(args),
		cli.FormatByName(&o.format, o.output, false, trendFormats...),
		checkShare(o.minShare),
		o.selectOptions.parse(&o.Keep),
	)
}

// trendRun is one run of trend.
type trendRun struct {
	*trendOptions
	a       *cli.App
	s       *cli.Session
	builder *diff.TrendBuilder
	paths   map[time.Time][]string // by the start of the period
}

func runTrend(ctx context.Context, a *cli.App, o *trendOptions, args []string) error {
	paths, err := batch.Profiles(args)
	if err != nil {
		return err
	}
	err = cmp.Or(a.RefuseTerminal(o.output, o.format == cli.HTML, ""),
		cli.RefuseOverwrite(paths, []string{o.output}))
	if err != nil {
		return err
	}
	return a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session, captures []string) error {
		r := &trendRun{trendOptions: o, a: a, s: s, builder: diff.NewTrend(o.options()),
			paths: make(map[time.Time][]string)}
		if err := s.LoadEach(ctx, captures, r.add); err != nil {
			return err
		}
		return r.report(ctx)
	})
}

func (o *trendOptions) options() diff.TrendOptions {
	return diff.TrendOptions{Options: o.parsed, Event: o.Event, Every: o.every, Cum: o.sort == "cum",
		MinShare: o.minShare / 100, Limit: o.rows, Alpha: o.alpha, FailAbove: o.bound()}
}

// add adds a profile to its period.
func (r *trendRun) add(path string, p *ingest.Profile) error {
	in := diff.Input{Name: path, Profile: p}
	began, err := beganAt(in)
	if err != nil {
		return err
	}
	if err := r.builder.Add(in, began); err != nil {
		return err
	}
	start := r.builder.PeriodOf(began)
	r.paths[start] = append(r.paths[start], path)
	return nil
}

var dateInPath = regexp.MustCompile(`(?:^|[^0-9])(\d{4}-[01]\d-[0-3]\d)(?:[^0-9]|$)`)

// beganAt is when a profile began: its own time, else the last date in its path.
func beganAt(in diff.Input) (time.Time, error) {
	if nanos := in.Profile.Meta.StartNanos; nanos > 0 {
		return time.Unix(0, nanos), nil
	}
	if all := dateInPath.FindAllStringSubmatch(in.Name, -1); len(all) > 0 {
		if day, err := time.Parse(time.DateOnly, all[len(all)-1][1]); err == nil {
			return day, nil
		}
	}
	return time.Time{}, texts.WithHint(fmt.Errorf("%s: it has no time", texts.Printable(in.Name)),
		"put it into a directory with a date as its name: 2026-11-02")
}

// loadAll loads the profiles of a period again.
func (r *trendRun) loadAll(ctx context.Context, p *diff.Period) (list []diff.Input, err error) {
	for _, path := range r.paths[p.Start] {
		p, err := r.s.Load(ctx, []string{path})
		if err != nil {
			return nil, err
		}
		list = append(list, diff.Input{Name: path, Profile: p})
	}
	return list, nil
}

func (r *trendRun) report(ctx context.Context) error {
	t := r.builder.Trend()
	if len(t.Periods) == 0 {
		return errors.New("the profiles have no samples of the event")
	}
	if err := r.builder.Relate(t, func(p *diff.Period) ([]diff.Input, error) {
		return r.loadAll(ctx, p)
	}); err != nil {
		return err
	}
	warnUnmatched(r.a, t.Unmatched())
	var pictures map[int][]byte
	if r.format == cli.HTML {
		var err error
		if pictures, err = r.pictures(ctx, t); err != nil {
			return err
		}
	}
	err := r.a.WriteOutput(r.output, r.format == cli.HTML, func(w io.Writer) error {
		switch r.format {
		case cli.JSON:
			return t.WriteJSON(w)
		case cli.HTML:
			return t.WriteHTML(w, pictures)
		}
		return t.WriteText(w, r.a.Style())
	})
	if err != nil {
		return err
	}
	for _, c := range t.Failed {
		r.a.Print("error", t.FailedText(c))
	}
	return failGrown(r.failAbove, "", len(t.Failed))
}

// pictureShare is the share of frames that the pictures of a page leave out.
const pictureShare = 0.002

// pictures draws the differential flame graphs of the moments.
func (r *trendRun) pictures(ctx context.Context, t *diff.Trend) (map[int][]byte, error) {
	list := make(map[int][]byte)
	for _, m := range t.Moments() {
		var sides [2][]diff.Input
		for i := m.Before; i < m.After; i++ {
			in, err := r.loadAll(ctx, &t.Periods[i])
			if err != nil {
				return nil, err
			}
			side := 0
			if i >= m.At {
				side = 1
			}
			sides[side] = append(sides[side], in...)
		}
		opts := r.treeCalls(r.s, profilesOf(sides[1], sides[0])...)
		both, err := diff.Fold(sides[0], sides[1], opts)
		if err != nil {
			return nil, err
		}
		g := flame.NewDifferential(flame.Comparison{New: both.New, Base: both.Base, Normalize: true,
			MinShare: pictureShare, Title: t.PeriodText(m.At) + " and later against before"})
		var svg bytes.Buffer
		if err := g.WriteSVG(&svg); err != nil {
			return nil, err
		}
		list[m.At] = svg.Bytes()
	}
	return list, nil
}
