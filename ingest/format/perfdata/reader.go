package perfdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"symbolize/ingest/decode"
)

// blockSize is the size of a RecordReader's buffer. 1 MiB fits the second level cache and measured
// better than smaller and larger blocks; it must exceed the largest size of a record, 65,535.
const blockSize = 1 << 20

// maxRecordSize is the maximum of a record's 16-bit size field. Of larger records of simpleperf
// only the header is returned, and the rest is skipped like a payload.
const maxRecordSize = 1<<16 - 1

// RecordReader returns the raw records of a range of the file, in file order. It reads the file in
// blocks into a buffer of its own and allocates nothing per record. It is not safe for concurrent
// use.
type RecordReader struct {
	f    *File
	rec  Record
	buf  []byte // capacity blockSize
	pos  int    // of the next record in buf
	base int64  // file offset of buf[0]
	to   int64  // records at or after this offset are not returned
	end  int64  // of the data section
	err  error
}

// Records returns a reader of the records that start in the range [from, to) of the file; from must
// be the start of a record, and both are clipped to the data section. A record that crosses to is
// read whole.
func (f *File) Records(from, to int64) *RecordReader {
	r := &RecordReader{f: f}
	r.Reset(from, to)
	return r
}

// RecordsBuffered is Records with a buffer of the given size, which is at least that of the largest
// record.
func (f *File) RecordsBuffered(from, to int64, size int) *RecordReader {
	r := f.Records(from, to)
	r.buf = make([]byte, 0, max(size, maxRecordSize))
	return r
}

// AllRecords returns a reader of the whole data section.
func (f *File) AllRecords() *RecordReader {
	return f.Records(f.Data.Offset, f.Data.End())
}

// Reset makes the reader start again with another range, keeping its buffer.
func (r *RecordReader) Reset(from, to int64) {
	r.end = r.f.Data.End()
	r.base = max(from, r.f.Data.Offset)
	r.to = min(to, r.end)
	r.pos = 0
	r.buf = r.buf[:0]
	r.err = nil
	r.rec = Record{}
}

// Next advances to the next record and reports whether there is one. It returns false at the end of
// the range and at an error; Err distinguishes the two.
func (r *RecordReader) Next() bool {
	p := r.pos
	if r.base+int64(p) >= r.to || r.err != nil {
		return false
	}
	if len(r.buf)-p < headerSize && !r.fill(headerSize) {
		return false
	}
	p = r.pos
	h := r.buf[p : p+headerSize]
	typ, misc, size := binary.LittleEndian.Uint32(h), binary.LittleEndian.Uint16(h[4:]),
		int(binary.LittleEndian.Uint16(h[6:]))
	if r.f.BigEndian {
		typ, misc, size = binary.BigEndian.Uint32(h), binary.BigEndian.Uint16(h[4:]),
			int(binary.BigEndian.Uint16(h[6:]))
	}
	var long uint64
	if Type(typ)-firstSimpleperf < maxSimpleperf {
		size, misc = size|int(misc)<<16, 0
		if size > maxRecordSize {
			long, size = uint64(size-headerSize), headerSize
		}
	}
	if size < headerSize {
		return r.fail(fmt.Sprintf("record of type %s has size %d, less than its header",
			Type(typ), size))
	}
	if len(r.buf)-p < size {
		if !r.fill(size) {
			return false
		}
		p = r.pos
	}
	r.rec.Type = Type(typ)
	r.rec.Misc = misc
	r.rec.Size = size
	r.rec.Offset = r.base + int64(p)
	r.rec.Body = r.buf[p+headerSize : p+size : p+size]
	r.pos = p + size
	switch {
	case r.rec.Type == TypeAuxtrace || r.rec.Type == TypeHeaderTracingData:
		return r.skipPayload()
	case long > 0:
		return r.skip(long)
	}
	return true
}

// At reads the record at an offset, with the size of an earlier Record.Size. It becomes the current
// record, valid until the next call of At or Reset; call Reset before Next.
func (r *RecordReader) At(offset int64, size int) (*Record, error) {
	r.Reset(offset, offset)
	if cap(r.buf) < size {
		r.buf = make([]byte, 0, maxRecordSize)
	}
	got, err := r.f.records.ReadAt(r.buf[:size], offset)
	if r.buf = r.buf[:got]; got < size {
		return nil, r.ioError(offset, err)
	}
	r.to++
	if !r.Next() {
		return nil, r.err
	}
	return &r.rec, nil
}

