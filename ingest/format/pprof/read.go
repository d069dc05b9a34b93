package pprof

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"

	"symbolize/ingest"
	"symbolize/ingest/decode"
	"symbolize/ingest/fold/intern"
)

const (
	// maxSize caps a pprof file after decompression.
	maxSize = 1 << 30
	// maxMemory caps the estimated memory (memoryFor) of google/pprof's decoder.
	maxMemory = 8 << 30
)

// ReadOptions select the samples of a pprof file, and the labels to keep.
type ReadOptions struct {
	Event string   // only this event; "" for all
	Comms []string // only these thread names; none for all
	PIDs  []int32  // only these processes; none for all
	Keep  ingest.Keep
}

// Read decodes a pprof file, gzipped or not, with the filters and labels
// of opts. Objects are made from its mappings, Locations from its addresses,
// unchanged. Its function names are kept in Names; locations without
// one, and those that Write marked as unresolved, are left to resolve. The
// data is not kept.
func Read(name string, data []byte, opts ReadOptions) (*ingest.Profile, error) {
	data, err := unzip(name, data, maxSize)
	if err != nil {
		return nil, err
	}
	if need := memoryFor(data); need > maxMemory {
		return nil, &decode.Error{Name: name, Reason: fmt.Sprintf(
			"profile would take about %d MiB to decode, over the limit of %d MiB", need>>20,
			maxMemory>>20)}
	}
	prof, err := profile.ParseUncompressed(data)
	if err == nil {
		err = prof.CheckValid()
	}
	if err == nil && len(prof.SampleType) == 0 {
		err = fmt.Errorf("no sample types")
	}
	if err != nil {
		return nil, &decode.Error{Name: name, Reason: "not a pprof profile: " + err.Error()}
	}
	r := &reader{name: name, prof: prof, opts: opts}
	return r.read(), nil
}

// unzip undoes gzip, if any, up to limit bytes.
func unzip(name string, data []byte, limit int64) ([]byte, error) {
	if len(data) < 2 || data[0] != 0x1f || data[1] != 0x8b {
		return data, nil
	}
	var out bytes.Buffer
	out.Grow(int(unzippedSize(data, limit)))
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		_, err = io.Copy(&out, io.LimitReader(z, limit+1))
	}
	if err == nil && int64(out.Len()) > limit {
		err = fmt.Errorf("more than %d bytes when unpacked", limit)
	}
	if err != nil {
		return nil, &decode.Error{Name: name, Offset: int64(out.Len()),
			Reason: "gzip: " + err.Error()}
	}
	return out.Bytes(), nil
}

// maxDeflate is deflate's maximum ratio.
const maxDeflate = 1032

// unzippedSize returns the size in the trailer of gzipped data, so that the
// buffer need not grow: a hint, limited to the possible ratio.
func unzippedSize(data []byte, limit int64) int64 {
	const trailer = 4
	if len(data) < trailer {
		return 0
	}
	size := int64(binary.LittleEndian.Uint32(data[len(data)-trailer:]))
	return min(size+bytes.MinRead, limit+bytes.MinRead, int64(len(data))*maxDeflate)
}

// memoryFor estimates the memory of google/pprof's decoder, in bytes:
// it makes a struct of 100 to 200 bytes of each message, eight bytes of each
// packed number, and maps of labels.
func memoryFor(data []byte) uint64 {
	const perMessage, perByte, perLabel = 192, 16, 640
	need := uint64(len(data)) * perByte
	for len(data) > 0 {
		field, body, rest, ok := nextField(data)
		if !ok {
			break // the decoder returns the error
		}
		if body != nil {
			need += perMessage
		}
		if field == profSample || field == profLocation {
			for len(body) > 0 {
				sub, inner, left, ok := nextField(body)
				if !ok {
					break
				}
				if inner != nil && sub >= 3 { // Sample.label, Location.line
					need += perLabel
				}
				body = left
			}
		}
		data = rest
	}
	return need
}

// nextField splits the first protobuf field off b. body is nil but for
// length-delimited fields.
func nextField(b []byte) (field uint64, body, rest []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, nil, false
	}
	b = b[n:]
	switch tag & 7 {
	case 0:
		if _, n = binary.Uvarint(b); n <= 0 {
			return 0, nil, nil, false
		}
		return tag >> 3, nil, b[n:], true
	case 1, 5:
		size := 8
		if tag&7 == 5 {
			size = 4
		}
		if len(b) < size {
			return 0, nil, nil, false
		}
		return tag >> 3, nil, b[size:], true
	case 2:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return 0, nil, nil, false
		}
		end := n + int(size)
		return tag >> 3, b[n:end:end], b[end:], true
	}
	return 0, nil, nil, false
}

// reader turns one profile.Profile into a Profile.
type reader struct {
	name string
	prof *profile.Profile
	opts ReadOptions
	p    *ingest.Profile

	events   []eventColumns
	places   map[*profile.Location]ingest.LocationID
	strings  map[string]ingest.StringID
	other    map[string]uint64 // labels without a field in Profile, by key
	negative uint64
}

// eventColumns are the columns of an event.
type eventColumns struct{ count, weight int }

func (r *reader) read() *ingest.Profile {
	r.p = &ingest.Profile{Strings: []string{""}}
	r.strings = map[string]ingest.StringID{"": 0}
	r.readEvents()
	r.readMeta()
	r.readLocations()
	r.readSamples()
	r.warn()
	return r.p
}

