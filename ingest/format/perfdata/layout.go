package perfdata

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"symbolize/ingest/decode"
)

// ErrUnknownID is returned for a record with an event ID that no attr has, so that its layout is
// unknown. Callers count and skip such records.
var ErrUnknownID = errors.New("event ID of no attr")

// Event is one perf event of the file: its attr, its name, and the IDs by which records refer to
// it.
type Event struct {
	Attr Attr
	Name string   // from the EVENT_DESC feature, otherwise derived as perf does
	IDs  []uint64 // one per CPU or thread it was opened on; none in some files of one event
	Err  error    // why its samples cannot be decoded; nil if they can

	sample  sampleLayout
	trailer trailerLayout
}

// absent is the offset of a field that a layout does not have.
const absent = -1

// sampleLayout holds the offsets of the fields of an event's samples in the body. All
// fields up to PERIOD have fixed offsets; those of varying size follow them.
type sampleLayout struct {
	identifier, ip, tid, time, addr, id, streamID, cpu, period int32

	fixed     int32  // size of the fixed part
	chainOnly bool   // only a CALLCHAIN follows the fixed part
	variable  bool   // something follows it
	constant  uint64 // the period, if samples have no PERIOD field
	idPos     int32  // of the ID that identifies the event
}

// sampleFixed lists the fields with fixed offsets in the order of a sample (perf_output_sample in
// kernel/events/core.c).
var sampleFixed = []struct {
	bit   SampleType
	place func(*sampleLayout) *int32
}{
	{SampleIdentifier, func(l *sampleLayout) *int32 { return &l.identifier }},
	{SampleIP, func(l *sampleLayout) *int32 { return &l.ip }},
	{SampleTID, func(l *sampleLayout) *int32 { return &l.tid }},
	{SampleTime, func(l *sampleLayout) *int32 { return &l.time }},
	{SampleAddr, func(l *sampleLayout) *int32 { return &l.addr }},
	{SampleIDField, func(l *sampleLayout) *int32 { return &l.id }},
	{SampleStreamID, func(l *sampleLayout) *int32 { return &l.streamID }},
	{SampleCPU, func(l *sampleLayout) *int32 { return &l.cpu }},
	{SamplePeriod, func(l *sampleLayout) *int32 { return &l.period }},
}

func newSampleLayout(a *Attr) sampleLayout {
	var l sampleLayout
	for _, f := range sampleFixed {
		place := f.place(&l)
		*place = absent
		if a.SampleType&f.bit != 0 {
			*place = l.fixed
			l.fixed += 8
		}
	}
	l.idPos = l.identifier
	if l.idPos == absent {
		l.idPos = l.id
	}
	const fixedBits = SampleIdentifier | SampleIP | SampleTID | SampleTime | SampleAddr |
		SampleIDField | SampleStreamID | SampleCPU | SamplePeriod
	rest := a.SampleType &^ fixedBits
	l.variable = rest != 0
	l.chainOnly = rest == SampleCallchain
	// A frequency is not a period: without a PERIOD field such a sample counts 1.
	l.constant = 1
	if !a.Has(FlagFreq) && a.SamplePeriod != 0 {
		l.constant = a.SamplePeriod
	}
	return l
}

// trailerLayout holds the offsets of the fields of the sample_id trailer, counted from the end of
// the record. The zero value is the layout of a record without trailer.
type trailerLayout struct {
	has                               SampleType
	size                              int32
	tid, time, id, streamID, cpu, idf int32 // distances from the end, 0 if absent
}

const trailerBits = SampleTID | SampleTime | SampleIDField | SampleStreamID | SampleCPU |
	SampleIdentifier

func newTrailerLayout(a *Attr) trailerLayout {
	var l trailerLayout
	if !a.Has(FlagSampleIDAll) {
		return l
	}
	l.has = a.SampleType & trailerBits
	place := func(bit SampleType) int32 { // from the last field to the first
		if l.has&bit == 0 {
			return 0
		}
		l.size += 8
		return l.size
	}
	l.idf = place(SampleIdentifier)
	l.cpu = place(SampleCPU)
	l.streamID = place(SampleStreamID)
	l.id = place(SampleIDField)
	l.time = place(SampleTime)
	l.tid = place(SampleTID)
	return l
}

// idPos returns the distance from the end of the ID that identifies the event, 0 if
// there is none.
func (l *trailerLayout) idPos() int32 {
	if l.idf != 0 {
		return l.idf
	}
	return l.id
}

// maxDenseIDs bounds the table that finds an event by its ID without hashing. The kernel numbers
// events consecutively, so that the IDs of a recording are close together.
const maxDenseIDs = 1 << 16

// eventIDs finds the event of a record.
type eventIDs struct {
	first bool             // all records belong to the first event
	base  uint64           // of dense
	dense []uint16         // event index + 1 by ID − base; 0 for none
	byID  map[uint64]int32 // for IDs that are far apart

	samplePos  []int32 // the distinct offsets of the ID in samples, from the start
	trailerPos []int32 // in other records, from the end

	uniform bool // all events have the same trailer
	shared  int  // IDs that more than one event claims
}

