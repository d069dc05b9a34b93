package perfdata

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"symbolize/buildid"
	"symbolize/ingest/decode"
)

// Type is the type of a record: the kernel's are below 64, perf's own from 64.
type Type uint32

// The record types of enum perf_event_type (include/uapi/linux/perf_event.h) and enum
// perf_user_event_type (tools/lib/perf/include/perf/event.h).
const (
	TypeMmap              Type = 1
	TypeLost              Type = 2
	TypeComm              Type = 3
	TypeExit              Type = 4
	TypeThrottle          Type = 5
	TypeUnthrottle        Type = 6
	TypeFork              Type = 7
	TypeRead              Type = 8
	TypeSample            Type = 9
	TypeMmap2             Type = 10
	TypeAux               Type = 11
	TypeItraceStart       Type = 12
	TypeLostSamples       Type = 13
	TypeSwitch            Type = 14
	TypeSwitchCPUWide     Type = 15
	TypeNamespaces        Type = 16
	TypeKSymbol           Type = 17
	TypeBPFEvent          Type = 18
	TypeCgroup            Type = 19
	TypeTextPoke          Type = 20
	TypeAuxOutputHWID     Type = 21
	TypeCallchainDeferred Type = 22

	TypeHeaderAttr        Type = 64
	TypeHeaderEventType   Type = 65
	TypeHeaderTracingData Type = 66
	TypeHeaderBuildID     Type = 67
	TypeFinishedRound     Type = 68
	TypeIDIndex           Type = 69
	TypeAuxtraceInfo      Type = 70
	TypeAuxtrace          Type = 71
	TypeAuxtraceError     Type = 72
	TypeThreadMap         Type = 73
	TypeCPUMap            Type = 74
	TypeStatConfig        Type = 75
	TypeStat              Type = 76
	TypeStatRound         Type = 77
	TypeEventUpdate       Type = 78
	TypeTimeConv          Type = 79
	TypeHeaderFeature     Type = 80
	TypeCompressed        Type = 81
	TypeFinishedInit      Type = 82
	TypeCompressed2       Type = 83
	TypeBPFMetadata       Type = 84
	TypeSchedstatCPU      Type = 85
	TypeSchedstatDomain   Type = 86

	firstUserType = TypeHeaderAttr

	// firstSimpleperf is the first type of simpleperf, Android's perf (record.h in
	// platform/system/extras/simpleperf). Sizes of such records have 32 bits, the upper half in
	// place of the misc field.
	firstSimpleperf Type = 32768
)

// maxSimpleperf bounds the record types of simpleperf, which has 10.
const maxSimpleperf = 256

var typeNames = [...]string{
	TypeMmap: "MMAP", TypeLost: "LOST", TypeComm: "COMM", TypeExit: "EXIT",
	TypeThrottle: "THROTTLE", TypeUnthrottle: "UNTHROTTLE", TypeFork: "FORK",
	TypeRead: "READ", TypeSample: "SAMPLE", TypeMmap2: "MMAP2", TypeAux: "AUX",
	TypeItraceStart: "ITRACE_START", TypeLostSamples: "LOST_SAMPLES",
	TypeSwitch: "SWITCH", TypeSwitchCPUWide: "SWITCH_CPU_WIDE",
	TypeNamespaces: "NAMESPACES", TypeKSymbol: "KSYMBOL", TypeBPFEvent: "BPF_EVENT",
	TypeCgroup: "CGROUP", TypeTextPoke: "TEXT_POKE",
	TypeAuxOutputHWID: "AUX_OUTPUT_HW_ID", TypeCallchainDeferred: "CALLCHAIN_DEFERRED",
	TypeHeaderAttr: "HEADER_ATTR", TypeHeaderEventType: "HEADER_EVENT_TYPE",
	TypeHeaderTracingData: "HEADER_TRACING_DATA", TypeHeaderBuildID: "HEADER_BUILD_ID",
	TypeFinishedRound: "FINISHED_ROUND", TypeIDIndex: "ID_INDEX",
	TypeAuxtraceInfo: "AUXTRACE_INFO", TypeAuxtrace: "AUXTRACE",
	TypeAuxtraceError: "AUXTRACE_ERROR", TypeThreadMap: "THREAD_MAP",
	TypeCPUMap: "CPU_MAP", TypeStatConfig: "STAT_CONFIG", TypeStat: "STAT",
	TypeStatRound: "STAT_ROUND", TypeEventUpdate: "EVENT_UPDATE",
	TypeTimeConv: "TIME_CONV", TypeHeaderFeature: "HEADER_FEATURE",
	TypeCompressed: "COMPRESSED", TypeFinishedInit: "FINISHED_INIT",
	TypeCompressed2: "COMPRESSED2", TypeBPFMetadata: "BPF_METADATA",
	TypeSchedstatCPU: "SCHEDSTAT_CPU", TypeSchedstatDomain: "SCHEDSTAT_DOMAIN",
}

