package input

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
)

// chunkSize is how much of the file a worker of the second pass takes at a time.
// The first pass notes where records start near its multiples.
const chunkSize = 4 << 20

// Kinds of state changes.
const (
	sideMap uint8 = iota
	sideComm
	sideFork
	sideKernel
	sideKernelGone
	sideProgramLoad
)

// sideEvent is a change of state, in a form that sorts cheaply: what a record
// says, in 56 bytes.
type sideEvent struct {
	time uint64
	// Of mappings start, end and pgoff; of forks the maker's pid and tid; of programs
	// the tag.
	a, b, c uint64
	pid     int32
	tid     int32
	ref     uint32 // object, comm or program ID
	seq     uint32 // order in the file
	kind    uint8
	layer   addrspace.Layer
	flag    bool // exec of a comm, synthesized of a fork
}

// clock turns the times of records and samples into the one that orders both.
type clock struct {
	timed bool // by recorded time; else by position in the file
	// For records whose time is ~0, which are delivered in file order: the latest
	// time that a record before a position had.
	pos    []int64
	latest []uint64
}

// noTime is the time of a record that has none.
const noTime = math.MaxUint64

// at returns the ordering time of a sample. In a file without times state
// records before the first sample count as 0, so positions are never that.
func (c *clock) at(recorded uint64, offset int64) uint64 {
	switch {
	case !c.timed:
		return uint64(offset)
	case recorded != noTime:
		return recorded
	}
	i, _ := slices.BinarySearch(c.pos, offset)
	if i == 0 {
		return 0
	}
	return c.latest[i-1]
}

// note enters a state record's time, and returns the one that orders it.
func (c *clock) note(recorded uint64, offset int64, beforeSamples bool) uint64 {
	if !c.timed {
		if beforeSamples {
			return 0
		}
		return uint64(offset)
	}
	last := uint64(0)
	if n := len(c.latest); n > 0 {
		last = c.latest[n-1]
	}
	if recorded == noTime {
		recorded = last + 1 // later than what lies before it, and not seen from there
	}
	if recorded > last {
		c.pos = append(c.pos, offset)
		c.latest = append(c.latest, recorded)
	}
	return recorded
}

// sideband is what is known of processes and the kernel over the time of a capture: what
// the first pass over a perf.data file learns, or what was saved beside a stack map.
type sideband struct {
	file   *perfdata.File // nil for stack maps
	arch   string
	host   string
	big    bool                    // byte order of the recorded host
	ids    []perfdata.BuildIDEntry // as the recorder lists them
	raw    *rawObjects
	clock  clock
	events []sideEvent
	comms  []string
	commID map[string]uint32
	spaces *addrspace.Map
	kernel bool // a kernel map with a usable reference is there
	chunks []int64
	end    int64 // behind the last whole record
	first  int64 // position of the first sample, -1 if none

	types    [256]uint64
	types2   map[perfdata.Type]uint64
	stats    ingest.Stats
	warnings []warningAt

	programs         []bpf.Program // of the features, then of all records
	borrowed         []bpf.Program // of other captures of the same boot
	programsRecorded bool          // the capture has the information of programs
	programErr       error
	lost             map[uint32]string // why a recorder has no code of a program, by its ID
	programSymbols   int               // records that name functions of programs

	// For bundles of the same boot: what the capture says of its own, and what was
	// taken. lentBy is by borrowed program the number in borrowings.
	textName            string         // reference symbol of the kernel's map
	text                uint64         // its run-time address
	firstTime, lastTime uint64         // of all records, by the recording's clock
	sampled             map[int32]bool // processes that samples are of
	borrowings          []Borrowing
	lentBy              []int
	lent                []perfdata.BuildIDEntry
	comments            []string
	code                listedCode // by a kallsyms text, see kernelList

	// Address spaces of all programs of a process but the first, see spaceOf; nil where samples
	// do not tell programs apart.
	programSpace map[processProgram]int32

	mmap perfdata.Mmap // scratch
}

// warningAt is a warning and where in the file it came up.
type warningAt struct {
	offset int64
	ingest.Warning
}

// maxWarnings bounds the warnings about single records that are kept; the rest is
// only counted.
const maxWarnings = 20

func newSideband(opts *Options) *sideband {
	sb := &sideband{raw: newRawObjects(opts.PerfMap), first: -1,
		commID: make(map[string]uint32), types2: make(map[perfdata.Type]uint64)}
	sb.comm("")
	return sb
}

