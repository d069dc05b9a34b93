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
	// ErrUnsupported is the error on other systems than Linux.
	ErrUnsupported = errors.New("captures require Linux")
	// ErrRights: too few rights to record anything; CheckHost lists the missing ones.
	ErrRights = errors.New("not permitted to watch BPF programs")
	// ErrStacks: stacks cannot be sampled at this event.
	ErrStacks = errors.New("stacks cannot be sampled")
	// ErrCommand: the command could not be started.
	ErrCommand = errors.New("the command could not be started")
	// ErrHostProc: Options.HostProc is not the host's /proc.
	ErrHostProc = errors.New("not the /proc of the host")
	// ErrNoMap: no map has a name or id of Options.Maps.
	ErrNoMap = errors.New("no such BPF map")
)

// Options selects the data to record and the duration. Without Duration and Command a recording
// ends with a signal or the cancellation of its context.
type Options struct {
	Duration time.Duration // 0: no limit
	Command  []string      // program and arguments; empty: no command
	// Stdin, Stdout and Stderr are the command's; nil is /dev/null.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Signals end the recording. The first is sent to the command, and Record waits for its end;
	// the second kills it. Nil: none.
	Signals <-chan os.Signal
	// Interrupted reports whether the terminal has already sent an interrupt to the command, which
	// must not get it twice: see SharesTerminal. Nil: never.
	Interrupted func() bool
	// KernelCopy makes the kernel copy each program during its load, in the context of the loader:
	// then no program is too short-lived.
	KernelCopy bool
	// BPFStats makes the kernel count the runs of BPF programs during the recording, which costs
	// some tens of ns per run.
	BPFStats bool
	// PIDs are processes, besides the command's, to record mappings and perf maps of. AllProcesses
	// adds every process that exists at the end.
	PIDs []int
	// HostProc is the mount point of the host's /proc, for recording in a container, where
	// processes have other IDs: all process IDs are then the host's. "": /proc.
	HostProc string
	// Rotate starts a new file periodically; the zero value never does. The time of completion is
	// appended to the names of the files, and Written is called with these names.
	Rotate  Rotation
	Written func(path string)
	// Flushed is called whenever data became durable, when most of the recorder's memory is
	// garbage. Nil: not called.
	Flushed func()
	// Maps are names or ids of BPF maps, which are dumped at the start, every MapInterval and at
	// the end. A name selects all maps with it, including later ones.
	Maps         []string
	MapInterval  time.Duration // at least 10 ms
	AllProcesses bool
	// KnownKernel reports whether symbols of the kernel with this build ID are available elsewhere;
	// if so they are left out. Nil: never.
	KnownKernel func(buildid.ID) bool
	// Stacks configures stack sampling; nil: no sampling. Record sets its callbacks.
	Stacks *sampler.Options
	// OfCommand limits Stacks to Command and its children by a control group. If the group cannot
	// be made everything is sampled, with a warning.
	OfCommand bool
	Recorder  string // name and version, for the manifest
	NoCommand bool   // of Command only the program's name is recorded: arguments may hold secrets

	flushEvery time.Duration // 0: the constant flushEvery; tests use less
	Log        func(string)  // receives progress messages; may be nil
	// Warn is called with the data that will be missing, before anything is recorded.
	// Summary.Warnings includes these warnings. It may be nil.
	Warn func(string)
}

// Rotation is the condition for a new file.
type Rotation struct {
	Every time.Duration // 0: no limit
	Size  int64         // approximate bytes of the unfinished file; 0: no limit
}

// Summary counts the contents of a recording.
type Summary struct {
	Programs  int // BPF programs that existed at some time
	Functions int // functions of programs that were read
	Images    int // programs with their code
	Copied    int // of Images: read from the copy inside the kernel only
	BTFs      int
	KSymbols  int   // KSYMBOL records, including those for earlier programs
	Bytes     int64 // of code and BTF
	Modules   int
	Maps      int // dumped maps
	MapDumps  int
	Processes int              // processes with recorded mappings
	Missing   []MissingProgram // programs without code, by id; at most maxMissing
	Warnings  []string
	Lost      map[string]uint64 // by cause, as in the manifest
	Stacks    *sampler.Stats    // nil: not sampled
	Command   CommandStatus
	BPFRuns   *BPFRuns // nil: not counted
}

// BPFRuns adds up the runs of all BPF programs during a recording.
type BPFRuns struct {
	Runs uint64
	Time time.Duration // in programs, on all CPUs
}

// MissingProgram is a BPF program without recorded code.
type MissingProgram = bundle.MissingProgram

// CommandStatus describes how the command ended.
type CommandStatus struct {
	Run     bool
	Status  int           // exit status; -1 if killed by a signal
	Signal  os.Signal     // the signal that killed it, or nil
	Elapsed time.Duration // wall time
	Stopped os.Signal     // the signal that ended the recording, or nil
	TimeUp  bool          // Options.Duration ended it
}

// maxMissing limits the programs without code in a Summary.
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
