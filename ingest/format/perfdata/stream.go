package perfdata

import (
	"io"
	"slices"

	"symbolize/ingest/decode"
)

// eventNameUpdate is the type of an EVENT_UPDATE record that carries an event's name.
const eventNameUpdate = 2

// maxBuildIDs bounds the entries of a stream.
const maxBuildIDs = 1 << 20

// maxEventTypes bounds the section of event types, which have 72 bytes each.
const (
	maxEventTypes = 1 << 22
	eventTypeSize = 8 + 64
)

// readStream fills the tables of a file in pipe mode from the records that replace the
// parts of a header. They can come anywhere: perf inject adds HEADER_BUILD_ID records between
// samples. Damage of the records ends it; whoever reads the records reports that.
func (f *File) readStream() {
	idBytes := int64(0)
	for r := f.AllRecords(); r.Next(); {
		if rec := r.Record(); rec.Type == TypeHeaderAttr {
			f.takeAttr(rec, &idBytes)
		} else {
			f.takeHeader(rec)
		}
	}
	if len(f.Events) == 0 {
		f.warnAt(pipeHeaderSize, "the stream has no events")
	}
}

// takeHeader takes in a record that replaces a part of a header other than an attr; others
// have no effect.
func (f *File) takeHeader(rec *Record) {
	switch rec.Type {
	case TypeHeaderEventType:
		f.eventTypes(rec.Body)
	case TypeHeaderFeature:
		f.takeFeature(rec)
	case TypeHeaderBuildID:
		f.takeBuildID(rec)
	case TypeHeaderTracingData:
		at := rec.Offset + int64(rec.Size)
		// Data that was cut off is reported by whoever reads the records.
		if n, ok := f.payload(rec); ok && n > 0 && n <= uint64(f.Data.End()-at) {
			f.haveFeature(FeatureTracingData, Section{Offset: at, Size: int64(n)})
		}
	case TypeEventUpdate:
		f.takeUpdate(rec)
	}
}

// takeAttr takes in an attr and the IDs behind it. idBytes sums the bytes of IDs.
func (f *File) takeAttr(rec *Record, idBytes *int64) {
	attr, err := parseAttr(f.Name+": HEADER_ATTR record", rec.Body, rec.Offset+headerSize,
		f.BigEndian)
	if err != nil {
		f.warn(err)
		return
	}
	ids := rec.Body[min(int64(attr.Size), int64(len(rec.Body))):]
	if *idBytes += int64(len(ids)); *idBytes > maxIDBytes || len(f.Events) >= maxEvents {
		f.warn(f.recordError(rec, "more events or IDs than are read"))
		return
	}
	ev := Event{Attr: attr, IDs: make([]uint64, len(ids)/8)}
	for i := range ev.IDs {
		ev.IDs[i] = u64(ids[8*i:], f.BigEndian)
	}
	f.Events = append(f.Events, ev)
}

// takeFeature takes in the section of a feature. The last record of this type marks the end:
// it has no bytes, and the first number that its writer does not know as a feature.
func (f *File) takeFeature(rec *Record) {
	if len(rec.Body) <= 8 {
		return
	}
	n := u64(rec.Body, f.BigEndian)
	if n >= numFeatures {
		f.warn(f.recordError(rec, "feature number out of range"))
		return
	}
	x, at := Feature(n), rec.Offset+headerSize+8
	if f.Features.Has(x) && x != FeatureBuildID {
		return // the first has been taken in
	}
	f.noteUnknown(x)
	f.haveFeature(x, Section{Offset: at, Size: int64(len(rec.Body)) - 8})
	f.decodeFeature(x, rec.Body[8:], at)
}

func (f *File) haveFeature(x Feature, sec Section) {
	f.Features.Present[x/64] |= 1 << (x % 64)
	f.Features.Sections[x] = sec
}

// takeBuildID takes in an entry as the BUILD_ID feature has them: the record itself is one.
func (f *File) takeBuildID(rec *Record) {
	if rec.Size < buildIDNameAt || len(f.Features.BuildIDs) >= maxBuildIDs {
		f.warn(f.recordError(rec, "shorter than an entry, or more entries than are read"))
		return
	}
	f.Features.Present[0] |= 1 << FeatureBuildID
	f.Features.BuildIDs = append(f.Features.BuildIDs,
		buildIDEntry(rec.Body, rec.Misc, false, f.BigEndian))
}

// takeUpdate takes in the name of an event: u64 type, u64 ID, the name.
func (f *File) takeUpdate(rec *Record) {
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

// readEventTypes reads the section of event types, the names of tracepoints, which perf
// wrote until Linux 3.11. Newer files have an empty one.
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

// eventTypes takes in {u64 config, char name[64]}, any number of them.
func (f *File) eventTypes(b []byte) {
	d := decode.New(f.Name, b, 0, f.BigEndian)
	for d.Left() >= eventTypeSize && len(f.types) < maxEventTypes/eventTypeSize {
		config := d.U64()
		f.types[config] = d.FixedString(eventTypeSize - 8)
	}
}

// WithRecords returns a File with the tables of f and other records: those in the range data of r,
// which are in the byte order of f. The place of a record in messages is the result of place for
// its offset in r, a name and an offset. f is unchanged.
func (f *File) WithRecords(r io.ReaderAt, data Section,
	place func(offset int64) (name string, at int64)) *File {
	x := *f
	x.records, x.Data, x.place = r, data, place
	x.Warnings = slices.Clip(f.Warnings)
	return &x
}

// Warn adds warnings to a File that nobody else has yet.
func (f *File) Warn(warnings ...error) {
	for _, w := range warnings {
		f.warn(w)
	}
}

// placeOf returns the name and offset by which a message refers to an offset of the records.
func (f *File) placeOf(offset int64) (name string, at int64) {
	if f.place == nil {
		return f.Name, offset
	}
	return f.place(offset)
}

// AppendHeader appends the header of a record with this size, as the file has it.
func (rec *Record) AppendHeader(b []byte, bigEndian bool) []byte {
	o := orderOf(bigEndian)
	b = o.AppendUint32(b, uint32(rec.Type))
	return o.AppendUint16(o.AppendUint16(b, rec.Misc), uint16(rec.Size))
}
