package perfdata

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/decode"
)

// AttrType is perf_event_attr.type: the kind of counter in Config. Numbers from 6 are dynamic PMUs,
// named by the PMU_MAPPINGS feature.
type AttrType uint32

// The fixed types of enum perf_type_id.
const (
	AttrHardware   AttrType = 0
	AttrSoftware   AttrType = 1
	AttrTracepoint AttrType = 2
	AttrHWCache    AttrType = 3
	AttrRaw        AttrType = 4
	AttrBreakpoint AttrType = 5
)

// SampleType is a set of sample fields (enum perf_event_sample_format).
type SampleType uint64

// The fields a sample can have, by their bits, which are not their order in the record.
const (
	SampleIP           SampleType = 1 << 0
	SampleTID          SampleType = 1 << 1
	SampleTime         SampleType = 1 << 2
	SampleAddr         SampleType = 1 << 3
	SampleRead         SampleType = 1 << 4
	SampleCallchain    SampleType = 1 << 5
	SampleIDField      SampleType = 1 << 6
	SampleCPU          SampleType = 1 << 7
	SamplePeriod       SampleType = 1 << 8
	SampleStreamID     SampleType = 1 << 9
	SampleRaw          SampleType = 1 << 10
	SampleBranchStack  SampleType = 1 << 11
	SampleRegsUser     SampleType = 1 << 12
	SampleStackUser    SampleType = 1 << 13
	SampleWeight       SampleType = 1 << 14
	SampleDataSrc      SampleType = 1 << 15
	SampleIdentifier   SampleType = 1 << 16
	SampleTransaction  SampleType = 1 << 17
	SampleRegsIntr     SampleType = 1 << 18
	SamplePhysAddr     SampleType = 1 << 19
	SampleAux          SampleType = 1 << 20
	SampleCgroup       SampleType = 1 << 21
	SampleDataPageSize SampleType = 1 << 22
	SampleCodePageSize SampleType = 1 << 23
	SampleWeightStruct SampleType = 1 << 24

	// knownSampleBits are the fields with a known position in a sample. A higher bit is a field of
	// unknown size, so that the layout of the event's samples is unknown.
	knownSampleBits SampleType = 1<<25 - 1
)

// ReadFormat is the set of values in a READ field (enum perf_event_read_format).
type ReadFormat uint64

// The bits of a ReadFormat.
const (
	ReadTimeEnabled ReadFormat = 1 << 0
	ReadTimeRunning ReadFormat = 1 << 1
	ReadID          ReadFormat = 1 << 2
	ReadGroup       ReadFormat = 1 << 3
	ReadLost        ReadFormat = 1 << 4

	knownReadBits ReadFormat = 1<<5 - 1
)

// AttrFlags are the single-bit members of perf_event_attr, numbered as on a
// little-endian machine in both byte orders.
type AttrFlags uint64

// The flags of perf_event_attr in use.
const (
	FlagInherit       AttrFlags = 1 << 1
	FlagExcludeUser   AttrFlags = 1 << 4
	FlagExcludeKernel AttrFlags = 1 << 5
	FlagExcludeHV     AttrFlags = 1 << 6
	FlagExcludeIdle   AttrFlags = 1 << 7
	FlagMmap          AttrFlags = 1 << 8
	FlagComm          AttrFlags = 1 << 9
	FlagFreq          AttrFlags = 1 << 10
	FlagTask          AttrFlags = 1 << 13
	FlagMmapData      AttrFlags = 1 << 17
	FlagSampleIDAll   AttrFlags = 1 << 18
	FlagExcludeHost   AttrFlags = 1 << 19
	FlagExcludeGuest  AttrFlags = 1 << 20
	FlagMmap2         AttrFlags = 1 << 23
	FlagCommExec      AttrFlags = 1 << 24
	FlagUseClockID    AttrFlags = 1 << 25
	FlagContextSwitch AttrFlags = 1 << 26
	FlagWriteBackward AttrFlags = 1 << 27
	FlagNamespaces    AttrFlags = 1 << 28
	FlagKSymbol       AttrFlags = 1 << 29
	FlagBPFEvent      AttrFlags = 1 << 30
	FlagCgroup        AttrFlags = 1 << 32
	FlagTextPoke      AttrFlags = 1 << 33
	FlagBuildID       AttrFlags = 1 << 34

	preciseShift = 15 // of the two bits precise_ip
)

