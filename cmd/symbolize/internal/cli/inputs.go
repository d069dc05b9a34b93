package cli

import (
	"cmp"
	"context"
	"os"

	"github.com/spf13/cobra"

	"symbolize/analyze"
	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/record/cpulist"
)

// InputOptions select the samples of captures and the sources of names. AddFlags sets most of the
// fields by flags; a command sets the others.
type InputOptions struct {
	Event string // of --event; all without
	comms []string
	pids  []int32
	tids  []int32
	cpus  string
	cpu   []int32 // cpus parsed
	times string
	time  input.TimeRange // times parsed

	With     []string // files, directories and bundles that go before the store
	Symfs    []string // directories to look for the files of captures below
	NoLocal  bool     // this host is not searched
	Remote   RemoteFlag
	perfMaps []string
	Vmlinux  []string // kernel images, as With
	Kallsyms []string // lists of the captures' kernel
	BCCDirs  []string // with programs of bcc

	Stacks StackMap // files that belong to a stack map

	TrustPaths bool // a file at its path is the one that ran
	Jobs       int  // workers; 0 is one for each CPU
	MaxMemory  Size
	unpacked   Size // that a capture may unpack to; 0 for the default

	Names      string             // of --names, in subcommands that have it
	NamePolicy resolve.NamePolicy // Names parsed
	NoInlines  bool               // inlined calls are left out
	Timed      bool               // the report is of times, which stack maps lack
	Columns    bool               // tables of this run have columns
	// Relocatable: tables of this run are also made of .o files.
	Relocatable bool

	Branches bool // entries of branch stacks in place of samples
	Runs     bool // see input.Options.Runs

	weight string // of --weight

	Keep    ingest.Keep     // labels that keep samples apart
	Bundles []string        // of the arguments, see TakeBundles
	Opened  *analyze.Inputs // those that no session has yet
}

// AddFlags adds the flags to a command.
func (o *InputOptions) AddFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Event, "event", "", "only samples of this `EVENT`")
	fs.StringSliceVar(&o.comms, "comm", nil, "only threads of this `NAME`; may be repeated")
	AddPIDs(fs, &o.pids, "only this `PID`; may be repeated")
	fs.Var((*PIDs[int32])(&o.tids), "tid", "only this thread, by its `TID`; may be repeated")
	fs.StringVar(&o.cpus, "cpu", "", "only these CPUs, a `LIST` as 0,2-3")
	fs.StringVar(&o.weight, "weight", "",
		"weigh samples by this `FIELD` of their tracepoint, as bytes_alloc, in place of the period")
	fs.StringVar(&o.times, "time", "",
		"only samples of this time: `FROM,TO` in seconds of the recording, or FROM%-TO%")
	fs.StringArrayVar(&o.With, "with", nil,
		"take symbols from `PATH` too, for this run, before the store: files, directories, "+
			"what `capture` wrote; may be repeated")
	fs.StringArrayVar(&o.Symfs, "symfs", nil,
		"look for the files of captures below `DIR`, by their paths or build IDs, as perf does; may be "+
			"repeated")
	fs.BoolVar(&o.NoLocal, "no-local", false,
		"look for no files on this host that neither the store nor another flag has")
	o.Remote.AddFlag(fs)
	fs.StringArrayVar(&o.perfMaps, "perf-maps", nil,
		"look for the perf-PID.map and jit-PID.dump files of run-time compilers in `DIR`, besides "+
			"the captures' own directories; may be repeated")
	fs.StringArrayVar(&o.Vmlinux, "vmlinux", nil, "as --with: a kernel image `FILE`")
	fs.StringArrayVar(&o.Kallsyms, "kallsyms", nil,
		"as --with: a kallsyms `FILE`, taken for the kernel of the captures")
	AddBCCDirs(fs, &o.BCCDirs)
	fs.BoolVar(&o.TrustPaths, "trust-paths", false,
		"where a capture has no build ID, take the file now at the path for the one that ran")
	if !o.Timed {
		o.Stacks.AddTo(fs)
	}
	fs.Var(&o.unpacked, "max-unpacked",
		"a compressed capture may unpack to `SIZE` (default 256 MiB and 256 times its own size)")
	AddWork(fs, &o.Jobs, &o.MaxMemory)
}

// TakeBundles takes the bundles out of the captures of the command line, see
// analyze.OpenInputs, and returns the captures.
func (o *InputOptions) TakeBundles(ctx context.Context, paths []string) []string {
	o.Opened = analyze.OpenInputs(ctx, paths)
	o.Bundles = o.Opened.Bundles
	return o.Opened.Captures
}

// Validate checks the flags and parses their values; args are the captures.
func (o *InputOptions) Validate(args []string) error {
	if len(args) == 0 {
		return ingest.WithHint(Usagef("no capture is named"),
			"name the files that `perf record` or a profiler wrote")
	}
	var err error
	if o.time, err = input.ParseTimeRange(o.times); err != nil {
		return Usagef("--time %q: %v", o.times, err)
	}
	if o.cpus != "" {
		list, err := cpulist.Parse(o.cpus)
		if err != nil {
			return Usagef("--cpu %q: it is a list as 0,2-3", o.cpus)
		}
		for _, n := range list {
			o.cpu = append(o.cpu, int32(n))
		}
	}
	if err := cmp.Or(CheckJobs(o.Jobs), o.Stacks.Parse(o.Kallsyms)); err != nil ||
		o.Names == "" {
		return err
	}
	o.NamePolicy, err = ParseNames(o.Names)
	return err
}

// CaptureArgs returns how many of the arguments are captures: the first, and the files behind it.
func CaptureArgs(args []string) int {
	for i, arg := range args {
		if i == 0 {
			continue
		}
		if fi, err := os.Stat(arg); err != nil || fi.IsDir() {
			return i
		}
	}
	return len(args)
}
