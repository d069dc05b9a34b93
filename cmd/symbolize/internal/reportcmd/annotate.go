package reportcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze"
	"symbolize/analyze/annotate"
	"symbolize/analyze/code"
	"symbolize/analyze/demangle"
	"symbolize/analyze/disasm"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/suggest"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
	"symbolize/store/bpfprog"
)

type annotateOptions struct {
	cli.InputOptions
	format    string
	output    string
	limit     int
	image     int
	children  bool
	count     bool
	addresses bool
	bytes     bool
	types     bool
	syntax    string
	layers    string
	sourceDir []string
	demangle  string

	captures []string
	patterns []code.Pattern
	mode     demangle.Mode   // demangle parsed
	writing  disasm.Syntax   // syntax parsed
	shown    annotate.Layers // layers parsed
}

const annotateLong = `annotate prints the instructions of functions with their share of the function's samples, and the
source lines between them. Code and C lines of BPF programs come from the capture, a bundle or the
store; code of user and kernel functions comes from a file with the recorded build ID: one of --with,
at the recorded path, or where index read it.

PATTERN is a name, a glob or a regular expression for whole names (main, 'bpf_prog_.*'), or a BPF
program by its ID (123, id:123) or tag (tag:91621db7a64bdc62). If no whole name matches, it is the
end or a part of a name, of which the hottest function is printed. An inlined function is printed for
each place where it was inlined. The default is the hottest function. Arguments are captures as long
as such files exist.

A sample counts for the interrupted instruction; skid of the processor is not corrected.

Exit status: 0 done; 1 failed, or no function has code; 2 usage; 3 a capture is damaged or
unreadable, the others were used; 130 interrupted.`

// pageFunctions is how many functions a page has by default.
const pageFunctions = 10

// pageTypes is how many types --types prints.
const pageTypes = 10

// NewAnnotate makes the command `annotate`.
func NewAnnotate(a *cli.App) *cobra.Command {
	o := &annotateOptions{}
	cmd := &cobra.Command{
		Use:     "annotate [CAPTURE…] [PATTERN…]",
		Short:   "Print the instructions and source lines of functions with their samples",
		Long:    annotateLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize annotate perf.data 'bpf_prog_.*'\n" +
			"  symbolize annotate -o x.html --source-dir ~/src perf.data\n" +
			"  symbolize annotate --source-dir ~/src perf.data main\n" +
			"  symbolize annotate --format json bundle.tar id:123",
	}
	cmd.RunE = a.RunE(func(ctx context.Context, args []string) error {
		if !cmd.Flags().Changed("format") && filepath.Ext(o.output) == ".html" {
			o.format = cli.HTML
		}
		if err := o.validate(args); err != nil {
			return err
		}
		return runAnnotate(ctx, a, o)
	})
	o.addFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteFunctions(a, &o.InputOptions)
	return cmd
}

func (o *annotateOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	cli.AddLimit(fs, &o.limit, -1,
		"annotate the `N` hottest functions; 0 for all "+
			"(default: without a pattern 1, of HTML 10; else all)")
	fs.BoolVar(&o.children, "children", false,
		"count samples for all frames of their stacks, not only for the leaf")
	fs.StringVar(&o.layers, "layers", "c,asm",
		"print these `LAYERS` of BPF programs: c,bpf,asm has the BPF instructions, too")
	fs.IntVar(&o.image, "image", 1, "print the instructions of image `N` of a BPF program that several hosts loaded")
	fs.BoolVar(&o.addresses, "addresses", false,
		"print addresses in place of offsets from the function's start")
	fs.BoolVar(&o.bytes, "asm-raw", false, "print the bytes of the instructions")
	fs.BoolVar(&o.types, "types", false, "print the types and members that instructions access")
	o.syntax = disasm.Syntaxes[0]
	cli.AddChoice(cmd, &o.syntax, "syntax", "`SYNTAX` of x86 instructions: att or intel",
		disasm.Syntaxes...)
	fs.Var((*cli.Dirs)(&o.sourceDir), "source-dir",
		"search `DIR` for source files, by their paths or the ends of these; may be repeated")
	cli.AddFormat(cmd, &o.format, cli.Text, cli.JSON, cli.HTML)
	cli.AddOutput(fs, &o.output)
	o.InputOptions.AddFlags(cmd)
	cli.AddCount(fs, &o.count)
	cli.AddDemangle(cmd, &o.demangle, "simple")
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
}