// Attr holds the members of struct perf_event_attr that readers of samples need.
type Attr struct {
	Type             AttrType
	Size             uint32 // as recorded: 64 (VER0) to 144 (VER9), larger from newer recorders
	Config           uint64
	SamplePeriod     uint64 // or the frequency in Hz, with FlagFreq
	SampleType       SampleType
	ReadFormat       ReadFormat
	Flags            AttrFlags
	BPType           uint32 // of a breakpoint: 1 read, 2 write, 3 both, 4 execute
	Config1          uint64 // of a breakpoint: its address
	Config2          uint64
	BranchSampleType uint64
	SampleRegsUser   uint64
	SampleStackUser  uint32
	ClockID          int32 // with FlagUseClockID
	SampleRegsIntr   uint64
	SampleMaxStack   uint16
}

// PreciseIP returns the attr's precise_ip, 0 to 3.
func (a *Attr) PreciseIP() int { return int(a.Flags>>preciseShift) & 3 }

// Has reports whether all flags are set.
func (a *Attr) Has(flags AttrFlags) bool { return a.Flags&flags == flags }

// DataAddresses reports whether the addresses of samples are of the data that the sampled instructions access. The
// instruction before accessed the address of a breakpoint, and a tracepoint has an address of its own.
func (a *Attr) DataAddresses() bool {
	return a.SampleType&SampleAddr != 0 && a.Type != AttrTracepoint && a.Type != AttrBreakpoint
}

const (
	attrSizeVer0 = 64      // PERF_ATTR_SIZE_VER0: the minimum; also for a size field of 0
	maxAttrSize  = 1 << 12 // the kernel's own limit is a page
)

// parseAttr decodes an attr from b, which may end early (older recorders) or late (newer
// recorders): missing members are zero.
func parseAttr(name string, b []byte, base int64, big bool) (Attr, error) {
	r := decode.New(name, b, base, big)
	var a Attr
	a.Type = AttrType(r.U32())
	a.Size = r.U32()
	if a.Size == 0 {
		a.Size = attrSizeVer0
	}
	if a.Size < attrSizeVer0 {
		r.Fail("attr has size %d, less than %d", a.Size, attrSizeVer0)
	}
	a.Config = r.U64()
	a.SamplePeriod = r.U64()
	a.SampleType = SampleType(r.U64())
	a.ReadFormat = ReadFormat(r.U64())
	a.Flags = attrFlags(r.U64(), big)
	r.U32() // wakeup
	a.BPType = r.U32()
	a.Config1 = r.U64()
	if r.Err() != nil {
		return a, r.Err()
	}
	if int64(a.Size) < int64(len(b)) {
		r = decode.New(name, b[:a.Size], base, big)
		r.Skip(attrSizeVer0)
	}
	a.parseTail(r)
	return a, nil
}

// parseTail decodes the members after VER0 up to the end of r; further members are zero.
func (a *Attr) parseTail(r *decode.Reader) {
	a.Config2 = r.U64()
	a.BranchSampleType = r.U64()
	a.SampleRegsUser = r.U64()
	a.SampleStackUser = r.U32()
	a.ClockID = int32(r.U32())
	a.SampleRegsIntr = r.U64()
	r.U32() // aux_watermark
	a.SampleMaxStack = r.U16()
}

