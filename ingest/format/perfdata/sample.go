package perfdata

import (
	"encoding/binary"
	"math/bits"
	"slices"

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
	ID       uint64 // of IDENTIFIER, otherwise of ID
	StreamID uint64
	Period   uint64 // of PERIOD, otherwise the attr's fixed period, otherwise 1
	CPU      uint32
	// Chain is the call chain as recorded, leaf first, in words of 8 bytes, with context markers
	// (words from −4095 up).
	Chain []byte
	// HasUserStack is set if user registers and a copy of the user stack were recorded instead of a
	// user chain (--call-graph dwarf).
	HasUserStack bool
	SampleExtra

	dirty   bool   // SampleExtra is not zero
	scratch []byte // words that had to be swapped
}

// SampleExtra holds the fields of a sample that are not fixed, except its call chain.
type SampleExtra struct {
	Read         []byte // the read_format block, words
	Raw          []byte // RAW as recorded: a tracepoint's fields, the bytes of a bpf-output event
	BranchHWIdx  uint64 // of BRANCH_STACK with PERF_SAMPLE_BRANCH_HW_INDEX
	Branches     []byte // BRANCH_STACK: from, to and flags of each entry, three words
	BranchCounts []byte // a word per branch, with PERF_SAMPLE_BRANCH_COUNTERS
	UserRegsABI  uint64 // 0 none, 1 32-bit, 2 64-bit
	UserRegs     []byte // a word for each bit of Attr.SampleRegsUser, lowest first
	UserStack    []byte // the valid part of the copied memory, from the user's stack pointer up
	UserAsked    int    // requested bytes of it
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

// DecodeSample decodes a SAMPLE record into s. Its error is ErrUnknownID, the Err of the sample's
// event, or a *decode.Error for an inconsistent record; s is then invalid. It allocates only to
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
	reason, offCPU := "", ev.isOffCPU()
	if l.chainOnly && !f.BigEndian {
		reason = s.chain(body[l.fixed:])
	} else {
		s.dirty = !l.chainOnly
		s.scratch = s.scratch[:0]
		d := sampleDecoder{s: s, a: &ev.Attr, left: body[l.fixed:], size: rec.Size, big: f.BigEndian}
		if d.decode(); offCPU && ev.Attr.SampleType&SampleRaw != 0 {
			d.offCPU()
		}
		reason = d.reason
	}
	if offCPU && s.Time >= offCPUSums {
		s.Time = NoTime
	}
	if reason != "" {
		return f.recordError(rec, reason)
	}
	return nil
}

// chain decodes a little-endian rest that has only a call chain, the usual case. It returns the
// reason of damage, or "".
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
		s.IP = decode.U64(body[l.ip:], big)
	}
	if l.tid >= 0 {
		s.PID = int32(decode.U32(body[l.tid:], big))
		s.TID = int32(decode.U32(body[l.tid+4:], big))
	}
	if l.time >= 0 {
		s.Time = decode.U64(body[l.time:], big)
	}
	if l.addr >= 0 {
		s.Addr = decode.U64(body[l.addr:], big)
	}
	if l.idPos >= 0 {
		s.ID = decode.U64(body[l.idPos:], big)
	}
	if l.streamID >= 0 {
		s.StreamID = decode.U64(body[l.streamID:], big)
	}
	if l.cpu >= 0 {
		s.CPU = decode.U32(body[l.cpu:], big)
	}
	if l.period >= 0 {
		s.Period = decode.U64(body[l.period:], big)
	}
}

// recordError returns an error about a record.
func (f *File) recordError(rec *Record, reason string) error {
	name, at := f.placeOf(rec.Offset)
	return &decode.Error{Name: name + ": " + rec.Type.String() + " record",
		Offset: at, Reason: reason}
}

// sampleDecoder walks the fields of varying size. It stops at the first reason.
type sampleDecoder struct {
	s      *Sample
	a      *Attr
	left   []byte
	size   int // of the record
	big    bool
	reason string
}

