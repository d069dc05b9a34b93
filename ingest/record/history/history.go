package history

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"symbolize/ingest/procmaps"
)

const (
	// maxRecords limits the records of one process, maxTotal of all processes; beyond them older
	// records of the process, or all of new processes, are lost.
	maxRecords = 1 << 12
	maxTotal   = 1 << 19
	maxLosses  = 1 << 10
	// maxPaths limits the paths that records share.
	maxPaths = 1 << 12
)

// Log holds the mappings of code that processes made since New. Times are in ns of one clock. Safe
// for concurrent use.
type Log struct {
	mu     sync.Mutex
	of     map[int32]*process
	from   uint64 // start of complete records, for processes that are not in of
	total  int
	losses []loss // sorted by end
	paths  map[string]string
}

// process holds the records of a process, sorted by time.
type process struct {
	from uint64 // start of complete records
	list []record
}

// record is a change of a process's mapped code.
type record struct {
	procmaps.Mapping // of kind mapped; of kind moved without file
	kind             kind
	time             uint64
	parent           int32 // of kind forked
}

type kind uint8

const (
	mapped kind = iota
	moved       // a mapping was moved here
	exec        // a program started, without mappings
	forked      // a process started, with its parent's mappings
)

func (r *record) covers(at uint64) bool { return r.kind >= exec || r.Start <= at && at < r.End }

// loss is a span in which records may have been lost.
type loss struct{ from, to uint64 }

// New returns a Log that receives all mappings from a time on.
func New(from uint64) *Log {
	return &Log{of: make(map[int32]*process), from: from, paths: make(map[string]string)}
}

// Add records that a process mapped code.
func (l *Log) Add(pid int32, time uint64, m procmaps.Mapping) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.paths) >= maxPaths {
		clear(l.paths)
	}
	path, ok := l.paths[m.File.Path]
	if !ok {
		path = m.File.Path
		l.paths[path] = path
	}
	m.File.Path = path
	l.add(pid, record{Mapping: m, time: time})
}

// Move records that a process moved a mapping with unknown code to these addresses.
func (l *Log) Move(pid int32, time, start, end uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(pid, record{kind: moved, time: time, Mapping: procmaps.Mapping{Start: start, End: end}})
}

// Exec records that a process started another program: its earlier mappings no longer exist.
func (l *Log) Exec(pid int32, time uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(pid, record{kind: exec, time: time})
}

// Fork records a new process, with the mapped code of its parent.
func (l *Log) Fork(pid, parent int32, time uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(pid, record{kind: forked, time: time, parent: parent})
}

func (l *Log) add(pid int32, r record) {
	if l.total >= maxTotal {
		l.lose(r.time, r.time)
		return
	}
	p := l.of[pid]
	if p == nil {
		p = &process{from: l.from}
		l.of[pid] = p
	}
	if len(p.list) >= maxRecords {
		p.drop(maxRecords / 2)
		l.total -= maxRecords / 2
	}
	at := p.after(r.time) // an earlier record of another CPU may be read later
	p.list = slices.Insert(p.list, at, r)
	l.total++
}

// after returns the index of the first record after a time.
func (p *process) after(time uint64) int {
	n := len(p.list)
	if n == 0 || p.list[n-1].time <= time {
		return n
	}
	at, _ := slices.BinarySearchFunc(p.list, time, func(r record, t uint64) int {
		if r.time <= t {
			return -1
		}
		return 1
	})
	return at
}

// drop removes the first records.
func (p *process) drop(n int) {
	p.from = max(p.from, p.list[n-1].time+1)
	p.list = slices.Delete(p.list, 0, n)
}

// Lost records that records may have been lost in a span of time.
func (l *Log) Lost(from, to uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose(from, to)
}

func (l *Log) lose(from, to uint64) {
	if n := len(l.losses); n > 0 && (n >= maxLosses || from <= l.losses[n-1].to) {
		x := &l.losses[n-1]
		x.from, x.to = min(x.from, from), max(x.to, to)
		return
	}
	l.losses = append(l.losses, loss{from, to})
}

// lostIn reports whether records may have been lost in a span of time.
func (l *Log) lostIn(from, to uint64) bool {
	at, _ := slices.BinarySearchFunc(l.losses, from, func(x loss, t uint64) int {
		return cmp.Compare(x.to, t)
	})
	return at < len(l.losses) && l.losses[at].from <= to
}