// attrFlags converts the flag word to its little-endian numbering. A big-endian compiler allocates
// bit fields from the most significant bit, so that the word is reversed, except for the order of
// the two bits of precise_ip.
func attrFlags(v uint64, big bool) AttrFlags {
	if !big {
		return AttrFlags(v)
	}
	v = bits.Reverse64(v)
	lo, hi := v>>preciseShift&1, v>>(preciseShift+1)&1
	v &^= 3 << preciseShift
	return AttrFlags(v | lo<<(preciseShift+1) | hi<<preciseShift)
}

// GuestIDs calls visit for the IDs of events that were recorded in a virtual machine, according to
// an ID_INDEX record, with the process of the machine (perf inject --guest-data). The record has
// u64 n, n times {u64 ID, index, CPU, thread}, and since Linux 6.0 n times {u64 machine, vCPU};
// machine 0 is the host.
func (f *File) GuestIDs(rec *Record, visit func(id uint64, machine int32)) error {
	const entry, machineEntry = 32, 16
	name, at := f.placeOf(rec.Offset + headerSize)
	r := decode.New(name, rec.Body, at, f.BigEndian)
	n := r.U64()
	if r.Err() == nil && n > uint64(r.Left())/entry {
		r.Fail("ID_INDEX declares %d entries, more than its size allows", n)
	}
	if r.Err() != nil || uint64(r.Left()) < n*(entry+machineEntry) {
		return r.Err()
	}
	machines := decode.New(name, rec.Body, at, f.BigEndian)
	machines.Seek(8 + n*entry)
	for range n {
		id := r.U64()
		r.Skip(entry - 8)
		machine := machines.U64()
		machines.Skip(machineEntry - 8)
		if machine != 0 {
			visit(id, int32(machine))
		}
	}
	return nil
}

// applyFeatures sets the events' names and missing IDs from the EVENT_DESC feature, and derives the
// other names.
func (f *File) applyFeatures() {
	f.simpleperfTypes()
	descs := f.Features.EventDesc
	for i := range f.Events {
		ev := &f.Events[i]
		if d := findDesc(descs, ev, i, len(f.Events)); d != nil {
			ev.Name = d.Name
			if len(ev.IDs) == 0 {
				ev.IDs = d.IDs
			}
		}
	}
	f.tracepointTypes()
	for i := range f.Events {
		if ev := &f.Events[i]; ev.Name == "" {
			ev.Name = f.baseName(&ev.Attr) + modifiers(&ev.Attr)
		}
	}
}

// tracepointTypes names unnamed tracepoints by their formats, as perf does: recordings in pipe
// mode have no other names.
func (f *File) tracepointTypes() {
	if !slices.ContainsFunc(f.Events, func(ev Event) bool {
		return ev.Name == "" && ev.Attr.Type == AttrTracepoint && f.types[ev.Attr.Config] == ""
	}) {
		return
	}
	formats, _ := f.Tracepoints() // an error is reported by callers that need the fields
	for i := range formats {
		if x := &formats[i]; x.Name != "" && f.types[x.ID] == "" {
			f.types[x.ID] = x.System + ":" + x.Name
		}
	}
}

// findDesc returns the description of an event: the one with its first ID, otherwise the one with
// its index if there are as many descriptions as events.
func findDesc(descs []EventDesc, ev *Event, i, events int) *EventDesc {
	if len(ev.IDs) > 0 {
		for j := range descs {
			if slices.Contains(descs[j].IDs, ev.IDs[0]) {
				return &descs[j]
			}
		}
	}
	if len(descs) == events && descs[i].Attr.Type == ev.Attr.Type &&
		descs[i].Attr.Config == ev.Attr.Config {
		return &descs[i]
	}
	return nil
}

// The names of perf's own tables (tools/perf/util/evsel.c), by Config.
var (
	hardwareNames = []string{"cycles", "instructions", "cache-references", "cache-misses",
		"branches", "branch-misses", "bus-cycles", "stalled-cycles-frontend",
		"stalled-cycles-backend", "ref-cycles"}
	softwareNames = []string{"cpu-clock", "task-clock", "page-faults", "context-switches",
		"cpu-migrations", "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy", "bpf-output", "cgroup-switches"}
	cacheNames = []string{"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"}
	cacheOps   = []string{"load", "store", "prefetch"}
	// cacheOpsPlural name the accesses; misses take the singular.
	cacheOpsPlural = []string{"loads", "stores", "prefetches"}
)

