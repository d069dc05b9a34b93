package pprofui

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"symbolize/analyze/report"
	"symbolize/ingest"
	"symbolize/ingest/format/pprof"
)

// Options are for Serve.
type Options struct {
	Write     pprof.WriteOptions // how the profile is written; Demangle is set by Demangler
	Demangler *report.Demangler
	// Code loads the instructions and source of listings, when the first is requested.
	Code func() (*Code, error)
	// SourcePath lists directories of source files, separated by colons.
	SourcePath string
	// Page is the page at the root, which leads to pprof's pages at /ui/; without it the root is
	// pprof's.
	Page []byte
	// Report gets messages for people.
	Report func(text string)
}

// Serve serves pprof's pages about a profile at a listener of this host until the context ends,
// which is no error. It closes the listener. Only requests that name the listener's own address
// are answered, so that no page of elsewhere can read the profile under another name.
func Serve(ctx context.Context, p *ingest.Profile, ln net.Listener, opts Options) error {
	defer ln.Close()
	opts.Write.Demangle = opts.Demangler.Name
	var b bytes.Buffer
	if err := pprof.Write(&b, p, opts.Write); err != nil {
		return err
	}
	prof, err := profile.Parse(&b)
	if err != nil {
		return fmt.Errorf("own pprof output: %w", err)
	}
	s := &server{ctx: ctx, listener: ln, page: opts.Page}
	flags := &flagSet{FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError), args: []string{
		"-http=" + ln.Addr().String(), "-no_browser", "-symbolize=none",
		"-source_path=" + opts.SourcePath, "profile"}}
	err = driver.PProf(&driver.Options{
		Writer: noFiles{}, Flagset: flags, Fetch: fetched{prof}, UI: messages{opts.Report},
		Sym: named{}, Obj: newObjects(p, prof, opts.Code, opts.Demangler),
		HTTPServer: s.serve,
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// server answers requests with pprof's pages.
type server struct {
	ctx      context.Context
	listener net.Listener
	page     []byte
}

// readTimeout bounds the time for a request's head.
const readTimeout = 10 * time.Second

func (s *server) serve(args *driver.HTTPServerArgs) error {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := args.Handlers[r.URL.Path]
		switch {
		case slices.Contains(changes[:], r.URL.Path):
			http.Error(w, "views are not kept: the address of the page has them", http.StatusForbidden)
		case h == nil:
			http.NotFound(w, r)
		default:
			h.ServeHTTP(w, r)
		}
	})
	mux := http.NewServeMux()
	mux.Handle("/ui/", http.StripPrefix("/ui", pages))
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent) // browsers ask for it and complain
	})
	if s.page == nil {
		mux.Handle("/{$}", http.RedirectHandler("/ui/", http.StatusTemporaryRedirect))
	} else {
		mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write(s.page)
		})
	}
	srv := &http.Server{Handler: s.own(mux), ReadHeaderTimeout: readTimeout}
	stop := context.AfterFunc(s.ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// changes are pprof's pages that write a file of settings in the user's directory.
var changes = [...]string{"/saveconfig", "/deleteconfig"}

// fromElsewhere reports whether a page of another site makes a request in the background. A link
// there to a page here is followed: the site sees nothing of it.
func fromElsewhere(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
	}
	origin := r.Header.Get("Origin")
	return origin != "" && origin != "http://"+r.Host
}

// policy is the Content-Security-Policy of pprof's pages. Their scripts and styles are inline; they
// load nothing and only send requests to this server.
const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " +
	"img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// own refuses requests that are for another name than this host's, and sets the policy of pages.
func (s *server) own(h http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "127.0.0.1:"+port && r.Host != "localhost:"+port {
			http.Error(w, "this server answers for 127.0.0.1 alone", http.StatusForbidden)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead || fromElsewhere(r) {
			http.Error(w, "this server answers its own pages alone", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// flagSet gives pprof its command line.
type flagSet struct {
	*flag.FlagSet
	args []string
}

func (f *flagSet) StringList(name, value, usage string) *[]*string {
	return &[]*string{f.String(name, value, usage)}
}
func (f *flagSet) ExtraUsage() string   { return "" }
func (f *flagSet) AddExtraUsage(string) {}
func (f *flagSet) Parse(func()) []string {
	if f.FlagSet.Parse(f.args) != nil {
		return nil
	}
	return f.Args()
}

// fetched is the profile for any name.
type fetched struct{ prof *profile.Profile }

func (f fetched) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return f.prof, "", nil
}

// named leaves the names as they are.
type named struct{}

func (named) Symbolize(string, driver.MappingSources, *profile.Profile) error { return nil }

// noFiles refuses to write files.
type noFiles struct{}

func (noFiles) Open(name string) (io.WriteCloser, error) {
	return nil, fmt.Errorf("%s: no files are written", name)
}

// messages hands pprof's texts on.
type messages struct{ report func(string) }

func (messages) ReadLine(string) (string, error) { return "", io.EOF }
func (messages) Print(...any)                    {}
func (messages) IsTerminal() bool                { return false }
func (messages) WantBrowser() bool               { return false }
func (messages) SetAutoComplete(func(string) string) {
}
func (m messages) PrintErr(args ...any) {
	m.report(strings.TrimSpace(fmt.Sprintln(args...)))
}
