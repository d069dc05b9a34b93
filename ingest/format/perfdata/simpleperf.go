package perfdata

import (
	"cmp"
	"strconv"
	"strings"

	"symbolize/ingest/decode"
)

// decodeSimpleperf decodes simpleperf's META_INFO feature: keys and values, each with a NUL behind
// it (RecordFileReader::ReadMetaInfoFeature in record_file_reader.cpp).
func decodeSimpleperf(x *Features, d *decode.Reader) {
	facts := make(map[string]string)
	for d.Left() > 0 && d.Err() == nil {
		key := d.CString()
		if value := d.CString(); d.Err() == nil {
			facts[key] = value
		}
	}
	x.Simpleperf = facts
	if version := facts["simpleperf_version"]; version != "" {
		x.Version = cmp.Or(x.Version, "simpleperf "+version)
	}
	x.OSRelease = cmp.Or(x.OSRelease, facts["kernel_version"])
}

// simpleperfTypes takes the names of tracepoints that simpleperf noted: a line each,
// "sched:sched_switch,2,91", with the type and the config of their attrs.
func (f *File) simpleperfTypes() {
	for line := range strings.Lines(f.Features.Simpleperf["event_type_info"]) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ',')
		config, err := strconv.ParseUint(line[at+1:], 10, 64)
		name, ok := strings.CutSuffix(line[:max(at, 0)], ","+strconv.Itoa(int(AttrTracepoint)))
		if err != nil || !ok || name == "" {
			continue
		}
		if f.types[config] == "" {
			f.types[config] = name
		}
	}
}
