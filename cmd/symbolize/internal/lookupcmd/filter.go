package lookupcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze"
	"symbolize/analyze/demangle"
	"symbolize/analyze/filter"
	"symbolize/analyze/resolve"
	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

type filterOptions struct {
	input    cli.InputOptions // of it: with, names, NoInlines, jobs, MaxMemory
	kernel   string
	demangle string
	exact    bool
	summary  string

	kernelID buildid.ID    // kernel parsed
	mode     demangle.Mode // demangle parsed
}

const filterLong = `filter copies its input to standard output and adds names to the code addresses in it, from the
store, from --with, and from files of this host that have the build IDs in the text. It reads the
files, one after another, or standard input, which is also the file -. All other bytes stay as they are. Lines are printed as they arrive: dmesg -w | symbolize filter.

It knows stack traces of kernels, bpftrace, Inspektor Gadget, systing, LLVM's sanitizers and
symbolizer markup, gdb, Rust and Go, and crash reports of Android, systemd-coredump, glibc and the
kernel; docs/symbolize-filter.md lists the forms. A file without a build ID in the text is found by its name if
exactly one file of --with has that name, or by its absolute path with --trust-paths. Addresses of a
process are looked up in the mappings that precede them in the text.

Source lines follow in parentheses, inlined calls first: parse+0x12 (peek at lex.h:3, parse.c:97).
Addresses in stacks are looked up one byte before, except where the code was interrupted; --exact
looks up all addresses as they are. Addresses without a name are counted on stderr.

Exit status: 0 done, even if addresses have no name; 1 failed; 2 usage; 3 a table is damaged, the
others were used; 130 interrupted.`

// NewFilter makes the command `filter`.
func NewFilter(a *cli.App) *cobra.Command {
	o := &filterOptions{}
	cmd := &cobra.Command{
		Use:     "filter [FILE…]",
		Short:   "Add names to text: stack traces, crash reports, output of tracers",
		Long:    filterLong,
		GroupID: cli.GroupLook,
		Example: "  dmesg -w | symbolize filter\n" +
			"  bpftrace -e 'profile:hz:99 { @[ustack(build_id)] = count(); }' | " +
			"symbolize filter\n" +
			"  symbolize filter --with capture.data oops.txt",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return runFilter(ctx, a, o, args)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *filterOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&o.input.With, "with", nil,
		"read symbols from `PATH` before the store: files, directories, bundles; may be repeated")
	cli.AddBCCDirs(fs, &o.input.BCCDirs)
	fs.StringVar(&o.kernel, "kernel", "",
		"build `ID` of the kernel in traces that do not name it")
	fs.BoolVar(&o.input.TrustPaths, "trust-paths", false,
		"where the text has no build ID, assume that the file now at an absolute path is the one that ran")
	fs.BoolVar(&o.input.NoLocal, "no-local", false,
		"do not search this host for files that the store and --with lack")
	o.input.Remote.AddFlag(fs)
	fs.BoolVar(&o.exact, "exact", false, "look up all addresses as they are, none as a return address")
	cli.AddNames(cmd, &o.input.Names, "`symbols` (the default) or dwarf")
	cli.AddDemangle(cmd, &o.demangle, "simple")
	fs.BoolVar(&o.input.NoInlines, "no-inlines", false, "leave out inlined calls")
	fs.StringVar(&o.summary, "summary", "", "write the counts of named and unnamed addresses to `FILE`, "+
		"as JSON")
	cli.AddWork(fs, &o.input.Jobs, &o.input.MaxMemory)
}

func (o *filterOptions) validate() (err error) {
	if o.summary == "-" {
		return texts.WithHint(cli.Usagef("--summary -: standard output has the text"), "name a file")
	}
	if o.kernel != "" {
		if o.kernelID, err = buildid.Parse(o.kernel); err != nil {
			return cli.Usagef("--kernel: %v", err)
		}
	}
	if o.input.Names != "" {
		if o.input.NamePolicy, err = resolve.ParseNamePolicy(o.input.Names); err != nil {
			return err
		}
	}
	if err := cli.CheckJobs(o.input.Jobs); err != nil {
		return err
	}
	o.mode, err = cli.ParseDemangle(o.demangle, "simple")
	return err
}