// decode reads the fields after the fixed ones, in the order of perf_output_sample
// (kernel/events/core.c).
func (d *sampleDecoder) decode() {
	s, has := d.s, d.a.SampleType
	if has&SampleRead != 0 {
		s.Read = d.words(d.readWords(), "READ values")
	}
	if has&SampleCallchain != 0 {
		s.Chain = d.words(d.word(), "call chain")
	}
	if has&SampleRaw != 0 {
		d.raw()
	}
	if has&SampleBranchStack != 0 {
		d.branches()
	}
	if has&SampleRegsUser != 0 {
		s.UserRegsABI, s.UserRegs = d.regs(d.a.SampleRegsUser)
	}
	if has&SampleStackUser != 0 {
		d.stack()
	}
	s.HasUserStack = len(s.UserRegs) > 0 && has&SampleStackUser != 0
	d.decodeLast()
}

// decodeLast reads the fields after the user stack.
func (d *sampleDecoder) decodeLast() {
	s, has := d.s, d.a.SampleType
	if has&(SampleWeight|SampleWeightStruct) != 0 {
		s.Weight = d.word()
	}
	if has&SampleDataSrc != 0 {
		s.DataSrc = d.word()
	}
	if has&SampleTransaction != 0 {
		s.Transaction = d.word()
	}
	if has&SampleRegsIntr != 0 {
		s.IntrRegsABI, s.IntrRegs = d.regs(d.a.SampleRegsIntr)
	}
	if has&SamplePhysAddr != 0 {
		s.PhysAddr = d.word()
	}
	if has&SampleCgroup != 0 {
		s.Cgroup = d.word()
	}
	if has&SampleDataPageSize != 0 {
		s.DataPageSize = d.word()
	}
	if has&SampleCodePageSize != 0 {
		s.CodePageSize = d.word()
	}
	if has&SampleAux != 0 {
		s.Aux = d.bytes(d.word(), "AUX data")
	}
}

func (d *sampleDecoder) fail(reason string) {
	if d.reason == "" {
		d.reason = reason
	}
	d.left = nil
}

func (d *sampleDecoder) word() uint64 {
	if len(d.left) < 8 {
		d.fail("ends before its last field")
		return 0
	}
	v := decode.U64(d.left, d.big)
	d.left = d.left[8:]
	return v
}

func (d *sampleDecoder) bytes(n uint64, what string) []byte {
	if n > uint64(len(d.left)) {
		d.fail(what + " overruns the record")
		return nil
	}
	b := d.left[:n:n]
	d.left = d.left[n:]
	return b
}

// words returns the next n words as little-endian bytes.
func (d *sampleDecoder) words(n uint64, what string) []byte {
	if n > uint64(len(d.left))/8 {
		d.fail(what + " overruns the record")
		return nil
	}
	b := d.bytes(n*8, what)
	if !d.big {
		return b
	}
	// An earlier slice keeps the old array if the buffer moves here.
	start := len(d.s.scratch)
	d.s.scratch = slices.Grow(d.s.scratch, len(b))[:start+len(b)]
	out := d.s.scratch[start : start+len(b) : start+len(b)]
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(out[i:], binary.BigEndian.Uint64(b[i:]))
	}
	return out
}

// readWords returns the number of words of the READ field.
func (d *sampleDecoder) readWords() uint64 {
	rf := d.a.ReadFormat
	times, each := uint64(rf.times()), uint64(rf.each())
	if rf&ReadGroup == 0 {
		return times + each
	}
	if len(d.left) < 8 {
		d.fail("ends before its READ values")
		return 0
	}
	nr := decode.U64(d.left, d.big)
	if nr > uint64(len(d.left))/8 {
		d.fail("READ values overrun the record")
		return 0
	}
	return 1 + times + nr*each
}

// times is the number of words for times, which occur once in a READ field.
func (rf ReadFormat) times() int {
	return bits.OnesCount64(uint64(rf & (ReadTimeEnabled | ReadTimeRunning)))
}

// each is the number of words of a counter: its value, its ID, and its number of lost samples.
func (rf ReadFormat) each() int { return 1 + bits.OnesCount64(uint64(rf&(ReadID|ReadLost))) }

// raw reads RAW: a 32-bit size and the bytes; the size includes the padding.
func (d *sampleDecoder) raw() {
	if len(d.left) < 4 {
		d.fail("ends before its RAW data")
		return
	}
	n := decode.U32(d.left, d.big)
	d.left = d.left[4:]
	d.s.Raw = d.bytes(uint64(n), "RAW data")
}