// scanSideband is the first pass: it reads all records once and keeps what
// changes the state of processes and kernel, then puts it in order of time.
func scanSideband(ctx context.Context, f *perfdata.File, opts *Options, chunk int64,
) (*sideband, error) {
	sb := newSideband(opts)
	sb.file, sb.arch, sb.host = f, f.Features.Arch, f.Features.Hostname
	sb.big, sb.ids = f.BigEndian, f.Features.BuildIDs
	sb.clock.timed = timed(f)
	r := f.AllRecords()
	next := f.Data.Offset
	for r.Next() {
		rec := r.Record()
		if rec.Offset >= next {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			sb.chunks = append(sb.chunks, rec.Offset)
			next = rec.Offset + chunk
		}
		if rec.Type < perfdata.Type(len(sb.types)) {
			sb.types[rec.Type]++
		} else {
			sb.types2[rec.Type]++
		}
		if len(opts.Borrow) > 0 {
			sb.noteTime(rec)
		}
		if rec.Type == perfdata.TypeSample {
			if sb.first < 0 {
				sb.first = rec.Offset
			}
			continue
		}
		if rec.Type.Compressed() {
			return nil, fmt.Errorf("%s: %w", f.Name, perfdata.ErrCompressed)
		}
		if err := sb.record(rec); err != nil {
			sb.stats.BadRecords++
			sb.warn(rec.Offset, ingest.Warning{Text: err.Error(), Partial: true})
		}
	}
	sb.end = r.Offset()
	if err := r.Err(); err != nil {
		sb.warnings = append(sb.warnings, warningAt{math.MaxInt64, ingest.Warning{
			Text: err.Error() + "; all records before it are used", Partial: true,
			Hint: "the file is cut off or damaged, or its recorder was killed: copy or record it again"}})
	}
	sb.chunks = append(sb.chunks, sb.end)
	sb.readPrograms()
	sb.tellLost(opts.lost)
	if err := sb.borrow(ctx, opts.Borrow); err != nil {
		return nil, err
	}
	if opts.also != nil {
		opts.also(sb)
	}
	sb.build()
	sb.addLost(opts.lost)
	return sb, nil
}

// timed reports whether every record that matters has a time.
func timed(f *perfdata.File) bool {
	for i := range f.Events {
		a := &f.Events[i].Attr
		if a.SampleType&perfdata.SampleTime == 0 || !a.Has(perfdata.FlagSampleIDAll) {
			return false
		}
	}
	return len(f.Events) > 0
}

func (sb *sideband) warn(offset int64, w ingest.Warning) {
	if len(sb.warnings) < maxWarnings {
		sb.warnings = append(sb.warnings, warningAt{offset, w})
	}
}

func (sb *sideband) comm(name string) uint32 {
	n, ok := sb.commID[name]
	if !ok {
		n = uint32(len(sb.comms))
		sb.comms = append(sb.comms, name)
		sb.commID[name] = n
	}
	return n
}

// record takes in one record that is no sample.
func (sb *sideband) record(rec *perfdata.Record) error {
	switch rec.Type {
	case perfdata.TypeMmap, perfdata.TypeMmap2:
		if err := sb.file.Mmap(rec, &sb.mmap); err != nil {
			return err
		}
		sb.mapping(rec)
	case perfdata.TypeComm:
		var c perfdata.Comm
		if err := sb.file.Comm(rec, &c); err != nil {
			return err
		}
		id, ok := sb.commID[string(c.Name)]
		if !ok {
			id = sb.comm(string(c.Name))
		}
		sb.add(rec, sideEvent{kind: sideComm, pid: c.PID, tid: c.TID, ref: id, flag: c.Exec})
	case perfdata.TypeFork:
		var t perfdata.Task
		if err := sb.file.Task(rec, &t); err != nil {
			return err
		}
		sb.add(rec, sideEvent{kind: sideFork, pid: t.PID, tid: t.TID, flag: t.Synthesized,
			a: uint64(uint32(t.PPID)), b: uint64(uint32(t.PTID))})
	case perfdata.TypeKSymbol:
		return sb.ksymbol(rec)
	case perfdata.TypeBPFEvent:
		var b perfdata.BPFEvent
		if err := sb.file.BPFEvent(rec, &b); err != nil {
			return err
		}
		if b.Kind == perfdata.BPFLoad {
			sb.add(rec, sideEvent{kind: sideProgramLoad, ref: b.ID, a: tagWord(b.Tag)})
		}
	case perfdata.TypeBPFMetadata:
		return sb.metadata(rec)
	case perfdata.TypeLost, perfdata.TypeLostSamples:
		var l perfdata.Lost
		if err := sb.file.Lost(rec, &l); err != nil {
			return err
		}
		if !l.ByBPF {
			sb.stats.Lost += l.Count
		}
	case perfdata.TypeThrottle:
		sb.stats.Throttled++
	}
	// EXIT changes nothing: late samples of the dead still find their mappings, and
	// whoever gets the number next comes with a FORK.
	return nil
}