// Record returns the current record. The reader owns it, and Next overwrites it.
func (r *RecordReader) Record() *Record { return &r.rec }

// Offset returns the start of the next record. After Next has returned false without an error, it
// is at or after the end of the range: the start of the next chunk's records.
func (r *RecordReader) Offset() int64 { return r.base + int64(r.pos) }

// Err returns the reason why the reader stopped: nil at the end of the range, otherwise a
// *decode.Error with the position of the damage, or a wrapped I/O error. All records before it were
// returned.
func (r *RecordReader) Err() error { return r.err }

// fill reads the block that starts at the current record, at least want bytes.
func (r *RecordReader) fill(want int) bool {
	start := r.base + int64(r.pos)
	if left := r.end - start; left < int64(want) {
		if want == headerSize {
			return r.fail(fmt.Sprintf("%d bytes are left, less than a record's header", left))
		}
		return r.fail(fmt.Sprintf("record of %d bytes overruns the data, %d are left", want, left))
	}
	if r.buf == nil {
		r.buf = make([]byte, 0, min(blockSize, r.f.Data.Size))
	}
	// Stop after the longest record that can cross the end of the range: another reader reads the
	// rest.
	n := int(min(int64(cap(r.buf)), r.end-start, max(r.to+maxRecordSize-start, int64(want))))
	r.base, r.pos = start, 0
	got, err := r.f.records.ReadAt(r.buf[:n], start)
	r.buf = r.buf[:got]
	if got < want {
		if err == nil || errors.Is(err, io.EOF) {
			return r.fail(fmt.Sprintf("file ends here, %d bytes wanted, %d left", want, got))
		}
		r.err = r.ioError(start, err)
		return false
	}
	return true
}

// skipPayload skips the bytes that follow an AUXTRACE or TRACING_DATA record without
// being counted in its size.
func (r *RecordReader) skipPayload() bool {
	n, ok := r.f.payload(&r.rec)
	if !ok {
		return r.fail(r.rec.Type.String() + " record without a size")
	}
	return r.skip(n)
}

// skip skips bytes after the current record.
func (r *RecordReader) skip(n uint64) bool {
	if next := r.Offset(); n > uint64(r.end-next) {
		// The record itself is whole, and is returned; its payload is not.
		r.pos -= r.rec.Size
		r.fail(fmt.Sprintf("the %d bytes after the %s record overrun the data", n, r.rec.Type))
		r.pos += r.rec.Size
		return true
	}
	if n <= uint64(len(r.buf)-r.pos) {
		r.pos += int(n)
	} else {
		// Body still aliases the block: keep its bytes, but drop them from the buffer.
		r.base += int64(r.pos) + int64(n)
		r.pos, r.buf = 0, r.buf[:0]
	}
	return true
}

// payload returns the number of bytes that follow a record without being counted in its size; false
// if the record is too short to hold the number. simpleperf's TRACING_DATA records include their
// data.
func (f *File) payload(rec *Record) (n uint64, ok bool) {
	switch {
	case rec.Type == TypeAuxtrace && len(rec.Body) >= 8:
		return decode.U64(rec.Body, f.BigEndian), true
	case rec.Type == TypeHeaderTracingData && len(rec.Body) >= 4:
		n = uint64(decode.U32(rec.Body, f.BigEndian))
		if uint64(len(rec.Body)) >= 4+n && n > 0 {
			return 0, true
		}
		return (n + 7) &^ 7, true
	}
	return 0, rec.Type != TypeAuxtrace && rec.Type != TypeHeaderTracingData
}

// fail records damage at the current record.
func (r *RecordReader) fail(reason string) bool {
	name, at := r.f.placeOf(r.base + int64(r.pos))
	r.err = &decode.Error{Name: name, Offset: at, Reason: reason}
	return false
}

func (r *RecordReader) ioError(offset int64, err error) error {
	name, at := r.f.placeOf(offset)
	return fmt.Errorf("%s: offset %#x: %w", name, at, err)
}

