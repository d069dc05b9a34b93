package reportcmd

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/code"
	"symbolize/analyze/pprofui"
	"symbolize/analyze/report"
	"symbolize/analyze/resolve"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
)

type webOptions struct {
	cli.InputOptions
	port      int
	sourceDir []string
	demangle  string

	mode report.Mode // demangle parsed
}

const webLong = `web serves pprof's pages over captures or profiles: graph, flame graph, top, source and
disassembly. It listens on 127.0.0.1 only, prints the address, and ends with ^C. The graph needs dot
of Graphviz.` + cli.CaptureStatus

// NewWeb makes the command `web`.
func NewWeb(a *cli.App) *cobra.Command {
	o := &webOptions{}
	cmd := &cobra.Command{
		Use:     "web CAPTURE|PROFILE…",
		Short:   "Show a profile in the browser, with pprof's pages",
		Long:    webLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize web perf.data\n  symbolize web --port 8080 --source-dir ~/src x.pb.gz",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return runWeb(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVar(&o.port, "port", 0, "listen on `PORT`; 0 chooses a free one")
	fs.StringArrayVar(&o.sourceDir, "source-dir", nil,
		"search `DIR` for source files; may be repeated")
	o.InputOptions.AddFlags(cmd)
	cli.AddDemangle(cmd, &o.demangle, "simple")
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
	return cmd
}

func (o *webOptions) validate(args []string) (err error) {
	if o.port < 0 || o.port > 65535 {
		return cli.Usagef("--port %d: it is from 0 to 65535", o.port)
	}
	o.mode, err = cli.ParseDemangle(o.demangle, "simple")
	return cmp.Or(o.InputOptions.Validate(args), err)
}

func runWeb(ctx context.Context, a *cli.App, o *webOptions, paths []string) error {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return err
	}
	defer ln.Close()
	return a.WithProfile(ctx, &o.InputOptions, paths, func(s *cli.Session,
		p *ingest.Profile) error {
		finder := code.NewFinder(ctx, codeOptions(s, o.sourceDir))
		defer finder.Close()
		demangler := report.NewDemangler(o.mode)
		demangler.Warm(p)
		opts := pprofui.Options{Demangler: demangler, Write: resolve.Layout(s.View(), p),
			SourcePath: strings.Join(o.sourceDir, ":"),
			Report:     func(text string) { a.Print("warning", text) },
			Code: func() (*pprofui.Code, error) {
				p, err := loadCode(ctx, s, o.Opened.Captures, finder)
				return &pprofui.Code{Profile: p, Source: finder}, err
			}}
		a.Print("note", fmt.Sprintf("http://%s/ is served until ^C", ln.Addr()))
		return pprofui.Serve(ctx, p, ln, opts)
	})
}
