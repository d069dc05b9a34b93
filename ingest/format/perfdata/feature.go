package perfdata

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"symbolize/buildid"
	"symbolize/ingest/decode"
)

// Feature is the number of a feature section: its bit in the header's bitmap.
type Feature uint8

// The features of enum perf_header_feature (tools/perf/util/header.h).
const (
	FeatureTracingData    Feature = 1
	FeatureBuildID        Feature = 2
	FeatureHostname       Feature = 3
	FeatureOSRelease      Feature = 4
	FeatureVersion        Feature = 5
	FeatureArch           Feature = 6
	FeatureNrCPUs         Feature = 7
	FeatureCPUDesc        Feature = 8
	FeatureCPUID          Feature = 9
	FeatureTotalMem       Feature = 10
	FeatureCmdLine        Feature = 11
	FeatureEventDesc      Feature = 12
	FeatureCPUTopology    Feature = 13
	FeatureNUMATopology   Feature = 14
	FeatureBranchStack    Feature = 15
	FeaturePMUMappings    Feature = 16
	FeatureGroupDesc      Feature = 17
	FeatureAuxtrace       Feature = 18
	FeatureStat           Feature = 19
	FeatureCache          Feature = 20
	FeatureSampleTime     Feature = 21
	FeatureMemTopology    Feature = 22
	FeatureClockID        Feature = 23
	FeatureDirFormat      Feature = 24
	FeatureBPFProgInfo    Feature = 25
	FeatureBPFBTF         Feature = 26
	FeatureCompressed     Feature = 27
	FeatureCPUPMUCaps     Feature = 28
	FeatureClockData      Feature = 29
	FeatureHybridTopology Feature = 30
	FeaturePMUCaps        Feature = 31
	FeatureCPUDomainInfo  Feature = 32 // perf 7; of streams of older ones, if empty, the end of features
	FeatureEMachine       Feature = 33
	FeatureCacheLineSize  Feature = 34

	// The features of simpleperf (record_file_format.h): symbols of files, facts as text, data for
	// unwinding stacks again, a later form of the first, branches of traces.
	featureSimpleperfFile   Feature = 128
	featureSimpleperfMeta   Feature = 129
	featureSimpleperfUnwind Feature = 130
	featureSimpleperfStacks Feature = 131
	featureSimpleperfFile2  Feature = 132
	featureSimpleperfETM    Feature = 133

	numFeatures = 256 // bits of the bitmap
)

var featureNames = [...]string{
	FeatureTracingData: "TRACING_DATA", FeatureBuildID: "BUILD_ID",
	FeatureHostname: "HOSTNAME", FeatureOSRelease: "OSRELEASE", FeatureVersion: "VERSION",
	FeatureArch: "ARCH", FeatureNrCPUs: "NRCPUS", FeatureCPUDesc: "CPUDESC",
	FeatureCPUID: "CPUID", FeatureTotalMem: "TOTAL_MEM", FeatureCmdLine: "CMDLINE",
	FeatureEventDesc: "EVENT_DESC", FeatureCPUTopology: "CPU_TOPOLOGY",
	FeatureNUMATopology: "NUMA_TOPOLOGY", FeatureBranchStack: "BRANCH_STACK",
	FeaturePMUMappings: "PMU_MAPPINGS", FeatureGroupDesc: "GROUP_DESC",
	FeatureAuxtrace: "AUXTRACE", FeatureStat: "STAT", FeatureCache: "CACHE",
	FeatureSampleTime: "SAMPLE_TIME", FeatureMemTopology: "MEM_TOPOLOGY",
	FeatureClockID: "CLOCKID", FeatureDirFormat: "DIR_FORMAT",
	FeatureBPFProgInfo: "BPF_PROG_INFO", FeatureBPFBTF: "BPF_BTF",
	FeatureCompressed: "COMPRESSED", FeatureCPUPMUCaps: "CPU_PMU_CAPS",
	FeatureClockData: "CLOCK_DATA", FeatureHybridTopology: "HYBRID_TOPOLOGY",
	FeaturePMUCaps: "PMU_CAPS", FeatureCPUDomainInfo: "CPU_DOMAIN_INFO", FeatureEMachine: "E_MACHINE",
	FeatureCacheLineSize:  "CLN_SIZE",
	featureSimpleperfFile: "SIMPLEPERF_FILE", featureSimpleperfMeta: "SIMPLEPERF_META_INFO",
	featureSimpleperfUnwind: "SIMPLEPERF_DEBUG_UNWIND",
	featureSimpleperfStacks: "SIMPLEPERF_DEBUG_UNWIND_FILE",
	featureSimpleperfFile2:  "SIMPLEPERF_FILE2", featureSimpleperfETM: "SIMPLEPERF_ETM_BRANCH_LIST",
}

