// Package sideband holds the state of processes and of the kernel over the time of a capture:
// address spaces, the objects mapped there, names of threads, and BPF programs.
//
// A State comes from the records of a perf.data file (scan.go) or, for a stack map, from a
// kallsyms text and copies of /proc/PID/maps. Each part of it adds what concerns it: Threads,
// Kernel, Programs (of BPF), Compiled (code of run-time compilers) and the lists of simpleperf.
// Bundles of the same boot add facts that the capture lacks (bundles.go); BPF programs are matched
// with the records that name them (programs.go). All of these become a list of changes
// (timeline.go), which Build applies in order of time (state.go). Objects are distinguished by the
// fields of their records (objects.go); Identifier finds the build IDs of objects recorded without
// one (identify.go). Records has what is counted, and what was lost.
package sideband

import (
	"math"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/bpf"
)

// State is the state of processes and of the kernel over the time of a capture: from the records of
// a perf.data file, by Scan, or from files that belong to a stack map.
type State struct {
	Host     Host
	Objects  *Objects       // all mapped objects
	Spaces   *addrspace.Map // mappings by address and time; made by Build
	Data     *addrspace.Map // those of processes with the mappings of data; nil without ScanOptions.Data
	Clock    Clock          // orders changes and samples
	Threads  Threads
	Kernel   Kernel
	Programs Programs
	Compiled Compiled
	Records  Records

	// Address spaces of the programs of a process after the first, see SpaceOf; nil if samples do not
	// distinguish programs.
	spaces map[processProgram]int32

	buildIDs listedIDs
	changes  timeline
	sampled  sampled
	bundles  bundlePrograms
	lists    functionLists
	data     bool // make Data

	clocks recordingClocks
}

// Host is the recorded host.
type Host struct {
	Name      string
	Arch      string // as uname -m has it
	Release   string // of the kernel of a perf.data, as uname -r has it; "" if unknown
	BigEndian bool
}

// is64 reports whether the host has a 64-bit kernel that also runs 32-bit programs, which have a
// vdso of their own.
func (h *Host) is64() bool {
	a, _ := machine.Named(h.Arch)
	return a != nil && a.ELF == a.Task64 && a.Task32 != 0
}

// Kernel is the place of the kernel's image, and functions known only by a kallsyms text.
type Kernel struct {
	Mapped bool // a map with a usable reference symbol was recorded

	host      *Host
	objects   *Objects
	changes   *timeline
	symbol    string // the reference symbol
	address   uint64 // its run-time address
	end       uint64 // of the recorded mapping; 0 if it is not known
	functions kallsymsFunctions
}

// Programs are the BPF programs of a capture.
type Programs struct {
	List []bpf.Program // of the features, then of all records
	Err  error         // damage of the features

	host     *Host
	recorded bool              // the capture has the information of programs
	missing  map[uint32]string // by ID: why a recorder has no code of the program
	symbols  int               // records that name functions of programs
	alone    []uint32          // IDs of loads with objects of their own
	lives    map[uint32]life   // by ID
}

// Records are the counts and warnings of the first pass over a perf.data file.
type Records struct {
	File       *perfdata.File // nil for stack maps
	Types      [256]uint64
	OtherTypes map[perfdata.Type]uint64
	Stats      ingest.Stats
	Warnings   []Warning
	Comments   []string // of BPF programs, from BPF_METADATA records
	Switches   []Switch // in file order, with ScanOptions.Switches
	CPUs       int      // number of CPUs that were recorded; 0 if unknown, or if threads were recorded

	keepSwitches bool

	losses   losses
	traces   traces
	starts   []Position        // of chunks, then the end of the last
	guests   map[uint64]uint32 // by event ID of a virtual machine: the comm of its code
	readings readings          // nil if no event has readings
	deferred deferred
	mmap     perfdata.Mmap // scratch, as are sample and list
	sample   perfdata.Sample
	list     []perfdata.Reading
}

// traces are the AUX area traces of a recording, which are not decoded.
type traces struct {
	kind perfdata.AuxtraceType
	size uint64 // bytes
}

// Warning is a warning with its place in the capture.
type Warning struct {
	At Position
	ingest.Warning
}

// MaxWarnings bounds the shown warnings about single records. Lists keep one more, so that it is
// known that there are more.
const MaxWarnings = 20

// New returns an empty State.
func New() *State {
	sb := &State{Objects: NewObjects()}
	sb.Records.OtherTypes = make(map[perfdata.Type]uint64)
	sb.changes.clock = &sb.Clock
	sb.Kernel.host, sb.Kernel.objects, sb.Kernel.changes = &sb.Host, sb.Objects, &sb.changes
	sb.Programs.host = &sb.Host
	sb.lists = functionLists{host: &sb.Host, objects: sb.Objects, changes: &sb.changes}
	sb.Compiled.objects, sb.Compiled.changes = sb.Objects, &sb.changes
	sb.Threads.numbers = make(map[string]uint32)
	sb.Threads.Comm("")
	return sb
}