// simpleperfNames are the names of simpleperf's record types from firstSimpleperf on. These records
// are not decoded: samples have their callers, and symbols are in a feature.
var simpleperfNames = [...]string{1: "SIMPLEPERF_KERNEL_SYMBOL", "SIMPLEPERF_DSO",
	"SIMPLEPERF_SYMBOL", "SIMPLEPERF_SPLIT", "SIMPLEPERF_SPLIT_END", "SIMPLEPERF_EVENT_ID",
	"SIMPLEPERF_CALLCHAIN", "SIMPLEPERF_UNWINDING_RESULT", "SIMPLEPERF_TRACING_DATA",
	"SIMPLEPERF_DEBUG"}

// String returns the name without its prefix, "MMAP2" for PERF_RECORD_MMAP2, and
// "UNKNOWN_200" for an unknown type.
func (t Type) String() string {
	if n := t - firstSimpleperf; t.Known() && t >= firstSimpleperf {
		return simpleperfNames[n]
	}
	if t.Known() {
		return typeNames[t]
	}
	return "UNKNOWN_" + strconv.FormatUint(uint64(t), 10)
}

// Known reports whether this package has a name for the type.
func (t Type) Known() bool {
	if n := t - firstSimpleperf; t >= firstSimpleperf {
		return uint64(n) < uint64(len(simpleperfNames)) && simpleperfNames[n] != ""
	}
	return uint64(t) < uint64(len(typeNames)) && typeNames[t] != ""
}

// Compressed reports whether a record of this type holds zstd-compressed records (perf record -z),
// which package container unpacks.
func (t Type) Compressed() bool { return t == TypeCompressed || t == TypeCompressed2 }

// CPUMode is the mode of the CPU: bits 0 to 2 of a record's misc field.
type CPUMode uint8

// The modes of PERF_RECORD_MISC_CPUMODE_MASK.
const (
	CPUModeUnknown     CPUMode = 0
	CPUModeKernel      CPUMode = 1
	CPUModeUser        CPUMode = 2
	CPUModeHypervisor  CPUMode = 3
	CPUModeGuestKernel CPUMode = 4
	CPUModeGuestUser   CPUMode = 5

	cpuModeMask = 7
)

// Bits of a record's misc field. Their definition depends on the record's type.
const (
	MiscMmapData         = 1 << 13 // MMAP, MMAP2: not executable
	MiscCommExec         = 1 << 13 // COMM: by exec
	MiscForkExec         = 1 << 13 // FORK: synthesized by perf, the child's maps follow
	MiscMmapBuildID      = 1 << 14 // MMAP2: a build ID instead of device and inode
	MiscBuildIDSize      = 1 << 15 // HEADER_BUILD_ID: the entry has the length of its ID
	MiscSwitchOut        = 1 << 13 // SWITCH, SWITCH_CPU_WIDE: the thread stops running
	MiscSwitchOutPreempt = 1 << 14 // with MiscSwitchOut: it lost the CPU
	MiscLostByBPF        = 1 << 15 // LOST_SAMPLES: a BPF filter dropped them; no loss
)

