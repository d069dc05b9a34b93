package bundle

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"

	"symbolize/ingest/format/perfdata"
)

// perfRecordHeader is the size of struct perf_event_header.
const perfRecordHeader = 8

// sideFile is the perf.data of a segment.
type sideFile struct {
	*perfdata.File
	r io.ReaderAt
}

// mergePerfData makes one perf.data of those of the segments: the records of all, one after
// another, with the features of the last, and of BPF programs those of all.
func (x *merger) mergePerfData(done map[string]bool) error {
	done[PerfDataName] = true
	var files []sideFile
	for _, b := range x.from {
		r, size, err := b.Entry(PerfDataName)
		if err != nil {
			continue // b.Warnings has it, or there is none
		}
		f, err := perfdata.Open(b.Name+": "+PerfDataName, r, size)
		if err == nil && len(f.Events) > 0 && (len(files) == 0 || f.BigEndian == files[0].BigEndian) {
			files = append(files, sideFile{f, r})
		} else {
			x.warn("%s: the side band of a part of the recording cannot be read: %v", x.name, err)
		}
	}
	if len(files) == 0 {
		return nil
	}
	return x.addTemp(PerfDataName, func(f *os.File) error { return x.writePerfData(f, files) })
}

func (x *merger) writePerfData(to *os.File, files []sideFile) error {
	last := files[len(files)-1]
	w, err := perfdata.NewWriter(to, last.BigEndian, last.Events)
	if err != nil {
		return err
	}
	var raw []byte
	for _, f := range files {
		records := f.AllRecords()
		for records.Next() {
			rec := records.Record()
			if rec.Type == perfdata.TypeFinishedRound { // it marks rounds, not data
				continue
			}
			raw = appendRecord(raw[:0], rec, f.BigEndian)
			if err := w.WriteRecord(raw); err != nil {
				return err
			}
		}
		if err := records.Err(); err != nil {
			x.warn("%s: %v", x.name, err)
		}
	}
	features := &last.Features
	w.SetString(perfdata.FeatureHostname, features.Hostname)
	w.SetString(perfdata.FeatureOSRelease, features.OSRelease)
	w.SetString(perfdata.FeatureArch, features.Arch)
	if len(features.BuildIDs) > 0 {
		w.SetBuildIDs(features.BuildIDs)
	}
	for _, feature := range []perfdata.Feature{perfdata.FeatureBPFProgInfo,
		perfdata.FeatureBPFBTF} {
		if r := x.mergeLists(files, feature); r != nil {
			w.SetFeatureFrom(feature, r)
		}
	}
	return w.Close()
}

// appendRecord appends a record as it lay in its file.
func appendRecord(b []byte, rec *perfdata.Record, big bool) []byte {
	var o binary.AppendByteOrder = binary.LittleEndian
	if big {
		o = binary.BigEndian
	}
	b = o.AppendUint32(b, uint32(rec.Type))
	b = o.AppendUint16(b, rec.Misc)
	b = o.AppendUint16(b, uint16(perfRecordHeader+len(rec.Body)))
	return append(b, rec.Body...)
}

// mergeLists joins features that are a u32 number of entries and the entries; nil if no
// file has any.
func (x *merger) mergeLists(files []sideFile, feature perfdata.Feature) io.Reader {
	var parts []io.Reader
	count := uint32(0)
	var head [4]byte
	o := binary.ByteOrder(binary.LittleEndian)
	if files[0].BigEndian {
		o = binary.BigEndian
	}
	for _, f := range files {
		sec, ok := f.Features.Section(feature)
		if !ok || sec.Size < int64(len(head)) {
			continue
		}
		if n, _ := f.r.ReadAt(head[:], sec.Offset); n < len(head) {
			continue
		}
		count += o.Uint32(head[:])
		parts = append(parts, io.NewSectionReader(f.r, sec.Offset+int64(len(head)),
			sec.Size-int64(len(head))))
	}
	if len(parts) == 0 {
		return nil
	}
	o.PutUint32(head[:], count)
	return io.MultiReader(append([]io.Reader{bytes.NewReader(head[:])}, parts...)...)
}