// Warn adds a warning, up to one more than MaxWarnings.
func (x *Records) Warn(at Position, w ingest.Warning) {
	if len(x.Warnings) <= MaxWarnings {
		x.Warnings = append(x.Warnings, Warning{at, w})
	}
}

// Build applies the changes of state in order of time.
func (sb *State) Build() {
	sb.changes.sort()
	sb.matchPrograms()
	sb.Programs.setLives()
	b := addrspace.NewBuilder()
	b.Comm(0, 0, 0, sb.Threads.Comm("swapper"), false) // the idle task, which no record names
	var data dataMaps
	if sb.data {
		data.b = addrspace.NewBuilder()
	}
	for i := range sb.changes.list {
		e := &sb.changes.list[i]
		m := addrspace.Mapping{Start: addr.PC(e.a), End: addr.PC(e.b), PgOff: e.c, Object: e.ref}
		data.change(e, m)
		switch e.kind {
		case changeMapping:
			sb.Compiled.mapUser(b, e, m)
			if sb.Objects.List[e.ref].Kind == ingest.VDSO {
				b.Loaded(e.pid) // an exec maps the vdso last
			}
			sb.Objects.mapped(e.ref, e.time, e.pid)
		case changeName:
			b.Comm(e.time, e.pid, e.tid, e.ref, e.flag)
		case changeFork:
			b.Fork(e.time, e.pid, e.tid, int32(e.a), int32(e.b), e.flag)
			if !e.flag && e.pid != int32(e.a) {
				sb.Compiled.fork(b, e)
			}
		case changeKernelMapping:
			b.Kernel(e.time, e.layer, m)
		case changeKernelUnmapping:
			b.KernelGone(e.time, e.layer, m.Start, m.End)
		}
	}
	sb.changes.list = nil
	sb.Threads.sortNamespaces()
	sb.Spaces = b.Build()
	sb.Data = data.build()
	sb.buildIDs.refuteFiles(NewIdentifier(sb, ObjectQuery{}, nil))
}

// KernelCode finds the code of an address in a version of the kernel's address space: the mapping,
// nil if there is none, and the address to look up in it. For a return address (ret) this is the
// byte before it (addr.Site), unless no call can precede it: nothing is mapped before it, or a
// JITed function begins there, with an allocator's header or padding before it. Then an interrupt
// came at the first instruction, and the address itself is looked up.
func (sb *State) KernelCode(v addrspace.Version, pc addr.PC, ret bool) (
	m *addrspace.Mapping, site addr.PC) {
	site = addr.Site(pc, ret)
	if m = sb.Spaces.InKernel(v, site); site == pc {
		return m, pc
	}
	here := sb.Spaces.InKernel(v, pc)
	if here != nil && (m == nil || sb.Objects.interrupted(here, m, pc)) {
		return here, pc
	}
	return m, site
}

// processProgram is one of the successive programs of a process, or of processes with its number.
type processProgram struct {
	pid     int32
	program uint32
}

// SpaceOf returns the number of a program's address space: the process ID for its first program,
// and numbers that no process has for others.
func (sb *State) SpaceOf(pid int32, program uint32) int32 {
	if program == 0 {
		return pid
	}
	key := processProgram{pid, program}
	n, ok := sb.spaces[key]
	if !ok {
		n = math.MinInt32 + int32(len(sb.spaces))
		sb.spaces[key] = n
	}
	return n
}

// SeparateLoads gives the functions of these programs, by ID, objects of their own: without it the
// loads of a program are one object. It is called before Build.
func (sb *State) SeparateLoads(ids []uint32) { sb.Programs.alone = ids }

// AddSampled adds a process with samples.
func (sb *State) AddSampled(pid int32) { sb.sampled.add(pid) }

// SeparatePrograms gives each program of a process its own address space.
func (sb *State) SeparatePrograms() { sb.spaces = make(map[processProgram]int32) }

// Clock converts the times of records and samples to times that order both.
type Clock struct {
	Timed bool // by recorded time; else by position in the file
	// The latest time of the records before each position, for records with time ~0, which are
	// ordered by position.
	pos    []Position
	latest []uint64
}

// NoTime is the time of records without a time.
const NoTime = perfdata.NoTime

// At returns the ordering time of a sample. In a file without times state records before the first
// sample have time 0, which is less than all positions.
func (c *Clock) At(recorded uint64, at Position) uint64 {
	switch {
	case !c.Timed:
		return at.order()
	case recorded != NoTime:
		return recorded
	}
	i, _ := slices.BinarySearch(c.pos, at)
	if i == 0 {
		return 0
	}
	return c.latest[i-1]
}

// note adds a state record's time, and returns its ordering time.
func (c *Clock) note(recorded uint64, at Position, beforeSamples bool) uint64 {
	if !c.Timed {
		if beforeSamples {
			return 0
		}
		return at.order()
	}
	last := uint64(0)
	if n := len(c.latest); n > 0 {
		last = c.latest[n-1]
	}
	if recorded == NoTime {
		recorded = last + 1 // later than the records before it
	}
	if recorded > last {
		c.pos = append(c.pos, at)
		c.latest = append(c.latest, recorded)
	}
	return recorded
}
