// Package lookupcmd has the commands that name addresses without a capture: `lookup` for addresses
// of an object, `filter` for addresses in text.
package lookupcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze"
	"symbolize/analyze/lookup"
	"symbolize/analyze/resolve"
	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/indexer"
)

type lookupOptions struct {
	lookup.Options
	file    string
	buildID string
	noLocal bool
	vars    bool
	probes  []string
	with    []string
	remote  cli.RemoteFlag

	style    string
	format   string
	names    string
	demangle string
	aliases  toolFlags

	jobs      int
	maxMemory cli.Size
}

// The words of --style.
const (
	styleLLVM = "llvm"
	styleGNU  = "gnu"
	styleJSON = "json"
)

// lookupStyles are by lookup.Style.
var lookupStyles = []string{lookup.LLVM: styleLLVM, lookup.GNU: styleGNU, lookup.JSON: styleJSON}

// queryLines reads queries. Addresses of a batch are sorted, so that each chunk of a table is
// read once.
var queryLines = Reader{Read: 1 << 20, Batch: 8 << 20, Line: 64 << 10,
	Long: func([]byte) (int, error) { return 0, errLongQuery }}

var errLongQuery = errors.New("a line is longer than 64 KiB")

const lookupLong = `lookup prints function, file and line for addresses of one object, inlined calls first. Addresses
are hexadecimal ELF addresses: arguments, or lines of standard input.

The object is a file (-e) or the object with a build ID. Without either, arguments or input lines
name it as for llvm-symbolizer: FILE ADDR, "FILE" ADDR, CODE "FILE" ADDR or BUILDID:ID ADDR. Symbols
come from the store if it has lines for the object, else from the file and its separate debug files.

Exit status: 0 done, even if addresses are unknown; 1 failed; 2 usage; 3 the object is damaged, the
readable part was used; 130 interrupted.`

// NewLookup makes the command `lookup`.
func NewLookup(a *cli.App) *cobra.Command {
	o := &lookupOptions{}
	cmd := &cobra.Command{
		Use:     "lookup [-e FILE|--build-id ID] [ADDR…|'FILE ADDR'…]",
		Short:   "Print function, file and line of addresses, as addr2line does",
		Long:    lookupLong,
		GroupID: cli.GroupLook,
		Example: "  symbolize lookup -e ./server 0x401136\n" +
			"  symbolize lookup -e ./server --vars 0x401136\n" +
			"  symbolize lookup -e ./server --probe 'handle_request conn len'\n" +
			"  symbolize lookup --build-id 93ac61ec5a8e… --offsets < offsets.txt\n" +
			"  symbolize lookup -e ext4.ko --section .text 0x11f34",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			if o.file == "" && o.buildID == "" {
				return runLookupMany(ctx, a, o, args)
			}
			return runLookup(ctx, a, o, args)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *lookupOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.file, "exe", "e", "", "the object: `FILE`, plain or compressed")
	fs.StringVar(&o.buildID, "build-id", "",
		"the object: the one with build `ID`, or its first 8 digits, in the store or on this host; "+
			"or the BPF function with this tag")
	fs.StringArrayVar(&o.with, "with", nil, "with build IDs: read symbols from `PATH` before the store: files, "+
		"directories, bundles; may be repeated")
	fs.BoolVar(&o.noLocal, "no-local", false, "with build IDs: do not search this host for files")
	o.remote.AddFlag(fs)
	fs.BoolVar(&o.Offsets, "offsets", false,
		"addresses are file offsets, or for kernels offsets from _text")
	fs.StringVar(&o.Section, "section", "", "addresses are offsets in section `NAME`")
	fs.StringVar(&o.style, "style", styleLLVM, "print as `STYLE`: llvm-symbolizer --inlines (llvm) or --output-style=JSON (json), addr2line -f -i -C (gnu)")
	cli.Complete(cmd, "style", lookupStyles)
	cli.AddFormat(cmd, &o.format, cli.Text, cli.JSON)
	fs.Lookup("format").Usage = "`FORMAT` of the output: text, in the form of --style, or json, " +
		"the same as --style json"
	cli.AddNames(cmd, &o.names, "`symbols` or dwarf (default as the style's tool does)")
	cli.AddDemangle(cmd, &o.demangle, "full")
	fs.BoolVar(&o.vars, "vars", false,
		"print parameters and variables in scope at each address with type and place, from DWARF or BTF")
	fs.StringArrayVar(&o.probes, "probe", nil, "print probes at a `PLACE [VARIABLE…]`, one argument, as perf probe -D: "+
		"FUNCTION, FUNCTION+OFFSET, FUNCTION:LINE, FUNCTION%return, FILE:LINE; may be repeated")
	fs.BoolVar(&o.NoInlines, "no-inlines", false, "leave out inlined calls")
	cli.AddWork(fs, &o.jobs, &o.maxMemory)
	o.aliases.addFlags(fs, &o.Options)
}

