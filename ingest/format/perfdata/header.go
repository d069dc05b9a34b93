// Package perfdata decodes the perf.data format, files and streams: header, attrs, records and
// feature sections, in both byte orders. It holds no policy and does not depend on profiles: the
// packages that import it interpret mappings and samples.
//
// The format is the one of Linux's tools/perf/util/header.h, session.c and
// include/uapi/linux/perf_event.h, up to Linux 6.18. Additions of newer writers are
// skipped by their recorded size and counted, never fatal.
//
// Open reads the small parts (header, attrs, features) and keeps them; records are read in blocks
// by a RecordReader, any number of times, by several goroutines. A File is immutable after Open,
// and safe for concurrent use. Reading and decoding records and samples does not allocate.
//
// Data before damage is never lost: Open fails only if no record can be read at all, and reports
// everything else in File.Warnings; a RecordReader returns each record before a damaged one, and
// then the position and reason in Err.
package perfdata

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"symbolize/ingest/decode"
)

// Errors of Open.
var (
	ErrNotPerfData = errors.New("not a perf.data file")
	// ErrCutHeader is the error of a file that ends before the position of the records.
	ErrCutHeader = errors.New("a recording cut off at its header")
)

// ErrUnfinished is wrapped by a warning if the recorder was killed before it wrote the size of the
// data: records are read to the end of the file, and there are no features.
var ErrUnfinished = errors.New("the recorder was killed before it finished the file")

// Section is a range of the file, in bytes.
type Section struct{ Offset, Size int64 }

// End returns the offset after the section.
func (s Section) End() int64 { return s.Offset + s.Size }

// Header is struct perf_file_header as recorded. In pipe mode only Size is set.
type Header struct {
	Size     uint64 // 104; 72 in old files without features; 16 in pipe mode
	AttrSize uint64 // stride of the attrs section
	Attrs    Section
	Data     Section
	Features [4]uint64 // bitmap of the features that follow the data
}

// File is an opened perf.data file. Its fields must not be changed.
type File struct {
	Name      string // as passed to Open, for messages
	Size      int64
	BigEndian bool // the recorder's byte order
	Header    Header
	Events    []Event
	Features  Features
	// Data is the range of the records, clipped to the file's size.
	Data Section
	// Parts are the ranges of Data that are files of a directory, if there are several.
	Parts []Section
	// Warnings report damage that did not prevent reading the rest, in the order of detection: each
	// is a *decode.Error, an error that wraps ErrUnfinished, or an I/O error. There are at most
	// 100.
	Warnings []error

	r       io.ReaderAt
	records io.ReaderAt // of the range Data; differs from r only after WithRecords
	place   func(offset int64) (name string, at int64)
	types   map[uint64]string // names of tracepoints, by attr.config
	ids     eventIDs
}

// Sizes of the file header: struct perf_file_header, the one without features, and struct
// perf_pipe_file_header.
const (
	fileHeaderSize    = 104
	oldFileHeaderSize = 72
	pipeHeaderSize    = 16
	attrSizeOffset    = 16
	typesOffset       = 56
	bitmapOffset      = 72
)

// The magic as the bytes of a file.
const (
	magicLittle = "PERFILE2"
	magicBig    = "2ELIFREP"
	magicV1     = "PERFFILE"
	magicLen    = 8
)

// IsPerfData reports whether a file with these first bytes (8 are enough) is a perf.data of any
// version, byte order and mode.
func IsPerfData(head []byte) bool {
	if len(head) < magicLen {
		return false
	}
	switch string(head[:magicLen]) {
	case magicLittle, magicBig, magicV1:
		return true
	}
	return false
}

// Open reads header, attrs and features of a perf.data file. In pipe mode these are records, and
// Open reads the headers of all records to find them. r must be safe for concurrent ReadAt, as
// files are, and stay open as long as the File is used. Damage after the header becomes a warning;
// an error means that nothing of the file can be read. name is used in messages only.
func Open(name string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{Name: name, Size: size, r: r, records: r, types: make(map[uint64]string)}
	f.Features.Sections = make(map[Feature]Section)
	head := make([]byte, min(max(size, 0), fileHeaderSize))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: header: %w", name, err)
	}
	if err := f.parseHeader(head); err != nil {
		return nil, err
	}
	if f.Pipe() {
		f.readStream()
	} else {
		if err := f.readAttrs(); err != nil {
			return nil, err
		}
		f.readEventTypes(head)
		f.readFeatures(head)
	}
	f.applyFeatures()
	f.indexIDs()
	return f, nil
}

// Pipe reports whether the file is in pipe mode: written by perf record -o -, a stream that
// carries attrs and features as records.
func (f *File) Pipe() bool { return f.Header.Size == pipeHeaderSize }

