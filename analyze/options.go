package analyze

import (
	"io"
	"os"
	"strings"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/pods"
	"symbolize/ingest/input"
	"symbolize/ingest/sideband"
	"symbolize/store"
	"symbolize/store/indexer"
	"symbolize/store/local"
	"symbolize/store/remote"
)

// Options are the sources of symbols, the samples to read, and how to name them. The zero
// value has only the symbols in captures themselves.
type Options struct {
	// Store is the directory of the store; its newest generation is read; "" for none. A
	// missing store is a warning, which wraps store.ErrNoStore.
	Store string
	// Shared is an open session of the same Store, to be closed after this one: this session uses
	// its reader, and Shared reports the damage found in the store; nil for none. Not used with
	// Remote, as the store changes then.
	Shared *Session
	// With are files, directories, perf.data files and bundles. Their symbols and programs
	// are looked up before the store's.
	With []string
	// Bundles serve captures of the same boot: with BPF programs, modules, mappings, and the
	// kernel's symbols.
	Bundles []string
	// Inputs are captures that are open already, see OpenInputs; nil for none.
	Inputs *Inputs
	// Local is where objects are searched by build ID that are neither in With nor in the store;
	// nil for nowhere. The session sets its Index.
	Local *local.Options
	// Remote is a directory or bucket of tables; nil for none. Parts of captures' objects that the
	// store lacks are pulled from it and kept in the store, which is created if necessary, or in
	// memory if the store cannot be written.
	Remote remote.Bucket

	Stdin io.Reader // the capture of the path input.StandardInput; nil for none
	// Warn gets warnings for the user. nil drops them.
	Warn func(Warning)

	Symbols
	StoreUse
	Samples
	Naming
	Limits
	Handlers
}

// Symbols are less common sources of symbols, and the contents of tables of Options.With.
type Symbols struct {
	// Kallsyms are copies of /proc/kallsyms, for the one kernel of the captures.
	Kallsyms []string
	// ForceKallsyms uses lists of another kernel, with a warning.
	ForceKallsyms bool
	// BCC are directories where bcc left the sources of BPF programs, as /var/tmp/bcc.
	BCC []string
	// PerfMaps are directories with perf-PID.map and jit-PID.dump files of captures' processes,
	// besides the directories of the captures themselves.
	PerfMaps []string

	Columns bool // tables of With keep columns of lines
}

// StoreUse configures the writes of a session to the store.
type StoreUse struct {
	// MarkUses notes in the store, if it is writable, that its objects were used today: gc with a
	// number of days keeps them.
	MarkUses bool
	// RemoteWait is called when another process writes to the store; nil for no call.
	RemoteWait func(*store.LockedError)
}

// Samples selects the samples of captures and their parts.
type Samples struct {
	Event string          // only samples of this event; "" for all
	Comms []string        // only of these thread names; none for all
	PIDs  []int32         // only of these processes; none for all
	TIDs  []int32         // only of these threads; none for all
	CPUs  []int32         // only of these CPUs; none for all
	Time  input.TimeRange // only samples of this range
	Keep  ingest.Keep     // labels that keep samples apart
	// Weight is the field of tracepoints that weighs samples, "" for their periods.
	Weight     string
	WakerDepth int // see input.Options
	Pods       *pods.Table
	// Branches is how branch stacks are used.
	Branches input.BranchMode
	Payloads bool     // the fields of tracepoints are printed, see input.Options
	Loads    []uint32 // see input.Options
	// NoCommand leaves the arguments out of recorded command lines, which may hold secrets.
	NoCommand bool
	// Stacks describes dumps of stack maps. Without PathOf the store is used.
	Stacks input.StackOptions
}

// CallerTables are the tables of calls by which stacks of frame pointers are checked and completed.
type CallerTables uint8

// The tables of calls.
const (
	NoCallers     CallerTables = iota // none: stacks stay as they were recorded
	StoredCallers                     // of the store
	AllCallers                        // of the store, and of files of this host, which are read whole
)

// Naming decides how locations are matched with files and named.
type Naming struct {
	Names      resolve.NamePolicy // where sources disagree
	NoInlines  bool               // no inlined calls
	TrustPaths bool               // the file now at a path is the one that ran
	Hostname   string             // of this machine, to find its own files; "" for the system's
	// Unnamed leaves locations without names, except those that captures have: for results that need the
	// layout of files only.
	Unnamed bool
	// Clocks reads the clocks of this machine, which tell when a recording of it ended; nil if they
	// are unknown.
	Clocks func() (bundle.Clocks, error)

	// Callers chooses the tables by which stacks that were made of frame pointers are checked and
	// completed, see analyze/callers.
	Callers CallerTables
	// Likely, with Callers, also inserts callers that are likely, behind marks.
	Likely bool
	// Gaps, with Callers, inserts a frame where callers are missing.
	Gaps bool

	// Undecided leaves open which addresses are return addresses where only tables of the store can
	// decide, as analyze/batch does, which reads those later: ingest.Object.Undecided.
	Undecided bool
}