// headerSize is the size of struct perf_event_header, and the minimum size of a record.
const headerSize = 8

// Record is one record of the data section.
type Record struct {
	Type   Type
	Misc   uint16
	Size   int    // with the header, without a payload that the header's size does not include
	Offset int64  // in the file
	Body   []byte // after the header; in the file's byte order, valid until the next call of Next
}

// CPUMode returns the mode part of the misc field.
func (rec *Record) CPUMode() CPUMode { return CPUMode(rec.Misc & cpuModeMask) }

// SampleID is the trailer of all records except samples, with sample_id_all. perf fills it with
// zeros in the records that it synthesizes: Time 0 is before everything.
type SampleID struct {
	Has      SampleType // the fields below that the record has
	PID, TID int32
	Time     uint64 // ns of the recording's clock
	ID       uint64 // of IDENTIFIER, else of ID
	StreamID uint64
	CPU      uint32
}

// SampleID decodes the trailer of a record. It returns the zero SampleID for records without one:
// perf's own types, and files without sample_id_all. For a SAMPLE record it returns the same fields
// from the start of the sample, without checking the rest of the record.
func (f *File) SampleID(rec *Record) (SampleID, error) {
	if rec.Type == TypeSample {
		return f.sampleHead(rec)
	}
	l, err := f.trailerOf(rec)
	if err != nil {
		return SampleID{}, err
	}
	n := grown(rec, int(l.size))
	if n < int(l.size) {
		return SampleID{}, f.recordError(rec, "shorter than its sample ID")
	}
	id := SampleID{Has: l.has}
	if l.tid != 0 {
		id.PID = int32(decode.U32(rec.Body[n-int(l.tid):], f.BigEndian))
		id.TID = int32(decode.U32(rec.Body[n-int(l.tid)+4:], f.BigEndian))
	}
	if l.time != 0 {
		id.Time = decode.U64(rec.Body[n-int(l.time):], f.BigEndian)
	}
	if p := l.idPos(); p != 0 {
		id.ID = decode.U64(rec.Body[n-int(p):], f.BigEndian)
	}
	if l.streamID != 0 {
		id.StreamID = decode.U64(rec.Body[n-int(l.streamID):], f.BigEndian)
	}
	if l.cpu != 0 {
		id.CPU = decode.U32(rec.Body[n-int(l.cpu):], f.BigEndian)
	}
	return id, nil
}

func (f *File) sampleHead(rec *Record) (SampleID, error) {
	i, ok := f.EventOf(rec)
	if !ok {
		return SampleID{}, ErrUnknownID
	}
	ev := &f.Events[i]
	if len(rec.Body) < int(ev.sample.fixed) {
		return SampleID{}, f.recordError(rec, "shorter than the fields of its event")
	}
	var s Sample
	s.fixed(rec.Body, &ev.sample, f.BigEndian)
	return SampleID{Has: ev.Attr.SampleType & trailerBits, PID: s.PID, TID: s.TID,
		Time: s.Time, ID: s.ID, StreamID: s.StreamID, CPU: s.CPU}, nil
}

// body returns a reader over a record's own fields, without the trailer.
func (f *File) body(rec *Record) (decode.Reader, error) {
	l, err := f.trailerOf(rec)
	if err != nil {
		return decode.Reader{}, err
	}
	n := grown(rec, int(l.size)) - int(l.size)
	if n < 0 {
		return decode.Reader{}, f.recordError(rec, "shorter than its sample ID")
	}
	name, at := f.placeOf(rec.Offset + headerSize)
	return *decode.New(name, rec.Body[:n], at, f.BigEndian), nil
}

// rest returns the rest up to a NUL: a name at the end of a record's fields, padded with zeros or,
// in old files, with garbage.
func rest(r *decode.Reader) []byte {
	b := r.Bytes(uint64(r.Left()))
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return b
}

