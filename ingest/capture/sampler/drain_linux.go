package sampler

import (
	"errors"
	"os"
	"time"

	"github.com/cilium/ebpf"
)

// batchSize is how many counts are read at once.
const batchSize = 4096

type batch struct {
	keys   []countKey
	values []countValue
}

// Drain takes the new stacks, and the counts when half of their map is in use. It is to
// be called some 20 times a second.
func (s *Sampler) Drain() {
	s.readRing()
	if made := s.stat(statKeys); made-s.emptied >= maxCounts/2 {
		s.readCounts()
		s.emptied = made
	}
}

// readRing takes the stacks that are in the ring.
func (s *Sampler) readRing() {
	for s.reader.AvailableBytes() > 0 {
		s.reader.SetDeadline(time.Now())
		err := s.reader.ReadInto(&s.record)
		if errors.Is(err, os.ErrDeadlineExceeded) || err != nil {
			return
		}
		r, ok := parseRecord(s.record.RawSample)
		switch {
		case !ok:
		case r.kind == barePID:
			s.sayAddresses(r.pid)
		case r.kind <= kernelStack && s.tables[r.kind].add(r.hash, r.frames):
			s.sayAddresses(r.pid)
			s.markBare(r.hash)
		}
	}
}

// markBare has the program say which other processes have this stack, too. Where that
// fails the kernel has forgotten the stack, and will send it again.
func (s *Sampler) markBare(h hash) {
	_ = s.maps.seen.Update(h, uint32(barePID), ebpf.UpdateExist)
}

func (s *Sampler) sayAddresses(pid uint32) {
	if s.opts.Addresses != nil {
		s.opts.Addresses(int32(pid))
	}
}

// readCounts empties the map of counts. A sample that is added to a count while that is
// read and deleted can be lost: one for each CPU at most.
func (s *Sampler) readCounts() {
	if s.batch.keys == nil {
		s.batch = batch{make([]countKey, batchSize), make([]countValue, batchSize)}
	}
	var cursor ebpf.MapBatchCursor
	for {
		n, err := s.maps.counts.BatchLookupAndDelete(&cursor, s.batch.keys, s.batch.values, nil)
		for i := range n {
			k := &s.batch.keys[i]
			if s.tables[userStack].isBare(s.counts.add(s.tables, k, s.batch.values[i])) {
				s.sayAddresses(k.PID)
			}
		}
		if err != nil || n == 0 {
			return // the end, or nothing that reading again would mend
		}
	}
}