func (f *File) parseHeader(head []byte) error {
	if !IsPerfData(head) {
		return fmt.Errorf("%s: %w", f.Name, ErrNotPerfData)
	}
	f.BigEndian = bigEndian(head)
	d := decode.New(f.Name, head, 0, f.BigEndian)
	d.Skip(magicLen)
	h := &f.Header
	h.Size = d.U64()
	if d.Err() == nil && f.Pipe() {
		f.Data = Section{Offset: pipeHeaderSize, Size: f.Size - pipeHeaderSize}
		return nil
	}
	if d.Err() == nil && h.Size != oldFileHeaderSize && h.Size < fileHeaderSize {
		return &decode.Error{Name: f.Name, Offset: magicLen,
			Reason: fmt.Sprintf("header has size %d", h.Size)}
	}
	h.AttrSize = d.U64()
	h.Attrs = f.section(d, "attrs section")
	h.Data = f.section(d, "data section")
	if err := d.Err(); err != nil {
		if len(head) < oldFileHeaderSize {
			return fmt.Errorf("%w: %w", err, ErrCutHeader)
		}
		return err
	}
	return f.placeData()
}

// bigEndian returns the byte order of a header. The magic of version 1, used until perf of Linux
// 3.5, has no byte order: there the size of the attrs decides, or in pipe mode the size of the
// header (try_all_file_abis and try_all_pipe_abis in tools/perf/util/header.c).
func bigEndian(head []byte) bool {
	if string(head[:magicLen]) != magicV1 {
		return string(head[:magicLen]) == magicBig
	}
	if len(head) >= pipeHeaderSize && decode.U64(head[magicLen:], true) == pipeHeaderSize {
		return true
	}
	return len(head) >= attrSizeOffset+8 && plausibleAttrSize(decode.U64(head[attrSizeOffset:], true))
}

// plausibleAttrSize reports whether an entry of the attrs section can have this size.
func plausibleAttrSize(n uint64) bool {
	return n >= attrSizeVer0+sectionRefSize && n <= maxAttrSize+sectionRefSize
}

// section reads {offset, size}, which must not overflow a file offset.
func (f *File) section(d *decode.Reader, what string) Section {
	off, size := d.U64(), d.U64()
	if d.Err() == nil && (off > math.MaxInt64 || size > math.MaxInt64-off) {
		d.Fail("%s at %#x of %#x bytes is beyond the largest file offset", what, off, size)
	}
	return Section{Offset: int64(off), Size: int64(size)}
}

// placeData checks the header's data section against the size of the file.
func (f *File) placeData() error {
	h := &f.Header
	bad := func(format string, args ...any) error {
		return &decode.Error{Name: f.Name, Offset: 24, Reason: fmt.Sprintf(format, args...)}
	}
	if h.Data.Offset < int64(min(h.Size, math.MaxInt64)) {
		return bad("the data at %#x begin inside the header", h.Data.Offset)
	}
	if h.Attrs.Size > 0 && h.Attrs.Offset < int64(min(h.Size, math.MaxInt64)) {
		return bad("the attrs at %#x begin inside the header", h.Attrs.Offset)
	}
	if h.Data.Size > 0 && h.Attrs.Offset < h.Data.End() && h.Data.Offset < h.Attrs.End() {
		return bad("the attrs at %#x and the data at %#x overlap", h.Attrs.Offset, h.Data.Offset)
	}
	f.Data = h.Data
	switch {
	case h.Data.Size == 0 && h.Data.Offset <= f.Size:
		f.Data.Size = f.Size - h.Data.Offset
		f.warn(fmt.Errorf("%s: %w", f.Name, ErrUnfinished))
	case h.Data.Offset > f.Size:
		f.Data = Section{Offset: f.Size}
		f.warnAt(f.Size, "the file is cut off before its data at %#x", h.Data.Offset)
	case h.Data.End() > f.Size:
		f.Data.Size = f.Size - h.Data.Offset
		f.warnAt(f.Size, "the file is cut off, its data should reach to %#x", h.Data.End())
	}
	return nil
}

// maxWarnings bounds the warnings about one file.
const maxWarnings = 100

func (f *File) warn(err error) {
	if len(f.Warnings) < maxWarnings {
		f.Warnings = append(f.Warnings, err)
	}
}

func (f *File) warnAt(offset int64, format string, args ...any) {
	f.warn(&decode.Error{Name: f.Name, Offset: offset, Reason: fmt.Sprintf(format, args...)})
}

const (
	sectionRefSize = 16       // {u64 offset, u64 size}
	maxEvents      = 1 << 14  // perf stat on a large machine opens hundreds
	maxAttrBytes   = 16 << 20 // of the attrs section
	maxIDBytes     = 64 << 20 // of all IDs: 8 per event and CPU
)

