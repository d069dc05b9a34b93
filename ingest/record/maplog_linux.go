package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/reporter"
	"symbolize/ingest/record/sys"
)

// mapLogFlags request records of the code mappings and execs of all processes.
const mapLogFlags = perfdata.FlagMmap | perfdata.FlagMmap2 | perfdata.FlagComm |
	perfdata.FlagCommExec | perfdata.FlagTask

// mapLogPages are the ring sizes to try: a user without CAP_IPC_LOCK may have a low limit.
var mapLogPages = [...]int{64, 16}

// mapLogAge is the minimum time that records are kept of processes without bare addresses in their
// stacks. When the first such stack arrives, the mappings are read within a second, and from then
// on records are kept.
const mapLogAge = 5 * time.Second

// mapLog keeps records of the code that processes map. They prove that a copy of the mappings is
// valid for a sample, or replace it. They are not written to the bundle. The rings are read when
// half full, and on request.
type mapLog struct {
	s     *recording
	procs *processes
	log   *history.Log // nil: records not available

	mu       sync.Mutex // guards the rings
	rings    []*sys.Ring
	moves    *reporter.MoveReporter
	forgot   uint64 // when old records were last forgotten
	wake     int    // eventfd that wakes the loop
	stopping atomic.Bool
	done     chan struct{} // nil: no loop
}

func newMapLog(s *recording, p *processes) *mapLog { return &mapLog{s: s, procs: p, wake: -1} }

// start opens the rings. Without them addresses are looked up only in copies, with a warning.
func (l *mapLog) start() error {
	if l.procs.otherNumbers() {
		l.s.warn("changes of mappings are not recorded: records and %s have different "+
			"process IDs", l.procs.proc)
		return nil
	}
	if err := l.open(); err != nil {
		l.close()
		l.s.warn("changes of mappings are not recorded: %v", err)
		return nil
	}
	l.log, l.done = history.New(l.s.host.Monotonic()), make(chan struct{})
	l.procs.mapped = l
	fds := make([]unix.PollFd, 0, len(l.rings)+1)
	for _, r := range l.rings {
		fds = append(fds, unix.PollFd{Fd: int32(r.FD), Events: unix.POLLIN})
	}
	go l.loop(append(fds, unix.PollFd{Fd: int32(l.wake), Events: unix.POLLIN}))
	return nil
}

func (l *mapLog) open() (err error) {
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	cpus, err := sys.OnlineCPUs()
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		var r *sys.Ring
		for _, pages := range mapLogPages {
			attr := l.s.clocked(sys.DummyAttr(mapLogFlags))
			attr.Wakeup = uint32(pages * os.Getpagesize() / 2)
			if r, err = sys.OpenRing(attr, -1, cpu, pages); !errors.Is(err, unix.EPERM) {
				break
			}
		}
		if errors.Is(err, unix.ENODEV) {
			continue // went offline
		}
		if err != nil {
			return err
		}
		l.rings = append(l.rings, r)
	}
	if l.moves != nil {
		if err := l.moves.Open(l.rings, l.s.clocked); err != nil {
			l.moves.Close()
			l.moves = nil
			l.warnMoves(err)
		}
	}
	return nil
}

// load loads the program that reports moved mappings, before loads are recorded.
func (l *mapLog) load() {
	var err error
	if l.moves, err = reporter.AttachMoves(l.s.log); err != nil {
		l.warnMoves(err)
	}
}

func (l *mapLog) warnMoves(err error) {
	l.s.warn("moves of code by mremap are not recorded: samples in files without a build ID "+
		"may get names of another file: %v", err)
}

// loop reads the rings that have filled up.
func (l *mapLog) loop(fds []unix.PollFd) {
	defer close(l.done)
	for !l.stopping.Load() {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			l.s.warn("waiting for changes of mappings failed: %v", err)
			return
		}
		l.sync()
		for i := range fds { // the ring of an offline CPU reports POLLHUP forever
			if fds[i].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
				fds[i].Fd = -1
			}
		}
	}
}

// sync reads the records of all changes before the call. It can be called on nil.
func (l *mapLog) sync() {
	if l == nil {
		return
	}
	now := l.s.host.Monotonic()
	l.mu.Lock()
	for _, r := range l.rings {
		r.Drain(func(rec []byte) { l.record(r, rec) })
	}
	old := now-l.forgot >= uint64(mapLogAge)
	if old {
		l.forgot = now
	}
	l.mu.Unlock()
	if old {
		l.procs.forgetMapped(now - min(now, uint64(mapLogAge)))
	}
}

