// Package pprof reads and writes the pprof format, profile.proto
// (https://github.com/google/pprof/blob/main/proto/profile.proto): Profiles of other profilers are
// the input, and resolved Profiles the output. The output carries the reasons of unresolved
// locations, so that a later resolve tries again.
//
// The package google/pprof/profile decodes everything but samples, and is the oracle of the tests.
// Samples and the whole output are coded here, because the library makes a struct of about a
// kilobyte of each sample. For a profile of 3.6 MB (BenchmarkWrite, BenchmarkRead and
// BenchmarkLibrary…), Write takes 157 ms and allocates 12 MB, the library 555 ms and 115 MB once
// its structs are built; Read allocates 171 MB including the resulting Profile, the library
// 275 MB before it.
package pprof

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/google/pprof/profile"

	"symbolize/ingest"
	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/ingest/input/named"
	"symbolize/ingest/protobuf"
)

// Detect reports whether the first fields of a file can be fields of a profile.proto: known
// numbers, with the wire types that they have, in bounds.
//
// It also recognizes the formats before profile.proto, and heap profiles of jemalloc.
func Detect(head []byte) bool { return isLegacy(head) || isProto(head) }

func isProto(head []byte) bool {
	const varint, bytes = 0, 2
	fields := 0
	for b := head; len(b) > 0; fields++ {
		number, wire := b[0]>>3, b[0]&7
		isVarint := number == 7 || number == 8 || number >= 9 && number <= 10 || number >= 12 &&
			number <= 15
		isBytes := number >= 1 && number <= 6 || number == 11 || number == 13
		if b[0] >= 0x80 || !(wire == varint && isVarint) && !(wire == bytes && isBytes) {
			return false
		}
		v, n := binary.Uvarint(b[1:])
		if n <= 0 {
			break // cut off by the size of head
		}
		b = b[1+n:]
		if wire == bytes {
			if v > uint64(len(b)) {
				return fields > 0 || len(head) == 512
			}
			b = b[v:]
		}
	}
	return fields > 0
}

const (
	// maxLegacy caps a file of an older format: its decoder keeps all samples.
	maxLegacy = 256 << 20
	// headBytes is how much of a file shows its format.
	headBytes = 512
	// maxSize caps a pprof file after decompression.
	maxSize = 1 << 30
	// maxMemory caps the estimated memory (memoryFor) of google/pprof's decoder.
	maxMemory = 8 << 30
)

// ReadOptions select the samples of a pprof file, and the labels to keep.
type ReadOptions = named.Options

// Read decodes a pprof file, gzipped or not, or one of the formats before it, with the filters and labels of opts. It makes Objects
// from mappings, and Locations from unchanged addresses. Function names are kept in Names;
// locations without a name, or marked as unresolved by Write, are left to resolve. The data is not
// retained.
func Read(name string, data []byte, opts ReadOptions) (*ingest.Profile, error) {
	data, err := unzip(name, data, min(maxSize, files.MaxInMemory(int64(len(data)), opts.MaxUnpacked)))
	if err != nil {
		return nil, err
	}
	if isLegacy(data[:min(len(data), headBytes)]) && len(data) <= maxLegacy {
		if data, err = modernize(data); err != nil {
			return nil, &decode.Error{Name: name, Reason: err.Error()}
		}
	}
	others, texts := withoutSamples(data)
	if need := memoryFor(others); need > maxMemory {
		return nil, &decode.Error{Name: name, Reason: fmt.Sprintf(
			"profile would take about %d MiB to decode, over the limit of %d MiB", need>>20,
			maxMemory>>20)}
	}
	prof, err := profile.ParseUncompressed(others)
	if err == nil {
		err = prof.CheckValid()
	}
	if err == nil && len(prof.SampleType) == 0 {
		err = fmt.Errorf("no sample types")
	}
	r := &profileReader{name: name, prof: prof, opts: opts}
	if err == nil {
		r.samples = func() *sampleReader {
			return &sampleReader{k: protobuf.Fields(data), texts: texts, types: len(prof.SampleType)}
		}
		err = r.read()
	}
	if err != nil {
		return nil, &decode.Error{Name: name, Reason: "not a pprof profile: " + err.Error()}
	}
	return r.p, nil
}

// unzip undoes gzip, if any, up to limit bytes.
func unzip(name string, data []byte, limit int64) ([]byte, error) {
	if len(data) < 2 || data[0] != 0x1f || data[1] != 0x8b {
		return data, nil
	}
	var out bytes.Buffer
	out.Grow(int(unzippedSize(data, limit)))
	z, err := files.Unpacker(files.Gzip, bytes.NewReader(data), 0)
	if err == nil {
		_, err = io.Copy(&out, io.LimitReader(z, limit+1))
	}
	if err == nil && int64(out.Len()) > limit {
		err = fmt.Errorf("%w: %d KiB", files.ErrTooLarge, limit>>10)
	}
	if errors.Is(err, files.ErrTooLarge) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return nil, &decode.Error{Name: name, Offset: int64(out.Len()),
			Reason: "gzip: " + err.Error()}
	}
	return out.Bytes(), nil
}

// maxDeflate is deflate's maximum ratio.
const maxDeflate = 1032

// unzippedSize returns the size in the trailer of gzipped data, limited to the possible ratio: a
// hint for the size of the buffer.
func unzippedSize(data []byte, limit int64) int64 {
	const trailer = 4
	if len(data) < trailer {
		return 0
	}
	size := int64(binary.LittleEndian.Uint32(data[len(data)-trailer:]))
	return min(size+bytes.MinRead, limit+bytes.MinRead, int64(len(data))*maxDeflate)
}

