package indexcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"symbolize/analyze/advice"
	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
	"symbolize/store/db"
	"symbolize/store/debuginfod"
	"symbolize/store/remote"
)

type fetchOptions struct {
	servers   []string
	dryRun    bool
	namesOnly bool
	format    string
	jobs      int
	requests  int
	list      string
	ids       []string // of --build-id
	maxMemory cli.Size
	writer    db.WriterOptions
}

const fetchLong = `fetch downloads the files that captures need from debuginfod servers, by build ID, puts their
symbols into the store and lists each file. Servers are --server, else $DEBUGINFOD_URLS. No other
command connects to them. Files are kept in the cache of debuginfod's client.

Exit status: 0 done, even if no server has a file; 1 failed; 2 usage; 3 a server failed or sent a
file with another build ID, or a capture is damaged or unreadable; 130 interrupted.`

// NewFetch makes the command `fetch`.
func NewFetch(a *cli.App) *cobra.Command {
	o := &fetchOptions{}
	cmd := &cobra.Command{
		Use:         "fetch [CAPTURE…]",
		Annotations: map[string]string{cli.WritesAnnotation: "store"},
		Short:       "Download the files that captures need from debuginfod servers",
		Long:        fetchLong,
		GroupID:     cli.GroupMain,
		Example: "  symbolize fetch --dry-run perf.data\n" +
			"  symbolize fetch --server https://debuginfod.debian.net perf.data",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if len(args) == 0 && o.list == "" && len(o.ids) == 0 {
				return cli.ErrNoCapture()
			}
			return runFetch(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&o.servers, "server", nil, "ask the server at `URL`; may be repeated")
	fs.BoolVar(&o.dryRun, "dry-run", false, "list the needed files, without a connection")
	fs.BoolVar(&o.namesOnly, "names-only", false,
		"download symbol tables instead of debug information where servers offer sections: a "+
			"tenth of the bytes, without lines and inlined calls")
	fs.StringVar(&o.list, "list", "", "download what `FILE` lists: the JSON of missing, or of missing "+
		"--over; - is standard input")
	fs.StringArrayVar(&o.ids, "build-id", nil, "download the files of the object with build `ID`; may be "+
		"repeated")
	fs.IntVar(&o.requests, "requests", remote.DefaultJobs, "download at most `N` files at a time")
	cli.AddFormat(cmd, &o.format, cli.Text, cli.JSON)
	cli.AddWriter(fs, &o.writer)
	cli.AddWork(fs, &o.jobs, &o.maxMemory)
	return cmd
}

// fetchFacts is the JSON of fetch.
type fetchFacts struct {
	Files []wantedFile `json:"files"`
}

const fetchSchema = "fetch/1"

// wantedFile is a file that captures lack names of. Its JSON names are an interface.
type wantedFile struct {
	BuildID string `json:"build_id"`
	Kind    string `json:"kind"` // "executable", "debuginfo", "symbols"
	Object  string `json:"object"`
	Frames  uint64 `json:"frames"` // without a name, because the file is missing
	Outcome string `json:"outcome,omitempty"`
	Path    string `json:"path,omitempty"`
	Error   string `json:"error,omitempty"`

	id  buildid.ID
	err error
}

func runFetch(ctx context.Context, a *cli.App, o *fetchOptions, captures []string) error {
	opts, err := debuginfodOptions(a, o.servers)
	if err != nil {
		return err
	}
	if o.requests < 1 {
		return cli.Usagef("--requests %d: it is at least 1", o.requests)
	}
	if len(opts.Servers) == 0 && !o.dryRun {
		return texts.WithHint(cli.Usagef("no server is named"),
			"--server https://debuginfod.debian.net, or the one of your distribution; or $DEBUGINFOD_URLS")
	}
	wanted, err := o.wanted(ctx, a, captures)
	if err != nil {
		return err
	}
	if o.namesOnly {
		for i := range wanted {
			if f := &wanted[i]; f.Kind == string(debuginfod.Debuginfo) {
				f.Kind = string(debuginfod.Symbols)
			}
		}
	}
	if o.dryRun {
		return a.WriteFacts(o.format, fetchSchema, fetchFacts{wanted}, func(w io.Writer) error {
			return listWanted(w, wanted)
		})
	}
	paths, err := fetchFiles(ctx, a, opts, o, wanted)
	if err == nil && o.format == cli.JSON {
		err = a.WriteFacts(o.format, fetchSchema, fetchFacts{wanted}, nil)
	}
	if err != nil || len(paths) == 0 {
		return err
	}
	// The captures, too: debug information is of no use without the file that was found here.
	return runIndex(ctx, a, &indexOptions{captures: captures, jobs: o.jobs, maxMemory: o.maxMemory,
		writer: o.writer}, paths)
}

// debuginfodOptions are the settings of the environment.
func debuginfodOptions(a *cli.App, servers []string) (debuginfod.Options, error) {
	opts, err := debuginfod.FromEnv(a.Env.Getenv)
	if err != nil {
		return opts, cli.Usagef("%v", err)
	}
	if len(servers) > 0 {
		opts.Servers = servers
	}
	caches := a.Places(nil, true).Debuginfod
	if len(caches) == 0 {
		return opts, texts.WithHint(errors.New("no directory for the cache of debuginfod's client"),
			"set HOME, XDG_CACHE_HOME or DEBUGINFOD_CACHE_PATH")
	}
	opts.Cache, err = filepath.Abs(caches[0])
	return opts, err
}

// arrivals shows how much of all files has come.
type arrivals struct {
	bar   *cli.Bar
	mu    sync.Mutex
	now   remote.Progress
	files map[string][2]int64 // the bytes of a URL that have come, and all
}

// part is debuginfod.Options.Progress. A download that is repeated begins at 0 again.
func (r *arrivals) part(url string, got, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	total = max(got, total)
	r.now.Bytes += got - r.files[url][0]
	r.now.Size += total - r.files[url][1]
	r.files[url] = [2]int64{got, total}
	r.bar.Show(r.now)
}

// done counts a file, whatever came of it.
func (r *arrivals) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Done++
	r.bar.Show(r.now)
}