// indexIDs prepares the layouts of all events and the index from ID to event.
func (f *File) indexIDs() {
	for i := range f.Events {
		ev := &f.Events[i]
		ev.sample = newSampleLayout(&ev.Attr)
		ev.trailer = newTrailerLayout(&ev.Attr)
		if member, bit := unknownLayout(&ev.Attr); bit >= 0 {
			ev.Err = fmt.Errorf("%s: event %d (%s): %s has the unknown bit %d, "+
				"its samples cannot be decoded", f.Name, i, ev.Name, member, bit)
		}
	}
	f.ids = eventIDs{first: len(f.Events) < 2, uniform: true}
	if len(f.Events) == 0 {
		return
	}
	f.ids.collect(f.Events)
}

// unknownLayout returns the member of an attr, and its lowest unknown bit, that make the layout of
// samples unknown; −1 if none does.
func unknownLayout(a *Attr) (member string, bit int) {
	if high := uint64(a.SampleType &^ knownSampleBits); high != 0 {
		return "sample_type", bits.TrailingZeros64(high)
	}
	if high := uint64(a.ReadFormat &^ knownReadBits); high != 0 && a.SampleType&SampleRead != 0 {
		return "read_format", bits.TrailingZeros64(high)
	}
	return "", -1
}

func (x *eventIDs) collect(events []Event) {
	lowest, highest, n := ^uint64(0), uint64(0), 0
	for i := range events {
		ev := &events[i]
		x.uniform = x.uniform && ev.trailer == events[0].trailer
		if ev.sample.idPos != absent && !slices.Contains(x.samplePos, ev.sample.idPos) {
			x.samplePos = append(x.samplePos, ev.sample.idPos)
		}
		if p := ev.trailer.idPos(); p != 0 && !slices.Contains(x.trailerPos, p) {
			x.trailerPos = append(x.trailerPos, p)
		}
		for _, id := range ev.IDs {
			lowest, highest, n = min(lowest, id), max(highest, id), n+1
		}
	}
	if n == 0 {
		x.first = true // no field distinguishes the events
		return
	}
	if highest-lowest < maxDenseIDs && len(events) < 1<<16-1 {
		x.base = lowest
		x.dense = make([]uint16, highest-lowest+1)
	} else {
		x.byID = make(map[uint64]int32, n)
	}
	for i := range events {
		for _, id := range events[i].IDs {
			x.add(id, i)
		}
	}
}

// add adds an ID; the first event with it keeps it.
func (x *eventIDs) add(id uint64, event int) {
	if old, ok := x.find(id); ok {
		if old != event {
			x.shared++
		}
		return
	}
	if x.dense != nil {
		x.dense[id-x.base] = uint16(event + 1)
		return
	}
	x.byID[id] = int32(event)
}

func (x *eventIDs) find(id uint64) (event int, ok bool) {
	if x.dense != nil {
		if id -= x.base; id < uint64(len(x.dense)) {
			event = int(x.dense[id])
			return event - 1, event != 0
		}
		return 0, false
	}
	i, ok := x.byID[id]
	return int(i), ok
}

// EventOf returns the index in Events of a record's event. It is 0 in a file of one event, and if
// records have no IDs. Records synthesized by perf have ID 0 and belong to the first event. It
// returns false for perf's own record types, which belong to no event, and for unknown IDs.
func (f *File) EventOf(rec *Record) (index int, ok bool) {
	if rec.Type >= firstUserType || len(f.Events) == 0 {
		return 0, false
	}
	if f.ids.first {
		return 0, true
	}
	if rec.Type == TypeSample {
		return f.sampleEvent(rec.Body)
	}
	return f.trailerEvent(rec.Body)
}

func (f *File) sampleEvent(body []byte) (int, bool) {
	if len(f.ids.samplePos) == 0 {
		return 0, true
	}
	synthesized := false
	for _, p := range f.ids.samplePos {
		if len(body) < int(p)+8 {
			continue
		}
		id := decode.U64(body[p:], f.BigEndian)
		if i, ok := f.ids.find(id); ok && f.Events[i].sample.idPos == p {
			return i, true
		}
		synthesized = synthesized || id == 0
	}
	return 0, synthesized
}

func (f *File) trailerEvent(body []byte) (int, bool) {
	if len(f.ids.trailerPos) == 0 {
		return 0, true
	}
	synthesized := false
	for _, p := range f.ids.trailerPos {
		if len(body) < int(p) {
			continue
		}
		id := decode.U64(body[len(body)-int(p):], f.BigEndian)
		if i, ok := f.ids.find(id); ok && f.Events[i].trailer.idPos() == p {
			return i, true
		}
		synthesized = synthesized || id == 0
	}
	return 0, synthesized
}

// trailerOf returns the layout of a record's trailer: the zero layout for types without trailer.
func (f *File) trailerOf(rec *Record) (*trailerLayout, error) {
	if (rec.Type >= firstUserType && rec.Type != TypeBPFMetadata) || len(f.Events) == 0 {
		return &trailerLayout{}, nil
	}
	if f.ids.uniform {
		return &f.Events[0].trailer, nil
	}
	if OwnFields(rec.Type, rec.Body) > 0 {
		for i := range f.Events {
			l := &f.Events[i].trailer
			at, ok := f.trailerEvent(rec.Body[:grown(rec, int(l.size))])
			if ok && at == i {
				return l, nil
			}
		}
	}
	i, ok := f.trailerEvent(rec.Body)
	if !ok {
		return nil, ErrUnknownID
	}
	return &f.Events[i].trailer, nil
}
