// Package capturecmd has the command `capture`: flags, checks, exit statuses and the summary of the
// recorder in ingest/record.
package capturecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/cmd/symbolize/internal/version"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/texts"
)

type captureOptions struct {
	output       string
	duration     time.Duration
	timed        func() bool // --duration was given
	check        bool
	format       string
	kernelCopy   bool
	bpfStats     bool
	maps         []string
	interval     time.Duration
	pids         []int
	allProcesses bool
	hostProc     string
	rotate       string
	rotation     record.Rotation
	omitIndexed  bool
	noCommand    bool
	summary      string
	stacks       stackOptions
}

// The times between dumps of maps. Faster ones are a matter for BPF programs.
const (
	defaultMapInterval = time.Second
	minMapInterval     = 10 * time.Millisecond
)

const captureLong = `capture records what perf.data lacks and names need: code, lines and BTF of all BPF programs, the
kernel's symbols and modules, the vdso, and the mappings of COMMAND's processes. It ends with
COMMAND, such as perf record, after --duration or on an interrupt. FILE is a bundle (tar with zstd).
With --stacks capture samples by itself, and the bundle is a capture: COMMAND and its children, or
--pid, or --cgroup, else all processes. It needs root, or the capabilities that --check lists.

Exit status: COMMAND's own, or 128 and the number of the signal that ended it; 0 without COMMAND or
if --duration ended it; 1 nothing was recorded; 2 usage; 126 COMMAND cannot be run, 127 it does not
exist. With --check: 0 nothing is missing, 1 something is.`

// New makes the command `capture`.
func New(a *cli.App) *cobra.Command {
	o := &captureOptions{}
	cmd := &cobra.Command{
		Use:     "capture -o FILE [-- COMMAND…]",
		Short:   "Record BPF programs and other facts of this host that names need",
		Long:    captureLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize capture -o capture.data -- perf record -a -g ./test\n" +
			"  symbolize capture -o stacks.data --stacks -- ./test\n" +
			"  symbolize capture -o stacks.data --stacks -a -F 99 --duration 60s",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			if o.check {
				return runCaptureCheck(a, o.format)
			}
			return runCapture(ctx, a, o, args)
		}),
	}
	cmd.Flags().SortFlags = false
	o.register(cmd.Flags())
	cli.AddFormat(cmd, &o.format, cli.Text, cli.JSON)
	cmd.Flags().Lookup("format").Usage = "with --check: `FORMAT` of the result: text or json"
	return cmd
}

func (o *captureOptions) register(fs *pflag.FlagSet) {
	fs.StringVarP(&o.output, "output", "o", "", "write the bundle to `FILE`")
	fs.DurationVar(&o.duration, "duration", 0, "end after `TIME`, such as 30s or 5m")
	o.timed = func() bool { return fs.Changed("duration") }
	fs.BoolVar(&o.check, "check", false,
		"record nothing: list missing rights and settings")
	fs.BoolVar(&o.kernelCopy, "kernel-copy", false,
		"let the kernel copy each BPF program at its load, however short it lives")
	fs.BoolVar(&o.bpfStats, "bpf-stats", false,
		"count runs and run time of each BPF program")
	fs.StringSliceVar(&o.maps, "maps", nil,
		"dump the BPF map `NAME|ID` at intervals; may be repeated")
	fs.DurationVar(&o.interval, "interval", defaultMapInterval,
		"`TIME` between dumps of --maps")
	fs.BoolVar(&o.omitIndexed, "omit-indexed", false,
		"omit the kernel's symbols if the store has them: resolve then needs that store")
	fs.BoolVar(&o.noCommand, "no-command", false, "leave the arguments of COMMAND out of the bundle")
	fs.StringVar(&o.rotate, "rotate", "",
		"start a new file after `TIME|SIZE`, such as 1h or 100M: FILE.YYYYMMDDhhmmsscc, in UTC")
	fs.StringVar(&o.summary, "summary", "", "write the counts of recorded and lost items to `FILE`, as JSON")
	o.stacks.register(fs)
	cli.AddPIDs(fs, &o.pids,
		"record the mappings of process `PID` too; with --stacks sample only it; may be repeated")
	fs.BoolVar(&o.allProcesses, "all-processes", false,
		"record the mappings of all processes at the end")
	fs.StringVar(&o.hostProc, "host-proc", "",
		"in a container: `DIR` is the mounted /proc of the host; process IDs are the host's")
}