// wanted lists the missing files of captures and of --list, those of most frames first.
func (o *fetchOptions) wanted(ctx context.Context, a *cli.App, captures []string) ([]wantedFile, error) {
	list := []wantedFile{}
	if o.list != "" {
		c, err := o.readList(a)
		if err != nil {
			return nil, texts.WithHint(fmt.Errorf("%s: %w", texts.Printable(o.list), err),
				"`symbolize missing --over --format json DIR` writes such a list")
		}
		list = appendWanted(list, c)
	}
	for _, text := range o.ids {
		id, err := buildid.Parse(text)
		if err != nil || id.Space() != buildid.GNU {
			return nil, cli.Usagef("--build-id %q: it is 40 hexadecimal digits, or as many as the file has", text)
		}
		list = appendWanted(list, &advice.Coverage{Missing: []advice.Missing{{BuildID: id.String(),
			Reason: ingest.NotIndexed.String()}}})
	}
	if len(captures) == 0 {
		return list, nil
	}
	// Files that the cache has are missing in the store: a run before may have been killed between.
	in := &cli.InputOptions{Jobs: o.jobs, MaxMemory: o.maxMemory, NoCache: true}
	err := a.WithSession(ctx, in, captures, func(s *cli.Session, captures []string) error {
		p, err := s.Load(ctx, captures)
		if err != nil {
			return err
		}
		a.PrintWarnings(p)
		list = appendWanted(list, advice.NewCoverage(p, advice.CoverageOptions{Count: true}))
		return nil
	})
	return list, err
}

// readList reads --list.
func (o *fetchOptions) readList(a *cli.App) (*advice.Coverage, error) {
	in, err := a.OpenInput(o.list)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var c advice.Coverage
	return &c, json.NewDecoder(in).Decode(&c)
}

// appendWanted appends the files with the missing symbols, each once.
func appendWanted(list []wantedFile, c *advice.Coverage) []wantedFile {
	known := make(map[[2]string]bool)
	for i := range list {
		known[[2]string{list[i].BuildID, list[i].Kind}] = true
	}
	for _, m := range c.Missing {
		id, err := buildid.Parse(m.BuildID)
		if err != nil || id.Space() != buildid.GNU || !id.Exact() {
			continue
		}
		for _, kind := range kindsFor(m.Reason) {
			f := wantedFile{BuildID: id.String(), Kind: string(kind), Object: m.Object,
				Frames: m.Frames, id: id}
			if k := [2]string{f.BuildID, f.Kind}; !known[k] {
				known[k] = true
				list = append(list, f)
			}
		}
	}
	return list
}

