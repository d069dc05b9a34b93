package cli

import (
	"cmp"
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/analyze"
	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/format/pods"
	"symbolize/ingest/input"
	"symbolize/ingest/record/sys"
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

	With          []string // files, directories and bundles that go before the store
	Symfs         []string // directories to look for the files of captures below
	NoLocal       bool     // this host is not searched
	NoCache       bool     // nor is the cache of debuginfod's client
	Remote        RemoteFlag
	perfMaps      []string
	Vmlinux       []string // kernel images, as With
	Kallsyms      []string // lists of the captures' kernel
	forceKallsyms bool
	BCCDirs       []string // with programs of bcc

	Stacks StackMap // files that belong to a stack map

	Chains string // of --chains: a word, "" for the default
	Gaps   bool   // of --gaps

	TrustPaths bool // a file at its path is the one that ran
	NoCommand  bool // without the arguments of recorded commands
	Jobs       int  // workers; 0 is one for each CPU
	MaxMemory  Size
	unpacked   Size // that a capture may unpack to; 0 for the default

	Names      string             // of --names, in subcommands that have it
	NamePolicy resolve.NamePolicy // Names parsed
	NoInlines  bool               // inlined calls are left out
	Unnamed    bool               // the result has no names, see analyze.Naming
	Timed      bool               // the report is of times, which stack maps lack
	Columns    bool               // tables of this run have columns

	Branches input.BranchMode // how branch stacks are used
	Payloads bool             // the fields of tracepoints are printed

	Weight string // of --weight: a field of tracepoints
	pair   string // of --pair

	wakerDepth int // of --waker-depth

	Pods pods.Flag

	Keep    ingest.Keep     // labels that keep samples apart
	Loads   []uint32        // see input.Options
	Bundles []string        // of the arguments, see SplitBundles
	Opened  *analyze.Inputs // opened captures that no session has yet
}

// AddFlags adds the flags to a command.
func (o *InputOptions) AddFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	AddGroup(fs, GroupFilters, o.addFilters)
	AddGroup(fs, GroupSymbols, o.addSources)
	AddBCCDirs(fs, &o.BCCDirs)
	if !o.Timed {
		o.Stacks.AddTo(fs)
	}
	AddWork(fs, &o.Jobs, &o.MaxMemory)
	AddGroup(fs, GroupLimits, func(fs *pflag.FlagSet) {
		fs.Var(&o.unpacked, "max-unpacked", "unpack a compressed capture to at most `SIZE` "+
			"(default 256 MiB plus 256 times its own size)")
	})
}

// addFilters adds the flags that select samples.
func (o *InputOptions) addFilters(fs *pflag.FlagSet) {
	fs.StringVar(&o.Event, "event", "", "only samples of `EVENT`, or off-cpu, wall or run-queue: times "+
		"between two records (see docs/waiting.md)")
	fs.StringVar(&o.pair, "pair", "", "weigh stacks by the time from START to END with equal fields: "+
		"`START,END[:KEY]`, syscalls, block or lock")
	fs.IntVar(&o.wakerDepth, "waker-depth", 0,
		"with --event off-cpu: add the stacks of up to `N` threads that woke each other to each stack")
	fs.StringSliceVar(&o.comms, "comm", nil, "only threads with this `NAME`; may be repeated")
	AddPIDs(fs, &o.pids, "only the process `PID`; may be repeated")
	fs.Var((*PIDs[int32])(&o.tids), "tid", "only the thread `TID`; may be repeated")
	fs.StringVar(&o.cpus, "cpu", "", "only the CPUs in `LIST`, such as 0,2-3")
	o.AddPods(fs)
	fs.StringVar(&o.Weight, "weight", "",
		"weigh samples by `FIELD` of their tracepoint, such as bytes_alloc, or by latency (perf mem record), not by the period")
	o.AddChains(fs, "recorded, proven (checked and completed, also by files of this host), likely "+
		"(also callers of which others are not excluded, behind [likely]); default: proven by the "+
		"store's tables of calls alone")
	fs.StringVar(&o.times, "time", "",
		"only samples between `FROM,TO`: seconds of the recording's clock, or FROM%-TO%")
}

// AddChains adds the flags of stacks that were made of frame pointers. text ends the help of --chains
// with its default.
func (o *InputOptions) AddChains(fs *pflag.FlagSet, text string) {
	fs.StringVar(&o.Chains, "chains", "", "`KIND` of stacks of frame pointers: "+text)
	fs.BoolVar(&o.Gaps, "gaps", false, "with proven stacks: […] where callers are missing")
}

// callerTables returns the tables that --chains asks for.
func (o *InputOptions) callerTables() analyze.CallerTables {
	switch o.Chains {
	case ChainsRecorded:
		return analyze.NoCallers
	case ChainsProven, ChainsLikely:
		return analyze.AllCallers
	}
	return analyze.StoredCallers
}

