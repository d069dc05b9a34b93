package perfdata

import (
	"encoding/binary"

	"symbolize/ingest/decode"
)

// Sample is a decoded SAMPLE record. Its slices alias the record's body or a buffer of the Sample
// itself, and are valid until the next DecodeSample into it or the next Next of the reader. Words
// are little-endian in all of them, in both byte orders of the file. Reuse one Sample for many
// records.
type Sample struct {
	Event    int        // index in File.Events
	Fields   SampleType // the fields that the record has; all others are zero
	IP       uint64
	PID, TID int32 // −1: no process; 0: the idle task
	Time     uint64
	Addr     uint64
	ID       uint64 // of IDENTIFIER, else of ID
	StreamID uint64
	Period   uint64 // of PERIOD, else the attr's fixed period, else 1
	CPU      uint32
	// Chain is the call chain as recorded, leaf first, 8 bytes a word, with its context markers
	// (words from −4095 up).
	Chain []byte
	// HasUserStack is set if user registers and a copy of the user stack were recorded instead of a
	// user chain (--call-graph dwarf).
	HasUserStack bool
	SampleExtra

	dirty   bool   // SampleExtra is not zero
	scratch []byte // words that had to be swapped
}

// SampleExtra holds the fields of a sample behind its call chain.
type SampleExtra struct {
	Read         []byte // the read_format block, words
	Raw          []byte // RAW as recorded: a tracepoint's fields, the bytes of a bpf-output event
	BranchHWIdx  uint64 // of BRANCH_STACK with PERF_SAMPLE_BRANCH_HW_INDEX
	Branches     []byte // BRANCH_STACK: from, to and flags of each entry, three words
	BranchCounts []byte // a word per branch, with PERF_SAMPLE_BRANCH_COUNTERS
	UserRegsABI  uint64 // 0 none, 1 32-bit, 2 64-bit
	UserRegs     []byte // a word for each bit of Attr.SampleRegsUser, lowest first
	UserStack    []byte // memory as recorded from the user's stack pointer up, its valid part
	UserAsked    int    // bytes of it that were asked for
	Weight       uint64 // WEIGHT, or WEIGHT_STRUCT: u32, u16, u16 from the low end
	DataSrc      uint64
	Transaction  uint64
	IntrRegsABI  uint64
	IntrRegs     []byte // a word for each bit of Attr.SampleRegsIntr
	PhysAddr     uint64
	Cgroup       uint64
	DataPageSize uint64
	CodePageSize uint64
	Aux          []byte
}

// DecodeSample decodes a SAMPLE record into s. Its errors are ErrUnknownID, the Err of the sample's
// event, or a *decode.Error for an inconsistent record; s is invalid then. It allocates only to
// report damage and to grow the buffer of s.
func (f *File) DecodeSample(rec *Record, s *Sample) error {
	event, body := 0, rec.Body
	if !f.ids.first {
		var ok bool
		if event, ok = f.sampleEvent(body); !ok {
			return ErrUnknownID
		}
	}
	if event >= len(f.Events) {
		return ErrUnknownID
	}
	ev := &f.Events[event]
	if ev.Err != nil {
		return ev.Err
	}
	l := &ev.sample
	if len(body) < int(l.fixed) {
		return f.recordError(rec, "shorter than the fields of its event")
	}
	s.Event = event
	s.Fields = ev.Attr.SampleType
	s.fixed(body, l, f.BigEndian)
	s.Chain = nil
	s.HasUserStack = false
	if s.dirty {
		s.SampleExtra = SampleExtra{}
		s.dirty = false
	}
	if !l.variable {
		return nil
	}
	reason := ""
	if l.chainOnly && !f.BigEndian {
		reason = s.chain(body[l.fixed:])
	} else {
		s.dirty = !l.chainOnly
		s.scratch = s.scratch[:0]
		d := sampleDecoder{s: s, a: &ev.Attr, left: body[l.fixed:], size: rec.Size, big: f.BigEndian}
		d.decode()
		reason = d.reason
	}
	if reason != "" {
		return f.recordError(rec, reason)
	}
	return nil
}

// chain decodes the rest after the fixed fields if it is only a call chain, the usual case, in the
// usual byte order. It returns the reason of damage, or "".
func (s *Sample) chain(b []byte) (reason string) {
	if len(b) < 8 {
		return "ends before its call chain"
	}
	nr := binary.LittleEndian.Uint64(b)
	if nr > uint64(len(b)-8)/8 {
		return "call chain overruns the record"
	}
	s.Chain = b[8 : 8+nr*8 : 8+nr*8]
	return ""
}

// fixed decodes the fields with fixed offsets; body is long enough.
func (s *Sample) fixed(body []byte, l *sampleLayout, big bool) {
	s.IP, s.Time, s.Addr, s.ID, s.StreamID, s.CPU = 0, 0, 0, 0, 0, 0
	s.PID, s.TID = 0, 0
	s.Period = l.constant
	if l.ip >= 0 {
		s.IP = u64(body[l.ip:], big)
	}
	if l.tid >= 0 {
		s.PID = int32(u32(body[l.tid:], big))
		s.TID = int32(u32(body[l.tid+4:], big))
	}
	if l.time >= 0 {
		s.Time = u64(body[l.time:], big)
	}
	if l.addr >= 0 {
		s.Addr = u64(body[l.addr:], big)
	}
	if l.idPos >= 0 {
		s.ID = u64(body[l.idPos:], big)
	}
	if l.streamID >= 0 {
		s.StreamID = u64(body[l.streamID:], big)
	}
	if l.cpu >= 0 {
		s.CPU = u32(body[l.cpu:], big)
	}
	if l.period >= 0 {
		s.Period = u64(body[l.period:], big)
	}
}

// recordError returns an error about a record.
func (f *File) recordError(rec *Record, reason string) error {
	name, at := f.placeOf(rec.Offset)
	return &decode.Error{Name: name + ": " + rec.Type.String() + " record",
		Offset: at, Reason: reason}
}
