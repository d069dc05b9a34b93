package record

import (
	"errors"
	"io"
	"os"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/sampler"
)

// Errors of Record. All other failures are counted, reported and survived.
var (
	// ErrUnsupported: captures can be made on Linux only.
	ErrUnsupported = errors.New("captures are made on Linux only")
	// ErrRights: the rights are too few to record anything; Check lists the missing ones.
	ErrRights = errors.New("not permitted to watch BPF programs")
	// ErrStacks: stacks cannot be sampled at this event.
	ErrStacks = errors.New("stacks cannot be sampled")
	// ErrCommand: the command could not be started.
	ErrCommand = errors.New("the command could not be started")
	// ErrHostProc: Options.HostProc is not the host's /proc.
	ErrHostProc = errors.New("not the /proc of the host")
	// ErrNoMap: there is no map of a name or id of Options.Maps.
	ErrNoMap = errors.New("there is no such BPF map")
)

// Options selects the data to record and the duration. Without Duration and Command a
// recording ends with a signal or its context.
type Options struct {
	Duration time.Duration // 0: no limit
	Command  []string      // program and arguments; empty: none is run
	// Stdin, Stdout and Stderr are those of the command; nil is /dev/null.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Signals end the recording. The first is handed to the command, whose end is then
	// waited for; a second one kills it. Nil: none.
	Signals <-chan os.Signal
	// Interrupted reports whether an interrupt has reached the command without us, so
	// that it is not signalled twice: see SharesTerminal. Nil: never.
	Interrupted func() bool
	// KernelCopy has the kernel copy each program while it is being loaded, in the
	// loader's own context: then none is too short-lived.
	KernelCopy bool
	// BPFStats has the kernel count the runs of BPF programs during the recording, which makes
	// each of them some tens of ns longer.
	BPFStats bool
	// PIDs are processes, beside the command's, of which mappings and perf maps are
	// taken; AllProcesses takes those of every process that is there at the end.
	PIDs []int
	// HostProc is where the host's /proc is mounted, for who records in a container, where
	// processes have other numbers: all numbers are then the host's. "": /proc serves.
	HostProc string
	// Rotate begins a new file periodically; its zero value does not. The files have the
	// time at which they are complete behind their names, and Written is called with these.
	Rotate  Rotation
	Written func(path string)
	// Flushed is called whenever data became durable, when most of the recorder's memory is
	// garbage. Nil: never.
	Flushed func()
	// Maps are names or ids of BPF maps that are dumped every MapInterval, at the beginning
	// and at the end. All maps of a name are, also those that come later.
	Maps         []string
	MapInterval  time.Duration // at least 10 ms
	AllProcesses bool
	// KnownKernel reports whether the kernel of a build ID has its symbols elsewhere: they are
	// then left out. Nil: they are not.
	KnownKernel func(buildid.ID) bool
	// Stacks configures stack sampling; nil: no sampling. Its Addresses is not used.
	Stacks *sampler.Options
	// OfCommand limits Stacks to Command and its children, by a control group of their own. Where
	// none can be made everything is sampled, with a warning.
	OfCommand bool
	Recorder  string // name and version, for the manifest

	flushEvery time.Duration // 0: the constant flushEvery; shorter in tests
	Log        func(string)  // receives progress messages; nil: none wanted
	// Warn is called, before anything is recorded, with the data that will be missing; it is in
	// Summary.Warnings too. Nil: none wanted.
	Warn func(string)
}

// Rotation is the condition for a new file.
type Rotation struct {
	Every time.Duration // 0: not by time
	Size  int64         // bytes, roughly, while it is being written; 0: not by size
}

// Summary counts the contents of a recording.
type Summary struct {
	Programs  int // BPF programs that were there at some time
	Functions int // functions in those that were read
	Images    int // programs whose code was read
	Copied    int // of Images: those that only the copy inside the kernel has
	BTFs      int
	KSymbols  int   // KSYMBOL records, those for programs of before included
	Bytes     int64 // of code and BTF
	Modules   int
	Maps      int // that were dumped
	MapDumps  int
	Processes int              // whose mappings were taken
	Missing   []MissingProgram // those without code, by id; at most maxMissing
	Warnings  []string
	Lost      map[string]uint64 // by cause, as in the manifest
	Stacks    *sampler.Stats    // nil: none were sampled
	Command   CommandStatus
	BPFRuns   *BPFRuns // nil: the kernel counted none
}

// BPFRuns adds up the runs of all BPF programs during a recording.
type BPFRuns struct {
	Runs uint64
	Time time.Duration // spent in them, of all CPUs
}

// MissingProgram is a BPF program whose code was not recorded.
type MissingProgram = bundle.MissingProgram

// CommandStatus is how the command ended.
type CommandStatus struct {
	Run     bool
	Status  int           // exit status; -1 if a signal ended it
	Signal  os.Signal     // that signal, or nil
	Elapsed time.Duration // wall time
	Stopped os.Signal     // the signal that ended the recording, or nil
	TimeUp  bool          // Options.Duration ended it
}

// maxMissing is how many of the programs without code a Summary lists.
const maxMissing = 10000
// Need is a right or setting that the host lacks, and its use.
type Need struct {
	Name string // capability, sysctl or file
	For  string // the data that is missing without it
	Fix  string // how to get it
	// Option is the flag of capture that alone needs it; "" if all do.
	Option string
	// Fatal: without it there is no capture at all.
	Fatal bool
}
