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
)

// ErrRecordSize is returned for a record that is larger than its 16-bit size field
// allows, or smaller than its header.
var ErrRecordSize = errors.New("size of a record is not in 8..65535")

// writtenAttrSize is PERF_ATTR_SIZE_VER5: with sample_max_stack, the last member that Attr has. Any
// perf after 2016 reads attrs up to its own size and refuses larger ones, so the smallest size with
// all members is the most compatible.
const writtenAttrSize = 112

// Writer writes a perf.data file in file mode as perf record does: header, IDs, attrs, records, the
// table of features and the features. Records are written immediately; only features are kept until
// Close, which sets the data size in the header: without Close the file is like that of a killed
// recorder, which readers accept. It is for one goroutine. After an error all later calls return
// it.
type Writer struct {
	w        io.WriteSeeker
	buf      *bufio.Writer
	big      bool
	order    byteOrder
	events   []Event
	trailer  trailerLayout // of the records that the methods synthesize
	start    int64         // of the file in w
	data     Section       // relative to start
	features map[Feature]section
	scratch  []byte
	err      error
}

// byteOrder has the methods of both orders of encoding/binary.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func orderOf(big bool) byteOrder {
	if big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// section is the content of a feature: its bytes, or their source.
type section struct {
	bytes []byte
	from  io.Reader
}

// NewWriter begins a file at the current position of w with these events; it uses Attr, IDs and
// Name; there must be at least one. Attr.Size is ignored. Records with a trailer have that of the
// first event.
func NewWriter(w io.WriteSeeker, bigEndian bool, events []Event) (*Writer, error) {
	if len(events) == 0 {
		return nil, errors.New("perf.data: no events")
	}
	start, err := w.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, err
	}
	x := &Writer{w: w, buf: bufio.NewWriterSize(w, blockSize), big: bigEndian, start: start,
		order: orderOf(bigEndian), events: slices.Clone(events),
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
	o, flags := orderOf(big), uint64(a.Flags)
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

// WriteRecord writes a whole record as the kernel recorded it: header, body and
// trailer, in the file's byte order. raw may hold several, one after another.
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

// SetFeature sets a feature section to these bytes, which must stay unchanged until
// Close.
func (x *Writer) SetFeature(f Feature, payload []byte) {
	x.features[f] = section{bytes: payload}
}

// SetFeatureFrom sets a feature section to the content of r, which is read in Close:
// for sections that are too large for memory.
func (x *Writer) SetFeatureFrom(f Feature, r io.Reader) { x.features[f] = section{from: r} }

// Close writes the features and completes the header. It does not close the underlying file, whose
// position is then the end of the written data.
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
