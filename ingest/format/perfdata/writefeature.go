package perfdata

import "symbolize/buildid"

// stringAlign is perf's padding of the strings of features (NAME_ALIGN in
// tools/perf/util/header.c).
const stringAlign = 64

// appendString appends a string in the format of features: its padded length, then the
// string with a NUL.
func (x *Writer) appendString(b []byte, s string) []byte {
	n := (len(s) + stringAlign) &^ (stringAlign - 1) // at least one more than len(s)
	b = x.order.AppendUint32(b, uint32(n))
	return append(append(b, s...), make([]byte, n-len(s))...)
}

// SetString sets a feature that is one string: HOSTNAME, OSRELEASE, VERSION, ARCH,
// CPUDESC or CPUID. An empty one is left out.
func (x *Writer) SetString(f Feature, s string) {
	if s != "" {
		x.SetFeature(f, x.appendString(nil, s))
	}
}

// SetCmdLine sets the CMDLINE feature.
func (x *Writer) SetCmdLine(args []string) {
	b := x.order.AppendUint32(nil, uint32(len(args)))
	for _, a := range args {
		b = x.appendString(b, a)
	}
	x.SetFeature(FeatureCmdLine, b)
}

// SetNrCPUs sets the NRCPUS feature.
func (x *Writer) SetNrCPUs(available, online uint32) {
	x.SetFeature(FeatureNrCPUs,
		x.order.AppendUint32(x.order.AppendUint32(nil, available), online))
}

// SetSampleTime sets the SAMPLE_TIME feature: ns of the recording's clock.
func (x *Writer) SetSampleTime(first, last uint64) {
	x.SetFeature(FeatureSampleTime, x.order.AppendUint64(x.order.AppendUint64(nil, first), last))
}

// clockDataVersion is the only version of CLOCK_DATA.
const clockDataVersion = 1

// SetClockData sets the CLOCK_DATA feature.
func (x *Writer) SetClockData(c ClockData) {
	o := x.order
	b := o.AppendUint32(o.AppendUint32(nil, clockDataVersion), c.ClockID)
	x.SetFeature(FeatureClockData, o.AppendUint64(o.AppendUint64(b, c.WallNanos), c.ClockNanos))
}

// buildIDNameAlign is perf's padding of the names of BUILD_ID entries, which readers before 6.16
// rely on.
const buildIDNameAlign = 64

// maxPath bounds the written bytes of a path (PATH_MAX).
const maxPath = 4095

// SetBuildIDs sets the BUILD_ID feature.
func (x *Writer) SetBuildIDs(entries []BuildIDEntry) {
	var b []byte
	for _, e := range entries {
		file := e.Filename[:min(len(e.Filename), maxPath)]
		name := (len(file) + buildIDNameAlign) &^ (buildIDNameAlign - 1)
		b = x.order.AppendUint32(b, 0)
		b = x.order.AppendUint16(b, uint16(e.CPUMode)|MiscBuildIDSize)
		b = x.order.AppendUint16(b, uint16(buildIDNameAt+name))
		b = x.order.AppendUint32(b, uint32(e.PID))
		key := e.ID.Key().Sum
		b = append(b, key[:]...)
		b = append(b, byte(min(e.ID.Len(), buildid.KeyLen)), 0, 0, 0)
		b = append(append(b, file...), make([]byte, name-len(file))...)
	}
	x.SetFeature(FeatureBuildID, b)
}

// eventDesc returns the EVENT_DESC feature.
func (x *Writer) eventDesc() []byte {
	o := x.order
	b := o.AppendUint32(o.AppendUint32(nil, uint32(len(x.events))), writtenAttrSize)
	for i := range x.events {
		ev := &x.events[i]
		b = appendAttr(b, &ev.Attr, x.big)
		b = o.AppendUint32(b, uint32(len(ev.IDs)))
		b = x.appendString(b, ev.Name)
		for _, id := range ev.IDs {
			b = o.AppendUint64(b, id)
		}
	}
	return b
}
