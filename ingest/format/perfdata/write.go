package perfdata

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest/decode"
)

// ErrRecordSize is returned for a record that is larger than its 16-bit size field
// allows, or smaller than its header.
var ErrRecordSize = errors.New("size of a record is not in 8..65535")

// writtenAttrSize is PERF_ATTR_SIZE_VER5, up to sample_max_stack, the last member of Attr. Any perf
// after 2016 reads attrs up to its own size and refuses larger ones, so that the smallest size with
// all members is the most compatible.
const writtenAttrSize = 112

// Writer writes a perf.data file in file mode as perf record does: header, IDs, attrs, records, the
// table of features and the features. Records are written immediately; features are kept until
// Close, which sets the data size in the header: without Close the file looks like the file of a
// killed recorder, which readers accept. After an error all later calls return it. A Writer is not
// safe for concurrent use.
type Writer struct {
	w        io.WriteSeeker
	buf      *bufio.Writer
	big      bool
	order    decode.Order
	events   []Event
	trailer  trailerLayout // of the records that the methods synthesize
	start    int64         // of the file in w
	data     Section       // relative to start
	features map[Feature]section
	scratch  []byte
	err      error
}

// section is the content of a feature: bytes, or a reader of them.
type section struct {
	bytes []byte
	from  io.Reader
}

// NewWriter begins a file at the current position of w with the Attr, IDs and Name of events, of
// which there must be at least one. Attr.Size is ignored. Records have the trailer of the first
// event.
func NewWriter(w io.WriteSeeker, bigEndian bool, events []Event) (*Writer, error) {
	if len(events) == 0 {
		return nil, errors.New("perf.data: no events")
	}
	start, err := w.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, err
	}
	x := &Writer{w: w, buf: bufio.NewWriterSize(w, blockSize), big: bigEndian, start: start,
		order: decode.OrderOf(bigEndian), events: slices.Clone(events),
		trailer: newTrailerLayout(&events[0].Attr), features: make(map[Feature]section)}
	head := x.head()
	x.data.Offset = int64(len(head))
	x.write(head)
	if slices.ContainsFunc(events, func(e Event) bool { return e.Name != "" }) {
		x.SetFeature(FeatureEventDesc, x.eventDesc())
	}
	return x, x.err
}

// NativeBigEndian reports whether this host is big-endian.
func NativeBigEndian() bool {
	return binary.NativeEndian.Uint16([]byte{0, 1}) == 1
}

func (x *Writer) write(b []byte) {
	if x.err == nil {
		_, x.err = x.buf.Write(b)
	}
}

// head returns the header, the IDs and the attrs.
func (x *Writer) head() []byte {
	o := x.order
	ids, at := []byte(nil), make([]uint64, len(x.events))
	for i := range x.events {
		at[i] = uint64(fileHeaderSize + len(ids))
		for _, id := range x.events[i].IDs {
			ids = o.AppendUint64(ids, id)
		}
	}
	attrs := uint64(fileHeaderSize + len(ids))
	attrsSize := uint64(len(x.events)) * (writtenAttrSize + sectionRefSize)
	magic := magicLittle
	if x.big {
		magic = magicBig
	}
	b := append(make([]byte, 0, attrs+attrsSize), magic...)
	for _, v := range []uint64{fileHeaderSize, writtenAttrSize + sectionRefSize, attrs, attrsSize,
		attrs + attrsSize, uint64(x.data.Size), 0, 0} {
		b = o.AppendUint64(b, v)
	}
	for _, word := range x.bitmap() {
		b = o.AppendUint64(b, word)
	}
	b = append(b, ids...)
	for i := range x.events {
		b = appendAttr(b, &x.events[i].Attr, x.big)
		b = o.AppendUint64(b, at[i])
		b = o.AppendUint64(b, uint64(8*len(x.events[i].IDs)))
	}
	return b
}

func (x *Writer) bitmap() (m [4]uint64) {
	for f := range x.features {
		m[f/64] |= 1 << (f % 64)
	}
	return m
}

