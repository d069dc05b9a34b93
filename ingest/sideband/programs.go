package sideband

import (
	"errors"
	"fmt"

	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/btf"
)

// maxBPFSection bounds the features BPF_PROG_INFO and BPF_BTF, which are read whole, in bytes. A
// thousand programs take about 3 MB.
const maxBPFSection = 64 << 20

// ReadPrograms decodes the features of a perf.data file that hold BPF programs, without
// its records.
func ReadPrograms(f *perfdata.File) ([]bpf.Program, error) {
	sb := New()
	sb.Records.File = f
	sb.readPrograms()
	return sb.Programs.List, sb.Programs.Err
}

// Types returns the BTF in a perf.data file, by its id in the kernel. Damage of it is
// reported with the programs; name is for messages.
func Types(name string, f *perfdata.File) map[uint32]*btf.Types {
	sec, ok := f.Features.Section(perfdata.FeatureBPFBTF)
	if !ok {
		return nil
	}
	b, _ := f.FeatureBytes(perfdata.FeatureBPFBTF, maxBPFSection)
	types, _ := bpf.DecodeBTFs(name, b, sec.Offset, f.BigEndian)
	return types
}

// readPrograms decodes the features that hold BPF programs. Damage becomes warnings.
func (sb *State) readPrograms() {
	read := func(x perfdata.Feature) (name string, b []byte, base int64) {
		sec, ok := sb.Records.File.Features.Section(x)
		if !ok {
			return "", nil, 0
		}
		b, err := sb.Records.File.FeatureBytes(x, maxBPFSection)
		if err != nil {
			sb.programsDamaged(sec.Offset, err)
		}
		return sb.Records.File.Name + ": " + x.String() + " feature", b, sec.Offset
	}
	name, section, base := read(perfdata.FeatureBPFProgInfo)
	if len(section) == 0 {
		return
	}
	sb.Programs.recorded = true
	btfName, blobs, btfBase := read(perfdata.FeatureBPFBTF)
	var btfs map[uint32]*btf.Types
	if len(blobs) > 0 {
		var err error
		btfs, err = bpf.DecodeBTFs(btfName, blobs, btfBase, sb.Records.File.BigEndian)
		if err != nil {
			sb.programsDamaged(btfBase, err)
		}
	}
	programs, err := bpf.DecodePrograms(name, section, base, sb.Records.File.BigEndian, btfs)
	if err != nil {
		sb.programsDamaged(base, err)
	}
	for i := range programs {
		if err := programs[i].Err; err != nil {
			sb.Warn(Position(base), ingest.Warning{Text: err.Error(), Partial: true})
		}
		if note := programs[i].Note; note != nil {
			sb.Warn(Position(base), ingest.Warning{Text: note.Error()})
		}
	}
	sb.Programs.List = programs
}

func (sb *State) programsDamaged(offset int64, err error) {
	sb.Programs.Err = errors.Join(sb.Programs.Err, err)
	sb.Warn(Position(offset), ingest.Warning{Text: err.Error(), Partial: true,
		Hint: "BPF programs of which nothing was read keep the names of their records"})
}

// metadata adds the metadata of a program to the comments of the profile.
func (sb *State) metadata(rec *perfdata.Record) error {
	m, err := bpf.DecodeMetadata(sb.Records.File.Name+": BPF_METADATA record", rec.Body,
		rec.Offset+int64(rec.Size)-int64(len(rec.Body)), sb.Records.File.BigEndian)
	for _, v := range m.Values {
		if len(sb.Records.Comments) < maxComments {
			sb.Records.Comments = append(sb.Records.Comments, fmt.Sprintf("%s: %s=%s", m.Program, v.Key, v.Value))
		}
	}
	return err
}

// maxComments bounds the comments of BPF_METADATA records.
const maxComments = 1000
