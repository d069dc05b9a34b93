package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

const (
	// maxProcesses limits the processes with recorded mappings.
	maxProcesses = 1 << 15
	// maxVersions limits the copies of one program's mappings at different times, maxCopies the
	// copies under one process ID, which several programs and processes can use in turn.
	maxVersions = 16
	maxCopies   = 1 << 12
	// maxReaders limits the processes, or the devices of files, that are read at the same time.
	maxReaders = 32
	// patience is how long the end of a recording waits for pending reads.
	patience = 2 * time.Second
	// maxMaps and maxCompiled limit the files of one process in bytes.
	maxMaps     = 16 << 20
	maxCompiled = 256 << 20
	// maxProcessBytes limits the files of all processes together.
	maxProcessBytes = 1 << 30
)

// processFlags request records of a process's mappings, programs and children.
const processFlags = perfdata.FlagMmap | perfdata.FlagMmap2 | perfdata.FlagComm |
	perfdata.FlagCommExec | perfdata.FlagTask

// processes records the mappings of the command's processes: as records with times, and as
// /proc/PID/maps, read again after changes, because a process may have ended before the end of the
// recording. The mappings of the processes in Options are read at the end.
//
// Reads run concurrently with the recorders: a process's memory may be locked, or a file's server
// not answer.
type processes struct {
	s        *recording
	host     *sys.Host // of s
	proc     string    // /proc or Options.HostProc
	fds      []int
	patience time.Duration

	reads *lanes[int32]  // of mappings, by pid
	opens *lanes[device] // of files, by device
	vdso  buildid.ID     // of this host

	bootTicks uint64 // see func bootTicks
	// readID is fileID, except in tests.
	readID func(pid int32, m *procmaps.Mapping, since uint64) (id buildid.ID, ok bool)
	// mapped holds the changes of mappings; nil: not recorded.
	mapped *mapLog
	// places holds the results for bare addresses; nil: not examined.
	places *places

	mu     sync.Mutex
	maps   *spool
	kept   map[int32][]mapsCopy // by pid, newest last
	whole  map[int32]bool       // processes with all mappings kept, not only the needed ones
	bare   map[int32]bool       // with bare addresses in their stacks, and their ancestors
	dirty  map[int32]bool       // processes with new mappings since the last read
	seen   map[int32]bool
	closed bool // keep nothing more

	counted  map[int32]bool          // processes with mappings in a bundle
	added    map[int32]spooled       // mappings last added to this bundle
	compiled map[int32]compiledSizes // sizes last added to this bundle
	dumps    map[int32]procmaps.File // mapped jitdump files by pid; guarded by p.mu
	starts   map[int32]uint64        // starttime of /proc/PID/stat by pid; guarded by p.mu
	stale    map[int32]bool          // perf map of an earlier process, counted

	mounts    string               // of this process; "" if unknown
	contained map[int32]*contained // by pid, nil: in the same mount namespace; guarded by p.mu
	held      int                  // open files of these

	// Build IDs of files in which stacks may have bare addresses; nil if not needed. requestedIDs
	// are the files that are being read.
	ids          map[procmaps.File]buildid.ID
	requestedIDs map[procmaps.File]bool
}

// mapsCopy is a copy of a process's mappings, and the program that it was running.
type mapsCopy struct {
	spooled
	program uint64 // see sampler.ProgramFacts; 0 if unknown
	// First and last read with these mappings.
	first, last readTime
}

// readTime is the span of reading a file in /proc, ns of CLOCK_MONOTONIC.
type readTime struct{ begin, end uint64 }

// device is a file's device.
type device struct{ major, minor uint32 }

func newProcesses(s *recording) (*processes, error) {
	p := &processes{s: s, host: &s.host, proc: cmp.Or(s.opts.HostProc, s.host.Path("/proc")), patience: patience,
		kept:  make(map[int32][]mapsCopy),
		reads: newLanes[int32](maxReaders), opens: newLanes[device](maxReaders),
		bare:  make(map[int32]bool),
		dirty: make(map[int32]bool), seen: make(map[int32]bool), whole: make(map[int32]bool),
		counted: make(map[int32]bool), added: make(map[int32]spooled), compiled: make(map[int32]compiledSizes),
		dumps:  make(map[int32]procmaps.File),
		starts: make(map[int32]uint64), stale: make(map[int32]bool)}
	p.contained = make(map[int32]*contained)
	p.mounts, _ = os.Readlink(s.host.Path("/proc/self/ns/mnt"))
	p.readID, p.bootTicks = p.fileID, bootTicks(s.host.Path(sys.OffsetsFile))
	for _, pid := range s.opts.PIDs {
		p.whole[int32(pid)] = true
	}
	var err error
	p.maps, err = newSpool()
	return p, err
}