// complete reports whether all records of a process between two times exist.
func (l *Log) complete(p *process, from, to uint64) bool {
	begin := l.from
	if p != nil {
		begin = p.from
	}
	return begin <= from && !l.lostIn(from, to)
}

// Unchanged reports whether a process certainly mapped no other code at an address between two
// times.
func (l *Log) Unchanged(pid int32, at, from, to uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of[pid]
	if !l.complete(p, from, to) {
		return false
	}
	if p == nil {
		return true
	}
	first, last := p.after(from), p.after(to)
	return !slices.ContainsFunc(p.list[first:max(first, last)], func(r record) bool { return r.covers(at) })
}

// Proof is what the records prove about the code at an address of a process.
type Proof uint8

// The kinds of proof.
const (
	Unknown   Proof = iota // no record has the address
	Uncertain              // code was mapped, but unknown code, or unknown code followed
	Mapped                 // a mapping
	Nothing                // the program has mapped no code there since its start
	Inherited              // the parent's code at the fork
)

// Code is the code at an address according to the records.
type Code struct {
	Proof   Proof
	Mapping procmaps.Mapping // Mapped
	Parent  int32            // Inherited
	Forked  uint64           // Inherited: time of the fork
}

// At returns the code at an address of a process at a time.
func (l *Log) At(pid int32, at, time uint64) Code {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of[pid]
	if p == nil {
		return Code{}
	}
	for _, r := range slices.Backward(p.list[:p.after(time)]) {
		if r.covers(at) {
			return r.code(l.complete(p, r.time, time))
		}
	}
	return Code{}
}

// code returns the code in the last record of an address. complete: no later record is missing.
func (r *record) code(complete bool) Code {
	switch {
	case r.kind == moved, r.kind == mapped && !complete:
		return Code{Proof: Uncertain}
	case !complete:
	case r.kind == mapped:
		return Code{Proof: Mapped, Mapping: r.Mapping}
	case r.kind == exec:
		return Code{Proof: Nothing}
	case r.kind == forked:
		return Code{Proof: Inherited, Parent: r.parent, Forked: r.time}
	}
	return Code{}
}

// Mappings returns the mappings that a process made, with their times.
func (l *Log) Mappings(pid int32) iter.Seq2[uint64, procmaps.Mapping] {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []record
	if p := l.of[pid]; p != nil {
		list = slices.Clone(p.list)
	}
	return func(yield func(uint64, procmaps.Mapping) bool) {
		for i := range list {
			if r := &list[i]; r.kind == mapped && !yield(r.time, r.Mapping) {
				return
			}
		}
	}
}

// Whole returns the mappings that a process made since its program started. ok is false if the
// records up to a time lack some of them, or the start.
func (l *Log) Whole(pid int32, till uint64) (list []procmaps.Mapping, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of[pid]
	if p == nil {
		return nil, false
	}
	for _, r := range slices.Backward(p.list) {
		switch r.kind {
		case mapped:
			list = append(list, r.Mapping)
		case exec:
			return list, l.complete(p, r.time, till)
		default:
			return nil, false
		}
	}
	return nil, false
}

// Still reports whether a process certainly mapped no other code at all between two times.
func (l *Log) Still(pid int32, from, to uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of[pid]
	return l.complete(p, from, to) && (p == nil || p.after(from) == p.after(to))
}

// Parent returns the process that last forked this one; 0 if unknown.
func (l *Log) Parent(pid int32) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.of[pid]; p != nil {
		for _, r := range slices.Backward(p.list) {
			if r.kind == forked {
				return r.parent
			}
		}
	}
	return 0
}

// ForkedSince reports whether a process with this ID was forked after a time.
func (l *Log) ForkedSince(pid int32, time uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of[pid]
	return p != nil && slices.ContainsFunc(p.list[p.after(time):], func(r record) bool {
		return r.kind == forked
	})
}

// Forget removes the records before a time, except those of some processes.
func (l *Log) Forget(before uint64, except []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before <= l.from {
		return
	}
	kept := make(map[int32]bool, len(except))
	for _, pid := range except {
		if kept[pid] = true; l.of[pid] == nil {
			l.of[pid] = &process{from: l.from}
		}
	}
	l.from = before
	for pid, p := range l.of {
		if kept[pid] {
			continue
		}
		if n := p.after(before - 1); n > 0 {
			p.drop(n)
			l.total -= n
		}
		if p.from = max(p.from, before); len(p.list) == 0 {
			delete(l.of, pid)
		}
	}
}