// memoryFor estimates the memory of google/pprof's decoder in bytes for a profile without samples:
// each message is a struct of 100 to 200 bytes, and each packed number eight bytes.
func memoryFor(data []byte) uint64 {
	const perMessage, perByte, perLine = 192, 16, 640
	need := uint64(len(data)) * perByte
	for k := protobuf.Fields(data); k.Next(); { // the decoder returns errors
		if k.Wire == protobuf.Bytes {
			need += perMessage
		}
		if k.Number != profLocation {
			continue
		}
		for sub := protobuf.Fields(k.Body); sub.Next(); {
			if sub.Wire == protobuf.Bytes && sub.Number >= 3 { // Location.line
				need += perLine
			}
		}
	}
	return need
}

// profileReader converts a profile.Profile to a Profile.
type profileReader struct {
	name string
	prof *profile.Profile
	opts ReadOptions
	b    *named.Builder
	p    *ingest.Profile // the Builder's
	tags tagReader
	// samples returns a reader of all samples.
	samples func() *sampleReader

	events   []eventColumns
	places   map[*profile.Location]uint32
	negative uint64
}

// eventColumns are the columns of an event.
type eventColumns struct{ count, weight int }

func (r *profileReader) read() error {
	r.b = named.NewBuilder()
	r.b.Identify = r.opts.Identify
	r.p = r.b.P
	r.tags = tagReader{Labels: named.NewLabels(&r.opts.Keep)}
	r.readEvents()
	r.readMeta()
	r.readLocations()
	err := r.readSamples()
	r.warn()
	return err
}

// readEvents pairs the columns: a count followed by a weight is one event, like samples/count with
// cpu/nanoseconds or inuse_objects/count with inuse_space/bytes; each other column is an event.
func (r *profileReader) readEvents() {
	types := r.prof.SampleType
	for i := 0; i < len(types); i++ {
		ev := ingest.Event{Name: types[i].Type, Unit: types[i].Unit, OneColumn: true}
		cols := eventColumns{count: i, weight: i}
		if i+1 < len(types) && types[i].Unit == "count" && isCountOf(types[i].Type, types[i+1]) {
			ev = ingest.Event{Name: types[i+1].Type, Unit: types[i+1].Unit,
				CountColumn: types[i].Type}
			cols.weight = i + 1
			i++
		}
		if pt := r.prof.PeriodType; pt != nil && pt.Type == ev.Name && pt.Unit == ev.Unit &&
			r.prof.Period > 0 {
			ev.Period = uint64(r.prof.Period)
		}
		if r.opts.Event != "" && ev.Name != r.opts.Event {
			continue
		}
		if len(r.events) < math.MaxUint16 {
			r.p.Events = append(r.p.Events, ev)
			r.events = append(r.events, cols)
		}
	}
}

// isCountOf reports whether a column of counts called name belongs to the weights of the next
// column.
func isCountOf(name string, next *profile.ValueType) bool {
	return next.Unit != "count" || name == "samples" || strings.HasSuffix(name, "_samples") ||
		strings.HasSuffix(name, "_sample")
}

func (r *profileReader) readMeta() {
	prof, m := r.prof, &r.p.Meta
	m.Captures = []string{r.name}
	m.StartNanos, m.Duration = prof.TimeNanos, prof.DurationNanos
	m.Pprof = &ingest.PprofHeader{
		Period: prof.Period, DefaultType: prof.DefaultSampleType,
		DropFrames: prof.DropFrames, KeepFrames: prof.KeepFrames, DocURL: prof.DocURL,
	}
	if pt := prof.PeriodType; pt != nil {
		m.Pprof.PeriodType, m.Pprof.PeriodUnit = pt.Type, pt.Unit
	}
	for _, c := range prof.Comments {
		switch {
		case strings.HasPrefix(c, CommentCommand) && m.Command == "":
			m.Command = c[len(CommentCommand):]
		case strings.HasPrefix(c, commentVersion) && m.Recorder == "":
			m.Recorder = c[len(commentVersion):]
		case strings.HasPrefix(c, commentCoverage): // Write makes a new one
		default:
			m.Comments = append(m.Comments, c)
		}
	}
}

// readSamples folds the samples by stack, labels and event.
func (r *profileReader) readSamples() error {
	labels, err := r.findLabels()
	if err != nil {
		return err
	}
	index := newLocationIndex(r.prof.Location, r.places)
	r.places = nil
	var locs []uint32
	for in := r.samples(); ; {
		s, err := in.next()
		if err != nil {
			return err
		}
		if s == nil {
			break
		}
		row := ingest.Sample{PID: -1, TID: -1, CPU: -1}
		r.readLabels(s, &row, labels)
		if !r.opts.Selects(&row, r.p.Strings) {
			r.p.Stats.FilteredOut++
			continue
		}
		r.opts.Drop(&row)
		if locs, err = index.append(locs[:0], s.locations); err != nil {
			return err
		}
		row.Stack = r.b.Stack(locs)
		for event, cols := range r.events {
			count, weight := s.values[cols.count], s.values[cols.weight]
			if count < 0 || weight < 0 {
				r.negative++
				continue
			}
			if count == 0 && weight == 0 {
				continue
			}
			row.Event, row.Count, row.Weight = uint16(event), uint64(count), uint64(weight)
			r.b.Add(row)
		}
	}
	r.b.Profile()
	return nil
}

// warn reports what was left out.
func (r *profileReader) warn() {
	if r.negative > 0 {
		r.p.Stats.Warnings = append(r.p.Stats.Warnings, ingest.Warning{
			Text: fmt.Sprintf("%s: %d negative values left out: this is a difference of profiles",
				r.name, r.negative)})
	}
	r.tags.Warn(r.name, &r.p.Stats)
}
