package sampler

import (
	"encoding/binary"
	"io"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/rawdump"
)

// Names of the dumps.
const (
	userDump   = "stacks"
	kernelDump = "kernel_stacks"
	countsDump = "counts"
	waitPrefix = "off_cpu_" // of those of a second event
)

// Fields of the dump of counts, as listed in the manifest: i32 ids of the user and kernel stack,
// u32 process, 16 bytes of comm, u32 number of the program, u64 times of the kernel and the user
// stack, for threads off CPU u64 prev_state; the first seven again for the waker, and u64 by: 1 a
// thread, 2 an interrupt, 0 unknown; u64 samples, u64 weight.
const (
	dumpKey = "user_stack_id:0:4,kernel_stack_id:4:4,tgid:8:4,comm:12:16,program:28:4," +
		"kernel_time:32:8,user_time:40:8"
	dumpState = ",state:48:8"
	dumpWaker = ",waker_user_stack_id:56:4,waker_kernel_stack_id:60:4,waker_tgid:64:4," +
		"waker_comm:68:16,waker_program:84:4,waker_kernel_time:88:8,waker_user_time:96:8,waker_by:104:8"
	dumpThread    = 48 // bytes of a thread
	dumpKeySize   = 112
	dumpValue     = "0:8"
	dumpWeight    = "8:8"
	dumpValueSize = 16
)

// Map types and a flag (include/uapi/linux/bpf.h).
const (
	typeHash       = 1
	typeStackTrace = 7
)

// samples returns the manifest's entry for the output.
func samples(o *Options) bundle.Samples {
	m := bundle.Samples{Event: o.Event.String(), Unit: "count", Period: 1,
		Stacks:       bundle.DumpName(o.prefix + userDump),
		KernelStacks: bundle.DumpName(o.prefix + kernelDump),
		Counts:       bundle.DumpName(o.prefix + countsDump), Value: dumpValue}
	switch o.Event.Kind {
	case Clock:
		m.Unit, m.Period = "nanoseconds", clockPeriod(o.Frequency)
	case OffCPU:
		m.Unit, m.Period, m.Weight = "nanoseconds", 0, dumpWeight
	}
	m.Key, _ = keyFields(o)
	return m
}

// keyFields returns the fields of the dump's key, and its size in bytes.
func keyFields(o *Options) (fields string, size int) {
	switch {
	case o.Wakers:
		return dumpKey + dumpState + dumpWaker, dumpKeySize
	case o.Event.Kind == OffCPU:
		return dumpKey + dumpState, dumpThread + 8
	}
	return dumpKey, dumpThread
}

// clockPeriod returns the period in ns that the kernel derives from a frequency.
func clockPeriod(frequency int) uint64 { return 1_000_000_000 / uint64(frequency) }

// writeStacks writes the stacks of a table as the dump of a stack map. lost are the samples without
// a stack in it.
func (t *table) writeStacks(w io.Writer, n *numbering, name string, time uint64,
	lost map[string]uint64) error {
	h := rawdump.Header{Type: typeStackTrace, KeySize: 4, MaxEntries: uint32(len(t.kept)),
		ValueSize: uint32(max(t.deep, 1) * frame(t.kind)), Entries: uint64(len(n.order)),
		Name: name,
		Time: time, BigEndian: bigEndian, Lost: lost, Packing: rawdump.Trimmed}
	h.Depth = h.ValueSize / uint32(frame(t.kind))
	if t.kind == userStack {
		h.Flags = rawdump.FlagBuildID
	}
	d, err := rawdump.NewWriter(w, &h)
	if err != nil {
		return err
	}
	var key [4]byte
	value := make([]byte, h.ValueSize)
	for number, id := range n.order {
		binary.NativeEndian.PutUint32(key[:], uint32(number))
		frames, err := t.read(id, value)
		if err != nil {
			return err
		}
		clear(value[len(frames):])
		if err := d.Add(key[:], value); err != nil {
			return err
		}
	}
	return d.Close()
}

// write writes the counts of written stacks as the dump of a hash map.
func (c *counts) write(w io.Writer, time uint64, lost map[string]uint64,
	packing rawdump.Packing, size int) error {
	h := rawdump.Header{Type: typeHash, KeySize: uint32(size), ValueSize: dumpValueSize,
		MaxEntries: uint32(len(c.of)), Entries: uint64(len(c.of)), Name: countsDump, Time: time,
		BigEndian: bigEndian, Lost: lost, Packing: packing}
	d, err := rawdump.NewWriter(w, &h)
	if err != nil {
		return err
	}
	var key [dumpKeySize]byte
	var value [dumpValueSize]byte
	order := binary.NativeEndian
	for _, t := range c.sorted() {
		c.putThread(key[:], &t.thread)
		order.PutUint64(key[dumpThread:], t.state)
		if waker := c.by(&t); t.waker > 0 {
			c.putThread(key[dumpThread+8:], &waker)
			order.PutUint64(key[dumpKeySize-8:], 1)
			if waker.interrupt {
				order.PutUint64(key[dumpKeySize-8:], 2)
			}
		} else {
			clear(key[dumpThread+8:])
			copy(key[dumpThread+8:], noStacks)
		}
		v := c.of[t]
		order.PutUint64(value[:], v.Count)
		order.PutUint64(value[8:], v.Weight)
		if err := d.Add(key[:size], value[:]); err != nil {
			return err
		}
	}
	return d.Close()
}

// noStacks are the ids of the stacks of a waker that is unknown.
var noStacks = binary.NativeEndian.AppendUint64(nil, noStackIDs)

const noStackIDs = (1<<32-errFault)<<32 | (1<<32 - errFault)

// putThread writes the fields of a thread.
func (c *counts) putThread(key []byte, t *thread) {
	order := binary.NativeEndian
	order.PutUint32(key, uint32(t.user))
	order.PutUint32(key[4:], uint32(t.kernel))
	order.PutUint32(key[8:], t.pid)
	if clear(key[12:28]); !t.interrupt {
		copy(key[12:], c.names[t.comm][:])
	}
	order.PutUint32(key[28:], t.number)
	order.PutUint64(key[32:], t.epoch)
	order.PutUint64(key[40:], t.time)
}

// bigEndian reports the byte order of this machine.
var bigEndian = perfdata.NativeBigEndian()
