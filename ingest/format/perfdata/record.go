package perfdata

import "strconv"

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

	firstUserType = TypeHeaderAttr

	// firstSimpleperf is the first type of simpleperf, Android's perf (record.h in
	// platform/system/extras/simpleperf). Sizes of such records have 32 bits, the upper half in
	// place of the misc field.
	firstSimpleperf Type = 32768
)

// maxSimpleperf bounds the types of simpleperf, which has 10.
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
}

// simpleperfNames are those of records of simpleperf, from firstSimpleperf on. Nothing in stacks or
// labels needs them: samples have their callers, and symbols are in a feature.
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

// Compressed reports whether a record of this type holds zstd-compressed records (perf record -z).
// Package container unpacks them before anybody reads the records.
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
	MiscProcMapTimeout = 1 << 12 // MMAP, MMAP2: perf gave up reading /proc/PID/maps
	MiscMmapData       = 1 << 13 // MMAP, MMAP2: not executable
	MiscCommExec       = 1 << 13 // COMM: by exec
	MiscForkExec       = 1 << 13 // FORK: synthesized by perf, the child's maps follow
	MiscSwitchOut      = 1 << 13 // SWITCH, SWITCH_CPU_WIDE: leaves the CPU
	MiscExactIP        = 1 << 14 // SAMPLE: IP is the instruction that caused the event
	MiscSwitchPreempt  = 1 << 14 // SWITCH, SWITCH_CPU_WIDE: was preempted
	MiscMmapBuildID    = 1 << 14 // MMAP2: a build ID in place of device and inode
	MiscBuildIDSize    = 1 << 15 // HEADER_BUILD_ID: the entry has its ID's length
	MiscLostByBPF      = 1 << 15 // LOST_SAMPLES: a BPF filter dropped them; no loss
)

// headerSize is the size of struct perf_event_header, and the minimum size of a record.
const headerSize = 8

// Record is one record of the data section.
type Record struct {
	Type   Type
	Misc   uint16
	Size   int    // with the header, without bytes behind the record that its header does not count
	Offset int64  // in the file
	Body   []byte // behind the header; in the file's byte order, valid until the next call of Next
}

// CPUMode returns the mode part of the misc field.
func (rec *Record) CPUMode() CPUMode { return CPUMode(rec.Misc & cpuModeMask) }