// filterLines reads the text to filter. A line above its bound is passed on in pieces, cut
// between words where it has any.
var filterLines = Reader{Read: 256 << 10, Batch: 4 << 20, Line: 256 << 10,
	Long: func(line []byte) (int, error) {
		if cut := bytes.LastIndexAny(line, " \t") + 1; cut > 0 {
			return cut, nil
		}
		return len(line), nil
	}}

// openTexts opens the files to filter, standard input if there are none.
func openTexts(a *cli.App, paths []string) (inputs []io.Reader, closeAll func(), err error) {
	var opened []*os.File
	closeAll = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	for _, path := range paths {
		if path == "-" {
			inputs = append(inputs, a.Env.Stdin)
			continue
		}
		f, err := files.Open(path)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		opened, inputs = append(opened, f), append(inputs, f)
	}
	if len(paths) == 0 {
		inputs = []io.Reader{a.Env.Stdin}
	}
	return inputs, closeAll, nil
}

func runFilter(ctx context.Context, a *cli.App, o *filterOptions, paths []string) error {
	inputs, closeAll, err := openTexts(a, paths)
	if err != nil {
		return err
	}
	defer closeAll()
	s, err := a.OpenSession(ctx, &o.input)
	if err != nil {
		return err
	}
	search := s.Search(ctx)
	r := filter.New(search, filter.Options{
		Names: o.input.NamePolicy, Demangle: o.mode, NoInlines: o.input.NoInlines, Exact: o.exact,
		Kernel: o.kernelID, Files: filesNamed(ctx, a, search), Programs: s.State().Programs(),
	})
	out := a.Stdout()
	for i := 0; i < len(inputs) && err == nil; i++ {
		err = filterLines.Each(ctx, inputs[i], func(text []byte) error { return r.Rewrite(out, text) })
	}
	for _, text := range r.Conflicts() {
		a.Warn(text, resolve.ConflictHint)
	}
	for _, text := range r.Problems() {
		a.Damage(text, damageHint)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		printFilter(a, r.Stats())
		if o.summary != "" {
			err = errors.Join(err, a.WriteOutput(o.summary, false, func(w io.Writer) error {
				return texts.WriteJSON(w, "filter-summary/1", r.Stats().Facts())
			}))
		}
	}
	return errors.Join(err, s.Close())
}

// filesNamed returns the Files of filter.Options. Each name is looked up once: text repeats names.
func filesNamed(ctx context.Context, a *cli.App, search analyze.Search) func(string) []buildid.ID {
	const most = 1 << 12 // names that are kept
	known := make(map[string][]buildid.ID)
	return func(name string) []buildid.ID {
		ids, ok := known[name]
		if ok {
			return ids
		}
		ids, err := search.FilesNamed(ctx, name)
		if err != nil {
			a.Damage(err.Error(), cli.Hint(err))
		}
		if len(known) >= most {
			clear(known)
		}
		known[name] = ids
		return ids
	}
}

// leftShown is how many of the objects that could not be named are listed.
const leftShown = 10

// printFilter prints the summary.
func printFilter(a *cli.App, st *filter.Stats) {
	if st.Places == 0 {
		a.Note("no code address found in the text: docs/symbolize-filter.md lists the forms")
		return
	}
	text := fmt.Sprintf("%d of %s named", st.Named, table.Count(st.Places, "place", "places"))
	if st.Probable > 0 {
		text += fmt.Sprintf(", %d of them probably: BPF functions, known by tag or name alone",
			st.Probable)
	}
	if st.ByFile > 0 {
		text += fmt.Sprintf(", %d of them by the file's name alone: the text has no build ID of it",
			st.ByFile)
	}
	a.Note(text)
	left := st.Sorted()
	for i := range left[:min(len(left), leftShown)] {
		l := &left[i]
		object := cmp.Or(l.Object, l.Module, "no known object")
		if l.Object != "" && l.Module != "" {
			object = l.Module + " " + l.Object
		}
		a.Note(fmt.Sprintf("left: %d in %s: %s", l.Places, object, l.Reason))
	}
	if n := len(left) - leftShown; n > 0 {
		a.Note(fmt.Sprintf("left: %s more", table.Count(n, "object", "objects")))
	}
	if hint := filterHint(left); hint != "" && !a.Quiet {
		a.Print("hint", hint)
	}
}

// filterHint returns the fix for most of the places left without a name.
func filterHint(left []filter.Left) string {
	if len(left) == 0 {
		return ""
	}
	return strings.TrimSpace(left[0].Hint())
}