func (o *captureOptions) validate(args []string) error {
	switch {
	case o.check && (o.output != "" || len(args) > 0):
		return cli.Usagef("--check records nothing: omit -o and COMMAND")
	case o.check:
		return nil
	case o.format != cli.Text:
		return cli.Usagef("--format is only for --check")
	case o.output == "":
		return texts.WithHint(cli.Usagef("no output file"), "name a file with -o FILE")
	case o.summary == "-":
		return texts.WithHint(cli.Usagef("--summary -: COMMAND writes to standard output"), "name a file")
	case o.output == "-":
		return texts.WithHint(cli.Usagef("a bundle is not written to standard output"),
			"name a file with -o FILE")
	case o.duration <= 0 && o.timed():
		return cli.Usagef("--duration %v: it is above 0", o.duration)
	case !o.parseRotate():
		return texts.WithHint(
			cli.Usagef("--rotate %s: neither a time of a second or more nor a size", o.rotate),
			"30s, 10m, 1h, or 500K, 100M, 2G")
	case o.interval < minMapInterval:
		return cli.Usagef("--interval %v: it is at least %v", o.interval, minMapInterval)
	case o.interval != defaultMapInterval && len(o.maps) == 0:
		return texts.WithHint(cli.Usagef("--interval without a map"), "name one with --maps NAME")
	}
	for _, pid := range o.pids {
		if pid <= 0 {
			return cli.Usagef("--pid %d: not a process", pid)
		}
	}
	return o.stacks.validate(o.pids)
}

// leastRotation is the least time of --rotate: writing a file needs some tenths of a second.
const leastRotation = time.Second

// parseRotate reads --rotate, as perf record reads --switch-output.
func (o *captureOptions) parseRotate() (ok bool) {
	if o.rotate == "" {
		return true
	}
	if every, err := time.ParseDuration(o.rotate); err == nil {
		o.rotation.Every = every
		return every >= leastRotation
	}
	units := map[byte]int64{'B': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}
	last := len(o.rotate) - 1
	n, err := strconv.ParseInt(o.rotate[:last], 10, 32)
	unit := units[o.rotate[last]]
	o.rotation.Size = n * unit
	return err == nil && n > 0 && unit > 0
}

// checkResult is the output of `capture --check --format json`. Its names are an interface.
type checkResult struct {
	Missing []checkNeed `json:"missing"`
}

type checkNeed struct {
	Name   string `json:"name"` // capability, sysctl or file
	For    string `json:"for"`
	Fix    string `json:"fix"`
	Option string `json:"option,omitempty"` // the only flag that needs it
	Needed bool   `json:"needed"`           // without it there is no capture
}

// runCaptureCheck prints the missing rights and settings, one line each.
func runCaptureCheck(a *cli.App, format string) error {
	needs := record.CheckHost()
	facts := checkResult{Missing: []checkNeed{}}
	for _, n := range needs {
		facts.Missing = append(facts.Missing, checkNeed{n.Name, n.For, n.Fix, n.Option, n.Fatal})
	}
	err := a.WriteFacts(format, "capture-check/1", facts, func(w io.Writer) error {
		if len(needs) == 0 {
			fmt.Fprintln(w, "nothing is missing")
		}
		for _, n := range needs {
			kind := "wanted"
			switch {
			case n.Fatal:
				kind = "needed"
			case n.Option != "":
				kind = "wanted for " + n.Option + " only"
			}
			fmt.Fprintf(w, "%s: %s, so that %s\n  fix: %s\n", kind, n.Name, n.For, n.Fix)
		}
		return nil
	})
	if err == nil && len(needs) > 0 {
		err = &cli.ExitError{Code: cli.Failed}
	}
	return err
}

