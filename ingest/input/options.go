package input

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/pods"
	"symbolize/ingest/sideband"
)

// StandardInput is the path of Options.Stdin.
const StandardInput = "-"

// Selection chooses the samples of a capture, their weights, and the labels that they keep.
type Selection struct {
	// Event selects an event; "" for all. Of a perf.data it may be a derived one (ingest.OffCPUEvent
	// and the like).
	Event string
	// WakerDepth, with ingest.OffCPUEvent, adds to each stack those of the threads that woke the
	// thread, that woke that one, up to this many.
	WakerDepth int

	Comms []string    // only these thread names; none for all
	PIDs  []int32     // only these processes; none for all
	TIDs  []int32     // only these threads; none for all
	CPUs  []int32     // only these CPUs; none for all
	Time  TimeRange   // only samples of this range; of captures with times only
	Keep  ingest.Keep // labels to keep apart when folding
	// Weight is a field of tracepoints; its value replaces the period as the weight of samples. ""
	// for none. Samples of events without the field are left out.
	Weight string
	// Branches is how branch stacks (perf record -b) are used.
	Branches BranchMode
}

// BranchMode is how branch stacks (perf record -b) are used. All but NoBranches replace samples by
// samples of weight 1 made of the entries of their branch stacks; the tag ingest.PredictionTag has
// the prediction of a branch, if the processor recorded it.
type BranchMode uint8

// The modes.
const (
	NoBranches BranchMode = iota
	// BranchEntries makes a sample of each entry: its stack is the target and the source of the branch.
	BranchEntries
	// BranchRuns makes the samples that AutoFDO's tools read: sampled addresses, branches, and the code
	// between two branches. ingest.BranchTag distinguishes them.
	BranchRuns
	// BranchTraces makes a sample of each branch with the code that ran from its target to the next
	// branch: its stack is the source of the next branch, the target, and the source, of the newest
	// branch only the latter two. ingest.BranchTag distinguishes them. Captures without branch stacks
	// keep their samples.
	BranchTraces
)

// Options select the samples of a capture, and provide other sources of facts.
type Options struct {
	Selection

	// Pods has the pods of ingest.PodTags.
	Pods *pods.Table
	// Payloads notes the places of the kernel's addresses in the fields of tracepoints, so that Seen
	// receives them: ReplaySample.Payload prints their symbols.
	Payloads bool
	// NoStacks makes the Profile of a perf.data without stacks, only with Profile.Stacks.
	NoStacks bool
	Workers  int // 0 for GOMAXPROCS

	// Stdin is read for the path StandardInput, once; nil makes that path a file name.
	Stdin io.Reader

	// Identify returns the build ID of a mapping recorded without one: of a file proven to be the
	// same, the vdso of a known kernel, or the path with --trust-paths. It is called once per
	// distinct object, from one goroutine; nil finds none. It is also called for files with an ID
	// that the capture has only for their path, ByPath of the query: it returns that ID unless it
	// can refute it.
	Identify func(sideband.ObjectQuery) (buildid.ID, ingest.IDSource)

	// Loads are IDs of BPF programs: each of these loads is an object of its own, with the ID as
	// ingest.LoadText in RefSymbol.
	Loads []uint32
	// Now returns the clocks of this host; nil if they are unknown.
	Now sideband.HostClocks

	// Seen receives the objects with samples when they have their build IDs, before Exact is
	// called. It is called once.
	Seen func(Seen)

	// Exact returns the offsets among the ascending return addresses that, by symbol tables, no
	// call can precede: an interrupt or a signal came there, or code wrote the address onto the
	// stack. Their location is the address itself and not the byte before it. It is called at most
	// once per object, from several goroutines; nil returns none.
	Exact func(o *ingest.Object, returns []addr.Offset) []addr.Offset

	// JIT returns the code that a process compiled at run time. It is called once for each process
	// with memory for such code, from one goroutine; nil returns none.
	JIT func(*sideband.JITQuery) sideband.JITCode

	// Undecided selects objects for which Exact is not called, because their tables are elsewhere.
	// Their return addresses get an object of their own (ingest.Object.Undecided) in the Profile,
	// which cannot be replayed. nil selects none.
	Undecided func(o *ingest.Object) bool

	// Unwinder makes the unwinder of the copied user stacks of a capture that has any. Without it
	// such stacks have the address in user mode and a frame with the reason StackNotUnwound.
	Unwinder UnwinderFor

	// Callers completes a profile with stacks that were made of frame pointers: it returns another
	// profile, and the conversion of the old one's stacks to it, or p and nil. whole is set if all
	// mappings are known. Replays have the stacks, too, without addresses. nil leaves stacks as they
	// were recorded.
	Callers func(p *ingest.Profile, whole bool) (*ingest.Profile, Chain)

	// Bundles are opened bundles, which must stay open until the Profile is made. Their BPF
	// programs, symbols, modules and mappings are used if a perf.data of the same boot lacks them;
	// see Capture.Contributions.
	Bundles []*Capture

	// Kallsyms are paths of copies of /proc/kallsyms, which name modules without a build ID.
	Kallsyms []string

	// MaxUnpacked bounds the unpacked bytes of a packed capture; 0 for the default of
	// files.MaxUnpacked, by its size.
	MaxUnpacked int64

	// Stacks has the layout of stack maps, and files that belong to them.
	Stacks StackOptions
}