// identify makes the build IDs of mapped files be read.
func (p *processes) identify(vdso buildid.ID) {
	p.vdso = vdso
	p.ids, p.requestedIDs = make(map[procmaps.File]buildid.ID), make(map[procmaps.File]bool)
}

// open opens events that write records of the future children of this thread to the rings, and
// returns their ids. The events are inherited: the command must be started from the calling thread.
func (p *processes) open(rings []*sys.Ring) (ids []uint64) {
	if len(p.s.opts.Command) == 0 {
		return nil
	}
	if p.otherNumbers() {
		p.s.warn("the command's processes are not followed: records and %s have "+
			"different process IDs", p.proc)
		return nil
	}
	flags := processFlags | perfdata.FlagInherit | perfdata.FlagBuildID
	for _, r := range rings {
		fd, id, err := sys.OpenEvent(p.s.clocked(sys.DummyAttr(flags)), 0, r.CPU)
		if errors.Is(err, unix.EINVAL) && flags&perfdata.FlagBuildID != 0 { // before Linux 5.12
			flags &^= perfdata.FlagBuildID
			fd, id, err = sys.OpenEvent(p.s.clocked(sys.DummyAttr(flags)), 0, r.CPU)
		}
		if err == nil {
			err = r.Redirect(fd)
		}
		if err != nil {
			p.s.warn("the command's processes are not followed: %v", err)
			return ids
		}
		p.fds = append(p.fds, fd)
		ids = append(ids, id)
	}
	return ids
}

// record handles a COMM, FORK or MMAP2 record.
func (p *processes) record(body []byte) {
	if len(body) < 4 {
		return
	}
	if pid := int32(binary.NativeEndian.Uint32(body)); pid > 0 && int(pid) != p.host.PID() {
		p.follow(pid)
	}
}

// follow keeps all mappings of a process in their original form.
func (p *processes) follow(pid int32) {
	p.mu.Lock()
	p.whole[pid] = true
	p.mu.Unlock()
	p.track(pid)
}

// track reads the mappings of a process, soon and at the end.
func (p *processes) track(pid int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) < maxProcesses || p.seen[pid] {
		p.seen[pid], p.dirty[pid] = true, true
		p.s.wake()
	} else {
		p.s.lost("processes beyond the limit", 1)
	}
}

// changed reads, soon, the mappings of a process that is only sampled.
func (p *processes) changed(pid int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty[pid] = true
	p.s.wake()
}

// moved reads, soon, the mappings of a process that moved some, if its stacks have bare addresses:
// only a copy shows the current mappings.
func (p *processes) moved(pid int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bare[pid] {
		p.dirty[pid] = true
		p.s.wake()
	}
}

// readNow reads the mappings of a process immediately, because it may be short-lived. The process
// counts as seen with something to read.
func (p *processes) readNow(pid int32) { p.reads.run(pid, func() { p.read(pid) }) }

func (p *processes) start() error { return nil }

// drain reads the mappings of the processes that changed them.
func (p *processes) drain() time.Duration {
	p.mu.Lock()
	pids := slices.Sorted(maps.Keys(p.dirty))
	clear(p.dirty)
	p.mu.Unlock()
	for _, pid := range pids {
		p.readNow(pid)
	}
	return p.openContained()
}

// path returns the path of a file in /proc.
func (p *processes) path(pid int32, file string) string {
	return p.proc + "/" + strconv.Itoa(int(pid)) + "/" + file
}

