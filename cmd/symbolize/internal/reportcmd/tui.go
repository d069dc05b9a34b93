package reportcmd

import (
	"bytes"
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/annotate"
	"symbolize/analyze/calltree"
	"symbolize/analyze/code"
	"symbolize/analyze/table"
	"symbolize/analyze/tui"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
)

type tuiOptions struct {
	cli.InputOptions
	selectOptions
	sourceDir []string
}

const tuiLong = `tui shows captures or profiles in the terminal: a table of functions that unfold into their callers,
trees of calls, annotated code, and the missing names. h lists the keys, which are those of perf
report where it has them.` + cli.CaptureStatus

// NewTUI makes the command `tui`.
func NewTUI(a *cli.App) *cobra.Command {
	o := &tuiOptions{}
	cmd := &cobra.Command{
		Use:     "tui [CAPTURE|PROFILE…]",
		Short:   "Look at functions, calls and code in the terminal, as in perf report",
		Long:    tuiLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize tui perf.data\n" +
			"  symbolize tui --time 10%-20% --source-dir ~/src perf.data",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(a, args); err != nil {
				return err
			}
			return runTUI(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Var((*cli.Dirs)(&o.sourceDir), "source-dir",
		"search `DIR` for source files; may be repeated")
	o.selectOptions.addFlags(cmd)
	o.InputOptions.AddFlags(cmd)
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
	return cmd
}

func (o *tuiOptions) validate(a *cli.App, args []string) error {
	if !a.Env.StdoutTerminal {
		return texts.WithHint(cli.Usagef("tui needs a terminal"),
			"`symbolize top` and `symbolize tree` write into files and pipes")
	}
	return cmp.Or(o.InputOptions.Validate(args), o.selectOptions.parse(&o.Keep))
}

func runTUI(ctx context.Context, a *cli.App, o *tuiOptions, paths []string) error {
	return a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session, captures []string) error {
		finder := code.NewFinder(ctx, codeOptions(s, o.sourceDir))
		defer finder.Close()
		p, hasCode, err := o.load(ctx, s, captures, finder)
		if err != nil {
			return err
		}
		s.PrintAdvice(p)
		s.PrintWarnings(p)
		opts := tui.Options{Title: ingest.BaseName(captures[0]), Calls: o.treeCalls(s, p),
			Color: a.Colour(), Missing: func(width int) (string, error) {
				var b bytes.Buffer
				err := s.Coverage(p, o.count).WriteMissing(&table.Styled{Writer: &b,
					Style: table.Style{Width: width}})
				return b.String(), err
			}}
		if hasCode {
			opts.Annotate = func(n *calltree.Node, event int, stacks bool) (string, error) {
				return o.annotated(p, finder, n, event, stacks)
			}
		}
		screen, err := tui.NewScreen()
		if err != nil {
			return texts.WithHint(err, "TERM names the terminal; `symbolize top` needs none")
		}
		return tui.New(p, screen, opts).Run(ctx)
	})
}

// load reads and names the captures, and adds their programs to the finder. Names of pprof files
// stay, but lack the functions' bounds: there is no code then.
func (o *tuiOptions) load(ctx context.Context, s *cli.Session, captures []string,
	f *code.Finder) (p *ingest.Profile, hasCode bool, err error) {
	var profiles []*ingest.Profile
	hasCode = true
	err = s.Each(ctx, captures, func(c *input.Capture, p *ingest.Profile) error {
		profiles = append(profiles, p)
		if p.Names != nil {
			hasCode = false
			return nil
		}
		addCode(f, c, p)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	p, err = nameCode(ctx, s, f, profiles...)
	return p, hasCode, err
}

// annotated is the code of a node as annotate prints it.
func (o *tuiOptions) annotated(p *ingest.Profile, f *code.Finder, n *calltree.Node, event int,
	stacks bool) (string, error) {
	choose := func(list []annotate.HotFunction) (chosen []annotate.HotFunction) {
		for i := range list {
			object := &p.Objects[list[i].Object]
			if list[i].Name() == n.SystemName && (n.BuildID == "" || object.ID.String() == n.BuildID) {
				chosen = append(chosen, list[i])
			}
		}
		return chosen
	}
	an := annotate.New(p, f, annotate.Options{Event: event, Count: o.count, Children: stacks,
		Choose: choose, Demangler: o.parsed.Demangler})
	var b strings.Builder
	err := an.WriteText(&b, annotate.TextStyle{Colour: true})
	return b.String(), err
}