// ProtExec is the bit of Mmap.Prot that makes a mapping executable (PROT_EXEC).
const ProtExec = 4

// Mmap is an MMAP or MMAP2 record: Len bytes of Filename from PgOff are mapped at Addr.
type Mmap struct {
	PID, TID         int32 // −1 for the kernel
	Addr, Len, PgOff uint64
	Maj, Min         uint32 // device; zero in MMAP and if there is a BuildID
	Ino, InoGen      uint64
	BuildID          buildid.ID // zero if the record has none
	// Prot and Flags are as in mmap(2). For MMAP records Prot is ProtExec unless Data is set, and
	// Flags is 0. MMAP2 records that perf writes for the kernel have Prot 0: use Data to decide
	// whether a kernel mapping is code.
	Prot, Flags uint32
	Data        bool   // not executable: only for data addresses
	Filename    []byte // aliases the record
}

// Mmap decodes an MMAP or MMAP2 record.
func (f *File) Mmap(rec *Record, m *Mmap) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*m = Mmap{Data: rec.Misc&MiscMmapData != 0}
	m.PID, m.TID = int32(r.U32()), int32(r.U32())
	m.Addr, m.Len, m.PgOff = r.U64(), r.U64(), r.U64()
	switch {
	case rec.Type == TypeMmap:
		if !m.Data {
			m.Prot = ProtExec
		}
	default:
		if field := r.Bytes(mmapFile); field != nil {
			m.file(f, rec, field)
		}
	}
	if rec.Type == TypeMmap2 {
		m.Prot, m.Flags = r.U32(), r.U32()
	}
	m.Filename = rest(&r)
	return r.Err()
}

// Comm is a COMM record: a thread got a name.
type Comm struct {
	PID, TID int32
	Exec     bool   // by exec: the process's mappings are gone
	Name     []byte // aliases the record
}

// Comm decodes a COMM record.
func (f *File) Comm(rec *Record, c *Comm) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*c = Comm{PID: int32(r.U32()), TID: int32(r.U32()), Exec: rec.Misc&MiscCommExec != 0}
	c.Name = rest(&r)
	return r.Err()
}

// Task is a FORK or EXIT record.
type Task struct {
	PID, PPID int32
	TID, PTID int32
	Time      uint64
	// Synthesized marks a FORK that perf synthesized: MMAP records of the child follow, so nothing
	// is inherited.
	Synthesized bool
}

// Task decodes a FORK or EXIT record.
func (f *File) Task(rec *Record, t *Task) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*t = Task{PID: int32(r.U32()), PPID: int32(r.U32()), TID: int32(r.U32()),
		PTID: int32(r.U32()), Time: r.U64(),
		Synthesized: rec.Type == TypeFork && rec.Misc&MiscForkExec != 0}
	return r.Err()
}

// mmapFile is the size of MMAP2's field for the file: device, inode and generation, or four bytes
// with the length of the build ID followed by the ID, padded with zeros.
const (
	mmapFile     = 24
	mmapIDHeader = 4
	maxMmapIDLen = mmapFile - mmapIDHeader
)

// file decodes MMAP2's field for the file, which may hold neither a device nor a build ID: it must
// not be mistaken for a device, which would make two files one.
func (m *Mmap) file(f *File, rec *Record, field []byte) {
	if rec.Misc&MiscMmapBuildID != 0 {
		if id := f.mmapID(rec, field); !id.IsZero() {
			m.BuildID = id
			return
		}
		if !f.isDevice(field) {
			return
		}
	}
	m.Maj, m.Min = decode.U32(field, f.BigEndian), decode.U32(field[4:], f.BigEndian)
	m.Ino, m.InoGen = decode.U64(field[8:], f.BigEndian), decode.U64(field[16:], f.BigEndian)
}