// appendAttr appends a struct perf_event_attr of writtenAttrSize bytes.
func appendAttr(b []byte, a *Attr, big bool) []byte {
	o, flags := decode.OrderOf(big), uint64(a.Flags)
	if big {
		precise := flags >> preciseShift & 3 // keeps its value where single bits are reversed
		flags = bits.Reverse64(flags&^(3<<preciseShift)) | precise<<(64-preciseShift-2)
	}
	b = o.AppendUint32(b, uint32(a.Type))
	b = o.AppendUint32(b, writtenAttrSize)
	for _, v := range []uint64{a.Config, a.SamplePeriod, uint64(a.SampleType),
		uint64(a.ReadFormat), flags} {
		b = o.AppendUint64(b, v)
	}
	b = o.AppendUint32(b, 0) // wakeup
	b = o.AppendUint32(b, a.BPType)
	for _, v := range []uint64{a.Config1, a.Config2, a.BranchSampleType, a.SampleRegsUser} {
		b = o.AppendUint64(b, v)
	}
	b = o.AppendUint32(b, a.SampleStackUser)
	b = o.AppendUint32(b, uint32(a.ClockID))
	b = o.AppendUint64(b, a.SampleRegsIntr)
	b = o.AppendUint32(b, 0) // aux_watermark
	b = o.AppendUint16(b, a.SampleMaxStack)
	return o.AppendUint16(b, 0)
}

// WriteRecord writes one or more whole records as the kernel recorded them: header, body and
// trailer, in the file's byte order.
func (x *Writer) WriteRecord(raw []byte) error {
	for b := raw; len(b) > 0 && x.err == nil; {
		size := 0
		if len(b) >= headerSize {
			size = int(x.order.Uint16(b[6:]))
		}
		if size < headerSize || size > len(b) {
			x.err = fmt.Errorf("%w: %d of %d bytes", ErrRecordSize, size, len(b))
			return x.err
		}
		b = b[size:]
	}
	x.write(raw)
	if x.err == nil {
		x.data.Size += int64(len(raw))
	}
	return x.err
}

// Err returns the first error.
func (x *Writer) Err() error { return x.err }

// Len returns the size of the records so far, in bytes.
func (x *Writer) Len() int64 { return x.data.Size }

// SetFeature sets a feature section to payload, which must not change until Close.
func (x *Writer) SetFeature(f Feature, payload []byte) {
	x.features[f] = section{bytes: payload}
}

// SetFeatureFrom sets a feature section to the content of r, which Close reads: for sections that
// are too large for memory.
func (x *Writer) SetFeatureFrom(f Feature, r io.Reader) { x.features[f] = section{from: r} }

// Close writes the features and completes the header. It does not close the underlying file, and
// leaves its position at the end of the written data.
func (x *Writer) Close() error {
	if x.data.Size == 0 {
		// Data of size 0 mean that the recorder was killed.
		x.WriteRecord(x.frame(TypeFinishedRound, 0, headerSize))
	}
	numbers := make([]Feature, 0, len(x.features))
	for f := range x.features {
		numbers = append(numbers, f)
	}
	slices.Sort(numbers)
	table := make([]byte, sectionRefSize*len(numbers))
	at := x.data.End()
	x.write(table)
	next := at + int64(len(table))
	table = table[:0]
	for _, f := range numbers {
		n := x.writeSection(x.features[f])
		table = x.order.AppendUint64(table, uint64(next))
		table = x.order.AppendUint64(table, uint64(n))
		next += n
	}
	if x.err == nil {
		x.err = x.buf.Flush()
	}
	x.writeAt(table, at)
	x.writeAt(x.head(), 0)
	if x.err == nil {
		_, x.err = x.w.Seek(x.start+next, io.SeekStart)
	}
	if x.err != nil {
		return x.err
	}
	x.err = errors.New("perf.data: writer is closed")
	return nil
}

func (x *Writer) writeSection(s section) int64 {
	if s.from == nil {
		x.write(s.bytes)
		return int64(len(s.bytes))
	}
	if x.err != nil {
		return 0
	}
	var n int64
	n, x.err = io.Copy(x.buf, s.from)
	return n
}

// writeAt overwrites written bytes; the buffer is empty.
func (x *Writer) writeAt(b []byte, at int64) {
	if x.err == nil {
		_, x.err = x.w.Seek(x.start+at, io.SeekStart)
	}
	if x.err == nil {
		_, x.err = x.w.Write(b)
	}
}

