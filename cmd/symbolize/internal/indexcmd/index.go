// Package indexcmd has the commands that put symbols of files into the store: `index`, and `fetch`,
// which gets the files first.
package indexcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"symbolize/analyze"
	"symbolize/analyze/inspect"
	"symbolize/analyze/lookup"
	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/indexer"
)

type indexOptions struct {
	brief      bool // absent files are not listed
	kernel     bool
	kernelID   string
	debugRoots []string
	captures   []string     // of --for
	stacks     cli.StackMap // of stack maps among them
	symfs      []string
	bccDirs    []string
	noDebug    bool
	jobs       int
	maxMemory  cli.Size
	namesOnly  bool
	demangle   bool
	noUnwind   bool
	calls      bool
	types      bool
	quality    bool
	explain    bool
	strict     bool
	again      bool
	writer     db.WriterOptions
	format     string

	kallsymsID buildid.ID // kernelID parsed
}

const indexLong = `index puts the symbols of files and directories into the store, by build ID. It reads ELF files of
any machine, separate debug files, kernel modules, vmlinux, kallsyms texts, BPF object files,
perf's ~/.debug, debuginfod's cache, and lists of JIT compilers (perf-PID.map, jit-PID.dump). From a
capture it keeps the BPF programs. Unchanged files cost one stat; an interrupted run loses at most
the files in progress.

Exit status: 0 done; 1 nothing could be done; 2 usage; 3 a PATH is unreadable, a file failed in this
run (no space in $TMPDIR, no memory, no descriptors, a read error) or, with --strict, a file is
damaged; 130 interrupted.`

// NewIndex makes the command `index`.
func NewIndex(a *cli.App) *cobra.Command {
	o := &indexOptions{}
	cmd := &cobra.Command{
		Use:         "index PATH…",
		Annotations: map[string]string{cli.WritesAnnotation: "store"},
		Short:       "Put the symbols of files and directories into the store",
		Long:        indexLong,
		GroupID:     cli.GroupMain,
		Example: "  symbolize index /usr/lib /usr/bin\n" +
			"  symbolize index --kernel\n" +
			"  symbolize index --for perf.data\n" +
			"  symbolize index perf.data\n" +
			"  symbolize index --explain ./build\n" +
			"  symbolize index --debug-root /srv/debug ./build",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			if o.explain {
				return runExplain(ctx, a, o, args)
			}
			return runIndex(ctx, a, o, args)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *indexOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&o.kernel, "kernel", false,
		"index the running kernel too: /proc/kallsyms, modules, vdso")
	fs.StringArrayVar(&o.captures, "for", nil,
		"index the files of this host that `CAPTURE` needs, and its BPF programs; more captures may follow as PATHs")
	fs.Var((*cli.Dirs)(&o.symfs), "symfs",
		"with --for: search `DIR` for the files first; may be repeated")
	fs.StringVar(&o.kernelID, "build-id", "",
		"build `ID` of the kernel of kallsyms texts among the paths")
	fs.Var((*cli.Dirs)(&o.debugRoots), "debug-root",
		"search `DIR` for separate debug files (default /usr/lib/debug); may be repeated")
	fs.BoolVar(&o.noDebug, "no-debug-root", false, "do not search for separate debug files outside the paths")
	fs.BoolVar(&o.again, "again", false, "read all files, also unchanged ones")
	fs.BoolVar(&o.strict, "strict", false, "exit with 3 if any file is damaged or unreadable")
	fs.BoolVar(&o.namesOnly, "names-only", false,
		"omit lines and inlined calls; with --no-unwind a fifth of the time and space")
	fs.BoolVar(&o.demangle, "demangle", false,
		"also store demangled names of debug information, for look-ups of many addresses")
	fs.BoolVar(&o.calls, "calls", false, "add tables of calls, by which stacks of frame pointers are checked "+
		"on any host")
	fs.BoolVar(&o.types, "types", false, "add tables of the types and members that instructions access, for "+
		"--by type and --by field on any host")
	fs.BoolVar(&o.noUnwind, "no-unwind", false,
		"omit unwind tables, which stacks of perf record --call-graph dwarf need")
	fs.BoolVar(&o.quality, "quality", false,
		"print what each object resolves to: lines, names or nothing")
	fs.BoolVar(&o.explain, "explain", false,
		"index nothing: list files with a build ID that kernels cannot read, and the fix")
	cli.AddBCCDirs(fs, &o.bccDirs)
	o.stacks.AddTo(fs)
	cli.AddWriter(fs, &o.writer)
	cli.ShowWriter(fs)
	cli.AddWork(fs, &o.jobs, &o.maxMemory)
	cli.AddFormat(cmd, &o.format, cli.Text, cli.JSON)
	cmd.MarkFlagsMutuallyExclusive("debug-root", "no-debug-root")
	cmd.MarkFlagsMutuallyExclusive("demangle", "names-only")
	cmd.MarkFlagsMutuallyExclusive("demangle", "no-unwind")
	cmd.MarkFlagsMutuallyExclusive("calls", "no-unwind")
	cmd.MarkFlagsMutuallyExclusive("calls", "names-only")
	cmd.MarkFlagsMutuallyExclusive("types", "names-only")
	cmd.MarkFlagsMutuallyExclusive("types", "no-unwind")
}