// mmapID returns the build ID of a record with MiscMmapBuildID; zero if it has device and inode
// instead. While any recorder of a machine asks for build IDs, Linux sets that bit also in the
// records of other recorders (perf_event_mmap_output in 5.12 to 6.18 sets it for one event and
// leaves it set for the next ones). The attr of the event decides, unless perf wrote the records:
// `perf inject` adds IDs to a recording and leaves the attrs unchanged. Then the bytes decide. An
// ID of 20 bytes never looks like a device; a shorter one that does is accepted if the recording
// lists it.
func (f *File) mmapID(rec *Record, field []byte) buildid.ID {
	n := int(field[0])
	if n == 0 || n > maxMmapIDLen || !zeros(field[1:mmapIDHeader]) || !zeros(field[mmapIDHeader+n:]) {
		return buildid.ID{}
	}
	id := buildid.New(field[mmapIDHeader : mmapIDHeader+n])
	if !f.asksForIDs(rec) && f.isDevice(field) && !slices.ContainsFunc(f.Features.BuildIDs,
		func(e BuildIDEntry) bool { return e.ID.Matches(id) }) {
		return buildid.ID{}
	}
	return id
}

// asksForIDs reports whether the event of a record asks the kernel for build IDs; for synthesized
// records, whether any event does.
func (f *File) asksForIDs(rec *Record) bool {
	if id, err := f.SampleID(rec); err == nil && id.ID != 0 {
		if i, ok := f.EventOf(rec); ok {
			return f.Events[i].Attr.Has(FlagBuildID)
		}
	}
	return slices.ContainsFunc(f.Events, func(e Event) bool { return e.Attr.Has(FlagBuildID) })
}

// isDevice reports whether the field can hold a device and an inode: major numbers have 12 bits,
// minor numbers 20, generations 32, and inodes of all file systems fit in 48.
func (f *File) isDevice(field []byte) bool {
	major, minor := decode.U32(field, f.BigEndian), decode.U32(field[4:], f.BigEndian)
	inode, generation := decode.U64(field[8:], f.BigEndian), decode.U64(field[16:], f.BigEndian)
	return major>>12 == 0 && minor>>20 == 0 && inode>>48 == 0 && generation>>32 == 0
}

func zeros(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}

// Kinds of kernel symbols (KSymbol.Kind).
const (
	KSymbolBPF = 1 // a BPF program, trampoline or dispatcher
	KSymbolOOL = 2 // out-of-line code of kprobes and ftrace
)

// KSymbol is a KSYMBOL record: code was added to the kernel or removed from it.
type KSymbol struct {
	Addr       uint64
	Len        uint32 // bytes; 0: the program is not JITed
	Kind       uint16
	Unregister bool
	Name       []byte // aliases the record
}

// KSymbol decodes a KSYMBOL record.
func (f *File) KSymbol(rec *Record, k *KSymbol) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*k = KSymbol{Addr: r.U64(), Len: r.U32(), Kind: r.U16(), Unregister: r.U16()&1 != 0}
	k.Name = rest(&r)
	return r.Err()
}

// Kinds of BPFEvent.
const (
	BPFLoad   = 1
	BPFUnload = 2
)

// BPFEvent is a BPF_EVENT record: a program was loaded or unloaded. Its address is in the KSYMBOL
// records before it.
type BPFEvent struct {
	Kind  uint16 // BPFLoad or BPFUnload
	Flags uint16
	ID    uint32
	Tag   [8]byte
}

// BPFEvent decodes a BPF_EVENT record.
func (f *File) BPFEvent(rec *Record, b *BPFEvent) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*b = BPFEvent{Kind: r.U16(), Flags: r.U16(), ID: r.U32()}
	copy(b.Tag[:], r.Bytes(uint64(len(b.Tag))))
	return r.Err()
}

// Lost is a LOST or LOST_SAMPLES record.
type Lost struct {
	ID    uint64 // of the event; LOST only
	Count uint64 // records lost since the last such record
	ByBPF bool   // LOST_SAMPLES: a BPF filter dropped them intentionally
}