// eventNameUpdate is the type of an EVENT_UPDATE record that carries an event's name.
const eventNameUpdate = 2

// maxBuildIDs bounds the entries of a stream.
const maxBuildIDs = 1 << 20

const (
	maxEventTypes = 1 << 22 // bytes of the section of event types
	eventTypeSize = 8 + 64
)

// readStream fills the tables of a file in pipe mode from the records that replace the parts of a
// header. They can be anywhere: perf inject adds HEADER_BUILD_ID records between samples. Damage of
// the records ends it, and is reported by readers of the records.
func (f *File) readStream() {
	idBytes := int64(0)
	for r := f.AllRecords(); r.Next(); {
		if rec := r.Record(); rec.Type == TypeHeaderAttr {
			f.addAttr(rec, &idBytes)
		} else {
			f.addHeader(rec)
		}
	}
	if len(f.Events) == 0 {
		f.warnAt(pipeHeaderSize, "the stream has no events")
	}
}

// addHeader decodes a record that replaces a part of a header other than an attr; other records
// have no effect.
func (f *File) addHeader(rec *Record) {
	switch rec.Type {
	case TypeHeaderEventType:
		f.eventTypes(rec.Body)
	case TypeHeaderFeature:
		f.addFeature(rec)
	case TypeHeaderBuildID:
		f.addBuildID(rec)
	case TypeHeaderTracingData:
		at := rec.Offset + int64(rec.Size)
		// Readers of the records report data that was cut off.
		if n, ok := f.payload(rec); ok && n > 0 && n <= uint64(f.Data.End()-at) {
			f.setFeature(FeatureTracingData, Section{Offset: at, Size: int64(n)})
		}
	case TypeEventUpdate:
		f.updateName(rec)
	}
}

// addAttr decodes an attr and the IDs after it. idBytes sums the bytes of IDs.
func (f *File) addAttr(rec *Record, idBytes *int64) {
	attr, err := parseAttr(f.Name+": HEADER_ATTR record", rec.Body, rec.Offset+headerSize,
		f.BigEndian)
	if err != nil {
		f.warn(err)
		return
	}
	ids := rec.Body[min(int64(attr.Size), int64(len(rec.Body))):]
	if *idBytes += int64(len(ids)); *idBytes > maxIDBytes || len(f.Events) >= maxEvents {
		f.warn(f.recordError(rec, "events or IDs are over the limit"))
		return
	}
	ev := Event{Attr: attr, IDs: make([]uint64, len(ids)/8)}
	for i := range ev.IDs {
		ev.IDs[i] = decode.U64(ids[8*i:], f.BigEndian)
	}
	f.Events = append(f.Events, ev)
}

// addFeature decodes the section of a feature. The last record of this type marks the end: it has
// no bytes, and the first number that is not a feature of its writer.
func (f *File) addFeature(rec *Record) {
	if len(rec.Body) <= 8 {
		return
	}
	n := decode.U64(rec.Body, f.BigEndian)
	if n >= numFeatures {
		f.warn(f.recordError(rec, "feature number out of range"))
		return
	}
	x, at := Feature(n), rec.Offset+headerSize+8
	if f.Features.Has(x) && x != FeatureBuildID {
		return // only the first one counts
	}
	f.noteUnknown(x)
	f.setFeature(x, Section{Offset: at, Size: int64(len(rec.Body)) - 8})
	f.decodeFeature(x, rec.Body[8:], at)
}

func (f *File) setFeature(x Feature, sec Section) {
	f.Features.Present[x/64] |= 1 << (x % 64)
	f.Features.Sections[x] = sec
}

// addBuildID adds a record that has the form of an entry of the BUILD_ID feature.
func (f *File) addBuildID(rec *Record) {
	if rec.Size < buildIDNameAt || len(f.Features.BuildIDs) >= maxBuildIDs {
		f.warn(f.recordError(rec, "shorter than an entry, or entries are over the limit"))
		return
	}
	f.Features.Present[0] |= 1 << FeatureBuildID
	f.Features.BuildIDs = append(f.Features.BuildIDs,
		buildIDEntry(rec.Body, rec.Misc, false, f.BigEndian))
}

