package history

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"symbolize/ingest/format/procmaps"
)

const (
	// maxRecords bounds the records of one process, maxTotal those of all; older ones of the
	// process, and of all new ones, are lost.
	maxRecords = 1 << 12
	maxTotal   = 1 << 19
	maxLosses  = 1 << 10
	// maxPaths bounds the paths of which later records share the text.
	maxPaths = 1 << 12
)

// Log has the mappings of code that processes made, from New on. Times are of one clock, in ns. It
// is safe for concurrent use.
type Log struct {
	mu     sync.Mutex
	of     map[int32]*process
	from   uint64 // since when records are complete, of processes that are not in of
	total  int
	losses []loss // by their end
	paths  map[string]string
}

// process has the records of a process, by time.
type process struct {
	from uint64 // since when they are complete
	list []record
}

// record is a change of the code that a process has mapped.
type record struct {
	procmaps.Mapping // of kind mapped; of kind moved only Start and End are known
	kind             kind
	time             uint64
	parent           int32 // of kind forked
}

type kind uint8

const (
	mapped kind = iota
	moved       // what was mapped elsewhere came here
	exec        // a program began, which has mapped nothing yet
	forked      // a process began, with the mappings of its parent
)

func (r *record) covers(at uint64) bool { return r.kind >= exec || r.Start <= at && at < r.End }

// loss is a time in which records may have been lost.
type loss struct{ from, to uint64 }

// New makes a Log that gets all mappings from a time on.
func New(from uint64) *Log {
	return &Log{of: make(map[int32]*process), from: from, paths: make(map[string]string)}
}

// Add notes that a process mapped code.
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

// Move notes that a process moved a mapping to these addresses: of which code is not known.
func (l *Log) Move(pid int32, time, start, end uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(pid, record{kind: moved, time: time, Mapping: procmaps.Mapping{Start: start, End: end}})
}

// Exec notes that a process ran another program: code that was mapped before is not mapped any
// more.
func (l *Log) Exec(pid int32, time uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(pid, record{kind: exec, time: time})
}

// Fork notes that a process is new: it has the code that its parent had mapped.
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
	at := p.after(r.time) // that of another CPU may have been read before
	p.list = slices.Insert(p.list, at, r)
	l.total++
}

// after returns where in the list those begin that are later than a time.
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

// drop forgets the first records.
func (p *process) drop(n int) {
	p.from = max(p.from, p.list[n-1].time+1)
	p.list = slices.Delete(p.list, 0, n)
}

// Lost notes that records may have been lost in a time.
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

// lostIn reports whether records may have been lost in a time.
func (l *Log) lostIn(from, to uint64) bool {
	at, _ := slices.BinarySearchFunc(l.losses, from, func(x loss, t uint64) int {
		return cmp.Compare(x.to, t)
	})
	return at < len(l.losses) && l.losses[at].from <= to
}

// complete reports whether all records of a process from a time up to another one are there.
func (l *Log) complete(p *process, from, to uint64) bool {
	begin := l.from
	if p != nil {
		begin = p.from
	}
	return begin <= from && !l.lostIn(from, to)
}

// Unchanged reports whether it is certain that a process mapped no other code at an address
// after a time up to another one.
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

// Proof is how far the records prove which code a process had at an address.
type Proof uint8

// The kinds of proof.
const (
	Unknown   Proof = iota // no record is of the address
	Uncertain              // code came there, and it is not known which, or what came after it
	Mapped                 // a mapping
	Nothing                // its program has mapped none there since it began
	Inherited              // that of its parent when it was forked
)

// Code is the code at an address by the records.
type Code struct {
	Proof   Proof
	Mapping procmaps.Mapping // of Mapped
	Parent  int32            // of Inherited
	Forked  uint64           // of Inherited: the time
}

// At returns the code that a process had at an address at a time.
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

// code returns the code of the last record of an address. complete: none after it is missing.
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

// Mappings returns the mappings that a process has made, with their times.
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

// Parent returns the process that forked this one, the last of its number; 0 if it is not known.
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

// ForkedSince reports whether a process of this number was forked after a time.
func (l *Log) ForkedSince(pid int32, time uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of[pid]
	return p != nil && slices.ContainsFunc(p.list[p.after(time):], func(r record) bool {
		return r.kind == forked
	})
}

// Forget forgets the records before a time, but those of some processes.
func (l *Log) Forget(before uint64, but []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before <= l.from {
		return
	}
	kept := make(map[int32]bool, len(but))
	for _, pid := range but {
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