func (o *lookupOptions) validate(args []string) (err error) {
	switch {
	case o.file == "" && o.buildID == "" && slices.ContainsFunc(args, isAddress):
		return texts.WithHint(cli.Usagef("no object is named"),
			"name a file with -e, or one in the store "+
				"with --build-id")
	case len(o.probes) > 0 && (o.file == "" && o.buildID == "" || len(args) > 0 || o.vars):
		return cli.Usagef("--probe needs -e or --build-id, and no addresses")
	case len(o.probes) > 0 && (o.format == cli.JSON || o.style == styleJSON):
		return cli.Usagef("--probe prints text only")
	case o.vars && (len(args) == 0 || o.file == "" && o.buildID == ""):
		return cli.Usagef("--vars needs -e or --build-id, and addresses as arguments")
	case o.file != "" && len(o.with) > 0:
		return cli.Usagef("--with is for build IDs: -e names the file")
	case o.file != "" && o.buildID != "":
		return cli.Usagef("-e and --build-id exclude each other")
	case o.Offsets && o.Section != "":
		return cli.Usagef("--offsets and --section exclude each other")
	}
	if o.buildID != "" {
		_, isTag := bpf.ParseTag(o.buildID)
		if _, err = buildid.Parse(o.buildID); err != nil && !isHex(o.buildID) && !isPrefix(o.buildID) && !isTag {
			return cli.Usagef("--build-id: %v", err)
		}
		if isHex(o.buildID) && len(o.buildID) < minPrefix {
			return cli.Usagef("--build-id %s: at least %d digits are needed", o.buildID, minPrefix)
		}
	}
	o.style = strings.ToLower(o.style) // llvm-symbolizer's are GNU, JSON, LLVM
	if o.format == cli.JSON {
		o.style = styleJSON
	}
	err = cmp.Or(
		cli.CheckWord("--style", o.style, lookupStyles), cli.CheckJobs(o.jobs),
		o.aliases.apply(o))
	if err != nil {
		return err
	}
	o.Style = lookup.Style(slices.Index(lookupStyles, o.style))
	switch {
	case o.names != "":
		o.OwnNames = true
		if o.Names, err = resolve.ParseNamePolicy(o.names); err != nil {
			return err
		}
	case o.Style == lookup.GNU:
		o.Names = resolve.DWARFNames
	}
	o.Demangle, err = cli.ParseDemangle(o.demangle, "full")
	return err
}

func runLookup(ctx context.Context, a *cli.App, o *lookupOptions, args []string) (err error) {
	process.LimitMemory(int64(o.maxMemory))
	process.SetGC(a.Env.Getenv, process.HastyGC)
	reader, err := lookupStore(a, o.file == "" && a.Local(nil, o.noLocal) == nil &&
		!o.remote.Given(a) && len(o.with) == 0)
	if err != nil {
		return err
	}
	if reader != nil {
		defer func() { err = cmp.Or(err, closeUsed(a, reader)) }()
	}
	if len(args) > 0 || len(o.probes) > 0 {
		o.Only = args
		if args == nil {
			o.Only = []string{}
		}
	}
	obj, ids, err := openLookup(ctx, a, o, reader)
	defer func() { err = cmp.Or(err, ids.close()) }()
	if err != nil {
		return lookupError(err)
	}
	if len(o.probes) > 0 {
		text, failed := lookup.Probes(ctx, obj, o.probes, &o.Options)
		return errors.Join(failed, a.WriteOutput("", false, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		}), obj.Close())
	}
	if o.vars {
		return errors.Join(lookupVariables(ctx, a, o, obj, args), obj.Close())
	}
	l := lookup.New(obj, &o.Options)
	defer l.Close()
	if o.maxMemory == 0 && a.Env.Getenv("GOMEMLIMIT") == "" {
		l.AfterBatch = process.HoldLookupMemory
		process.HoldLookupMemory()
	}
	if len(args) > 0 {
		err = a.WriteOutput("", false, func(w io.Writer) error { return l.Arguments(w, args) })
	} else {
		w := a.Stdout()
		err = queryLines.Each(ctx, a.Env.Stdin, func(text []byte) error { return l.Lines(w, text) })
	}
	reportLookup(a, l, reader)
	return err
}

// openLookup opens the object that the options name, and the source of one that is named by build
// ID, which the caller closes, also after an error. reader may be nil.
func openLookup(ctx context.Context, a *cli.App, o *lookupOptions, reader *db.Reader) (
	*lookup.Object, *idSource, error) {
	if o.file != "" {
		obj, err := lookup.OpenFile(ctx, viewOf(reader), o.file, lookupIndex(a, o), &o.Options)
		return obj, nil, err
	}
	ids, err := newIDSource(ctx, a, o, reader)
	if err != nil {
		return nil, nil, err
	}
	view, id, err := ids.find(o.buildID)
	if err != nil {
		return nil, ids, err
	}
	obj, err := lookup.OpenID(view, id, o.buildID, &o.Options)
	return obj, ids, err
}