func (sb *sideband) add(rec *perfdata.Record, e sideEvent) {
	recorded := uint64(noTime)
	id, err := sb.file.SampleID(rec)
	if err == nil && id.Has&perfdata.SampleTime != 0 {
		recorded = id.Time
	}
	if e.kind >= sideKernel {
		e.tid = id.TID
	}
	e.time = sb.clock.note(recorded, rec.Offset, sb.first < 0)
	e.seq = uint32(len(sb.events))
	sb.events = append(sb.events, e)
}

func (sb *sideband) ksymbol(rec *perfdata.Record) error {
	var k perfdata.KSymbol
	if err := sb.file.KSymbol(rec, &k); err != nil {
		return err
	}
	if k.Len == 0 {
		return nil // not JITed
	}
	e := sideEvent{kind: sideKernel, layer: addrspace.Image,
		a: k.Addr, b: endOf(k.Addr, uint64(k.Len))}
	if strings.HasPrefix(string(k.Name), bpfProgPrefix) {
		e.layer = addrspace.Program
		sb.programSymbols++
	}
	if k.Unregister {
		e.kind = sideKernelGone
	} else {
		e.ref = sb.raw.ksymbol(&k, sb.arch)
	}
	sb.add(rec, e)
	return nil
}

// endOf is start + length, cut at the end of the address space.
func endOf(start, length uint64) uint64 {
	if end := start + length; end >= start {
		return end
	}
	return math.MaxUint64
}

// mapping takes in the MMAP or MMAP2 record in sb.mmap.
func (sb *sideband) mapping(rec *perfdata.Record) {
	m := &sb.mmap
	if m.Data {
		return
	}
	e := sideEvent{kind: sideMap, pid: m.PID, a: m.Addr, b: endOf(m.Addr, m.Len), c: m.PgOff}
	switch mode := rec.CPUMode(); {
	case mode == perfdata.CPUModeGuestKernel, mode == perfdata.CPUModeGuestUser:
		return // all guest code is one location
	case mode == perfdata.CPUModeKernel || m.PID == -1:
		if !sb.kernelMapping(rec, &e) {
			return
		}
	case string(m.Filename) == ingest.VsyscallPath:
		e.ref = rawVsyscall
	default:
		e.ref = sb.raw.user(m)
		sb.raw.segment(e.ref, m.PgOff, m.Len)
		if sb.raw.list[e.ref].Kind == ingest.PerfMap {
			e.c = e.a // the offset is the address itself
		}
	}
	sb.add(rec, e)
}

// build orders the changes of state and plays them.
func (sb *sideband) build() {
	slices.SortFunc(sb.events, func(a, b sideEvent) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.seq, b.seq))
	})
	sb.tiePrograms()
	b := addrspace.NewBuilder()
	b.Comm(0, 0, 0, sb.comm("swapper"), false) // the idle task, which no record names
	for i := range sb.events {
		e := &sb.events[i]
		m := addrspace.Mapping{Start: addr.PC(e.a), End: addr.PC(e.b), PgOff: e.c, Object: e.ref}
		switch e.kind {
		case sideMap:
			b.Map(e.time, e.pid, m)
			sb.raw.mapped(e.ref, e.time)
		case sideComm:
			b.Comm(e.time, e.pid, e.tid, e.ref, e.flag)
		case sideFork:
			b.Fork(e.time, e.pid, e.tid, int32(e.a), int32(e.b), e.flag)
		case sideKernel:
			b.Kernel(e.time, e.layer, m)
		case sideKernelGone:
			b.KernelGone(e.time, e.layer, m.Start, m.End)
		}
	}
	sb.events = nil
	sb.spaces = b.Build()
}
