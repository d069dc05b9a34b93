package reportcmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"symbolize/analyze/code"
	"symbolize/analyze/flame"
	"symbolize/analyze/report"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

type webOptions struct {
	cli.InputOptions
	port      int
	open      bool
	sourceDir []string
	demangle  string

	mode report.Mode // demangle parsed
}

const webLong = `web serves the page of report about captures or profiles. It listens on 127.0.0.1 only, prints the
address, and ends with ^C; --open starts a browser. pprof's own pages are those of go tool pprof -http
about the file that resolve writes.` + cli.CaptureStatus

// NewWeb makes the command `web`.
func NewWeb(a *cli.App) *cobra.Command {
	o := &webOptions{}
	cmd := &cobra.Command{
		Use:     "web [CAPTURE|PROFILE…]",
		Short:   "Show a profile in the browser: the page of report",
		Long:    webLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize web --open perf.data\n  symbolize web --port 8080 --source-dir ~/src x.pb.gz",
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
	fs.BoolVar(&o.open, "open", false, "open the page in a browser")
	fs.Var((*cli.Dirs)(&o.sourceDir), "source-dir",
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
	o.Keep = ingest.Keep{PID: true, Tags: ingest.AllLabels}
	o.mode, err = cli.ParseDemangle(o.demangle, "simple")
	return cmp.Or(o.InputOptions.Validate(args), err)
}

func runWeb(ctx context.Context, a *cli.App, o *webOptions, paths []string) error {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return err
	}
	defer ln.Close()
	return a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session, captures []string) error {
		g, err := o.load(ctx, s, captures, reportPage{keep: o.Keep, demangler: report.NewDemangler(o.mode)})
		if err != nil {
			return err
		}
		var page bytes.Buffer
		if err := g.WriteHTML(&page); err != nil {
			return err
		}
		url := fmt.Sprintf("http://%s/", ln.Addr())
		a.PrintHeld()
		a.Print("note", url+" is served until ^C")
		if o.open {
			if err := openBrowser(url); err != nil {
				a.Warn("--open: "+err.Error(), "")
			}
		}
		return servePage(ctx, ln, page.Bytes())
	})
}

// load reads and names the captures, and makes their page: of a single one with its times, and of
// one without names of its own, as pprof files have, with code.
func (o *webOptions) load(ctx context.Context, s *cli.Session, captures []string, page reportPage) (
	g *flame.Graph, err error) {
	if len(captures) != 1 {
		p, err := s.Load(ctx, captures)
		if err != nil {
			return nil, err
		}
		o.printAdvice(s, p)
		return newReport(ctx, s, p, nil, nil, page)
	}
	err = s.Each(ctx, captures, func(c *input.Capture, folded *ingest.Profile) (err error) {
		var finder *code.Finder
		if folded.Names == nil {
			finder = code.NewFinder(ctx, codeOptions(s, o.sourceDir))
			defer finder.Close()
			addCode(finder, c, folded)
		}
		p, err := s.Name(ctx, folded)
		if err != nil {
			return err
		}
		if finder != nil {
			finder.Machine = p.Meta.Arch
		}
		o.printAdvice(s, p)
		g, err = newReport(ctx, s, p, c, finder, page)
		return err
	})
	return g, err
}

func (o *webOptions) printAdvice(s *cli.Session, p *ingest.Profile) {
	s.PrintWarnings(p)
	s.PrintAdvice(p)
}

// openBrowser starts the browser that the user has chosen.
func openBrowser(url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() // a browser may run as long as this program
	return nil
}
