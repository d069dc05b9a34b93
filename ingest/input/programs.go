package input

import (
	"context"
	"errors"
	"fmt"

	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/btf"
)

// maxBPFSection bounds the features BPF_PROG_INFO and BPF_BTF, which are read
// whole, in bytes. A thousand programs take about 3 MB.
const maxBPFSection = 64 << 20

// Programs returns the BPF programs that the capture tells of, by ID: those whose
// information was recorded, and those that only records name, with the reason why
// no more is known (bpf.Program.Missing, Raw nil). They are decoded once and
// shared; nobody may change them. With an error come the programs that were whole:
// those of the features alone where the records cannot be read. A capture of another
// kind has none.
func (c *Capture) Programs() ([]bpf.Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.perf == nil {
		return nil, nil
	}
	sb, err := c.scan(context.Background())
	if err != nil {
		sb := &sideband{file: c.perf}
		sb.readPrograms()
		return sb.programs, errors.Join(err, sb.programErr)
	}
	return sb.programs, sb.programErr
}

// scan makes the first pass, once.
func (c *Capture) scan(ctx context.Context) (*sideband, error) {
	if c.side == nil {
		sb, err := scanSideband(ctx, c.perf, &c.opts, c.chunkSize)
		if err != nil {
			return nil, withHint(err)
		}
		c.side = sb
	}
	return c.side, nil
}

// readPrograms decodes the features that hold BPF programs. What is damaged in
// them becomes warnings.
func (sb *sideband) readPrograms() {
	read := func(x perfdata.Feature) (name string, b []byte, base int64) {
		sec, ok := sb.file.Features.Section(x)
		if !ok {
			return "", nil, 0
		}
		b, err := sb.file.FeatureBytes(x, maxBPFSection)
		if err != nil {
			sb.programsDamaged(sec.Offset, err)
		}
		return sb.file.Name + ": " + x.String() + " feature", b, sec.Offset
	}
	name, section, base := read(perfdata.FeatureBPFProgInfo)
	if len(section) == 0 {
		return
	}
	sb.programsRecorded = true
	btfName, blobs, btfBase := read(perfdata.FeatureBPFBTF)
	var btfs map[uint32]*btf.Types
	if len(blobs) > 0 {
		var err error
		btfs, err = bpf.DecodeBTFs(btfName, blobs, btfBase, sb.file.BigEndian)
		if err != nil {
			sb.programsDamaged(btfBase, err)
		}
	}
	programs, err := bpf.DecodePrograms(name, section, base, sb.file.BigEndian, btfs)
	if err != nil {
		sb.programsDamaged(base, err)
	}
	for i := range programs {
		if err := programs[i].Err; err != nil {
			sb.warn(base, ingest.Warning{Text: err.Error(), Partial: true})
		}
	}
	sb.programs = programs
}

func (sb *sideband) programsDamaged(offset int64, err error) {
	sb.programErr = errors.Join(sb.programErr, err)
	sb.warn(offset, ingest.Warning{Text: err.Error(), Partial: true,
		Hint: "BPF programs of which nothing was read keep the names of their records"})
}

// metadata takes in what a program says about itself, as comments of the profile.
func (sb *sideband) metadata(rec *perfdata.Record) error {
	m, err := bpf.DecodeMetadata(sb.file.Name+": BPF_METADATA record", rec.Body,
		rec.Offset+int64(rec.Size)-int64(len(rec.Body)), sb.file.BigEndian)
	for _, v := range m.Values {
		if len(sb.comments) < maxComments {
			sb.comments = append(sb.comments, fmt.Sprintf("%s: %s=%s", m.Program, v.Key, v.Value))
		}
	}
	return err
}

// maxComments bounds what is kept of BPF_METADATA records.
const maxComments = 1000