// updateName sets the name of an event: u64 type, u64 ID, the name.
func (f *File) updateName(rec *Record) {
	d := decode.New(f.Name, rec.Body, rec.Offset+headerSize, f.BigEndian)
	kind, id := d.U64(), d.U64()
	if d.Err() != nil || kind != eventNameUpdate {
		return
	}
	i := slices.IndexFunc(f.Events, func(ev Event) bool { return slices.Contains(ev.IDs, id) })
	if i >= 0 {
		f.Events[i].Name = string(rest(d))
	}
}

// readEventTypes reads the section of event types, the names of tracepoints, written by perf until
// Linux 3.11. It is empty in newer files.
func (f *File) readEventTypes(head []byte) {
	d := decode.New(f.Name, head, 0, f.BigEndian)
	d.Seek(typesOffset)
	sec := f.section(d, "event types")
	if d.Err() != nil || sec.Size == 0 {
		return
	}
	b, err := f.read(sec, maxEventTypes)
	if err != nil {
		f.warn(err)
		return
	}
	f.eventTypes(b)
}

// eventTypes decodes any number of {u64 config, char name[64]}.
func (f *File) eventTypes(b []byte) {
	d := decode.New(f.Name, b, 0, f.BigEndian)
	for d.Left() >= eventTypeSize && len(f.types) < maxEventTypes/eventTypeSize {
		config := d.U64()
		f.types[config] = d.FixedString(eventTypeSize - 8)
	}
}

// WithRecords returns a File with the tables of f and other records: the range data of r, in the
// byte order of f. place returns the name and offset of a record for messages, by its offset in r.
// f is unchanged.
func (f *File) WithRecords(r io.ReaderAt, data Section,
	place func(offset int64) (name string, at int64)) *File {
	x := *f
	x.records, x.Data, x.place, x.Parts = r, data, place, nil
	x.Warnings = slices.Clip(f.Warnings)
	return &x
}

// Warn adds warnings to a File that is not yet in use.
func (f *File) Warn(warnings ...error) {
	for _, w := range warnings {
		f.warn(w)
	}
}

// placeOf returns the name and offset of a position in the records for messages.
func (f *File) placeOf(offset int64) (name string, at int64) {
	if f.place == nil {
		return f.Name, offset
	}
	return f.place(offset)
}

// AppendHeader appends the header of a record with its size, as in the file.
func (rec *Record) AppendHeader(b []byte, bigEndian bool) []byte {
	o := decode.OrderOf(bigEndian)
	b = o.AppendUint32(b, uint32(rec.Type))
	return o.AppendUint16(o.AppendUint16(b, rec.Misc), uint16(rec.Size))
}

// grown returns the valid length of a record's body, including a trailer of the given size. It is
// the whole body, except for two types that the kernel makes too long: if several events on a CPU
// ask for KSYMBOL or BPF_EVENT (two recorders are running), the record of each is longer by the
// trailers of the previous events, with uninitialised bytes (perf_event_ksymbol_output and
// perf_event_bpf_output do not restore the size). The trailer follows the record's own fields, not
// these bytes, from which perf reads time 0.
func grown(rec *Record, trailer int) int {
	own := OwnFields(rec.Type, rec.Body)
	if own == 0 || own+trailer > len(rec.Body) {
		return len(rec.Body)
	}
	return own + trailer
}

// OwnFields returns the number of bytes of a KSYMBOL or BPF_EVENT record between its header and its
// trailer; 0 for other types, which have the trailer at the end, and for records that are cut off.
// KSYMBOL: u64 addr, u32 len, u16 type, u16 flags, the name with a NUL, padded to 8. BPF_EVENT: u16
// type, u16 flags, u32 id, u8 tag[8].
func OwnFields(kind Type, body []byte) int {
	const fixed, align = 16, 8
	if len(body) < fixed {
		return 0
	}
	switch kind {
	case TypeBPFEvent:
		return fixed
	case TypeKSymbol:
		if n := bytes.IndexByte(body[fixed:], 0); n >= 0 {
			return fixed + (n+align)&^(align-1)
		}
	}
	return 0
}