// String returns the name without its prefix, "BUILD_ID" for HEADER_BUILD_ID, and "FEATURE_40" for
// an unknown feature.
func (x Feature) String() string {
	if x.Known() {
		return featureNames[x]
	}
	return "FEATURE_" + strconv.Itoa(int(x))
}

// Known reports whether this package has a name for the feature.
func (x Feature) Known() bool { return int(x) < len(featureNames) && featureNames[x] != "" }

// BuildIDEntry is an entry of the BUILD_ID feature: an object with the leaf of a sample.
type BuildIDEntry struct {
	ID       buildid.ID // inexact if the recorder did not store the length
	PID      int32      // −1 for the host, otherwise the process of a virtual machine
	CPUMode  CPUMode
	Filename string // "[kernel.kallsyms]" or a path of vmlinux for the kernel
}

// EventDesc is an entry of the EVENT_DESC feature.
type EventDesc struct {
	Attr Attr
	Name string
	IDs  []uint64
}

// PMU is an entry of the PMU_MAPPINGS feature.
type PMU struct {
	Type AttrType
	Name string
}

// ClockData relates the recording's clock to the wall clock: both were read at the same time.
type ClockData struct {
	ClockID    uint32 // as for clock_gettime(2)
	WallNanos  uint64 // since 1970
	ClockNanos uint64
}

// Offset returns the difference between the wall clock and the recording's clock, ns.
func (c *ClockData) Offset() int64 { return int64(c.WallNanos - c.ClockNanos) }

// Features are the feature sections. A member is zero if its section is absent, unknown to this
// package, or damaged, which is a warning.
type Features struct {
	Present  [4]uint64           // bitmap; empty if the recorder was killed or the file cut off
	Sections map[Feature]Section // positions of the features that are wholly in the file
	Unknown  []Feature           // features present but not Known, ascending

	BuildIDs      []BuildIDEntry // in file order
	PaddedIDs     bool           // zeros after entries of BuildIDs were skipped
	Hostname      string
	OSRelease     string // "6.18.15"
	Version       string // of perf, without "perf version"; "simpleperf 1.build.7"
	Arch          string // "x86_64"
	CPUDesc       string
	CPUsAvailable uint32 // configured, of which some may be offline
	CPUsOnline    uint32
	CmdLine       []string
	EventDesc     []EventDesc
	PMUMappings   []PMU
	FirstTime     uint64 // of SAMPLE_TIME: ns of the recording's clock; 0 if perf did not look
	LastTime      uint64
	ClockData     *ClockData
	Compressed    bool // false also if the recorder was killed

	// Simpleperf has the facts that simpleperf writes about a recording: "event_type_info",
	// "kernel_version", "simpleperf_version" …
	Simpleperf map[string]string
}

// Has reports whether the file has this feature.
func (x *Features) Has(feature Feature) bool {
	return x.Present[feature/64]>>(feature%64)&1 != 0
}

// Section returns the position of a feature in the file.
func (x *Features) Section(feature Feature) (Section, bool) {
	s, ok := x.Sections[feature]
	return s, ok
}

// FeatureBytes reads a feature section, which must not be larger than limit.
func (f *File) FeatureBytes(feature Feature, limit int64) ([]byte, error) {
	sec, ok := f.Features.Sections[feature]
	if !ok {
		return nil, fmt.Errorf("%s: no %s feature", f.Name, feature)
	}
	return f.read(sec, limit)
}

// maxFeatureBytes bounds a feature section that is decoded in memory. BUILD_ID is the largest: 100
// bytes per object.
const maxFeatureBytes = 64 << 20

