package perfdata

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// sampleDecoder walks the fields of varying size. It stops at the first reason.
type sampleDecoder struct {
	s      *Sample
	a      *Attr
	left   []byte
	size   int // of the record
	big    bool
	reason string
}

// decode reads all fields behind the fixed ones, in the order of perf_output_sample
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

// decodeLast reads the fields behind the user stack.
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
	v := u64(d.left, d.big)
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

// readWords returns the number of words of the READ field. perf always sets ID in
// samples, but this code does not rely on it.
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
	nr := u64(d.left, d.big)
	if nr > uint64(len(d.left))/8 {
		d.fail("READ values overrun the record")
		return 0
	}
	return 1 + times + nr*each
}

// times is the number of words for times, which stand once in a READ field.
func (rf ReadFormat) times() int {
	return bits.OnesCount64(uint64(rf & (ReadTimeEnabled | ReadTimeRunning)))
}

// each is the number of words of a counter: its value, its ID, and how many samples it lost.
func (rf ReadFormat) each() int { return 1 + bits.OnesCount64(uint64(rf&(ReadID|ReadLost))) }

// raw reads RAW: a 32-bit size, the bytes, and no padding: the kernel counts it in the size.
func (d *sampleDecoder) raw() {
	if len(d.left) < 4 {
		d.fail("ends before its RAW data")
		return
	}
	n := u32(d.left, d.big)
	d.left = d.left[4:]
	d.s.Raw = d.bytes(uint64(n), "RAW data")
}

// BranchCallStack is the bit of Attr.BranchSampleType for branch stacks that are call stacks:
// the calls that have not returned, innermost first (perf record --call-graph lbr).
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

// branchFlags converts the flag word of a big-endian recorder, whose first bit field is the most
// significant, to the little-endian one.
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

// fullRecord is the least size of a record in which the kernel has copied less of a stack than
// it was asked for, to keep within the 16 bits of the size (perf_sample_ustack_size).
const fullRecord = 1<<16 - 16

// stack reads STACK_USER, with dyn_size valid bytes. Recorders that store the valid bytes alone
// (simpleperf) leave the number that was asked for in the attribute.
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