func (o *annotateOptions) validate(args []string) (err error) {
	if err := patternFirst(args); err != nil {
		return err
	}
	o.captures = args[:cli.CaptureArgs(args)]
	for _, text := range args[len(o.captures):] {
		p, err := code.ParsePattern(text)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		o.patterns = append(o.patterns, p)
	}
	o.Loads, o.Keep.Access = code.Loads(o.patterns), o.types
	if err := cmp.Or(
		o.InputOptions.Validate(o.captures),
	); err != nil {
		return err
	}
	switch {
	case o.image < 1:
		return cli.Usagef("--image %d: images are numbered from 1", o.image)
	case o.limit < -1:
		return cli.Usagef("-n %d: it is at least 0", o.limit)
	case o.limit < 0 && len(o.patterns) == 0 && o.format == cli.HTML:
		o.limit = pageFunctions
	case o.limit < 0 && len(o.patterns) == 0:
		o.limit = 1
	}
	if o.writing, err = disasm.ParseSyntax(o.syntax); err != nil {
		return err
	}
	if o.shown, err = annotate.ParseLayers(o.layers); err != nil {
		return cli.Usagef("--layers: %w", err)
	}
	o.mode, err = cli.ParseDemangle(o.demangle, "simple")
	return err
}

// patternFirst returns an error for a pattern before the captures: a word that is neither a file
// nor named like the captures.
func patternFirst(args []string) error {
	captures, rest := analyze.SplitCaptures(args)
	if len(captures) == 0 || args[0] == "-" || strings.Contains(args[0], "/") ||
		filepath.Ext(args[0]) == filepath.Ext(captures[0]) {
		return nil
	}
	if _, err := os.Stat(args[0]); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	words := slices.Concat(captures, rest)
	for i := range words {
		words[i] = texts.ShellWord(words[i])
	}
	return texts.WithHint(cli.Usagef("%s is not a file: captures come first, then patterns", args[0]),
		"symbolize annotate %s", strings.Join(words, " "))
}

func runAnnotate(ctx context.Context, a *cli.App, o *annotateOptions) error {
	return a.WithSession(ctx, &o.InputOptions, o.captures, func(s *cli.Session,
		captures []string) error {
		o.captures = captures
		return o.annotate(ctx, s)
	})
}

// annotate writes the functions that the patterns select.
func (o *annotateOptions) annotate(ctx context.Context, s *cli.Session) error {
	a := s.App
	s.AllowEmpty = true // captured programs can be shown without samples
	finder := code.NewFinder(ctx, codeOptions(s, o.sourceDir))
	defer finder.Close()
	p, err := loadCode(ctx, s, o.captures, finder)
	if err != nil {
		return err
	}
	opts := annotate.Options{
		Event: s.Event(p), Count: o.count, Children: o.children, Limit: max(o.limit, 0), Image: o.image,
		Syntax: o.writing, Demangler: demangle.New(o.mode),
	}
	types := s.DataTypes(ctx)
	if o.types {
		types.Load(p)
		opts.Access = types.Texts
	}
	chooser := finder.Chooser(p, o.patterns, opts.Demangler)
	if len(o.patterns) > 0 {
		chooser.Count, chooser.Names = o.count, 1
		if o.limit >= 0 {
			chooser.Names = o.limit
		}
		opts.Choose = chooser.Choose
	}
	s.PrintWarnings(p)
	an := annotate.New(p, finder, opts)
	if objects, list := finder.Matching(o.patterns, ingest.ObjectID(len(p.Objects))); len(list) > 0 &&
		len(an.Functions)+len(an.Missing) == 0 {
		idle := *p
		idle.Objects = slices.Concat(p.Objects, objects)
		opts.Choose = func([]annotate.HotFunction) []annotate.HotFunction { return list }
		an = annotate.New(&idle, finder, opts)
		a.Note("no samples are in this code: it is shown as it was captured")
	}
	noteNewer(s.App, finder)
	if len(an.Functions)+len(an.Missing) == 0 {
		return o.nothing(p, chooser, &opts)
	}
	if others := chooser.Others; len(others) > 0 {
		a.Note(fmt.Sprintf("%s, with fewer samples: %s; a whole name selects one",
			table.Count(len(others), "other function matches", "other functions match"),
			cli.Some(others)))
	}
	if o.types {
		an.Types = types.Layouts(p, opts.Event, o.count, pageTypes)
	}
	err = a.WriteOutput(o.output, false, func(w io.Writer) error {
		switch o.format {
		case cli.JSON:
			return an.WriteJSON(w)
		case cli.HTML:
			return annotate.WriteHTML(w, an)
		}
		return an.WriteText(w, annotate.TextStyle{Addresses: o.addresses, Bytes: o.bytes,
			Layers: o.shown, Colour: o.output == "" && a.Colour()})
	})
	if err != nil {
		return err
	}
	a.PrintOtherEvents(p, opts.Event)
	if len(an.Functions) == 0 {
		m := &an.Missing[0]
		return texts.WithHint(fmt.Errorf("%s: %s", m.Name, m.Reason), "%s", m.Hint)
	}
	return nil
}