// BranchCallStack is the bit of Attr.BranchSampleType for branch stacks with the calls that have
// not returned, innermost first (perf record --call-graph lbr).
const BranchCallStack = 1 << 11

// Bits of perf_event_attr.branch_sample_type that change the layout of BRANCH_STACK.
const (
	branchHWIndex  = 1 << 17
	branchCounters = 1 << 19
)

// BranchSize is the size of an entry of Sample.Branches in bytes: from, to and flags.
const BranchSize = 24

func (d *sampleDecoder) branches() {
	nr := d.word()
	if d.a.BranchSampleType&branchHWIndex != 0 {
		d.s.BranchHWIdx = d.word()
	}
	if nr > uint64(len(d.left))/BranchSize {
		d.fail("branch stack overruns the record")
		return
	}
	d.s.Branches = d.words(nr*3, "branch stack")
	if d.big {
		for i := 16; i < len(d.s.Branches); i += BranchSize {
			word := d.s.Branches[i : i+8]
			v := binary.LittleEndian.Uint64(word)
			binary.LittleEndian.PutUint64(word, branchFlags(v))
		}
	}
	if d.a.BranchSampleType&branchCounters != 0 {
		d.s.BranchCounts = d.words(nr, "branch counters")
	}
}

// branchFlagWidths are the bit fields of struct perf_branch_entry's flag word: mispred, predicted,
// in_tx, abort, cycles, type, spec, new_type, priv.
var branchFlagWidths = [...]uint{1, 1, 1, 1, 16, 4, 2, 4, 3}

// branchFlags converts the flag word of a big-endian recorder, which has the first bit field in the
// most significant bits, to the little-endian one.
func branchFlags(v uint64) uint64 {
	var out uint64
	at := uint(0)
	for _, w := range branchFlagWidths {
		out |= v >> (64 - at - w) & (1<<w - 1) << at
		at += w
	}
	return out
}

func (d *sampleDecoder) regs(mask uint64) (abi uint64, regs []byte) {
	abi = d.word()
	if abi == 0 {
		return 0, nil
	}
	return abi, d.words(uint64(bits.OnesCount64(mask)), "registers")
}

// fullRecord is the minimum size of a record in which the kernel has copied less of a stack than
// requested, because the size has only 16 bits (perf_sample_ustack_size).
const fullRecord = 1<<16 - 16

// stack reads STACK_USER, with dyn_size valid bytes. If a recorder stores only the valid bytes, as
// simpleperf does, the attr has the requested size.
func (d *sampleDecoder) stack() {
	n := d.word()
	if n == 0 {
		return
	}
	b := d.bytes(n, "user stack")
	d.s.UserAsked = len(b)
	if d.size < fullRecord {
		d.s.UserAsked = max(len(b), int(d.a.SampleStackUser))
	}
	d.s.UserStack = b[:min(d.word(), uint64(len(b)))]
}

// Reading is the value of a counter in the READ field of a sample: the events counted since it was
// opened.
type Reading struct {
	ID    uint64 // of the counter
	Value uint64
}

// Readings appends the counters of a sample's READ field to list, in the order of the record: the
// counters of all members of the sample's group, or the sample's own. A reading without an ID has
// the ID of the sample; nothing is appended if the sample has none.
func (f *File) Readings(s *Sample, list []Reading) []Reading {
	if len(s.Read) == 0 || s.Event >= len(f.Events) {
		return list
	}
	format := f.Events[s.Event].Attr.ReadFormat
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(s.Read[8*at:]) }
	if format&ReadGroup == 0 {
		r := Reading{ID: s.ID, Value: word(0)}
		if format&ReadID != 0 {
			r.ID = word(1 + format.times())
		}
		if r.ID == 0 {
			return list
		}
		return append(list, r)
	}
	if format&ReadID == 0 {
		return list // the values cannot be assigned to counters
	}
	for at := 1 + format.times(); at+format.each() <= len(s.Read)/8; at += format.each() {
		list = append(list, Reading{Value: word(at), ID: word(at + 1)})
	}
	return list
}

// EventOfID returns the index in Events of the event of a counter.
func (f *File) EventOfID(id uint64) (index int, ok bool) {
	if f.ids.first {
		return 0, len(f.Events) > 0
	}
	return f.ids.find(id)
}