// ReplayFrame is one frame of a replayed sample.
type ReplayFrame struct {
	PC       addr.PC           // as recorded: return addresses unadjusted
	Location ingest.LocationID // in the Profile of the same Capture
	Return   bool              // PC is a return address, Location is of the byte before it
}

// identifyFile is Identify of the profiles of other programs, which name no host: nothing proves that
// the file at a path is the one that ran.
func (o *Options) identifyFile(x *ingest.Object) (id buildid.ID, source ingest.IDSource) {
	if o.Identify != nil {
		id, source = o.Identify(sideband.ObjectQuery{Kind: ingest.ELF, File: x.File, Segments: x.Segments})
	}
	return id, source
}

// ReplaySample is one sample of a replay. Slices are valid until the callback returns.
type ReplaySample struct {
	Event    uint16
	Comm     string
	PID, TID int32
	CPU      int32
	Time     uint64 // as recorded, ns of the recording's clock
	Period   uint64
	State    string        // of the thread, in derived events: see ingest.StateTag
	Frames   []ReplayFrame // leaf first
	Payload  *Payload      // nil if the sample has no RAW data
}

// complete replaces the frames by those of a completed stack, which have no addresses.
func (s *ReplaySample) complete(chain Chain) {
	list := make([]ingest.LocationID, len(s.Frames))
	for i := range s.Frames {
		list[i] = s.Frames[i].Location
	}
	s.Frames = s.Frames[:0]
	for _, l := range chain(list) {
		s.Frames = append(s.Frames, ReplayFrame{Location: l})
	}
}

// Seen has the objects of a capture before return addresses are decided.
type Seen struct {
	Host    string // of the recording
	Objects []ingest.Object
	// Offsets has for each object the offsets of its locations, unordered and with duplicates: for
	// a return address both its offset and the one before it.
	Offsets [][]addr.Offset
}

// TimeRange selects samples from From to To inclusive, like perf script --time: in ns of the
// recording's clock or, with Percent, in millionths of the time between the first and the last
// sample, of derived events between the first and the last record. The zero value selects all.
type TimeRange struct {
	From, To uint64
	Percent  bool
	set      bool
}

// errTimeRange describes the forms of a range.
var errTimeRange = errors.New("a range is FROM,TO in seconds of the recording's clock, where " +
	"either can be empty, or FROM%-TO%")