// readEvents pairs the columns: a count followed by a weight is one event, as
// samples/count with cpu/nanoseconds or inuse_objects/count with
// inuse_space/bytes; any other column is an event of its own.
func (r *reader) readEvents() {
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

// isCountOf reports whether a column of counts called name belongs to the
// weights of the next one.
func isCountOf(name string, next *profile.ValueType) bool {
	return next.Unit != "count" || name == "samples" || strings.HasSuffix(name, "_samples") ||
		strings.HasSuffix(name, "_sample")
}

func (r *reader) readMeta() {
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
		case strings.HasPrefix(c, commentCommand) && m.Command == "":
			m.Command = c[len(commentCommand):]
		case strings.HasPrefix(c, commentVersion) && m.Recorder == "":
			m.Recorder = c[len(commentVersion):]
		case strings.HasPrefix(c, commentCoverage): // made anew by Write
		default:
			m.Comments = append(m.Comments, c)
		}
	}
}

// readSamples folds the samples by stack, labels and event.
func (r *reader) readSamples() {
	b := newStackBuilder(r.p)
	labels := r.findLabels()
	var locs []uint32
	for i, s := range r.prof.Sample {
		r.prof.Sample[i] = nil // it takes several times the memory of the result
		row := ingest.Sample{PID: -1, TID: -1, CPU: -1}
		r.readLabels(s, &row, labels)
		if !r.wanted(&row) {
			r.p.Stats.FilteredOut++
			continue
		}
		if !r.opts.Keep.PID {
			row.PID = -1
		}
		locs = locs[:0]
		for _, l := range s.Location[:min(len(s.Location), intern.MaxList)] {
			locs = append(locs, uint32(r.places[l]))
		}
		if len(locs) < len(s.Location) {
			r.p.Stats.CutChains++
		}
		row.Stack = b.stack(locs)
		for event, cols := range r.events {
			count, weight := s.Value[cols.count], s.Value[cols.weight]
			if count < 0 || weight < 0 {
				r.negative++
				continue
			}
			if count == 0 && weight == 0 {
				continue
			}
			row.Event, row.Count, row.Weight = uint16(event), uint64(count), uint64(weight)
			b.add(row)
			r.p.Stats.Samples += row.Count
			r.p.Stats.Weight += row.Weight
			r.p.Stats.Frames += row.Count * uint64(len(locs))
		}
	}
	b.finish()
}

func (r *reader) wanted(s *ingest.Sample) bool {
	if len(r.opts.PIDs) > 0 && !slices.Contains(r.opts.PIDs, s.PID) {
		return false
	}
	return len(r.opts.Comms) == 0 || slices.Contains(r.opts.Comms, r.p.Strings[s.Comm])
}

// findLabels returns the numeric labels that occur: a label that other samples have is
// 0 where it is absent, because writers leave zeros out.
func (r *reader) findLabels() (has ingest.Keep) {
	for _, s := range r.prof.Sample {
		has.PID = has.PID || len(s.NumLabel["pid"]) > 0
		has.TID = has.TID || len(s.NumLabel["tid"]) > 0
		has.CPU = has.CPU || len(s.NumLabel["cpu"]) > 0
	}
	return has
}

func (r *reader) readLabels(s *profile.Sample, row *ingest.Sample, has ingest.Keep) {
	for key, values := range s.Label {
		switch key {
		case "comm":
			row.Comm = r.str(values[0])
		case "thread_comm":
			if len(s.Label["comm"]) == 0 {
				row.Comm = r.str(values[0])
			}
		default:
			r.otherLabel(key)
		}
	}
	for key := range s.NumLabel {
		if key != "pid" && key != "tid" && key != "cpu" {
			r.otherLabel(key)
		}
	}
	row.PID = numLabel(s, "pid", has.PID)
	row.TID = numLabel(s, "tid", has.TID && r.opts.Keep.TID)
	row.CPU = numLabel(s, "cpu", has.CPU && r.opts.Keep.CPU)
}

func numLabel(s *profile.Sample, key string, has bool) int32 {
	if !has {
		return -1
	}
	v := s.NumLabel[key]
	if len(v) == 0 || v[0] < 0 || v[0] > math.MaxInt32 {
		return 0
	}
	return int32(v[0])
}

func (r *reader) otherLabel(key string) {
	if r.other == nil {
		r.other = make(map[string]uint64)
	}
	r.other[key]++
}

func (r *reader) str(s string) ingest.StringID {
	id, ok := r.strings[s]
	if !ok {
		id = ingest.StringID(len(r.p.Strings))
		r.p.Strings = append(r.p.Strings, s)
		r.strings[s] = id
	}
	return id
}

// warn reports the parts left out.
func (r *reader) warn() {
	if r.negative > 0 {
		r.p.Stats.Warnings = append(r.p.Stats.Warnings, ingest.Warning{
			Text: fmt.Sprintf("%s: %d negative values left out: this is a difference of profiles",
				r.name, r.negative)})
	}
	if len(r.other) == 0 {
		return
	}
	keys := make([]string, 0, len(r.other))
	for k := range r.other {
		keys = append(keys, ingest.Printable(k))
	}
	slices.Sort(keys)
	r.p.Stats.Warnings = append(r.p.Stats.Warnings, ingest.Warning{
		Text: fmt.Sprintf("%s: labels not kept: %s", r.name, strings.Join(keys, ", "))})
}
