package perfdata

import (
	"math/bits"

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

	// knownSampleBits are those with a known position in a sample. A higher bit is a
	// field of unknown size, so the layout of that event's samples is unknown.
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

// The flags of perf_event_attr that readers ask for.
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

// Attr is struct perf_event_attr as far as a reader of samples needs it.
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

// Has reports whether all these flags are set.
func (a *Attr) Has(flags AttrFlags) bool { return a.Flags&flags == flags }

const (
	attrSizeVer0 = 64      // PERF_ATTR_SIZE_VER0: the minimum; also for a size field of 0
	maxAttrSize  = 1 << 12 // the kernel's own limit is a page
)

// parseAttr decodes an attr from b, which may end early (older recorders) or late (newer ones):
// missing members are zero.
func parseAttr(name string, b []byte, base int64, big bool) (Attr, error) {
	r := decode.New(name, b, base, big)
	var a Attr
	a.Type = AttrType(r.U32())
	a.Size = r.U32()
	if a.Size == 0 {
		a.Size = attrSizeVer0
	}
	if a.Size < attrSizeVer0 {
		r.Fail("attr says its size is %d, less than %d", a.Size, attrSizeVer0)
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

// parseTail decodes the members after VER0, as far as r reaches; members beyond its end
// are zero, their value before they existed.
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

// attrFlags converts the flag word to its little-endian numbering. A big-endian compiler allots bit
// fields from the most significant bit, so the word is reversed, and so are the two bits of
// precise_ip.
func attrFlags(v uint64, big bool) AttrFlags {
	if !big {
		return AttrFlags(v)
	}
	v = bits.Reverse64(v)
	lo, hi := v>>preciseShift&1, v>>(preciseShift+1)&1
	v &^= 3 << preciseShift
	return AttrFlags(v | lo<<(preciseShift+1) | hi<<preciseShift)
}
