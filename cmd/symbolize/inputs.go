package main

import (
	"cmp"
	"context"
	"os"

	"github.com/spf13/cobra"

	"symbolize/analyze"
	"symbolize/analyze/resolve"
	"symbolize/cmd/symbolize/internal/exit"
	"symbolize/cmd/symbolize/internal/flags"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/record/cpulist"
)

// inputOptions select the samples of captures and the sources of names. resolve,
// top and missing share them.
type inputOptions struct {
	event string
	comms []string
	pids  []int32
	tids  []int32
	cpus  string
	cpu   []int32 // cpus parsed
	times string
	time  input.TimeRange // times parsed

	with     []string
	symfs    []string
	noLocal  bool
	remote   remoteFlag
	perfMaps []string
	vmlinux  []string
	kallsyms []string
	bccDirs  []string

	stacks flags.StackMap

	trustPaths bool
	jobs       int
	maxMemory  flags.Size

	names     string             // of --names, in subcommands that have it
	policy    resolve.NamePolicy // names parsed
	noInlines bool
	timed     bool // the report is of times, which stack maps lack
	columns   bool // keep columns in the overlay
	// relocatable takes .o files into it
	relocatable bool

	branches bool // entries of branch stacks in place of samples
	runs     bool // see input.Options.Runs

	weight string // of --weight

	keep    ingest.Keep     // labels that keep samples apart
	bundles []string        // of the arguments, see takeBundles
	opened  *analyze.Inputs // those that no session has yet
}

func (o *inputOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.event, "event", "", "only samples of this `EVENT`")
	fs.StringSliceVar(&o.comms, "comm", nil, "only threads of this `NAME`; may be repeated")
	flags.AddPIDs(fs, &o.pids, "only this `PID`; may be repeated")
	fs.Var((*flags.PIDs[int32])(&o.tids), "tid", "only this thread, by its `TID`; may be repeated")
	fs.StringVar(&o.cpus, "cpu", "", "only these CPUs, a `LIST` as 0,2-3")
	fs.StringVar(&o.weight, "weight", "",
		"weigh samples by this `FIELD` of their tracepoint, as bytes_alloc, in place of the period")
	fs.StringVar(&o.times, "time", "",
		"only samples of this time: `FROM,TO` in seconds of the recording, or FROM%-TO%")
	fs.StringArrayVar(&o.with, "with", nil,
		"take symbols from `PATH` too, for this run, before the store: files, directories, "+
			"what `capture` wrote; may be repeated")
	fs.StringArrayVar(&o.symfs, "symfs", nil,
		"look for the files of captures below `DIR`, by their paths or build IDs, as perf does; may be "+
			"repeated")
	fs.BoolVar(&o.noLocal, "no-local", false,
		"look for no files on this host that neither the store nor another flag has")
	o.remote.addFlag(fs)
	fs.StringArrayVar(&o.perfMaps, "perf-maps", nil,
		"look for the perf-PID.map and jit-PID.dump files of run-time compilers in `DIR`, besides "+
			"the captures' own directories; may be repeated")
	fs.StringArrayVar(&o.vmlinux, "vmlinux", nil, "as --with: a kernel image `FILE`")
	fs.StringArrayVar(&o.kallsyms, "kallsyms", nil,
		"as --with: a kallsyms `FILE`, taken for the kernel of the captures")
	flags.AddBCCDirs(fs, &o.bccDirs)
	fs.BoolVar(&o.trustPaths, "trust-paths", false,
		"where a capture has no build ID, take the file now at the path for the one that ran")
	if !o.timed {
		o.stacks.AddTo(fs)
	}
	flags.AddWork(fs, &o.jobs, &o.maxMemory)
}

// takeBundles takes the bundles out of the captures of the command line, see
// analyze.OpenInputs, and returns the captures.
func (o *inputOptions) takeBundles(ctx context.Context, paths []string) []string {
	o.opened = analyze.OpenInputs(ctx, paths)
	o.bundles = o.opened.Bundles
	return o.opened.Captures
}

func (o *inputOptions) validate(args []string) error {
	if len(args) == 0 {
		return ingest.WithHint(exit.Usagef("no capture is named"),
			"name the files that `perf record` or a profiler wrote")
	}
	var err error
	if o.time, err = input.ParseTimeRange(o.times); err != nil {
		return exit.Usagef("--time %q: %v", o.times, err)
	}
	if o.cpus != "" {
		list, err := cpulist.Parse(o.cpus)
		if err != nil {
			return exit.Usagef("--cpu %q: it is a list as 0,2-3", o.cpus)
		}
		for _, n := range list {
			o.cpu = append(o.cpu, int32(n))
		}
	}
	if err := cmp.Or(flags.CheckJobs(o.jobs), o.stacks.Parse(o.kallsyms)); err != nil ||
		o.names == "" {
		return err
	}
	o.policy, err = flags.ParseNames(o.names)
	return err
}

// captureArgs returns how many of the arguments are captures: the first, and the
// files behind it.
func captureArgs(args []string) int {
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