// noteNewer prints which source files were not used.
func noteNewer(a *cli.App, f *code.Finder) {
	for _, text := range f.Newer() {
		a.Warn(text, "--source-dir DIR takes it all the same, below DIR")
	}
}

// codeOptions are the places in which code is searched.
func codeOptions(s *cli.Session, sourceDirs []string) code.Options {
	s.App.WarnEmpty("source-dir", sourceDirs)
	_, with := analyze.SplitBundles(s.Options.With)
	return code.Options{View: s.View(), Bundles: s.State().Bundles,
		Paths: slices.Concat(with, s.Options.Symfs, s.Options.Vmlinux), SourceDirs: sourceDirs,
		Recorded: s.App.Local(nil, s.Options.NoLocal) != nil,
		Names:    s.Options.NamePolicy, NoInlines: s.Options.NoInlines}
}

// loadCode reads the captures, adds their programs to the finder and names the locations. Names
// of a pprof file are not used: they lack the functions' bounds.
func loadCode(ctx context.Context, s *cli.Session, paths []string, f *code.Finder) (
	*ingest.Profile, error) {
	var profiles []*ingest.Profile
	err := s.Each(ctx, paths, func(capture *input.Capture, p *ingest.Profile) error {
		addCode(f, capture, p)
		profiles = append(profiles, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return nameCode(ctx, s, f, profiles...)
}

// addCode adds the programs of a capture to the finder.
func addCode(f *code.Finder, capture *input.Capture, p *ingest.Profile) {
	p.Names = nil
	path := capture.Path()
	f.AddKernel(capture, p)
	f.Add(path, bpfprog.CaptureInfoOf(path, capture).Machine, capture)
}

// nameCode names the locations of the captures that the finder has.
func nameCode(ctx context.Context, s *cli.Session, f *code.Finder, profiles ...*ingest.Profile) (
	*ingest.Profile, error) {
	p, err := s.Name(ctx, profiles...)
	if err == nil {
		f.Machine = p.Meta.Arch
	}
	return p, err
}

// nothing is the error where no function is to be annotated.
func (o *annotateOptions) nothing(p *ingest.Profile, chooser *code.Chooser,
	opts *annotate.Options) error {
	if len(o.patterns) == 0 {
		return texts.WithHint(
			fmt.Errorf("%s: no sample of the event lies in a function with a name",
				strings.Join(o.captures, ", ")), "`symbolize missing` lists the fixes")
	}
	var given []string
	for i := range o.patterns {
		given = append(given, o.patterns[i].String())
	}
	near := suggest.Nearest(given[0], chooser.All)
	err := fmt.Errorf("no function with samples matches %s", strings.Join(given, ", "))
	if !opts.Children {
		with := *opts
		with.Children = true
		if list, _, _ := annotate.HotFunctions(p, &with); len(list) > 0 {
			return texts.WithHint(err, "%s is on stacks, but never the leaf: "+
				"--children counts those samples", opts.Demangler.Name(list[0].Name()))
		}
	}
	for _, text := range given {
		if strings.ContainsRune(text, '/') {
			return texts.WithHint(err, "there is no capture %s either", text)
		}
	}
	if slices.ContainsFunc(o.patterns, func(p code.Pattern) bool { return p.ByProgram() }) {
		return texts.WithHint(err,
			"`symbolize info` lists the programs, `symbolize top` the functions")
	}
	if len(near) > 0 {
		return texts.WithHint(err, "did you mean %s?", strings.Join(near, ", "))
	}
	const list = "`symbolize top` lists the functions"
	if u := annotate.FindUnnamed(p, opts); u != nil {
		return texts.WithHint(err, list+"; %.2f%% of the samples have no name: %s", u.Share,
			annotate.UnnamedHint)
	}
	return texts.WithHint(err, list)
}