// readFeatures finds the sections by the table after the data, and decodes the known ones. No
// error here is fatal.
func (f *File) readFeatures(head []byte) {
	if f.Header.Size < fileHeaderSize || len(head) < fileHeaderSize {
		return
	}
	f.Header.Features = featureBitmap(head[bitmapOffset:], f.BigEndian)
	if f.Header.Data.Size == 0 || f.Header.Data.End() > f.Size {
		return // killed or cut off, which was reported
	}
	f.Features.Present = f.Header.Features
	var present []Feature
	for i := range numFeatures {
		if f.Features.Has(Feature(i)) {
			present = append(present, Feature(i))
		}
	}
	table := Section{Offset: f.Header.Data.End(), Size: int64(len(present)) * sectionRefSize}
	if left := f.Size - table.Offset; left < table.Size {
		f.warnAt(f.Size, "the file is cut off in its table of features")
		table.Size = left / sectionRefSize * sectionRefSize
	}
	b, err := f.read(table, numFeatures*sectionRefSize)
	if err != nil {
		f.warn(err)
		return
	}
	d := decode.New(f.Name, b, table.Offset, f.BigEndian)
	lost := 0
	for _, x := range present[:len(b)/sectionRefSize] {
		sec := Section{Offset: int64(d.U64()), Size: int64(d.U64())}
		if sec == (Section{}) {
			lost++
			continue
		}
		f.readFeature(x, sec)
	}
	if lost > 0 {
		f.warnAt(table.Offset, "%d of %d features are lost: the table of features has zeros for them", lost,
			len(present))
	}
}

func (f *File) readFeature(x Feature, sec Section) {
	f.noteUnknown(x)
	if sec.Offset < 0 || sec.Size < 0 || sec.Offset > f.Size || sec.Size > f.Size-sec.Offset {
		f.warn(&decode.Error{Name: f.Name + ": " + x.String() + " feature", Offset: sec.Offset,
			Reason: fmt.Sprintf("its %d bytes are not in the file, which ends at %#x",
				uint64(sec.Size), f.Size)})
		return
	}
	f.Features.Sections[x] = sec
	if featureDecoders[x] == nil {
		return
	}
	b, err := f.read(sec, maxFeatureBytes)
	if err != nil {
		f.warn(err)
		return
	}
	f.decodeFeature(x, b, sec.Offset)
}

func (f *File) noteUnknown(x Feature) {
	if !x.Known() && !slices.Contains(f.Features.Unknown, x) {
		f.Features.Unknown = append(f.Features.Unknown, x)
	}
}

// decodeFeature decodes the bytes of a feature from an offset of the file.
func (f *File) decodeFeature(x Feature, b []byte, offset int64) {
	decodeBytes := featureDecoders[x]
	if decodeBytes == nil || len(b) == 0 {
		return // on some machines perf writes an empty CPUDESC
	}
	d := decode.New(f.Name+": "+x.String()+" feature", b, offset, f.BigEndian)
	decodeBytes(&f.Features, d)
	if err := d.Err(); err != nil {
		f.warn(err)
	}
}

// featureDecoders decode the sections in use. Values decoded before damage stay.
var featureDecoders = map[Feature]func(*Features, *decode.Reader){
	featureSimpleperfMeta: decodeSimpleperf,

	FeatureBuildID:   decodeBuildIDs,
	FeatureHostname:  func(x *Features, d *decode.Reader) { x.Hostname = featureString(d) },
	FeatureOSRelease: func(x *Features, d *decode.Reader) { x.OSRelease = featureString(d) },
	FeatureVersion:   func(x *Features, d *decode.Reader) { x.Version = featureString(d) },
	FeatureArch:      func(x *Features, d *decode.Reader) { x.Arch = featureString(d) },
	FeatureNrCPUs: func(x *Features, d *decode.Reader) {
		x.CPUsAvailable = d.U32()
		x.CPUsOnline = d.U32()
	},
	FeatureCPUDesc:     func(x *Features, d *decode.Reader) { x.CPUDesc = featureString(d) },
	FeatureCmdLine:     decodeCmdLine,
	FeatureEventDesc:   decodeEventDesc,
	FeaturePMUMappings: decodePMUMappings,
	FeatureSampleTime:  decodeSampleTime,
	FeatureCompressed: func(x *Features, d *decode.Reader) {
		d.Skip(5 * 4) // version, type, level, ratio, size of the buffer
		x.Compressed = d.Err() == nil
	},
	FeatureClockData: func(x *Features, d *decode.Reader) {
		d.U32() // version
		c := &ClockData{ClockID: d.U32(), WallNanos: d.U64(), ClockNanos: d.U64()}
		if d.Err() == nil {
			x.ClockData = c
		}
	},
}

// featureString reads a string of a feature section: its padded length, then that many bytes, with
// a NUL.
func featureString(d *decode.Reader) string { return d.FixedString(uint64(d.U32())) }

