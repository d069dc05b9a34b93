package perfdata

import (
	"bytes"

	"symbolize/buildid"
	"symbolize/ingest/decode"
)

// SampleID is the trailer that the kernel puts behind every record but samples, with sample_id_all.
// perf fills it with zeros in the records that it synthesizes: Time 0 is before everything.
type SampleID struct {
	Has      SampleType // fields below that the record has
	PID, TID int32
	Time     uint64 // ns of the recording's clock
	ID       uint64 // of IDENTIFIER, else of ID
	StreamID uint64
	CPU      uint32
}

// SampleID decodes the trailer of a record. Records without one, perf's own types and files without
// sample_id_all, give the zero SampleID. For a SAMPLE record it returns the same fields from the
// sample's start, and does not check the rest of the record.
func (f *File) SampleID(rec *Record) (SampleID, error) {
	if rec.Type == TypeSample {
		return f.sampleHead(rec)
	}
	l, err := f.trailerOf(rec)
	if err != nil {
		return SampleID{}, err
	}
	n := grown(rec, int(l.size))
	if n < int(l.size) {
		return SampleID{}, f.recordError(rec, "shorter than its sample ID")
	}
	id := SampleID{Has: l.has}
	if l.tid != 0 {
		id.PID = int32(u32(rec.Body[n-int(l.tid):], f.BigEndian))
		id.TID = int32(u32(rec.Body[n-int(l.tid)+4:], f.BigEndian))
	}
	if l.time != 0 {
		id.Time = u64(rec.Body[n-int(l.time):], f.BigEndian)
	}
	if p := l.idPos(); p != 0 {
		id.ID = u64(rec.Body[n-int(p):], f.BigEndian)
	}
	if l.streamID != 0 {
		id.StreamID = u64(rec.Body[n-int(l.streamID):], f.BigEndian)
	}
	if l.cpu != 0 {
		id.CPU = u32(rec.Body[n-int(l.cpu):], f.BigEndian)
	}
	return id, nil
}

func (f *File) sampleHead(rec *Record) (SampleID, error) {
	i, ok := f.EventOf(rec)
	if !ok {
		return SampleID{}, ErrUnknownID
	}
	ev := &f.Events[i]
	if len(rec.Body) < int(ev.sample.fixed) {
		return SampleID{}, f.recordError(rec, "shorter than the fields of its event")
	}
	var s Sample
	s.fixed(rec.Body, &ev.sample, f.BigEndian)
	return SampleID{Has: ev.Attr.SampleType & trailerBits, PID: s.PID, TID: s.TID,
		Time: s.Time, ID: s.ID, StreamID: s.StreamID, CPU: s.CPU}, nil
}

// body returns a reader over a record's own fields, its trailer left out.
func (f *File) body(rec *Record) (decode.Reader, error) {
	l, err := f.trailerOf(rec)
	if err != nil {
		return decode.Reader{}, err
	}
	n := grown(rec, int(l.size)) - int(l.size)
	if n < 0 {
		return decode.Reader{}, f.recordError(rec, "shorter than its sample ID")
	}
	name, at := f.placeOf(rec.Offset + headerSize)
	return *decode.New(name, rec.Body[:n], at, f.BigEndian), nil
}

// rest returns the rest up to a NUL: a name at the end of a record's fields, which is padded with
// zeros and in old files with garbage.
func rest(r *decode.Reader) []byte {
	b := r.Bytes(uint64(r.Left()))
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return b
}

// ProtExec is the bit of Mmap.Prot that makes a mapping executable (PROT_EXEC).
const ProtExec = 4

// Mmap is an MMAP or MMAP2 record: Len bytes of Filename from PgOff are mapped at Addr.
type Mmap struct {
	PID, TID         int32 // −1 for the kernel's own
	Addr, Len, PgOff uint64
	Maj, Min         uint32 // device; zero in MMAP and with a BuildID in its place
	Ino, InoGen      uint64
	BuildID          buildid.ID // zero if the record has none
	// Prot and Flags are of mmap(2). In MMAP Prot is ProtExec unless Data, and Flags
	// 0. The MMAP2 records that perf itself writes for the kernel have Prot 0: use
	// Data, not Prot, to decide whether a kernel mapping is code.
	Prot, Flags uint32
	Data        bool   // not executable: only for data addresses
	Filename    []byte // aliases the record
}

// Mmap decodes an MMAP or MMAP2 record.
func (f *File) Mmap(rec *Record, m *Mmap) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*m = Mmap{Data: rec.Misc&MiscMmapData != 0}
	m.PID, m.TID = int32(r.U32()), int32(r.U32())
	m.Addr, m.Len, m.PgOff = r.U64(), r.U64(), r.U64()
	switch {
	case rec.Type == TypeMmap:
		if !m.Data {
			m.Prot = ProtExec
		}
	default:
		if field := r.Bytes(mmapFile); field != nil {
			m.file(f, rec, field)
		}
	}
	if rec.Type == TypeMmap2 {
		m.Prot, m.Flags = r.U32(), r.U32()
	}
	m.Filename = rest(&r)
	return r.Err()
}

// Comm is a COMM record: a thread got a name.
type Comm struct {
	PID, TID int32
	Exec     bool   // by exec: the process's mappings are gone
	Name     []byte // aliases the record
}

// Comm decodes a COMM record.
func (f *File) Comm(rec *Record, c *Comm) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*c = Comm{PID: int32(r.U32()), TID: int32(r.U32()), Exec: rec.Misc&MiscCommExec != 0}
	c.Name = rest(&r)
	return r.Err()
}

// Task is a FORK or EXIT record.
type Task struct {
	PID, PPID int32
	TID, PTID int32
	Time      uint64
	// Synthesized marks a FORK that perf synthesized: MMAP records of the child follow, so nothing
	// is inherited.
	Synthesized bool
}

// Task decodes a FORK or EXIT record.
func (f *File) Task(rec *Record, t *Task) error {
	r, err := f.body(rec)
	if err != nil {
		return err
	}
	*t = Task{PID: int32(r.U32()), PPID: int32(r.U32()), TID: int32(r.U32()),
		PTID: int32(r.U32()), Time: r.U64(),
		Synthesized: rec.Type == TypeFork && rec.Misc&MiscForkExec != 0}
	return r.Err()
}
