package reportcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/analyze/diff"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/suggest"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// selectOptions select the samples and frames of a table or tree of functions, and the kind of
// its rows. All such reports share them.
type selectOptions struct {
	focus, ignore, hide, show, showFrom string
	tagFocus, tagIgnore                 string
	by                                  string
	count, latency                      bool
	demangle                            string

	parsed calltree.Options
}

func (o *selectOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	cli.AddGroup(fs, cli.GroupFilters, func(fs *pflag.FlagSet) {
		for _, f := range o.expressions() {
			fs.StringVar(f.text, f.name, "", f.usage)
		}
		for _, f := range o.tagExpressions() {
			fs.StringVar(f.text, f.name, "", f.usage)
		}
	})
	fs.StringVar(&o.by, "by", "", "add up by `ATTRIBUTE`: "+strings.Join(calltree.Words(), ", ")+
		", or a label of --labels such as cgroup or time:10s; attributes of samples before one of frames "+
		"become outermost frames (default function, in trees of several programs comm,function)")
	cli.Complete(cmd, "by", calltree.Words())
	cli.AddCount(fs, &o.count)
	fs.BoolVar(&o.latency, "latency", false, "divide the weight of each sample by the number of "+
		"threads that ran: wall-clock time (perf record --latency or --switch-events)")
	cli.AddDemangle(cmd, &o.demangle, "simple")
}

// expression is a filter by a regular expression.
type expression struct {
	name, usage string
	text        *string
	to          **regexp.Regexp
}

func (o *selectOptions) expressions() []expression {
	f := &o.parsed.Filter
	return []expression{
		{"focus", "only samples with a frame that matches `REGEXP` by function, file or object",
			&o.focus, &f.Focus},
		{"ignore", "no samples with a frame that matches `REGEXP`", &o.ignore, &f.Ignore},
		{"hide", "leave out frames that match `REGEXP`", &o.hide, &f.Hide},
		{"show", "leave out frames that do not match `REGEXP`", &o.show, &f.Show},
		{"show-from", "leave out frames above the outermost one that matches `REGEXP`", &o.showFrom,
			&f.ShowFrom},
	}
}

// tagExpression is a filter by labels.
type tagExpression struct {
	name, usage string
	text        *string
	to          **calltree.TagFilter
}

func (o *selectOptions) tagExpressions() []tagExpression {
	f := &o.parsed.Filter
	return []tagExpression{
		{"tag-focus", "only samples with a label that matches `[KEY=]VALUE`: a regular expression, a " +
			"number or a range such as 1kb:4kb", &o.tagFocus, &f.TagFocus},
		{"tag-ignore", "no samples with a label that matches `[KEY=]VALUE`", &o.tagIgnore,
			&f.TagIgnore},
	}
}

// parseTags checks the filters by labels and adds their labels to keep.
func (o *selectOptions) parseTags(keep *ingest.Keep) (err error) {
	for _, f := range o.tagExpressions() {
		if *f.text == "" {
			continue
		}
		if *f.to, err = calltree.ParseTagFilter(*f.text); err != nil {
			return cli.Usagef("--%s: %w", f.name, expressionError(err))
		}
		word := ingest.AllLabels
		if key := (*f.to).Key; key != "" {
			word = ingest.CanonicalLabel(ingest.LabelTag + key)
		}
		if err := keep.Add(word); err != nil {
			return cli.Usagef("--%s: %v", f.name, err)
		}
		all := word == ingest.AllLabels
		keep.PID, keep.TID, keep.CPU = keep.PID || all, keep.TID || all, keep.CPU || all
	}
	return nil
}