// ParseTimeRange parses "12.5,13", "12.5,", ",13" and "10%-20%". The empty text selects all.
func ParseTimeRange(s string) (TimeRange, error) {
	if s == "" {
		return TimeRange{}, nil
	}
	from, to, ok := strings.Cut(s, ",")
	t := TimeRange{set: true, To: math.MaxUint64}
	parse, scale := parseDecimal, 9
	if !ok {
		from, to, ok = strings.Cut(s, "-")
		var percentFrom, percentTo bool
		from, percentFrom = strings.CutSuffix(from, "%")
		to, percentTo = strings.CutSuffix(to, "%")
		ok = ok && percentFrom && percentTo && from != "" && to != ""
		t.Percent, scale = true, 4 // a percent is 10,000 millionths
	}
	for _, side := range []struct {
		text string
		to   *uint64
	}{{from, &t.From}, {to, &t.To}} {
		if ok && side.text != "" {
			*side.to, ok = parse(side.text, scale)
		}
	}
	if !ok || from == "" && to == "" || t.From > t.To || t.Percent && t.To > 1_000_000 {
		return TimeRange{}, errTimeRange
	}
	return t, nil
}

// parseDecimal parses a decimal number as a multiple of 10^-digits, exactly.
func parseDecimal(s string, digits int) (uint64, bool) {
	whole, part, _ := strings.Cut(s, ".")
	if len(part) > digits || whole == "" {
		return 0, false
	}
	v, err := strconv.ParseUint(whole+part+strings.Repeat("0", digits-len(part)), 10, 64)
	return v, err == nil
}

// chooseTimes makes Selection.Time a range of ns.
func (c *collector) chooseTimes() error {
	t := c.want.Time
	c.until = math.MaxUint64
	if !t.set {
		return nil
	}
	file := c.Records.File
	if !c.allHave(perfdata.SampleTime) {
		return errNoTimes(file.Name)
	}
	c.after, c.until = t.From, t.To
	if !t.Percent {
		return nil
	}
	first, last := file.Features.FirstTime, file.Features.LastTime
	if last == 0 || c.derived != nil { // waits begin and end with other records, too
		var err error
		if first, last, err = c.recordTimes(); err != nil {
			return err
		}
	}
	span := float64(last - first)
	c.after = first + uint64(span*float64(t.From)/1e6)
	c.until = first + uint64(math.Ceil(span*float64(t.To)/1e6))
	return nil
}

// allHave reports whether all samples have a field.
func (c *collector) allHave(field perfdata.SampleType) bool {
	return !slices.ContainsFunc(c.Records.File.Events, func(ev perfdata.Event) bool {
		return ev.Attr.SampleType&field == 0
	})
}

// anyHas reports whether samples of a selected event have a field.
func (c *collector) anyHas(field perfdata.SampleType) bool {
	for i := range c.Records.File.Events {
		if c.event[i] >= 0 && c.Records.File.Events[i].Attr.SampleType&field != 0 {
			return true
		}
	}
	return false
}

// recordTimes reads the times of the first and the last sample, which only perf record writes as a
// feature; of a derived event those of all records.
func (c *collector) recordTimes() (first, last uint64, err error) {
	first = math.MaxUint64
	var records *perfdata.RecordReader
	for i := range c.Records.NumChunks() {
		records = c.Records.Read(records, c.Records.Chunk(i))
		for records.Next() {
			rec := records.Record()
			if rec.Type != perfdata.TypeSample && c.derived == nil {
				continue
			}
			id, err := c.Records.File.SampleID(rec)
			if err != nil || id.Time == sideband.NoTime || id.Time == 0 && rec.Type != perfdata.TypeSample {
				continue
			}
			first, last = min(first, id.Time), max(last, id.Time)
		}
		if err := records.Err(); err != nil {
			return 0, 0, err
		}
	}
	return min(first, last), last, nil
}

// errNoTimes is the error of Selection.Time for captures without times.
func errNoTimes(path string) error {
	return fmt.Errorf("%s: samples have no times; --time cannot select", path)
}

// refuseRecords refuses options that need single samples, for captures of counted stacks.
func (o *Selection) refuseRecords(path string) error {
	if o.Time.set {
		return errNoTimes(path)
	}
	return o.refuseFields(path)
}

// refuseFields refuses options that need fields which only perf.data files have.
func (o *Selection) refuseFields(path string) error {
	switch {
	case o.Weight != "":
		return fmt.Errorf("%s: no tracepoints in it", path)
	case o.Branches != NoBranches && o.Branches != BranchTraces:
		return fmt.Errorf("%s: no branch stacks in it", path)
	}
	return nil
}