func (o *indexOptions) validate(args []string) error {
	if len(args)+len(o.bccDirs)+len(o.captures) == 0 && !o.kernel {
		return texts.WithHint(cli.Usagef("nothing to index"),
			"name files or directories: `symbolize index /usr/lib /usr/bin`, "+
				"or use --kernel")
	}
	if slices.Contains(args, "") {
		return cli.Usagef("a PATH is empty")
	}
	if len(o.symfs) > 0 && len(o.captures) == 0 {
		return texts.WithHint(cli.Usagef("--symfs needs --for"),
			"name directories without a flag to index all of them")
	}
	if o.explain && (len(args) == 0 || o.kernel) {
		return cli.Usagef("--explain is about files and directories: name some, without --kernel")
	}
	if o.kernelID != "" {
		id, err := buildid.Parse(o.kernelID)
		if err != nil {
			return cli.Usagef("--build-id: %v", err)
		}
		o.kallsymsID = id
	}
	if err := cmp.Or(cli.CheckJobs(o.jobs), o.stacks.Parse(nil)); err != nil {
		return err
	}
	if flag := o.stacks.Parsed.Given(); flag != "" && len(o.captures) == 0 {
		return cli.Usagef("%s needs --for: it is for dumps of stack maps", flag)
	}
	return nil
}

// splitCaptures moves the captures among the paths to --for, if given, and returns the rest: for
// `--for *.data` the shell gives the flag only the first one.
func (o *indexOptions) splitCaptures(paths []string) []string {
	if len(o.captures) == 0 {
		return paths
	}
	more, rest := analyze.SplitCaptures(paths)
	o.captures = append(o.captures, more...)
	return rest
}

// readStore opens the store for reading; r is nil if there is none, or one that must be written anew.
func readStore(a *cli.App, path string) (r *db.Reader, view store.View, demangled func(buildid.ID) bool,
	err error) {
	r, err = db.OpenReader(path)
	switch {
	case errors.Is(err, store.ErrNoStore) || errors.Is(err, store.ErrDamaged):
		return nil, nil, nil, nil
	case err != nil:
		return nil, nil, nil, cli.StoreError(err)
	}
	a.WarnStore(r)
	if demangled, err = r.Demangled(); err != nil {
		a.Warn(err.Error(), "")
	}
	return r, r, demangled, nil
}

// For indexes the files of this host that captures need, as index --for does.
func For(ctx context.Context, a *cli.App, captures []string) error {
	return runIndex(ctx, a, &indexOptions{captures: captures, brief: true,
		writer: db.WriterOptions{LockTimeout: cli.LockTimeout}}, nil)
}

