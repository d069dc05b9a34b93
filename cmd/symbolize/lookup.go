package main

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/report"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
)

type lookupOptions struct {
	file    string
	buildID string

	offsets bool
	section string

	style     string
	names     string
	demangle  string
	noInlines bool
	basenames bool
	layout    report.AnswerStyle
	habits    habits

	jobs      int
	maxMemory byteSize

	id     buildid.ID         // build-id parsed
	mode   report.Mode        // demangle parsed
	policy resolve.NamePolicy // names parsed
}

// The words of --style.
const (
	styleLLVM = "llvm"
	styleGNU  = "gnu"
	styleJSON = "json"
)

var lookupStyles = []string{styleLLVM, styleGNU, styleJSON}

const lookupLong = `lookup gives function, file and line for addresses of one object, with all
inlined calls, innermost first. Addresses are ELF virtual addresses, hexadecimal with or without 0x:
arguments, or lines of standard input, each of which is answered when it comes.

The object is a file (-e), whose symbols are taken from the store if they are there with
lines, else from the file itself and its separate debug files; or it is named by build ID.
Without both the lines of standard input name it: FILE ADDR, "FILE" ADDR or CODE "FILE" ADDR.
Sections of kernel modules and .o files all begin at 0: --section says which is meant.
Without it they lie one after another as the kernel loads them, .text first as a rule.

The styles print what the tools print that lookup stands in for: llvm what
` + "`llvm-symbolizer --inlines`" + ` does, gnu what ` + "`addr2line -f -i -C`" + ` does, json what
` + "`llvm-symbolizer --output-style=JSON`" + ` does. Names are chosen as those tools do: llvm and
json take the symbol that covers the address, gnu the name in the debug information.

Exit status: 0 done, unknown addresses included; 1 failed; 2 usage; 3 the object is damaged,
what could be read has been used; 130 interrupted.`

func newLookupCommand(a *app) *cobra.Command {
	o := &lookupOptions{}
	cmd := &cobra.Command{
		Use:     "lookup [-e FILE|--build-id ID] [ADDR…]",
		Short:   "Give function, file and line for addresses, as addr2line does",
		Long:    lookupLong,
		GroupID: groupLook,
		Example: "  symbolize lookup -e ./server 0x401136\n" +
			"  symbolize lookup --build-id 93ac61ec5a8e… --offsets < offsets.txt\n" +
			"  symbolize lookup -e ext4.ko --section .text 0x11f34",
		RunE: a.runE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			if o.file == "" && o.buildID == "" {
				return runLookupMany(ctx, a, o)
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
	fs.StringVarP(&o.file, "exe", "e", "", "the object: a `FILE`, plain or packed")
	fs.StringVar(&o.buildID, "build-id", "", "the object: the one in the store with this `ID`")
	fs.BoolVar(&o.offsets, "offsets", false,
		"addresses are file offsets; of a kernel, offsets from _text")
	fs.StringVar(&o.section, "section", "", "addresses count from the start of section `NAME`")
	fs.StringVar(&o.style, "style", styleLLVM, "`STYLE` of the output: llvm, gnu or json")
	completeFixed(cmd, "style", lookupStyles)
	addNamesFlag(cmd, &o.names, "`symbols` or dwarf (default as the style's tool does)")
	fs.StringVar(&o.demangle, "demangle", "full",
		"how much of C++ and Rust names is shown: simple, templates, `full` or none")
	completeFixed(cmd, "demangle", demangleModes)
	fs.BoolVar(&o.noInlines, "no-inlines", false, "leave out inlined calls")
	fs.BoolVarP(&o.basenames, "basenames", "s", false, "leave out the directories of files")
	fs.BoolVarP(&o.layout.Addresses, "addresses", "a", false,
		"print each address before its answer")
	fs.BoolVarP(&o.layout.Pretty, "pretty-print", "p", false, "print each frame on one line")
	addWorkFlags(fs, &o.jobs, &o.maxMemory)
	o.habits.addFlags(fs)
}

func (o *lookupOptions) validate(args []string) (err error) {
	switch {
	case o.file == "" && o.buildID == "" && len(args) > 0:
		return withHint(usagef("no object is named"), "name a file with -e, or one in the store "+
			"with --build-id")
	case o.file != "" && o.buildID != "":
		return usagef("-e and --build-id: one of them names the object")
	case o.offsets && o.section != "":
		return usagef("--offsets and --section: addresses count from one thing only")
	}
	if o.buildID != "" {
		if o.id, err = buildid.Parse(o.buildID); err != nil {
			return usagef("--build-id: %v", err)
		}
	}
	o.style = strings.ToLower(o.style) // llvm-symbolizer's are GNU, JSON, LLVM
	err = cmp.Or(checkWord("--style", o.style, lookupStyles), checkJobs(o.jobs), o.habits.apply(o))
	if err != nil {
		return err
	}
	switch {
	case o.names != "":
		if o.policy, err = parseNames(o.names); err != nil {
			return err
		}
	case o.style == styleGNU:
		o.policy = resolve.DWARFNames
	}
	o.mode, err = parseDemangle(o.demangle, "full")
	return err
}

func runLookup(ctx context.Context, a *app, o *lookupOptions, args []string) error {
	limitMemory(o.maxMemory)
	setGC(a.env.Getenv, hastyGC)
	obj, err := a.openLookup(ctx, o)
	if err != nil {
		return err
	}
	defer obj.Close()
	l := newLooker(o, obj)
	if l.hold = o.maxMemory == 0 && a.env.Getenv("GOMEMLIMIT") == ""; l.hold {
		holdLookupMemory()
	}
	if len(args) > 0 {
		err = a.writeOutput("", false, func(w io.Writer) error { return l.arguments(w, args) })
	} else {
		err = l.stream(ctx, a.env.Stdin, a.stdout())
	}
	a.sayLookup(l)
	return err
}

// sayLookup says what was wrong with an object that was looked into.
func (a *app) sayLookup(l *looker) {
	if l.obj.damage != "" {
		a.partial = true
		a.warn(l.obj.damage, "")
	}
	for _, text := range l.problems() {
		a.partial = true
		a.warn(text, "`symbolize store verify` says what is damaged")
	}
}

// runLookupMany answers lines of standard input that name their objects.
func runLookupMany(ctx context.Context, a *app, o *lookupOptions) (err error) {
	limitMemory(o.maxMemory)
	setGC(a.env.Getenv, hastyGC)
	m, err := newManyLooker(ctx, a, o)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, m.Close()) }()
	w := a.stdout()
	return queryLines.each(ctx, a.env.Stdin, func(text []byte) error { return m.lines(w, text) })
}