// Name returns perf's name of an event by its attr alone: without modifiers, and with numbers for
// tracepoints and PMUs.
func (a *Attr) Name() string { return new(File).baseName(a) }

// NamelessTracepoint begins the names of tracepoints of which only the number is known.
const NamelessTracepoint = "tracepoint:"

// baseName derives a name as perf does (evsel__name in tools/perf/util/evsel.c), by type and
// config.
func (f *File) baseName(a *Attr) string {
	// The upper half of config can hold the number of a PMU (hybrid machines).
	config := a.Config & 0xffffffff
	switch a.Type {
	case AttrHardware:
		return f.hybrid(a) + tableName(hardwareNames, config, "unknown-hardware")
	case AttrSoftware:
		return tableName(softwareNames, a.Config, "unknown-software")
	case AttrTracepoint:
		if name := f.types[a.Config]; name != "" {
			return name
		}
		return NamelessTracepoint + strconv.FormatUint(a.Config, 10)
	case AttrHWCache:
		return f.hybrid(a) + cacheName(config)
	case AttrRaw:
		return "r" + strconv.FormatUint(a.Config, 16)
	case AttrBreakpoint:
		return breakpointName(a)
	}
	if name := f.pmuName(a.Type); name != "" {
		return fmt.Sprintf("%s/config=%#x/", name, a.Config)
	}
	return fmt.Sprintf("unknown attr type: %d", a.Type)
}

// hybrid returns the prefix "cpu_core/" for the PMU of a hybrid machine's event, "" for others.
func (f *File) hybrid(a *Attr) string {
	if pmu := a.Config >> 32; pmu != 0 {
		if name := f.pmuName(AttrType(pmu)); name != "" {
			return name + "/"
		}
	}
	return ""
}

func (f *File) pmuName(t AttrType) string {
	for _, p := range f.Features.PMUMappings {
		if p.Type == t {
			return p.Name
		}
	}
	return ""
}

func tableName(names []string, config uint64, unknown string) string {
	if config < uint64(len(names)) {
		return names[config]
	}
	return unknown
}

// cacheName names a cache event: config holds cache, operation and result, a byte each.
func cacheName(config uint64) string {
	cache, op, result := config&0xff, config>>8&0xff, config>>16&0xff
	if cache >= uint64(len(cacheNames)) || op >= uint64(len(cacheOps)) || result > 1 {
		return "invalid-cache"
	}
	if result == 1 {
		return cacheNames[cache] + "-" + cacheOps[op] + "-misses"
	}
	return cacheNames[cache] + "-" + cacheOpsPlural[op]
}

func breakpointName(a *Attr) string {
	access := ""
	for i, c := range []string{"r", "w", "x"} {
		if a.BPType>>i&1 != 0 {
			access += c
		}
	}
	return fmt.Sprintf("mem:%#x:%s", a.Config1, access)
}

// modifiers returns the modifiers ":u", ":k", ":h" and ":p" of an attr. Modifiers for host and
// guest are left out: users do not request them, and a derived name should be the requested one.
func modifiers(a *Attr) string {
	var b strings.Builder
	if a.Flags&(FlagExcludeKernel|FlagExcludeUser|FlagExcludeHV) != 0 {
		for _, m := range []struct {
			exclude AttrFlags
			letter  byte
		}{{FlagExcludeKernel, 'k'}, {FlagExcludeUser, 'u'}, {FlagExcludeHV, 'h'}} {
			if !a.Has(m.exclude) {
				b.WriteByte(m.letter)
			}
		}
	}
	b.WriteString(strings.Repeat("p", a.PreciseIP()))
	if b.Len() == 0 {
		return ""
	}
	return ":" + b.String()
}
