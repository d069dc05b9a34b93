package analyze

import (
	"io"
	"os"
	"strings"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
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
	// Store is the directory of the store, whose newest generation is read; "" for none. One
	// that does not exist is a warning, which wraps store.ErrNoStore.
	Store string
	// Shared is an open session of the same Store, whose reader this one uses, and which reports
	// the damage found in the store; it has to stay open longer. nil for none. With Remote it is
	// not used, as the store changes then.
	Shared *Session
	// MarkUses notes in the store, if it may be written, that its objects were used today: a GC
	// that keeps objects used lately goes by that.
	MarkUses bool
	// With are files, directories, perf.data files and bundles whose symbols and programs
	// are asked before the store.
	With []string
	// Bundles serve captures of the same boot: with BPF programs, modules, mappings, and the
	// kernel's symbols.
	Bundles []string
	// Kallsyms are copies of /proc/kallsyms, for the one kernel of the captures.
	Kallsyms []string
	// BCC are directories where bcc left the sources of BPF programs, as /var/tmp/bcc.
	BCC []string
	// MaxUnpacked is input.Options.MaxUnpacked.
	MaxUnpacked int64
	// Inputs are captures that are open already, see OpenInputs; nil for none.
	Inputs *Inputs

	// Remote is a directory or bucket of tables, which is asked for parts that the store lacks of
	// the objects of captures; nil for none. They are kept in the store, which is made if
	// there is none, or where that cannot be written in memory.
	Remote remote.Bucket
	// RemoteWait is called when another process writes to the store; nil for no call.
	RemoteWait func(*store.LockedError)

	// Local is where objects are looked for that neither With nor the store has, by their build
	// IDs; nil for nowhere. Its Index is set by the session.
	Local *local.Options

	// PerfMaps are directories with perf-PID.map and jit-PID.dump files of captures' processes,
	// besides those of the captures themselves.
	PerfMaps []string

	Event string          // only samples of this event; "" for all
	Comms []string        // only of these thread names; none for all
	PIDs  []int32         // only of these processes; none for all
	TIDs  []int32         // only of these threads; none for all
	CPUs  []int32         // only of these CPUs; none for all
	Time  input.TimeRange // only samples of this range
	Keep  ingest.Keep     // labels that keep samples apart
	// Weight is the field of tracepoints that samples weigh, "" for their periods.
	Weight string
	// Branches takes the entries of branch stacks in place of samples, see input.Options.
	Branches bool
	Runs     bool // with Branches: sampled addresses and code between branches, too
	// Stacks describes dumps of stack maps. Without PathOf the store is asked.
	Stacks input.StackOptions

	Names      resolve.NamePolicy // where sources disagree
	NoInlines  bool               // no inlined calls
	TrustPaths bool               // the file now at a path is the one that ran
	Hostname   string             // of this machine, to find its own files; "" asks the system

	// Undecided leaves open which addresses are return addresses where only tables of the store can
	// decide, as analyze/batch does, which reads those later: ingest.Object.Undecided.
	Undecided bool

	Stdin     io.Reader // the capture of the path input.StandardInput; nil for none
	Workers   int       // goroutines; 0 for GOMAXPROCS
	MaxMemory int64     // bytes that indexing With may take, 0 for no bound

	Columns     bool // tables of With keep columns of lines
	Relocatable bool // With takes relocatable objects, .o files

	// Warn gets warnings for the user. nil drops them.
	Warn func(Warning)
	// Problems gets the files of With and Bundles that could not be read, or not wholly, by
	// list. nil gives each to Warn.
	Problems func([]indexer.Problem)
	// Failed gets the error of a capture that is passed over since others could be read. nil
	// makes it the error of Each and Load.
	Failed func(path string, err error)
	// Taken gets the data that a capture took from a bundle. nil gives the refused ones to Warn.
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

// RefusedHint is the hint for a bundle from which nothing could be taken.
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

// InputOptions returns the options by which the session opens captures, for input.Open and
// input.Addresses.
func (s *Session) InputOptions() input.Options {
	o := &s.opts
	stacks := o.Stacks
	if stacks.PathOf == nil {
		stacks.PathOf = s.pathOf
	}
	opts := input.Options{
		Event: o.Event, Comms: o.Comms, PIDs: o.PIDs, TIDs: o.TIDs, CPUs: o.CPUs,
		Branches: o.Branches, Runs: o.Runs, Weight: o.Weight, Time: o.Time, Keep: o.Keep, Workers: o.Workers,
		Stdin: o.Stdin, Bundles: s.bundles, Stacks: stacks, Kallsyms: o.Kallsyms, MaxUnpacked: o.MaxUnpacked,
		Identify: s.identify(),
		Exact:    resolve.Exact(s.view),
		Unwinder: s.unwindTables().For,
	}
	if o.Undecided {
		opts.Undecided = func(o *ingest.Object) bool {
			return !o.ID.IsZero() && o.Reason == ingest.ReasonNone && !s.Has(o.ID)
		}
	}
	return opts
}

// pathOf returns the path of a build ID's file, by the sources that only files that run have;
// else that of any source.
func (s *Session) pathOf(id buildid.ID) string {
	m, _, _ := store.FindOne(s.view, id)
	if m == nil {
		return ""
	}
	path := ""
	for _, src := range m.Sources {
		switch src.Kind {
		case store.Pclntab, store.Dynsym, store.PLT, store.EhFrame:
			return src.Path
		}
		if path == "" || strings.HasSuffix(path, ".debug") {
			path = src.Path
		}
	}
	return path
}