// CheckChains checks the word of --chains.
func (o *InputOptions) CheckChains() error {
	switch o.Chains {
	case "", ChainsRecorded, ChainsProven, ChainsLikely:
		return nil
	}
	return Usagef("--chains %s: it is recorded, proven or likely", o.Chains)
}

// addSources adds the flags that name sources of symbols.
func (o *InputOptions) addSources(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.With, "with", nil, "read symbols from `PATH` for this run, before the store: "+
		"files, directories, bundles; may be repeated")
	fs.Var((*Dirs)(&o.Symfs), "symfs",
		"search `DIR` for the files of captures, by path or build ID, as perf does; may be repeated")
	fs.BoolVar(&o.NoLocal, "no-local", false,
		"do not search this host for files that the store and the other flags lack")
	o.Remote.AddFlag(fs)
	fs.Var((*Dirs)(&o.perfMaps), "perf-maps", "search `DIR` for perf-PID.map and jit-PID.dump "+
		"files of JIT compilers, besides the captures' directories; may be repeated")
	fs.StringArrayVar(&o.Vmlinux, "vmlinux", nil, "read symbols from the kernel image `FILE`")
	fs.StringArrayVar(&o.Kallsyms, "kallsyms", nil,
		"read symbols of the captures' kernel from `FILE`, a copy of /proc/kallsyms")
	fs.BoolVar(&o.forceKallsyms, "force-kallsyms", false,
		"use a copy of /proc/kallsyms although another kernel made it")
	fs.BoolVar(&o.TrustPaths, "trust-paths", false,
		"where a capture has no build ID, assume that the file now at the path is the one that ran")
}

// AddNoCommand adds --no-command to a command with output that has the recorded command line.
func (o *InputOptions) AddNoCommand(fs *pflag.FlagSet, value bool) {
	text := "leave the arguments out of recorded command lines, which may hold secrets"
	if value {
		text += "; =false keeps them"
	}
	fs.BoolVar(&o.NoCommand, "no-command", value, text)
}

// AddPods adds --pods, which Pods.Read reads.
func (o *InputOptions) AddPods(fs *pflag.FlagSet) {
	fs.Var(&o.Pods, "pods", "`FILE` or directory of what kubectl get pods -A -o json printed, for "+
		"the labels namespace, pod and workload")
}

// SplitBundles opens the arguments, keeps the bundles and returns the captures; see
// analyze.OpenInputs.
func (o *InputOptions) SplitBundles(ctx context.Context, paths []string) []string {
	o.Opened = analyze.OpenInputs(ctx, paths)
	o.Bundles = o.Opened.Bundles
	return o.Opened.Captures
}

// Validate checks the flags and parses their values; args are the captures.
func (o *InputOptions) Validate(args []string) error {
	if len(args) == 0 {
		return ErrNoCapture()
	}
	if err := o.checkDerived(); err != nil {
		return err
	}
	var err error
	if o.time, err = input.ParseTimeRange(o.times); err != nil {
		return Usagef("--time %q: %v", o.times, err)
	}
	if o.cpus != "" {
		list, err := sys.ParseCPUs(o.cpus)
		if err != nil {
			return Usagef("--cpu %q: it is a list as 0,2-3", o.cpus)
		}
		for _, n := range list {
			o.cpu = append(o.cpu, int32(n))
		}
	}
	if err := o.CheckChains(); err != nil {
		return err
	}
	if captures, _ := analyze.SplitCaptures(o.Vmlinux); len(captures) > 0 {
		return Usagef("--vmlinux %s: a capture, not a kernel image", captures[0])
	}
	if err := cmp.Or(CheckJobs(o.Jobs), o.Stacks.Parse(o.Kallsyms), o.Pods.Read()); err != nil ||
		o.Names == "" {
		return err
	}
	o.NamePolicy, err = resolve.ParseNamePolicy(o.Names)
	return err
}

// checkDerived checks the flags of derived events.
func (o *InputOptions) checkDerived() error {
	switch {
	case o.pair != "" && o.Event != "" && o.Event != ingest.PairEvent+o.pair:
		return Usagef("--pair and --event exclude each other")
	case o.pair != "":
		o.Event = ingest.PairEvent + o.pair
	case o.wakerDepth < 0 || o.wakerDepth > maxWakerDepth:
		return Usagef("--waker-depth %d: it is at most %d", o.wakerDepth, maxWakerDepth)
	case o.wakerDepth > 0 && o.Event != ingest.OffCPUEvent && o.Event != ingest.WallEvent:
		return Usagef("--waker-depth needs --event off-cpu or wall")
	}
	return nil
}

// Words of --chains.
const (
	ChainsRecorded = "recorded"
	ChainsProven   = "proven"
	ChainsLikely   = "likely"
)

const maxWakerDepth = 100

// CaptureArgs returns how many of the arguments are captures: the first, and the files after it.
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