// stop reads the mappings of the processes in Options, and again of the command's processes, and
// waits for pending reads.
func (p *processes) stop() {
	p.drain()
	pids := p.s.opts.PIDs
	if p.s.opts.AllProcesses {
		pids = slices.Concat(pids, p.all())
	}
	for _, pid := range pids {
		if !p.exists(pid) {
			p.s.warn("no process %d", pid)
			continue
		}
		p.mu.Lock()
		p.whole[int32(pid)] = true
		p.mu.Unlock()
		p.readNow(int32(pid))
	}
	for _, pid := range p.reads.wait(p.patience) {
		p.s.warn("the mappings of process %d could not be read in %v", pid, p.patience)
	}
	for _, d := range p.opens.wait(p.patience) {
		p.s.warn("build IDs of files of device %d:%d could not be read in %v", d.major, d.minor,
			p.patience)
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
}

func (p *processes) exists(pid int) bool {
	_, err := os.Stat(p.path(int32(pid), ""))
	return err == nil
}

// all returns the existing processes without this one.
func (p *processes) all() (pids []int) {
	entries, err := os.ReadDir(p.proc)
	if err != nil {
		p.s.warn("%v", err)
	}
	for _, e := range entries {
		if pid, err := strconv.ParseInt(e.Name(), 10, 32); err == nil && int(pid) != p.host.PID() {
			pids = append(pids, int(pid))
		}
	}
	return pids
}

func (p *processes) close() {
	for _, fd := range p.fds {
		unix.Close(fd)
	}
	p.fds = nil
	p.maps.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid := range maps.Clone(p.contained) {
		p.release(pid)
	}
}

// readTries limits the reads of a process's mappings if it calls exec meanwhile.
const readTries = 3

// read adds a process's current mappings. Mappings without code, or without the final newline, as
// of a kernel thread, are not kept.
func (p *processes) read(pid int32) {
	for range readTries {
		before := p.program(pid)
		if p.readOf(pid, before, func() bool { return p.program(pid) == before }) {
			return
		}
	}
}

// readOf adds a process's mappings for a program. It returns false if the process runs another
// program after the read.
func (p *processes) readOf(pid int32, program uint64, runs func() bool) bool {
	buf := mapBuffers.Get().(*[]byte)
	defer mapBuffers.Put(buf)
	begin := p.host.Monotonic()
	b, err := readSome(p.path(pid, "maps"), (*buf)[:0], maxMaps+1)
	if cap(b) <= maxBuffer {
		*buf = b
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		// the process ended; the records have its mappings
	case errors.Is(err, fs.ErrPermission):
		p.s.lost("mappings of processes: permission denied", 1)
	case err != nil:
		p.s.warn("%v", err)
	case len(b) > maxMaps:
		p.s.lost("mappings of processes: too large", 1)
	case len(b) == 0:
	case !runs():
		return false
	default:
		p.keep(pid, program, b, readTime{begin, p.host.Monotonic()})
		p.trackContained(pid)
	}
	return true
}

// mapBuffers are buffers for files of /proc, which are read for every new process. Buffers larger
// than maxBuffer are not kept.
var mapBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 16<<10)
	return &b
}}

const maxBuffer = 1 << 20

// readSome appends at most limit bytes of a file to b. It avoids package os, which needs twice the
// system calls.
func readSome(path string, b []byte, limit int) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return b, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for len(b) < limit {
		b = slices.Grow(b, os.Getpagesize()) // unit of reads from /proc
		n, err := unix.Read(fd, b[len(b):min(cap(b), limit)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return b, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return b, nil
		default:
			b = b[:len(b)+n]
		}
	}
	return b, nil
}

// keep adds mappings that were read; of a process that is only sampled, only mappings of code.
func (p *processes) keep(pid int32, program uint64, text []byte, at readTime) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if p.ids != nil {
		text = p.codeOf(pid, text, at.begin)
	}
	versions := p.kept[pid]
	if n := len(versions); n > 0 && int(versions[n-1].len) == len(text) &&
		versions[n-1].program == program {
		was, err := p.maps.read(versions[n-1].spooled, nil)
		if err == nil && bytes.Equal(was, text) {
			versions[n-1].last = at
			return
		}
	}
	switch {
	case len(text) == 0:
		return
	case !p.seen[pid] && len(p.seen) >= maxProcesses:
		p.s.lost("processes beyond the limit", 1)
		return
	case p.maps.size+int64(len(text)) > maxProcessBytes:
		p.s.lost("mappings of processes: too large", 1)
		return
	}
	if err := p.maps.add(uint32(pid), text); err != nil {
		p.s.warn("%v", err)
		return
	}
	p.seen[pid] = true
	p.setDump(pid, text)
	p.kept[pid] = append(evicted(versions, program),
		mapsCopy{p.maps.entries[0], program, at, at})
	p.maps.entries = p.maps.entries[:0] // kept holds the entries
}

// evicted returns the copies of a process's mappings without the oldest one, if another copy for a
// program would pass the limit for the program or for the process.
func evicted(copies []mapsCopy, program uint64) []mapsCopy {
	same, oldest := 0, -1
	for i := range slices.Backward(copies) {
		if copies[i].program == program {
			same, oldest = same+1, i
		}
	}
	switch {
	case same >= maxVersions:
		return slices.Delete(copies, oldest, oldest+1)
	case len(copies) >= maxCopies:
		return slices.Delete(copies, 0, 1)
	}
	return copies
}