// record handles a record of a ring.
func (l *mapLog) record(r *sys.Ring, rec []byte) {
	order := binary.NativeEndian
	if perfdata.Type(order.Uint32(rec)) == perfdata.TypeSample {
		l.moved(r, rec)
		return
	}
	at, body := sys.RecordTime(rec), rec[sys.RecordHeader:]
	was := r.Latest
	if r.Latest = at; len(body) < 16 {
		return
	}
	pid := int32(order.Uint32(body))
	switch perfdata.Type(order.Uint32(rec)) {
	case perfdata.TypeLost:
		l.log.Lost(was, at)
		l.s.lost("records of mappings", order.Uint64(body[8:]))
	case perfdata.TypeComm:
		if order.Uint16(rec[4:])&perfdata.MiscCommExec != 0 && pid > 0 {
			l.log.Exec(pid, at)
		}
	case perfdata.TypeFork:
		if parent := int32(order.Uint32(body[4:])); pid != parent && pid > 0 { // otherwise a thread
			l.log.Fork(pid, parent, at)
		}
	case perfdata.TypeMmap2:
		if m, ok := mappingOf(body); ok && pid > 0 {
			l.log.Add(pid, at, m)
			l.procs.mapping(pid, &m, at)
		}
	}
}

// moved handles a moved mapping. Memory that was not code is ignored; code that was certainly of a
// file is recorded at its new address; otherwise the new address is unknown and the mappings are
// read again.
func (l *mapLog) moved(r *sys.Ring, rec []byte) {
	m, err := reporter.ParseMove(rec)
	if err != nil {
		l.log.Lost(r.Latest, r.Latest)
		return
	}
	r.Latest = m.Time
	if m.PID <= 0 {
		return
	}
	was := l.log.At(m.PID, m.From, m.Time)
	switch to := was.Mapping; {
	case was.Proof == history.Nothing:
	case was.Proof == history.Mapped && m.End-m.Start <= to.End-m.From:
		to.Start, to.End, to.Offset = m.Start, m.End, to.Offset+m.From-to.Start
		l.log.Add(m.PID, m.Time, to)
	default:
		l.log.Move(m.PID, m.Time, m.Start, m.End)
		l.procs.moved(m.PID)
	}
}

// mappingOf decodes an MMAP2 record: u32 pid, u32 tid, u64 addr, u64 len, u64 pgoff, u32 maj, u32
// min, u64 ino, u64 generation, u32 prot, u32 flags, filename.
func mappingOf(body []byte) (m procmaps.Mapping, ok bool) {
	const nameAt = 64
	if len(body) <= nameAt {
		return m, false
	}
	order := binary.NativeEndian
	u32 := func(at int) uint32 { return order.Uint32(body[at:]) }
	u64 := func(at int) uint64 { return order.Uint64(body[at:]) }
	name, _, _ := bytes.Cut(body[nameAt:], []byte{0})
	if string(name) == anonymous {
		name = nil
	}
	m = procmaps.Mapping{Start: u64(8), End: u64(8) + u64(16), Offset: u64(24),
		File: procmaps.File{Major: u32(32), Minor: u32(36), Inode: u64(40), Path: string(name)}}
	return m, m.Start < m.End
}

// anonymous is the path of anonymous memory in records.
const anonymous = "//anon"

// unchanged reports whether a process certainly mapped no other code at an address between two
// times. It can be called on nil.
func (l *mapLog) unchanged(pid int32, at, from, to uint64) bool {
	return l != nil && l.log.Unchanged(pid, at, from, to)
}

// forgetMapped forgets records of mappings before a time, except of processes with kept mappings or
// with bare addresses in their stacks, which may be of any later time.
func (p *processes) forgetMapped(before uint64) {
	p.mu.Lock()
	pids := slices.AppendSeq(slices.Collect(maps.Keys(p.kept)), maps.Keys(p.bare))
	p.mu.Unlock()
	p.mapped.log.Forget(before, pids)
}

func (l *mapLog) drain() time.Duration { return 0 }

func (l *mapLog) stop() {
	if l.done == nil || l.stopping.Swap(true) {
		return
	}
	_, _ = unix.Write(l.wake, binary.NativeEndian.AppendUint64(nil, 1))
	<-l.done
	l.sync()
}

func (l *mapLog) add(*bundle.Writer) error { return nil }

func (l *mapLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moves.Close()
	l.moves = nil
	for _, r := range l.rings {
		r.Close()
	}
	l.rings = nil
	if l.wake >= 0 {
		unix.Close(l.wake)
		l.wake = -1
	}
}
