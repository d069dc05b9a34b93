package sampler

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cilium/ebpf"
)

// batchSize is how many counts are read at once.
const batchSize = 4096

type batch struct {
	keys   []countKey
	values []countValue
}

// Drain takes the new stacks, and the counts when half of their map is in use. It is to be
// called before RingStacks samples can have been taken.
func (s *Sampler) Drain() {
	s.readRing()
	if made := s.stat(statKeys); made-s.emptied >= uint64(s.opts.sizes.orDefault().counts/2) {
		s.readCounts()
		s.emptied = made
	}
}

// ringHead is the size of a record's header in the ring, bytes (BPF_RINGBUF_HDR_SZ).
const ringHead = 8

// readRing takes the stacks that are in the ring. Those that come meanwhile are left, so
// that it ends however fast they come.
func (s *Sampler) readRing() {
	for left := s.reader.AvailableBytes(); left > 0; left -= ringHead + len(s.record.RawSample) {
		s.reader.SetDeadline(time.Now())
		if s.reader.ReadInto(&s.record) != nil {
			return // an empty ring is reported as a deadline that has passed
		}
		r, ok := parseRecord(s.record.RawSample)
		switch {
		case !ok:
		case r.kind == barePID:
			s.requestMappings(r.pid)
		case r.kind <= kernelStack:
			p := s.partOf(r.part)
			if p == nil {
				continue // long forgotten, with its Part
			}
			bare := p.tables[r.kind].add(r.hash, r.frames)
			if bare || r.kind == userStack && p.files.met(r.frames) {
				s.requestMappings(r.pid)
			}
		}
	}
}

func (s *Sampler) requestMappings(pid uint32) {
	if s.opts.Mappings != nil {
		s.opts.Mappings(int32(pid))
	}
}

// readThreads counts the threads that are off CPU and have not come back.
func (s *Sampler) readThreads() {
	if s.maps.threads == nil {
		return
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return // ClockGettime does not fail
	}
	var thread uint32
	var t offThread
	for list := s.maps.threads.Iterate(); list.Next(&thread, &t); s.still++ {
		v := countValue{Count: 1, Weight: uint64(max(now.Nano()-int64(t.Time), 0))}
		s.settle([]countKey{t.Key})
		s.addCount(&t.Key, v)
	}
}

// addCount adds a count, and reports its process if its mappings are needed.
func (s *Sampler) addCount(k *countKey, v countValue) {
	p := s.partOf(k.Part)
	if p == nil {
		p = s.Part
		s.revive(k)
	}
	if p.tables[userStack].isBare(p.counts.add(p.tables, k, s.epoch(p, k), v)) {
		s.requestMappings(k.PID)
	}
}

// readCounts empties the map of counts. A sample that is added to a count while that is
// read and deleted can be lost, one for each CPU at most: LostDrain.
func (s *Sampler) readCounts() {
	if s.batch.keys == nil {
		s.batch = batch{make([]countKey, batchSize), make([]countValue, batchSize)}
	}
	var cursor ebpf.MapBatchCursor
	for {
		n, err := s.maps.counts.BatchLookupAndDelete(&cursor, s.batch.keys, s.batch.values, nil)
		s.settle(s.batch.keys[:n])
		for i := range n {
			s.addCount(&s.batch.keys[i], s.batch.values[i])
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // the error at the end
			s.readErr = err
		}
		if err != nil || n == 0 {
			return
		}
	}
}
