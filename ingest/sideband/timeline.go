package sideband

import (
	"cmp"
	"slices"

	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/perfdata"
)

// Kinds of state changes.
const (
	changeMapping uint8 = iota
	changeName
	changeFork
	changeDataMapping // of memory that is not executable, with ScanOptions.Data
	changeKernelMapping
	changeKernelUnmapping
	changeProgramLoad
)

// change is a change of state. It has 56 bytes and no pointers, so that sorting is cheap.
type change struct {
	time uint64
	// Mappings: start, end and pgoff; forks: the parent's pid and tid; programs: the tag.
	a, b, c uint64
	pid     int32
	tid     int32
	ref     uint32 // object, comm or program ID
	seq     uint32 // order in the file
	kind    uint8
	layer   addrspace.Layer
	flag    bool // names: by exec; forks: synthesized
}

// timeline is the list of changes, until Build has applied them. Those of processes are spooled until
// it is known which processes have samples.
type timeline struct {
	file    *perfdata.File // nil for stack maps
	clock   *Clock
	list    []change
	last    uint32 // number of the last change
	spooled processChanges
	samples bool // a sample was read
}

// next returns the number of a new change, by which those of one time are ordered.
func (l *timeline) next() uint32 {
	l.last++
	return l.last
}

// add adds the change of a record.
func (l *timeline) add(rec *perfdata.Record, e change) {
	id, err := l.file.SampleID(rec)
	if e.kind >= changeKernelMapping {
		e.tid = id.TID
	}
	e.time = l.timeOf(rec, &id, err)
	e.seq = l.next()
	if e.kind < changeKernelMapping && l.spooled.add(&e) {
		return
	}
	l.list = append(l.list, e)
}

// timeOf returns the ordering time of a record other than a sample, by its SampleID.
func (l *timeline) timeOf(rec *perfdata.Record, id *perfdata.SampleID, err error) uint64 {
	recorded := uint64(NoTime)
	if err == nil && id.Has&perfdata.SampleTime != 0 {
		recorded = id.Time
	}
	return l.clock.note(recorded, PositionOf(rec), !l.samples)
}

// insert adds a change without a record in the capture, at a time of its clock.
func (l *timeline) insert(time uint64, e change) {
	e.time, e.seq = time, l.next()
	if !l.clock.Timed {
		e.time = 0
	}
	l.list = append(l.list, e)
}

// sort sorts the changes by time; a file has them by CPU.
func (l *timeline) sort() {
	slices.SortFunc(l.list, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.seq, b.seq))
	})
}

// unspool moves the changes of processes that samples need from the spool to the list, and notes all
// mappings of objects. others says that threads without samples are named.
func (l *timeline) unspool(processes *sampled, objects *Objects, others bool) error {
	needed, err := l.needed(processes)
	if err != nil {
		return err
	}
	threads := needed == nil || others
	err = l.spooled.each(func(e *change) {
		if e.kind == changeMapping {
			objects.mapped(e.ref, e.time, e.pid)
		}
		if needed == nil || needed[e.pid] || threads && e.kind != changeMapping && e.kind != changeDataMapping {
			l.list = append(l.list, *e)
		}
	})
	l.spooled.close()
	slices.SortFunc(l.list, func(a, b change) int { return cmp.Compare(a.seq, b.seq) })
	return err
}

// needed returns the processes with samples, and those that they were forked from. If no
// sample has a process, all are needed: nil.
func (l *timeline) needed(processes *sampled) (map[int32]bool, error) {
	if processes.unknown || len(processes.processes) == 0 {
		return nil, nil
	}
	needed := make(map[int32]bool, len(processes.processes))
	for pid := range processes.processes {
		needed[pid] = true
	}
	type fork struct{ child, parent int32 }
	var forks []fork
	note := func(e *change) {
		if e.kind == changeFork && e.pid != int32(e.a) {
			forks = append(forks, fork{e.pid, int32(e.a)})
		}
	}
	err := l.spooled.each(note)
	for i := range l.list { // those that are not in the spool
		note(&l.list[i])
	}
	for more := true; more; {
		more = false
		for _, f := range slices.Backward(forks) { // a child follows its parent
			if needed[f.child] && !needed[f.parent] {
				needed[f.parent], more = true, true
			}
		}
	}
	return needed, err
}

// beginsAt reports whether something else of the kernel was mapped at an address: recorders that do
// not know the kernel's end use the start of the next mapping.
func (l *timeline) beginsAt(at uint64) bool {
	for i := range l.list {
		if e := &l.list[i]; e.kind == changeKernelMapping && e.a == at {
			return true
		}
	}
	return false
}

// sampled is the time span of all records, by the recording's clock, and the processes with
// samples. They determine the facts that bundles can add.
type sampled struct {
	from, to  uint64
	processes map[int32]bool
	last      int32 // process of the last sample
	unknown   bool  // samples do not have their process
}

// note notes the time of a record, and the process of a sample.
func (s *sampled) note(f *perfdata.File, rec *perfdata.Record) {
	id, err := f.SampleID(rec)
	if err != nil {
		return // it is reported when the record is read
	}
	s.noteTime(&id)
	if rec.Type == perfdata.TypeSample {
		s.noteProcess(&id)
	}
}

// noteTime extends the span by the time of a record.
func (s *sampled) noteTime(id *perfdata.SampleID) {
	if id.Time == 0 || id.Time == NoTime || id.Has&perfdata.SampleTime == 0 {
		return
	}
	if s.from == 0 || id.Time < s.from {
		s.from = id.Time
	}
	s.to = max(s.to, id.Time)
}

// noteProcess notes the process of a sample.
func (s *sampled) noteProcess(id *perfdata.SampleID) {
	switch {
	case id.Has&perfdata.SampleTID == 0:
		s.unknown = true
	case id.PID != s.last || s.processes == nil:
		s.last = id.PID
		s.add(id.PID)
	}
}

// add adds a process with samples.
func (s *sampled) add(pid int32) {
	if s.processes == nil {
		s.processes = make(map[int32]bool)
	}
	s.processes[pid] = true
}
