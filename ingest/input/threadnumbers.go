package input

import (
	"cmp"
	"context"
	"slices"

	"symbolize/ingest/decode"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// threadNumbers translates the numbers of threads in the fields of tracepoints. These are numbers of
// the machine, while records and samples have those of perf's PID namespace: in a container the two
// differ. A sample of a tracepoint has both of its thread.
type threadNumbers struct {
	differ bool
	known  map[int32][]threadNumber // by number of the machine, in order of time
}

// threadNumber is the number of a thread in the namespace, from its first sample to its last one.
type threadNumber struct {
	tid         int32
	first, last uint64
}

// outsideThread is added to the number of a thread outside of the namespace, where it has none. It is
// more than any number (PID_MAX_LIMIT).
const outsideThread = 1 << 22

// commonPID is the offset of the thread's number in a tracepoint's sample, common_pid.
const commonPID = 4

// machineNumber returns the number of the current thread on the machine; 0 if it is unknown, or for
// the idle thread.
func machineNumber(raw []byte, bigEndian bool) int32 {
	if len(raw) < commonPID+4 {
		return 0
	}
	return int32(decode.U32(raw[commonPID:], bigEndian))
}

// enoughNumbers samples with both numbers tell whether they differ.
const enoughNumbers = 1000

// threadNumbers reads the numbers of threads, if those of the machine differ.
func (c *collector) threadNumbers(ctx context.Context) (threadNumbers, error) {
	found := make(map[[2]int32]threadNumber) // by both numbers
	file, seen, differ := c.Records.File, 0, false
	var s perfdata.Sample
	var records *perfdata.RecordReader
	for i := range c.Records.NumChunks() {
		if err := ctx.Err(); err != nil {
			return threadNumbers{}, err
		}
		records = c.Records.Read(records, c.Records.Chunk(i))
		for records.Next() {
			rec := records.Record()
			if rec.Type != perfdata.TypeSample || file.DecodeSample(rec, &s) != nil || s.TID <= 0 ||
				s.Time == sideband.NoTime || file.Events[s.Event].Attr.Type != perfdata.AttrTracepoint {
				continue
			}
			machine := machineNumber(s.Raw, file.BigEndian)
			if machine == 0 {
				continue
			}
			seen++
			if differ = differ || machine != s.TID; !differ && seen == enoughNumbers {
				return threadNumbers{}, nil
			}
			key := [2]int32{machine, s.TID}
			n, ok := found[key]
			if !ok {
				n = threadNumber{s.TID, s.Time, s.Time}
			}
			n.first, n.last = min(n.first, s.Time), max(n.last, s.Time)
			found[key] = n
		}
		if err := records.Err(); err != nil {
			return threadNumbers{}, err
		}
	}
	x := threadNumbers{differ: differ, known: make(map[int32][]threadNumber)}
	if !differ {
		return threadNumbers{}, nil
	}
	for key, n := range found {
		x.known[key[0]] = append(x.known[key[0]], n)
	}
	for _, list := range x.known {
		slices.SortFunc(list, func(a, b threadNumber) int { return cmp.Compare(a.first, b.first) })
	}
	return x, nil
}

// of returns the number of a thread in records, by that of the machine at a time: that of its next
// sample, otherwise of its last one.
func (x *threadNumbers) of(machine int32, time uint64) int32 {
	if !x.differ || machine == 0 {
		return machine
	}
	list := x.known[machine]
	for _, n := range list {
		if time <= n.last {
			return n.tid
		}
	}
	if len(list) > 0 {
		return list[len(list)-1].tid
	}
	return machine | outsideThread
}

// shown returns the number of a thread that labels have.
func (x *threadNumbers) shown(tid int32) int32 {
	if x.differ && tid > 0 {
		return tid &^ outsideThread
	}
	return tid
}

// name returns the code of a thread's name (sideband.CommCode), which is its number if it has none.
func (x *threadNumbers) name(comm uint32) uint32 {
	if x.differ && comm&sideband.UnnamedThread != 0 {
		return comm &^ outsideThread
	}
	return comm
}