// codeOf returns the lines of mappings with code, or all lines of a process that is kept whole. It
// requests the build IDs of the files with code, which were mapped at the time since. p.mu is held.
func (p *processes) codeOf(pid int32, text []byte, since uint64) []byte {
	whole, code := p.whole[pid], text[:0]
	for m, row := range procmaps.Code(text) {
		p.requestID(pid, m, since)
		if !whole {
			code = append(code, row...)
		}
	}
	if whole {
		return text
	}
	return code
}

// program identifies the current program of a process by its /proc/PID/stat, as
// sampler.ProgramFacts.ID; 0 if that cannot be read.
func (p *processes) program(pid int32) uint64 {
	var buf [maxStat]byte
	b, err := readSome(p.path(pid, "stat"), buf[:0], maxStat)
	if err != nil {
		return 0
	}
	facts, ok := parseStat(b)
	if !ok {
		return 0
	}
	facts.StartTicks -= p.bootTicks
	p.started(pid, facts.StartTicks)
	return facts.ID()
}

// bootTicks returns the offset of this process's time namespace, in ticks: starttime includes it.
func bootTicks(path string) uint64 {
	return uint64(sys.ReadTimeOffsets(path).Boottime / int64(tick))
}

// maxStat is above the length of /proc/PID/stat: 52 numbers, and a name.
const maxStat = 2048

// parseStat parses the facts in a /proc/PID/stat (proc_pid_stat(5)).
func parseStat(b []byte) (f sampler.ProgramFacts, ok bool) {
	i := bytes.LastIndexByte(b, ')') // the name can contain any bytes
	if i < 0 {
		return f, false
	}
	const firstField = 3
	fields := bytes.Fields(b[i+1:])
	for _, x := range []struct {
		field int
		to    *uint64
	}{{22, &f.StartTicks}, {27, &f.EndCode}, {28, &f.StartStack}, {47, &f.StartBrk}} {
		if len(fields) <= x.field-firstField {
			return f, false
		}
		var err error
		if *x.to, err = strconv.ParseUint(string(fields[x.field-firstField]), 10, 64); err != nil {
			return f, false
		}
	}
	return f, true
}

// programs lists the programs of a process with copies of their mappings: the last program first,
// the others in order of arrival.
func (p *processes) programs(pid int32) (list []uint64) {
	versions := p.kept[pid]
	if len(versions) == 0 {
		return nil
	}
	list = append(list, versions[len(versions)-1].program)
	for _, v := range versions {
		if !slices.Contains(list, v.program) {
			list = append(list, v.program)
		}
	}
	return list
}

// lanes run jobs concurrently with the caller: jobs of one key in sequence, jobs of different keys
// in parallel, up to a number of lanes. A job that never returns (reading a file of a dead server)
// blocks only its own key.
type lanes[K comparable] struct {
	bound int

	mu      sync.Mutex
	jobs    map[K][]func() // pending, by keys with a running or waiting job
	running int
	waiting []K
	idle    chan struct{} // closed when no job runs; nil: nobody waits
}

func newLanes[K comparable](bound int) *lanes[K] {
	return &lanes[K]{bound: bound, jobs: make(map[K][]func())}
}

// run starts a job soon.
func (l *lanes[K]) run(key K, job func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, running := l.jobs[key]
	l.jobs[key] = append(before, job)
	switch {
	case running:
	case l.running == l.bound:
		l.waiting = append(l.waiting, key)
	default:
		l.running++
		go l.lane(key)
	}
}

// lane runs the jobs of a key, then the jobs of waiting keys.
func (l *lanes[K]) lane(key K) {
	for ok := true; ok; {
		var job func()
		if key, job, ok = l.next(key); ok {
			job()
		}
	}
}

func (l *lanes[K]) next(key K) (K, func(), bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.jobs[key]) == 0 {
		delete(l.jobs, key)
		if len(l.waiting) == 0 {
			if l.running--; l.running == 0 && l.idle != nil {
				close(l.idle)
				l.idle = nil
			}
			return key, nil, false
		}
		key, l.waiting = l.waiting[0], l.waiting[1:]
	}
	job := l.jobs[key][0]
	l.jobs[key] = l.jobs[key][1:]
	return key, job, true
}

// wait waits until all jobs are done or the limit has passed. It returns the keys with unfinished
// jobs.
func (l *lanes[K]) wait(limit time.Duration) (left []K) {
	l.mu.Lock()
	if l.running == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.jobs {
		left = append(left, key)
	}
	return left
}
