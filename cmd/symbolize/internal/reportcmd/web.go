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

	"symbolize/analyze/demangle"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
)

type webOptions struct {
	cli.InputOptions
	port      int
	open      bool
	sourceDir []string
	demangle  string

	mode demangle.Mode // demangle parsed
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
		g, err := makePage(ctx, s, captures, pageOptions{keep: o.Keep, code: true,
			sourceDir: o.sourceDir, demangler: demangle.New(o.mode)})
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
