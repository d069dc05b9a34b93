package perfdata

import (
	"bytes"

	"symbolize/buildid"
	"symbolize/ingest/decode"
)

// featureDecoders decode the sections in use. Values decoded before damage stay.
var featureDecoders = map[Feature]func(*Features, *decode.Reader){
	featureSimpleperfMeta: decodeSimpleperf,

	FeatureBuildID:   decodeBuildIDs,
	FeatureHostname:  func(x *Features, d *decode.Reader) { x.Hostname = featureString(d) },
	FeatureOSRelease: func(x *Features, d *decode.Reader) { x.OSRelease = featureString(d) },
	FeatureVersion:   func(x *Features, d *decode.Reader) { x.Version = featureString(d) },
	FeatureArch:      func(x *Features, d *decode.Reader) { x.Arch = featureString(d) },
	FeatureNrCPUs: func(x *Features, d *decode.Reader) {
		x.CPUsAvail, x.CPUsOnline = d.U32(), d.U32()
	},
	FeatureCPUDesc:     func(x *Features, d *decode.Reader) { x.CPUDesc = featureString(d) },
	FeatureCPUID:       func(x *Features, d *decode.Reader) { x.CPUID = featureString(d) },
	FeatureTotalMem:    func(x *Features, d *decode.Reader) { x.TotalMemKiB = d.U64() },
	FeatureCmdLine:     decodeCmdLine,
	FeatureEventDesc:   decodeEventDesc,
	FeatureBranchStack: func(x *Features, _ *decode.Reader) { x.BranchStack = true },
	FeaturePMUMappings: decodePMUMappings,
	FeatureSampleTime:  decodeSampleTime,
	FeatureClockID:     func(x *Features, d *decode.Reader) { x.ClockRes = d.U64() },
	FeatureDirFormat:   func(x *Features, d *decode.Reader) { x.DirFormat = d.U64() },
	FeatureCompressed: func(x *Features, d *decode.Reader) {
		d.U32() // version
		x.Compressed = &Compression{Type: d.U32(), Level: d.U32(), Ratio: d.U32(), MmapLen: d.U32()}
	},
	FeatureClockData: func(x *Features, d *decode.Reader) {
		d.U32() // version
		c := &ClockData{ClockID: d.U32(), WallNanos: d.U64(), ClockNanos: d.U64()}
		if d.Err() == nil {
			x.ClockData = c
		}
	},
}

// featureString reads a string of a feature section: its padded length, then that many bytes with a
// NUL in them.
func featureString(d *decode.Reader) string {
	return d.FixedString(uint64(d.U32()))
}

// decodeSampleTime leaves both times 0 where perf saw none: it writes ~0 without TIME in the attr,
// and 0 where it did not examine the samples.
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
			e.IDs[i] = u64(words[i*8:], d.BigEndian())
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

// oldKernelName is the beginning of the first entry's name, the kernel's, in files of perf before
// 2010 with entries without a pid: everything lies 4 bytes earlier
// (perf_header__read_build_ids_abi_quirk in tools/perf/util/header.c).
const oldKernelName = "nel.kallsyms]"

func decodeBuildIDs(x *Features, d *decode.Reader) {
	noPID := false
	for first := true; d.Left() > 0; first = false {
		start := d.Offset()
		d.U32() // type: 0 here, 67 in records
		misc, size := d.U16(), d.U16()
		if d.Err() == nil && size < buildIDNameAt {
			d.Fail("entry at %#x says its size is %d, less than %d", start, size, buildIDNameAt)
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

// buildIDEntry decodes an entry from its bytes behind the header.
func buildIDEntry(b []byte, misc uint16, noPID, big bool) BuildIDEntry {
	e := BuildIDEntry{PID: -1, CPUMode: CPUMode(misc & cpuModeMask)}
	shift := headerSize
	if noPID {
		shift += 4
	} else {
		e.PID = int32(u32(b, big))
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