func runIndex(ctx context.Context, a *cli.App, o *indexOptions, paths []string) (err error) {
	path, err := a.StorePath()
	if err != nil {
		return err
	}
	process.LimitMemory(int64(o.maxMemory))
	process.SetGC(a.Env.Getenv, process.WriteGC)
	paths = o.splitCaptures(paths)
	a.WarnEmpty("debug-root", o.debugRoots)
	need, err := filesFor(ctx, a, o, path)
	if err != nil {
		return err
	}
	paths = append(slices.Clip(paths), need.paths...)
	r, view, demangled, err := readStore(a, path)
	if err != nil {
		return err
	}
	if r != nil {
		defer r.Close()
	}
	var writer *db.Writer
	open := openOnce(func() (store.Sink, error) {
		var err error
		writer, err = a.OpenWriter(ctx, path, o.writer)
		return writer, err
	})
	captures, files := analyze.SplitCaptures(paths)
	bar := a.StartProgress("index", "objects")
	opts := o.indexer(bar, demangled)
	need.apply(&opts)
	problems, opened := openBundles(ctx, captures, &opts)
	defer opened.Close()
	sum, err := indexer.Index(ctx, files, view, open, opts)
	bar.Stop()
	need.unname(sum.Problems)
	sum.Problems = append(sum.Problems, problems...)
	var captured *captureResult
	if err == nil {
		captured, err = indexCaptures(ctx, captures, opened, open, sum, o.types)
	}
	if err == nil {
		err = need.indexJIT(ctx, open, sum)
	}
	if err == nil {
		err = addBCC(ctx, a, o.bccDirs, open, sum)
	}
	if err == nil && r != nil && r.Stale() {
		_, err = open()
	}
	if writer != nil {
		// Objects merged before an error are whole and worth publishing.
		err = errors.Join(err, writer.Close())
		a.WarnStore(writer)
	}
	if err == nil {
		markSeen(a, path, sum)
	}
	err = reportIndex(a, o, path, len(paths), sum, captured, cli.StoreError(err))
	return need.report(a, o, err)
}

// markSeen notes that the objects of an index run are in use, unchanged ones too.
func markSeen(a *cli.App, path string, sum *indexer.Summary) {
	if len(sum.Seen) == 0 {
		return
	}
	if err := db.MarkUsed(path, sum.Seen); err != nil {
		a.Warn(err.Error(), analyze.MarkHint)
	}
}

// indexer returns the options of an index run. The names of objects in demangled, which may be nil,
// are stored demangled, too.
func (o *indexOptions) indexer(bar *cli.Bar, demangled func(buildid.ID) bool) indexer.Options {
	opts := indexer.Options{
		Workers: o.jobs, MaxMemory: int64(o.maxMemory), DebugRoots: o.debugRoots,
		NamesOnly: o.namesOnly, NoUnwind: o.noUnwind, Quality: o.quality, Kernel: o.kernel,
		Calls: o.calls, Types: o.types,
		KallsymsID: o.kallsymsID, Again: o.again, Progress: bar.Update(),
	}
	switch {
	case o.demangle:
		opts.Demangler = lookup.Stored()
	case demangled != nil && !o.namesOnly && !o.noUnwind:
		opts.Demangler, opts.DemangleOnly = lookup.Stored(), demangled
	}
	if o.noDebug {
		opts.DebugRoots = []string{}
	}
	return opts
}