// frame begins a record of this size in the scratch buffer, which is valid until the next call.
func (x *Writer) frame(typ Type, misc uint16, size int) []byte {
	b := x.order.AppendUint32(x.scratch[:0], uint32(typ))
	b = x.order.AppendUint16(b, misc)
	return x.order.AppendUint16(b, uint16(min(size, math.MaxUint16)))
}

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
// CPUDESC or CPUID. An empty string is left out.
func (x *Writer) SetString(f Feature, s string) {
	if s != "" {
		x.SetFeature(f, x.appendString(nil, s))
	}
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

// The methods below write records that perf synthesizes for the state before the recording
// (tools/perf/util/synthetic-events.c, bpf-event.c). id becomes the trailer; with the zero
// SampleID, which perf writes, the record is before everything.

// finish pads the record in b, adds the trailer and writes it.
func (x *Writer) finish(b []byte, id SampleID) error {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	b = x.appendTrailer(b, id)
	x.scratch = b
	if len(b) > maxRecordSize {
		return fmt.Errorf("%w: %d bytes", ErrRecordSize, len(b))
	}
	x.order.PutUint16(b[6:], uint16(len(b)))
	return x.WriteRecord(b)
}

// appendTrailer appends the trailer of the first event
// (perf_event__output_id_sample in kernel/events/core.c).
func (x *Writer) appendTrailer(b []byte, id SampleID) []byte {
	o, has := x.order, x.trailer.has
	if has&SampleTID != 0 {
		b = o.AppendUint32(o.AppendUint32(b, uint32(id.PID)), uint32(id.TID))
	}
	if has&SampleTime != 0 {
		b = o.AppendUint64(b, id.Time)
	}
	if has&SampleIDField != 0 {
		b = o.AppendUint64(b, id.ID)
	}
	if has&SampleStreamID != 0 {
		b = o.AppendUint64(b, id.StreamID)
	}
	if has&SampleCPU != 0 {
		b = o.AppendUint32(o.AppendUint32(b, id.CPU), 0)
	}
	if has&SampleIdentifier != 0 {
		b = o.AppendUint64(b, id.ID)
	}
	return b
}

// WriteKSymbol writes a KSYMBOL record.
func (x *Writer) WriteKSymbol(k *KSymbol, id SampleID) error {
	b := x.frame(TypeKSymbol, 0, 0)
	b = x.order.AppendUint64(b, k.Addr)
	b = x.order.AppendUint32(b, k.Len)
	b = x.order.AppendUint16(b, k.Kind)
	flags := uint16(0)
	if k.Unregister {
		flags = 1
	}
	b = x.order.AppendUint16(b, flags)
	return x.finish(appendName(b, k.Name), id)
}

// WriteBPFEvent writes a BPF_EVENT record.
func (x *Writer) WriteBPFEvent(e *BPFEvent, id SampleID) error {
	b := x.frame(TypeBPFEvent, 0, 0)
	b = x.order.AppendUint16(b, e.Kind)
	b = x.order.AppendUint16(b, e.Flags)
	b = x.order.AppendUint32(b, e.ID)
	return x.finish(append(b, e.Tag[:]...), id)
}

// WriteMmap writes an MMAP2 record if m has a build ID, otherwise an MMAP record, of the given
// mode.
func (x *Writer) WriteMmap(m *Mmap, mode CPUMode, id SampleID) error {
	misc := uint16(mode)
	if m.Data {
		misc |= MiscMmapData
	}
	typ := TypeMmap
	if !m.BuildID.IsZero() {
		typ, misc = TypeMmap2, misc|MiscMmapBuildID
	}
	o := x.order
	b := x.frame(typ, misc, 0)
	b = o.AppendUint32(o.AppendUint32(b, uint32(m.PID)), uint32(m.TID))
	for _, v := range []uint64{m.Addr, m.Len, m.PgOff} {
		b = o.AppendUint64(b, v)
	}
	if typ == TypeMmap2 {
		b = append(b, byte(min(m.BuildID.Len(), maxMmapIDLen)), 0, 0, 0)
		key := m.BuildID.Key().Sum
		b = append(b, key[:]...)
		b = o.AppendUint32(o.AppendUint32(b, m.Prot), m.Flags)
	}
	return x.finish(appendName(b, m.Filename), id)
}

func appendName(b, name []byte) []byte { return append(append(b, name...), 0) }