// kindsFor returns which files of an object help against a reason.
func kindsFor(reason string) []debuginfod.Kind {
	switch reason {
	case ingest.NotIndexed.String(), ingest.Mismatch.String():
		return []debuginfod.Kind{debuginfod.Executable, debuginfod.Debuginfo}
	case ingest.Stripped.String():
		return []debuginfod.Kind{debuginfod.Debuginfo}
	case ingest.LayoutUnknown.String(), ingest.NoUnwindTable.String():
		return []debuginfod.Kind{debuginfod.Executable}
	}
	return nil
}

func listWanted(w io.Writer, list []wantedFile) error {
	for _, f := range list {
		_, err := fmt.Fprintf(w, "%s  %-10s  %s, %s\n", f.BuildID, f.Kind, texts.OneLine(f.Object),
			table.Count(f.Frames, "frame", "frames"))
		if err != nil {
			return err
		}
	}
	return nil
}

// fetchFile gets one file. Where no server has a symbol table for itself it gets the whole debug
// information.
func fetchFile(ctx context.Context, c *debuginfod.Client, f *wantedFile) (path string, fetched bool, err error) {
	if f.Kind != string(debuginfod.Symbols) {
		return c.Get(ctx, f.id, debuginfod.Kind(f.Kind))
	}
	if path, fetched, err = c.GetSymbols(ctx, f.id); !errors.Is(err, debuginfod.ErrNotFound) {
		return path, fetched, err
	}
	f.Kind = string(debuginfod.Debuginfo)
	return c.Get(ctx, f.id, debuginfod.Debuginfo)
}

// fetchFiles downloads files, sets and lists the outcome of each, and returns the paths of the existing
// ones.
func fetchFiles(ctx context.Context, a *cli.App, opts debuginfod.Options, o *fetchOptions,
	list []wantedFile) (paths []string, err error) {
	shown := &arrivals{bar: a.StartProgress("fetch", "files"),
		now: remote.Progress{Objects: len(list)}, files: make(map[string][2]int64)}
	opts.Progress = shown.part
	c := debuginfod.New(opts, nil)
	err = fetchEach(ctx, o.requests, list, func(ctx context.Context, f *wantedFile) error {
		path, fetched, err := fetchFile(ctx, c, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.Outcome = "fetched"
		switch {
		case errors.Is(err, debuginfod.ErrNotFound):
			f.Outcome = "no server has it"
		case err != nil:
			f.Outcome, f.Error, f.err = "failed", texts.OneLine(err.Error()), err
		case !fetched:
			f.Outcome = "in the cache"
		}
		if err == nil {
			f.Path = path
		}
		shown.done()
		return nil
	})
	shown.bar.Stop()
	for i := range list {
		f := &list[i]
		if f.err != nil {
			a.Partial = true
			a.FailInput("", f.err)
		}
		if f.Path != "" {
			paths = append(paths, f.Path)
		}
		if f.Outcome != "" && o.format != cli.JSON {
			_, failed := fmt.Fprintf(a.Stdout(), "%s  %-10s  %s: %s\n", f.BuildID, f.Kind,
				texts.OneLine(f.Object), f.Outcome)
			err = cmp.Or(err, failed)
		}
	}
	return paths, err
}

// fetchEach calls get for files, several at a time but one after another for those of a build ID.
func fetchEach(ctx context.Context, requests int, list []wantedFile,
	get func(context.Context, *wantedFile) error) error {
	byID := make(map[buildid.ID][]int)
	var ids []buildid.ID
	for i := range list {
		id := list[i].id
		if byID[id] == nil {
			ids = append(ids, id)
		}
		byID[id] = append(byID[id], i)
	}
	return files.Each(ctx, requests, len(ids), func(ctx context.Context, n int) error {
		for _, i := range byID[ids[n]] {
			if err := get(ctx, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
}