// Limits bound the work of a session.
type Limits struct {
	Workers     int   // goroutines; 0 for GOMAXPROCS
	MaxMemory   int64 // bytes for indexing With, 0 for no bound
	MaxUnpacked int64 // input.Options.MaxUnpacked
}

// Handlers receive details that otherwise are given to Options.Warn or returned as errors.
type Handlers struct {
	// Problems gets the files of With and Bundles that could not be read completely. nil gives
	// each to Warn.
	Problems func([]indexer.Problem)
	// Failed gets the error of a capture that is skipped because others could be read. nil
	// makes it the error of Each and Load.
	Failed func(path string, err error)
	// Taken gets the data that a capture used from a bundle. nil gives refused data to Warn.
	Taken func(path string, b *sideband.Contribution)
}

// Warning is one thing about the sources of symbols or a capture that a user should know.
type Warning struct {
	ingest.Warning
	Err error // the cause, for errors.Is and errors.As; nil if there is no other
}

// warn passes a warning on.
func (s *Session) warn(w Warning) {
	s.partial = s.partial || w.Partial
	if s.opts.Warn != nil {
		s.opts.Warn(w)
	}
}

// warnError passes an error on as a warning.
func (s *Session) warnError(err error, hint string, partial bool) {
	s.warn(Warning{ingest.Warning{Text: err.Error(), Hint: hint, Partial: partial}, err})
}

// problems passes on files that could not be read.
func (s *Session) problems(list []indexer.Problem) {
	s.partial = s.partial || len(list) > 0
	if s.opts.Problems != nil {
		s.opts.Problems(list)
		return
	}
	for _, p := range list {
		s.warnError(p, p.Hint, true)
	}
}

// reportTaken passes on the data that a capture took from bundles, other than its own stacks.
func (s *Session) reportTaken(c *input.Capture) {
	for _, b := range c.Contributions() {
		switch {
		case b.From == c.Path():
		case s.opts.Taken != nil:
			s.opts.Taken(c.Path(), &b)
		case b.Refused != "":
			s.warn(Warning{Warning: ingest.Warning{Text: c.Path() + ": " + b.String(),
				Hint: RefusedHint}})
		}
	}
}

// RefusedHint is the hint for an unusable bundle.
const RefusedHint = "a bundle serves captures of the same boot that were made while it was"

// hostname returns the name of this machine; "" proves no file to be of this host.
func (s *Session) hostname() string {
	if s.opts.Hostname != "" {
		return s.opts.Hostname
	}
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return host
}

// Elsewhere reports whether a recording comes from another host than this one, as far as it says.
func (s *Session) Elsewhere(p *ingest.Profile) bool {
	return p.Meta.Host != "" && !s.isHere(p.Meta.Host)
}

// InputOptions returns the options by which the session opens captures, for input.Open and
// input.Addresses.
func (s *Session) InputOptions() input.Options {
	o := &s.opts
	stacks := o.Stacks
	if stacks.PathOf == nil {
		stacks.PathOf = s.pathOf
	}
	opts := input.Options{
		Selection: input.Selection{Event: o.Event, Comms: o.Comms, PIDs: o.PIDs, TIDs: o.TIDs,
			CPUs: o.CPUs, Time: o.Time, Keep: o.Keep, Weight: o.Weight, WakerDepth: o.WakerDepth,
			Branches: o.Branches},
		Payloads: o.Payloads, Pods: o.Pods, Workers: o.Workers, MaxUnpacked: o.MaxUnpacked,
		Stdin: o.Stdin, Bundles: s.bundles, Stacks: stacks, Kallsyms: o.Kallsyms,
		Identify: s.identify(), Loads: o.Loads,
		Now:      s.clocks,
		Exact:    resolve.Exact(s.view),
		Unwinder: s.unwindTables().For,
	}
	if o.Callers != NoCallers {
		opts.Callers = s.completeCallers
	}
	if o.Undecided {
		opts.Undecided = func(o *ingest.Object) bool {
			return !o.ID.IsZero() && o.Reason == ingest.ReasonNone && !State{session: s}.Has(o.ID)
		}
	}
	return opts
}

// pathOf returns the path of a build ID's file, by sources that only files that run have; else by
// any source.
func (s *Session) pathOf(id buildid.ID) string {
	m, _, _ := store.FindOne(s.view, id)
	if m == nil {
		return ""
	}
	path := ""
	for _, src := range m.Sources {
		if src.Kind.Runtime() {
			return src.Path
		}
		if path == "" || strings.HasSuffix(path, ".debug") {
			path = src.Path
		}
	}
	return path
}