// Lost decodes a LOST or LOST_SAMPLES record.
func (f *File) Lost(rec *Record, l *Lost) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*l = Lost{}
	if rec.Type == TypeLost {
		l.ID = r.U64()
	} else {
		l.ByBPF = rec.Misc&MiscLostByBPF != 0
	}
	l.Count = r.U64()
	return r.Err()
}

// Namespace is one link of a process's namespaces.
type Namespace struct{ Dev, Inode uint64 }

// NumNamespaces is the number of decoded links: NR_NAMESPACES of the format, net, uts, ipc, pid,
// user, mnt and cgroup.
const NumNamespaces = 7

// Namespaces is a NAMESPACES record.
type Namespaces struct {
	PID, TID int32
	// Links are net, uts, ipc, pid, user, mnt and cgroup; zero if the record ends earlier. Links
	// added by newer kernels are left out.
	Links [NumNamespaces]Namespace
}

// Namespaces decodes a NAMESPACES record.
func (f *File) Namespaces(rec *Record, n *Namespaces) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*n = Namespaces{PID: int32(r.U32()), TID: int32(r.U32())}
	nr := r.U64()
	for i := range min(nr, NumNamespaces) {
		n.Links[i] = Namespace{Dev: r.U64(), Inode: r.U64()}
	}
	return r.Err()
}

// Cgroup is a CGROUP record: the path of a control group, by number.
type Cgroup struct {
	ID   uint64
	Path []byte // aliases the record
}

// Cgroup decodes a CGROUP record.
func (f *File) Cgroup(rec *Record, c *Cgroup) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*c = Cgroup{ID: r.U64()}
	c.Path = rest(&r)
	return r.Err()
}

// DeferredChain is a CALLCHAIN_DEFERRED record (Linux 6.19): the user part of call chains that end
// with PERF_CONTEXT_USER_DEFERRED and this cookie. The trailer has the thread, which was unwound
// when it returned to user mode.
type DeferredChain struct {
	Cookie uint64
	// Chain has words of 8 bytes, little-endian, as in Sample. It aliases the record or a buffer of
	// the DeferredChain.
	Chain []byte

	scratch []byte
}

// DeferredChain decodes a CALLCHAIN_DEFERRED record.
func (f *File) DeferredChain(rec *Record, d *DeferredChain) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	d.Cookie, d.Chain = r.U64(), nil
	if n := r.U64(); n > uint64(r.Left())/8 {
		return f.recordError(rec, "call chain overruns the record")
	} else if d.Chain = r.Bytes(8 * n); f.BigEndian {
		d.scratch = d.scratch[:0]
		for b := d.Chain; len(b) >= 8; b = b[8:] {
			d.scratch = binary.LittleEndian.AppendUint64(d.scratch, binary.BigEndian.Uint64(b))
		}
		d.Chain = d.scratch
	}
	return r.Err()
}

// AuxtraceType is the type of an AUX area trace (enum auxtrace_type in
// tools/perf/util/auxtrace.h).
type AuxtraceType uint32

var auxtraceNames = [...]string{0: "unknown", "Intel PT", "Intel BTS", "ARM CoreSight ETM",
	"ARM SPE", "s390 CPU-MF", "HiSilicon PTT", "POWER VPA"}

// String returns the name of the tracing hardware.
func (t AuxtraceType) String() string {
	if int64(t) < int64(len(auxtraceNames)) {
		return auxtraceNames[t]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// AuxtraceType returns the type in an AUXTRACE_INFO record.
func (f *File) AuxtraceType(rec *Record) AuxtraceType {
	if len(rec.Body) < 4 {
		return 0
	}
	return AuxtraceType(decode.U32(rec.Body, f.BigEndian))
}

// AuxtraceSize returns the number of bytes of the trace after an AUXTRACE record.
func (f *File) AuxtraceSize(rec *Record) uint64 {
	n, _ := f.payload(rec)
	return n
}