// readAttrs reads the attrs section and each event's IDs.
func (f *File) readAttrs() error {
	h := &f.Header
	if !plausibleAttrSize(h.AttrSize) {
		return &decode.Error{Name: f.Name, Offset: attrSizeOffset,
			Reason: fmt.Sprintf("attr size %d is not in %d..%d", h.AttrSize,
				attrSizeVer0+sectionRefSize, maxAttrSize+sectionRefSize)}
	}
	n := h.Attrs.Size / int64(h.AttrSize)
	if n == 0 {
		f.warnAt(h.Attrs.Offset, "the file has no events")
	}
	if n > maxEvents || h.Attrs.Size > maxAttrBytes {
		f.warnAt(h.Attrs.Offset, "%d events are over the limit of %d", n, maxEvents)
		n = min(maxEvents, maxAttrBytes/int64(h.AttrSize))
	}
	b, err := f.read(Section{Offset: h.Attrs.Offset, Size: n * int64(h.AttrSize)}, maxAttrBytes)
	if err != nil {
		return err // without attrs no record can be decoded
	}
	idBytes := int64(0)
	for i := range n {
		at := i * int64(h.AttrSize)
		ev, err := f.readEvent(b[at:at+int64(h.AttrSize)], h.Attrs.Offset+at, &idBytes)
		if err != nil {
			return err
		}
		f.Events = append(f.Events, ev)
	}
	return nil
}

// readEvent decodes an entry of the attrs section at offset base. The entry ends with the position
// of its IDs, also if its attr declares a smaller size, as in files of old perf inject. idBytes
// sums the bytes of IDs.
func (f *File) readEvent(entry []byte, base int64, idBytes *int64) (Event, error) {
	attr, err := parseAttr(f.Name, entry[:len(entry)-sectionRefSize], base, f.BigEndian)
	if err != nil {
		return Event{}, err
	}
	d := decode.New(f.Name, entry, base, f.BigEndian)
	d.Seek(uint64(len(entry) - sectionRefSize))
	ids := f.section(d, "IDs")
	if d.Err() == nil && ids.Size > maxIDBytes-*idBytes {
		d.Fail("the IDs of all events are more than %d bytes", maxIDBytes)
	}
	ev := Event{Attr: attr}
	if err := d.Err(); err != nil {
		f.warn(err)
		return ev, nil
	}
	*idBytes += ids.Size
	ev.IDs = f.readIDs(ids)
	return ev, nil
}

// readIDs reads an array of IDs; damage is a warning, as the event may be the only one.
func (f *File) readIDs(sec Section) []uint64 {
	if sec.Size < 8 {
		return nil
	}
	b, err := f.read(sec, maxIDBytes)
	if err != nil {
		f.warn(err)
		return nil
	}
	ids := make([]uint64, len(b)/8)
	for i := range ids {
		ids[i] = decode.U64(b[i*8:], f.BigEndian)
	}
	return ids
}

// read returns the bytes of a section that must be within the file and at most limit bytes.
func (f *File) read(sec Section, limit int64) ([]byte, error) {
	if sec.Offset < 0 || sec.Size < 0 || sec.Offset > f.Size || sec.Size > f.Size-sec.Offset {
		return nil, &decode.Error{Name: f.Name, Offset: sec.Offset,
			Reason: fmt.Sprintf("%d bytes wanted, the file ends at %#x", sec.Size, f.Size)}
	}
	if sec.Size > limit {
		return nil, &decode.Error{Name: f.Name, Offset: sec.Offset,
			Reason: fmt.Sprintf("%d bytes are over the limit of %d", sec.Size, limit)}
	}
	b := make([]byte, sec.Size)
	if n, err := f.r.ReadAt(b, sec.Offset); n < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			return nil, &decode.Error{Name: f.Name, Offset: sec.Offset + int64(n),
				Reason: fmt.Sprintf("%d bytes wanted, %d left", len(b), n)}
		}
		return nil, fmt.Errorf("%s: offset %#x: %w", f.Name, sec.Offset, err)
	}
	return b, nil
}

// featureBitmap decodes the bitmap of a header. It is an array of unsigned long, so that a
// big-endian recorder of 32 bits has the halves of each word swapped. HOSTNAME, which every perf
// writes, distinguishes the two (perf_file_header__read in tools/perf/util/header.c).
func featureBitmap(b []byte, big bool) [4]uint64 {
	var m [4]uint64
	for i := range m {
		m[i] = decode.U64(b[i*8:], big)
	}
	if !big || m[0]&(1<<FeatureHostname) != 0 {
		return m
	}
	var half [4]uint64
	for i := range half {
		half[i] = bits.RotateLeft64(m[i], 32)
	}
	if half[0]&(1<<FeatureHostname) != 0 {
		return half
	}
	return m
}