// reportIndex prints the summary and decides about the exit status. It is printed
// whatever came of the run.
func reportIndex(a *cli.App, o *indexOptions, path string, named int, sum *indexer.Summary,
	captured *captureResult, err error) error {
	failed, run := 0, 0
	for _, p := range sum.Problems {
		if p.Named {
			failed++
		}
		if p.Run {
			run++
		}
	}
	a.Partial = a.Partial || failed+run > 0 || o.strict && len(sum.Problems) > 0
	if err == nil && failed > 0 && failed == max(named, 1) && sum.ELF == 0 && sum.Objects == 0 {
		p := sum.Problems[0]
		err = texts.WithHint(p, "%s", p.Hint)
		sum.Problems = sum.Problems[1:]
	}
	if o.quality && o.format == cli.Text && sum != nil {
		qualityErr := a.WriteOutput("", false, func(w io.Writer) error {
			return writeQuality(w, sum.Quality)
		})
		if qualityErr != nil {
			return cmp.Or(err, qualityErr)
		}
	}
	if o.format == cli.JSON {
		jsonErr := texts.WriteJSON(a.Stdout(), "index/1", indexJSON(a, path, sum, captured, err))
		if jsonErr != nil {
			return cmp.Or(err, jsonErr)
		}
	}
	if !a.Quiet {
		a.PrintProblems(sum.Problems)
		if o.format == cli.Text && (err == nil || sum.Read > 0) {
			writeIndexSummary(a.Env.Stderr, path, sum, captured)
		}
	}
	return err
}

// writeIndexSummary writes counts of files found, tables made and files skipped.
func writeIndexSummary(w io.Writer, path string, s *indexer.Summary, c *captureResult) {
	t := table.New()
	if s.Programs > 0 {
		t.Row("bcc", table.Count(s.Programs, "BPF program", "BPF programs")+" with source")
	}
	if c == nil && s.Programs == 0 || s.Files+s.Objects > 0 {
		t.Row("found", fmt.Sprintf("%s in %s, of %s in %s", table.Count(s.Objects, "object",
			"objects"),
			table.Count(s.ELF, "ELF file", "ELF files"), table.Count(s.Files, "file", "files"),
			table.Count(s.Dirs, "directory", "directories")))
		t.Row("read", table.Join(", ",
			table.Count(s.Read, "file", "files"), table.Bytes(s.Raw),
			table.Some(s.Debug, "debug file", "debug files"),
			table.Some(s.Modules, "kernel module", "kernel modules"),
			table.Some(s.Kernels, "kernel", "kernels"),
			table.Some(s.Unchanged, "unchanged since the last run",
				"unchanged since the last run")))
	}
	if s.Read > 0 {
		t.Row("made", table.Join(", ",
			fmt.Sprintf("%d functions, %s stored", s.Functions, table.Bytes(s.Stored)),
			table.Counts(s.Sources)))
	}
	if s.NoBuildID+s.Nameless > 0 {
		t.Row("of these", table.Join(", ",
			table.Some(s.NoBuildID, "without a build ID, kept under the hash of its content",
				"without a build ID, kept under the hash of their content"),
			table.Some(s.Nameless, "without any symbol", "without any symbol")))
	}
	t.Field("compiled", table.Some(s.JIT, "list of code compiled at run time",
		"lists of code compiled at run time"))
	t.Field("demangled", table.Some(s.Demangled, "file, for look-ups", "files, for look-ups"))
	t.Field("skipped", table.Counts(s.Skipped))
	if c != nil {
		t.Field("captured", c.text())
	}
	t.Row("store", path)
	t.Print(w) // stderr: there is nowhere to report a failure to
}

// writeQuality writes the quality of each object's symbols, a line each.
func writeQuality(w io.Writer, list []indexer.ObjectQuality) error {
	t := table.New().Names(3)
	t.Row("QUALITY", "SOURCE", "BUILD ID", "PATH")
	for _, q := range list {
		t.Row(q.Quality.String(), q.Best.String(), q.ID.String(), q.Path)
	}
	return t.Print(w)
}

// runExplain lists the files with a build ID that kernels cannot read. It indexes nothing.
func runExplain(ctx context.Context, a *cli.App, o *indexOptions, paths []string) error {
	x, err := inspect.Invisible(ctx, paths)
	if err != nil {
		return err
	}
	a.Partial = len(x.Problems) > 0
	if o.format == cli.JSON {
		return texts.WriteJSON(a.Stdout(), "index-explain/1", x)
	}
	cli.WarnEach(a, x.Problems, func(p inspect.Problem) (text, hint string) {
		return p.Error, ""
	}, cli.MoreLikeThese)
	return x.WriteText(a.Stdout())
}
