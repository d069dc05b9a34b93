package perfdata

import "math"

// OffCPUEvent is the name of the event of perf record --off-cpu: threads that wait. Its samples are
// sums that perf writes at the end of the file (off_cpu_write in tools/perf/util/bpf_off_cpu.c);
// since perf 6.15 also single waits, longer than --off-cpu-thresh, at the time of their end
// (off_cpu_dump in tools/perf/util/bpf_skel/off_cpu.bpf.c). Of these versions RAW has the fields of
// both, in words:
//
//	thread, ns, nr, chain[nr], cgroup
//
// In thread the process is the upper half of a single wait, but the lower half of a sum. perf reads
// both as sums, and shows process and thread of single waits in each other's place.
const OffCPUEvent = "offcpu-time"

// offCPUSums is the first of the numbers that sums have in place of times.
const offCPUSums = math.MaxUint32 << 32

// NoTime is the time of records and samples without a time.
const NoTime = math.MaxUint64

// isOffCPU reports whether an event is that of perf record --off-cpu.
func (e *Event) isOffCPU() bool {
	return e.BPFOutput() && e.Name == OffCPUEvent
}

// BPFOutput reports whether the RAW data of the event's samples are bytes that a BPF program wrote.
func (e *Event) BPFOutput() bool {
	const bpfOutput = 10 // PERF_COUNT_SW_BPF_OUTPUT
	return e.Attr.Type == AttrSoftware && e.Attr.Config == bpfOutput
}

// HasChains reports whether the samples of an event have call chains.
func (e *Event) HasChains() bool {
	return e.Attr.SampleType&SampleCallchain != 0 ||
		e.Attr.SampleType&SampleRaw != 0 && e.isOffCPU()
}

// offCPU sets the fields of a sample of OffCPUEvent to those in RAW.
func (d *sampleDecoder) offCPU() {
	s := d.s
	d.left = s.Raw
	thread := d.word()
	s.PID, s.TID = int32(thread>>32), int32(uint32(thread))
	if s.Time >= offCPUSums {
		s.PID, s.TID = s.TID, s.PID
	}
	s.Period = d.word()
	s.Chain = d.words(d.word(), "call chain")
	s.Cgroup = d.word()
	s.IP = 0 // of the kernel's function that wrote the sample
	s.Fields |= SampleTID | SamplePeriod | SampleCallchain
}