func runCapture(ctx context.Context, a *cli.App, o *captureOptions, command []string) error {
	// Interrupts end the recording and not the program, which has a file to write.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if ctx.Err() != nil { // one came before, and later output will not show it
		signals <- syscall.SIGTERM
	}
	omit, err := newOmission(a, o)
	if err != nil {
		return err
	}
	w, err := bundle.Create(o.output)
	if err != nil {
		return err
	}
	written := o.output
	opts := record.Options{Duration: o.duration, Command: command, Stdin: a.Env.Stdin,
		Stdout: a.Env.Stdout, Stderr: a.Env.Stderr, Signals: signals,
		Interrupted: record.SharesTerminal, KernelCopy: o.kernelCopy, BPFStats: o.bpfStats,
		Maps: o.maps, MapInterval: o.interval, PIDs: o.pids, AllProcesses: o.allProcesses,
		HostProc: o.hostProc, Rotate: o.rotation,
		Written: func(path string) {
			written = path
			a.Note(texts.OneLine(path) + " written")
		},
		Flushed: process.ReleaseMemory,
		Stacks:  o.stacks.options(o.pids), OfCommand: o.ofCommand(), Recorder: version.Text(), NoCommand: o.noCommand,
		Warn: func(text string) { a.Warn(text, "") }} // once, here or in the summary
	omit.apply(&opts)
	sum, err := record.Record(context.WithoutCancel(ctx), w, opts)
	if err != nil {
		return recordError(err)
	}
	omit.warn()
	captureSummary(a, written, sum)
	if o.summary != "" {
		err = a.WriteOutput(o.summary, false, func(w io.Writer) error {
			return texts.WriteJSON(w, "capture-summary/1", newCaptureFacts(written, sum))
		})
	}
	return cmp.Or(err, commandError(o, sum))
}

// ofCommand reports whether only stacks of COMMAND are sampled.
func (o *captureOptions) ofCommand() bool {
	return !o.stacks.all && o.stacks.cgroup == "" && len(o.pids) == 0
}

func recordError(err error) error {
	switch {
	case errors.Is(err, record.ErrRights):
		return texts.WithHint(err, "`symbolize capture --check` lists what is missing")
	case errors.Is(err, record.ErrHostProc):
		return texts.WithHint(err,
			"--host-proc names a directory where the /proc of the host is mounted")
	case errors.Is(err, record.ErrCommand) && errors.Is(err, fs.ErrPermission):
		return &cli.ExitError{Code: exitCannotRun, Err: err}
	case errors.Is(err, record.ErrCommand):
		return &cli.ExitError{Code: exitNoCommand, Err: err}
	case errors.Is(err, record.ErrNoMap):
		return texts.WithHint(err,
			"`bpftool map list` shows names and ids; with a COMMAND the map may "+
				"come later")
	case errors.Is(err, sampler.ErrTarget):
		return texts.WithHint(err,
			"--pid is a number of `ps -e`, --cgroup a directory with "+
				"`stat -f -c %%T DIR` = cgroup2fs")
	case errors.Is(err, syscall.ENOMEM):
		return texts.WithHint(err,
			"memory is limited: by `ulimit -v`, `ulimit -l`, or the control group")
	case errors.Is(err, syscall.EMFILE): // hintOf has the hint
	case errors.Is(err, record.ErrStacks):
		return texts.WithHint(err,
			"`perf list tracepoint` shows tracepoints, `nm -D` functions of a "+
				"library")
	case errors.Is(err, record.ErrUnsupported):
		return texts.WithHint(err, "this is %s: capture on the Linux host, resolve here",
			runtime.GOOS)
	}
	return err
}

// Exit statuses of shells for commands that they cannot run, and the base for the number of the
// signal that ended one.
const (
	exitCannotRun = 126
	exitNoCommand = 127
	exitSignal    = 128
)

// commandError passes a command's end on, as perf record does: scripts that put a
// recorder before a command see no difference. The recording was written.
func commandError(o *captureOptions, sum *record.Summary) error {
	c := &sum.Command
	if !c.Run || c.Status == 0 || c.TimeUp && c.Stopped == nil {
		return nil
	}
	e := &cli.ExitError{Code: c.Status, Err: fmt.Errorf("%s; %s is written", commandEnd(c), o.output)}
	if sig, ok := c.Signal.(syscall.Signal); ok {
		e.Code = exitSignal + int(sig)
	}
	if e.Code <= 0 {
		e.Code = cli.Failed // nobody knows how it ended
	}
	return e
}

// commandEnd describes how the command ended.
func commandEnd(c *record.CommandStatus) string {
	if c.Signal != nil {
		return fmt.Sprintf("the command was ended by signal %d (%s)", c.Signal, c.Signal)
	}
	return fmt.Sprintf("the command ended with status %d", c.Status)
}