// viewOf returns the view of a reader, nil without one.
func viewOf(reader *db.Reader) store.View {
	if reader == nil {
		return nil
	}
	return reader
}

// lookupIndex returns the function that indexes a file into an overlay of its own.
func lookupIndex(a *cli.App, o *lookupOptions) lookup.Index {
	return func(ctx context.Context, path string,
		only func(*store.Manifest) ([]addr.Addr, bool)) (store.View, error) {
		s, err := analyze.Open(ctx, a.SessionOptions(&cli.InputOptions{Jobs: o.jobs,
			MaxMemory: o.maxMemory, Columns: true}))
		if err != nil {
			return nil, err
		}
		err = s.Index(ctx, []string{path}, indexer.Options{Relocatable: true, NoUnwind: true, Only: only})
		a.Partial = a.Partial || s.State().Partial
		return s.View(), err
	}
}

// lookupStore opens the store. Unless it is needed there may be none: nil then.
func lookupStore(a *cli.App, needed bool) (*db.Reader, error) {
	path, err := a.StorePath()
	if err == nil {
		var reader *db.Reader
		if reader, err = a.OpenReader(path); err == nil {
			return reader, nil
		}
	}
	if needed || path != "" && !errors.Is(err, store.ErrNoStore) {
		return nil, cli.StoreError(err)
	}
	return nil, nil
}

// lookupError adds hints to errors of opening an object.
func lookupError(err error) error {
	var id *lookup.IDError
	if errors.As(err, &id) && id.Matches == 0 {
		return texts.WithHint(err,
			"`symbolize index PATH…` takes it in; `symbolize store ls` lists "+
				"what is there")
	}
	return cli.StoreError(err)
}

const damageHint = "`symbolize store verify` lists the damage"

// reportLookup warns of damage in an object that was looked into, and of a missing debug file. It
// notes in the store, which may be nil, that its names were demangled.
func reportLookup(a *cli.App, l *lookup.Looker, reader *db.Reader) {
	if id, ok := l.WantsStored(); ok && reader != nil {
		if err := reader.MarkDemangled(id); err != nil {
			a.Warn(err.Error(), "")
		}
	}
	if damage := l.Damage(); damage != "" {
		a.Damage(damage, "")
	}
	if text := l.Conflict(); text != "" {
		a.Warn(text, resolve.ConflictHint)
	}
	for _, text := range l.Problems() {
		a.Damage(text, damageHint)
	}
	if n, step := l.Stripped(); n > 0 {
		a.Warn(fmt.Sprintf("%s without a function: %s is stripped, and its debug file was not found",
			table.Count(n, "address", "addresses"), l.Module()), step)
	}
}

// isAddress reports whether an argument is an address and nothing else.
func isAddress(arg string) bool {
	arg = strings.TrimSpace(arg)
	return !strings.Contains(arg, " ") && isHex(strings.TrimPrefix(strings.ToLower(arg), "0x"))
}

// runLookupMany answers arguments, or lines of standard input, that name their objects.
func runLookupMany(ctx context.Context, a *cli.App, o *lookupOptions, args []string) (err error) {
	process.LimitMemory(int64(o.maxMemory))
	process.SetGC(a.Env.Getenv, process.HastyGC)
	reader, err := lookupStore(a, false)
	if err != nil {
		return err
	}
	if reader != nil {
		defer func() { err = cmp.Or(err, closeUsed(a, reader)) }()
	}
	m := lookup.NewFiles(ctx, viewOf(reader), lookupIndex(a, o), &o.Options)
	m.Finish = func(l *lookup.Looker) { reportLookup(a, l, reader) }
	ids, err := newIDSource(ctx, a, o, reader)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, ids.close()) }()
	m.ByID = ids.find
	m.Fail = func(err error) {
		a.Partial = true
		err = lookupError(err)
		a.Warn(err.Error(), cli.Hint(err))
	}
	defer func() { err = cmp.Or(err, m.Close()) }()
	if len(args) > 0 {
		return a.WriteOutput("", false, func(w io.Writer) error { return m.Arguments(w, args) })
	}
	w := a.Stdout()
	return queryLines.Each(ctx, a.Env.Stdin, func(text []byte) error { return m.Lines(w, text) })
}

// closeUsed notes the objects that were used, as sessions do, and closes the store.
func closeUsed(a *cli.App, r *db.Reader) error {
	if err := r.MarkUsed(); err != nil {
		a.Warn(err.Error(), analyze.MarkHint)
	}
	return r.Close()
}