// decodeSampleTime leaves both times 0 if perf recorded none: it writes ~0 without TIME in the
// attr, and 0 if it did not examine the samples.
func decodeSampleTime(x *Features, d *decode.Reader) {
	first, last := d.U64(), d.U64()
	if first <= last && last != ^uint64(0) {
		x.FirstTime, x.LastTime = first, last
	}
}

func decodeCmdLine(x *Features, d *decode.Reader) {
	n := d.U32()
	for i := uint32(0); i < n && d.Err() == nil; i++ {
		if s := featureString(d); d.Err() == nil {
			x.CmdLine = append(x.CmdLine, s)
		}
	}
}

func decodePMUMappings(x *Features, d *decode.Reader) {
	n := d.U32()
	for i := uint32(0); i < n && d.Err() == nil; i++ {
		p := PMU{Type: AttrType(d.U32()), Name: featureString(d)}
		if d.Err() == nil {
			x.PMUMappings = append(x.PMUMappings, p)
		}
	}
}

func decodeEventDesc(x *Features, d *decode.Reader) {
	n, attrSize := d.U32(), d.U32()
	if attrSize < attrSizeVer0 {
		d.Fail("attr size %d is less than %d", attrSize, attrSizeVer0)
	}
	for i := uint32(0); i < n && d.Err() == nil; i++ {
		base := d.Offset()
		b := d.Bytes(uint64(attrSize))
		ids := d.U32()
		name := featureString(d)
		words := d.Bytes(uint64(ids) * 8)
		if d.Err() != nil {
			return
		}
		attr, err := parseAttr("EVENT_DESC feature", b, base, d.BigEndian())
		if err != nil {
			d.Fail("%v", err)
			return
		}
		e := EventDesc{Attr: attr, Name: name, IDs: make([]uint64, ids)}
		for i := range e.IDs {
			e.IDs[i] = decode.U64(words[i*8:], d.BigEndian())
		}
		x.EventDesc = append(x.EventDesc, e)
	}
}

// Offsets in an entry of the BUILD_ID feature, struct perf_record_header_build_id.
const (
	buildIDAt     = 12
	buildIDSizeAt = buildIDAt + buildid.KeyLen
	buildIDNameAt = 36
)

// oldKernelName begins the name of the first entry, the kernel, in files of perf before 2010:
// entries have no pid, and their other fields are 4 bytes earlier
// (perf_header__read_build_ids_abi_quirk in tools/perf/util/header.c).
const oldKernelName = "nel.kallsyms]"

// decodeBuildIDs also reads what perf 6.12.0 wrote: after each entry 36 zeros too many, the size of
// an entry without its name. They are skipped by 4 bytes, until a word follows that is not zero, the
// misc and the size of the next entry; the zeros before it are the entry's type.
func decodeBuildIDs(x *Features, d *decode.Reader) {
	noPID := false
	for first := true; d.Left() > 0; first = false {
		start := d.Offset()
		kind := d.U32() // 0 here, 67 in records
		misc, size := d.U16(), d.U16()
		for zeros := !first && kind == 0; zeros && misc == 0 && size == 0; misc, size = d.U16(), d.U16() {
			x.PaddedIDs = true
			if d.Left() < 4 {
				return
			}
		}
		if d.Err() == nil && size < buildIDNameAt {
			d.Fail("entry at %#x has size %d, less than %d", start, size, buildIDNameAt)
		}
		b := d.Bytes(uint64(size) - headerSize)
		if d.Err() != nil {
			return
		}
		if first {
			noPID = bytes.HasPrefix(b[buildIDNameAt-headerSize:], []byte(oldKernelName))
		}
		x.BuildIDs = append(x.BuildIDs, buildIDEntry(b, misc, noPID, d.BigEndian()))
	}
}

// buildIDEntry decodes an entry from its bytes after the header.
func buildIDEntry(b []byte, misc uint16, noPID, big bool) BuildIDEntry {
	e := BuildIDEntry{PID: -1, CPUMode: CPUMode(misc & cpuModeMask)}
	shift := headerSize
	if noPID {
		shift += 4
	} else {
		e.PID = int32(decode.U32(b, big))
	}
	id := b[buildIDAt-shift : buildIDSizeAt-shift]
	n := int(b[buildIDSizeAt-shift])
	if misc&MiscBuildIDSize != 0 && n >= 1 && n <= len(id) {
		e.ID = buildid.New(id[:n])
	} else {
		e.ID = buildid.Padded(id)
	}
	name := b[buildIDNameAt-shift:]
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	e.Filename = string(name)
	return e
}