// parse checks the flags and adds the labels of --by to keep.
func (o *selectOptions) parse(keep *ingest.Keep) (err error) {
	for _, f := range o.expressions() {
		if *f.text == "" {
			continue
		}
		if *f.to, err = regexp.Compile(*f.text); err != nil {
			return cli.Usagef("--%s: %w", f.name, expressionError(err))
		}
	}
	if o.parsed.By, err = calltree.ParseBy(cmp.Or(o.by, calltree.Function.String())); err != nil {
		if hint := suggest.Value("", "by", o.by); hint != "" {
			return texts.WithHint(cli.Usagef("--by %v", err), "%s", hint)
		}
		return cli.Usagef("--by %v", err)
	}
	if slices.Contains(o.parsed.By, calltree.Label) {
		keep.PID, keep.TID, keep.CPU = true, true, true
	}
	for _, by := range o.parsed.By {
		if !by.OfSample() || by == calltree.Event {
			continue
		}
		if err := keep.Add(string(by)); err != nil {
			return cli.Usagef("--by %s: %v", o.by, err)
		}
	}
	if o.latency {
		if o.count {
			return cli.Usagef("--latency weighs samples; it cannot be combined with --count")
		}
		o.parsed.Latency = true
		if err := keep.Add(ingest.ParallelismTag); err != nil {
			return cli.Usagef("--latency: %v", err)
		}
	}
	if err := o.parseTags(keep); err != nil {
		return err
	}
	mode, err := cli.ParseDemangle(o.demangle, "simple")
	o.parsed.Count, o.parsed.Demangler = o.count, demangle.New(mode)
	return err
}

// expressionError is an error of regexp without the words of that package.
func expressionError(err error) error {
	var e *syntax.Error
	if errors.As(err, &e) {
		return fmt.Errorf("not a regular expression: %s in `%s`", e.Code, e.Expr)
	}
	return err
}

// checkShare checks --min-share.
func checkShare(percent float64) error {
	if !(percent >= 0 && percent <= 100) {
		return cli.Usagef("--min-share %v: it is a percentage", percent)
	}
	return nil
}

// calls returns the parsed options for a profile.
func (o *selectOptions) calls(s *cli.Session, p *ingest.Profile) calltree.Options {
	opts := o.parsed
	opts.Event = s.Event(p)
	return opts
}

// treeCalls is calls for trees and pages of profiles, the first of which has the event: without --by,
// several programs are their roots.
func (o *selectOptions) treeCalls(s *cli.Session, profiles ...*ingest.Profile) calltree.Options {
	opts := o.calls(s, profiles[0])
	if o.by == "" {
		opts.By = calltree.TreeBy(opts.Event, profiles...)
	}
	return opts
}

// callReport is a table or tree that is printed as text or JSON.
type callReport interface {
	WriteText(io.Writer, table.Style) error
	WriteJSON(io.Writer) error
	Unmatched() []string
}

// warnFolded prints the filters that match nothing on either side, and whether the sides count
// different things.
func warnFolded(a *cli.App, f *diff.Folded) {
	warnUnmatched(a, f.Unmatched())
	warnModes(a, f)
}

// warnModes prints whether the sides count different things.
func warnModes(a *cli.App, f *diff.Folded) {
	if text := f.OtherModes(); text != "" {
		a.Warn(text, "")
	}
}

// warnUnmatched prints the filters that matched nothing.
func warnUnmatched(a *cli.App, names []string) {
	of := "function, file or object"
	if slices.ContainsFunc(names, func(s string) bool { return strings.HasPrefix(s, "tag-") }) {
		of = "label"
	}
	switch len(names) {
	case 0:
	case 1:
		a.Warn(fmt.Sprintf("--%s matches no %s", names[0], of), "")
	default:
		a.Warn("nothing matches --"+strings.Join(names, " or --"), "")
	}
}

// writeReport writes a report.
func writeReport(a *cli.App, r callReport, to *cli.Result) error {
	warnUnmatched(a, r.Unmatched())
	return a.WriteOutput(to.Output, false, func(w io.Writer) error {
		switch {
		case to.Format == cli.JSON:
			return r.WriteJSON(w)
		case to.Output != "" && to.Output != "-":
			return r.WriteText(w, table.Style{})
		}
		return r.WriteText(w, a.Style())
	})
}
