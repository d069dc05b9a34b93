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
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

const (
	// maxProcesses bounds the processes whose mappings are taken.
	maxProcesses = 1 << 15
	// maxVersions is how many of a program's mappings are kept as they were at several times,
	// maxCopies how many under one process ID, which may run one program after another and be
	// given to one process after another.
	maxVersions = 16
	maxCopies   = 1 << 12
	// maxReaders is how many processes, or files of different devices, are read at a time.
	maxReaders = 32
	// patience is how long the end of a recording waits for pending reads.
	patience = 2 * time.Second
	// maxMaps and maxCompiled bound the files of one process, bytes.
	maxMaps     = 16 << 20
	maxCompiled = 256 << 20
	// maxProcessBytes bounds those of all together.
	maxProcessBytes = 1 << 30
)

// processFlags request a process's mappings, the programs it runs and the processes it starts.
const processFlags = perfdata.FlagMmap | perfdata.FlagMmap2 | perfdata.FlagComm |
	perfdata.FlagCommExec | perfdata.FlagTask

// processes takes the mappings of the command's processes: as records with times, and
// as /proc/PID/maps, read again when they have changed, for a process may be gone at
// the end. Of the processes that Options name it takes the mappings at the end.
//
// Reads run beside the recorders: a process may have its memory locked, and a file lie where nobody
// answers.
type processes struct {
	s        *session
	proc     string // where processes are read: /proc, or Options.HostProc
	fds      []int
	patience time.Duration

	reads *lanes[int32]  // of mappings, by pid
	opens *lanes[device] // of files, by where they lie
	vdso  buildid.ID     // of this host

	bootTicks uint64 // see bootTicks
	// readID is fileID, but in tests.
	readID func(pid int32, m *procmaps.Mapping, since uint64) (id buildid.ID, ok bool)
	// mapped has the changes of mappings; nil: they are not recorded.
	mapped *mapLog
	// places are the results for bare addresses; nil: not examined.
	places *places

	mu     sync.Mutex
	maps   *spool
	kept   map[int32][]mapsCopy // by pid, the newest last
	whole  map[int32]bool       // all mappings of these are wanted, not only the needed ones
	bare   map[int32]bool       // those with bare addresses in their stacks, and their ancestors
	dirty  map[int32]bool       // mapped something since they were read
	seen   map[int32]bool
	closed bool // nothing more is kept

	counted  map[int32]bool          // those with mappings in a bundle
	added    map[int32]spooled       // mappings that were added to this bundle last
	compiled map[int32]compiledSizes // that were added to this bundle
	dumps    map[int32]procmaps.File // jitdump files, of which processes mapped a page; p.mu guards it
	starts   map[int32]uint64        // when processes began, as /proc/PID/stat has it; p.mu guards it
	stale    map[int32]bool          // those whose perf maps were counted as those of others

	mounts    string               // this process's mount namespace; "" if that is not known
	contained map[int32]*contained // by pid, nil for those in the same namespace; p.mu guards it
	held      int                  // files that are open for these

	// The build IDs of files in which stacks may have bare addresses; nil where nobody asks for
	// them. Those of files that are being read are in asked.
	ids   map[procmaps.File]buildid.ID
	asked map[procmaps.File]bool
}

// mapsCopy is a copy of a process's mappings, of the program that it ran then.
type mapsCopy struct {
	spooled
	program uint64 // see sampler.ProgramFacts; 0 if it is not known
	// When the mappings were read, for the first time and the last one that they were the same.
	first, last readTime
}

// readTime is from when to when a file of /proc was read, ns of CLOCK_MONOTONIC.
type readTime struct{ begin, end uint64 }

// device is a file's device.
type device struct{ major, minor uint32 }

func newProcesses(s *session) (*processes, error) {
	p := &processes{s: s, proc: cmp.Or(s.opts.HostProc, s.host.Path("/proc")), patience: patience,
		kept:  make(map[int32][]mapsCopy),
		reads: newLanes[int32](maxReaders), opens: newLanes[device](maxReaders),
		bare:  make(map[int32]bool),
		dirty: make(map[int32]bool), seen: make(map[int32]bool), whole: make(map[int32]bool),
		counted: make(map[int32]bool), added: make(map[int32]spooled), compiled: make(map[int32]compiledSizes),
		dumps:  make(map[int32]procmaps.File),
		starts: make(map[int32]uint64), stale: make(map[int32]bool)}
	p.contained = make(map[int32]*contained)
	p.mounts, _ = os.Readlink(s.host.Path("/proc/self/ns/mnt"))
	p.readID, p.bootTicks = p.fileID, bootTicks(s.host.Path("/proc/self/timens_offsets"))
	for _, pid := range s.opts.PIDs {
		p.whole[int32(pid)] = true
	}
	var err error
	p.maps, err = newSpool()
	return p, err
}

// identify has the build IDs of files read that processes map.
func (p *processes) identify(vdso buildid.ID) {
	p.vdso = vdso
	p.ids, p.asked = make(map[procmaps.File]buildid.ID), make(map[procmaps.File]bool)
}

// open has the records of this thread's children to come written into the rings, and returns the
// ids of the events. The events are inherited; the command must be started from the calling thread.
func (p *processes) open(rings []*sys.Ring) (ids []uint64) {
	if len(p.s.opts.Command) == 0 {
		return nil
	}
	if p.otherNumbers() {
		p.s.warn("the command's processes are not followed: records have other numbers of "+
			"processes than %s", p.proc)
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

// record notes the process that a COMM, FORK or MMAP2 record is of.
func (p *processes) record(body []byte) {
	if len(body) < 4 {
		return
	}
	if pid := int32(binary.NativeEndian.Uint32(body)); pid > 0 && int(pid) != p.s.host.PID() {
		p.follow(pid)
	}
}

// follow has all mappings of a process kept as they are.
func (p *processes) follow(pid int32) {
	p.mu.Lock()
	p.whole[pid] = true
	p.mu.Unlock()
	p.note(pid)
}

// note has the mappings of a process read, soon and at the end.
func (p *processes) note(pid int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) < maxProcesses || p.seen[pid] {
		p.seen[pid], p.dirty[pid] = true, true
		p.s.wake()
	} else {
		p.s.lost("processes beyond the bound", 1)
	}
}

// changed has the mappings of a process read that is only sampled, soon.
func (p *processes) changed(pid int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty[pid] = true
	p.s.wake()
}

// moved has the mappings of a process that moved some read soon, if it has stacks with bare addresses:
// only a copy has what is there now.
func (p *processes) moved(pid int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bare[pid] {
		p.dirty[pid] = true
		p.s.wake()
	}
}

// hurry has the mappings of a process read at once, for it may not be there for long. It
// counts as one of those that were seen when there was something to read.
func (p *processes) hurry(pid int32) { p.reads.run(pid, func() { p.read(pid) }) }

func (p *processes) start() error { return nil }

// drain has the mappings read of processes that have changed them.
func (p *processes) drain() time.Duration {
	p.mu.Lock()
	pids := slices.Sorted(maps.Keys(p.dirty))
	clear(p.dirty)
	p.mu.Unlock()
	for _, pid := range pids {
		p.hurry(pid)
	}
	return p.hold()
}

// path returns the path of a file of /proc.
func (p *processes) path(pid int32, file string) string {
	return p.proc + "/" + strconv.Itoa(int(pid)) + "/" + file
}

// stop reads the processes that Options name, and the command's once more, and takes in
// the results of pending reads.
func (p *processes) stop() {
	p.drain()
	pids := p.s.opts.PIDs
	if p.s.opts.AllProcesses {
		pids = slices.Concat(pids, p.all())
	}
	for _, pid := range pids {
		if !p.exists(pid) {
			p.s.warn("there is no process %d", pid)
			continue
		}
		p.mu.Lock()
		p.whole[int32(pid)] = true
		p.mu.Unlock()
		p.hurry(int32(pid))
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

// all returns the processes that are there, but this one.
func (p *processes) all() (pids []int) {
	entries, err := os.ReadDir(p.proc)
	if err != nil {
		p.s.warn("%v", err)
	}
	for _, e := range entries {
		if pid, err := strconv.ParseInt(e.Name(), 10, 32); err == nil && int(pid) != p.s.host.PID() {
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

// readTries is how often mappings are read of a process that runs another program meanwhile.
const readTries = 3

// read keeps a process's mappings as they are now. Mappings without code and without an end, as of
// a kernel thread, are not kept.
func (p *processes) read(pid int32) {
	for range readTries {
		before := p.program(pid)
		if p.readOf(pid, before, func() bool { return p.program(pid) == before }) {
			return
		}
	}
}

// readOf keeps a process's mappings as those of a program, if that still runs when they are
// read; else it returns false.
func (p *processes) readOf(pid int32, program uint64, runs func() bool) bool {
	room := mapRooms.Get().(*[]byte)
	defer mapRooms.Put(room)
	begin := p.s.host.Monotonic()
	b, err := readSome(p.path(pid, "maps"), (*room)[:0], maxMaps+1)
	if cap(b) <= maxRoom {
		*room = b
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		// gone; the records have its mappings
	case errors.Is(err, fs.ErrPermission):
		p.s.lost("mappings of processes: no rights to read them", 1)
	case err != nil:
		p.s.warn("%v", err)
	case len(b) > maxMaps:
		p.s.lost("mappings of processes: too large", 1)
	case len(b) == 0:
	case !runs():
		return false
	default:
		p.keep(pid, program, b, readTime{begin, p.s.host.Monotonic()})
		p.contain(pid)
	}
	return true
}

// mapRooms are buffers for files of /proc, which are read as often as processes come. Larger
// ones than maxRoom are not kept.
var mapRooms = sync.Pool{New: func() any {
	b := make([]byte, 0, 16<<10)
	return &b
}}

const maxRoom = 1 << 20

// readSome appends a file to b, up to a number of bytes. It does without package os, whose
// files take twice the system calls.
func readSome(path string, b []byte, most int) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return b, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for len(b) < most {
		b = slices.Grow(b, os.Getpagesize()) // the unit of reads from /proc
		n, err := unix.Read(fd, b[len(b):min(cap(b), most)])
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

// keep keeps mappings that were read: of a process that is only sampled those of code.
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
		p.s.lost("processes beyond the bound", 1)
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
	p.noteDump(pid, text)
	p.kept[pid] = append(withRoom(versions, program),
		mapsCopy{p.maps.entries[0], program, at, at})
	p.maps.entries = p.maps.entries[:0] // kept has them
}

// withRoom returns the copies of a process's mappings without the oldest that one more of a
// program has no room beside: of the same program, or of all.
func withRoom(copies []mapsCopy, program uint64) []mapsCopy {
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

// codeOf returns the lines of mappings that are of code, in place of all; of a process that is kept
// whole it returns all. It asks for the build IDs of the files with code, which were mapped at the
// time since. p.mu is held.
func (p *processes) codeOf(pid int32, text []byte, since uint64) []byte {
	whole, code := p.whole[pid], text[:0]
	for m, row := range procmaps.Code(text) {
		p.askID(pid, m, since)
		if !whole {
			code = append(code, row...)
		}
	}
	if whole {
		return text
	}
	return code
}

// program identifies the program that a process runs now, by its /proc/PID/stat, in the
// form of sampler.ProgramFacts; 0 if it cannot be read.
func (p *processes) program(pid int32) uint64 {
	var room [maxStat]byte
	b, err := readSome(p.path(pid, "stat"), room[:0], maxStat)
	if err != nil {
		return 0
	}
	facts, ok := parseStat(b)
	if !ok {
		return 0
	}
	p.started(pid, facts.StartTicks)
	facts.StartTicks -= p.bootTicks
	return facts.ID()
}

// maxStat is above the length of /proc/PID/stat: 52 numbers, and a name.
const maxStat = 2048

// parseStat takes the facts out of a /proc/PID/stat (proc_pid_stat(5)).
func parseStat(b []byte) (f sampler.ProgramFacts, ok bool) {
	i := bytes.LastIndexByte(b, ')') // the name may have any bytes
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

// bootTicks returns how far the boot of this process's time namespace is from that of the
// kernel, in ticks, by /proc/self/timens_offsets: starttime counts from it.
func bootTicks(path string) uint64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0 // a kernel without such namespaces
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "boottime" {
			continue
		}
		sec, err1 := strconv.ParseInt(f[1], 10, 64)
		nsec, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 == nil && err2 == nil {
			return uint64(sec*100 + nsec/10_000_000)
		}
	}
	return 0
}

// programs lists the programs of a process that mappings were kept of: the last first, the others
// in the order in which they came.
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

// lanes run jobs beside their caller: those of one key one after another, those of others at
// the same time, up to a bound of lanes. A job that never returns, as the reading of a file
// whose server is gone, holds up its own key alone.
type lanes[K comparable] struct {
	bound int

	mu      sync.Mutex
	jobs    map[K][]func() // waiting, by keys with a job that runs or waits for a lane
	running int
	waiting []K
	idle    chan struct{} // closed when nothing runs any more; nil: nobody waits for that
}

func newLanes[K comparable](bound int) *lanes[K] {
	return &lanes[K]{bound: bound, jobs: make(map[K][]func())}
}

// run has a job run, soon.
func (l *lanes[K]) run(key K, job func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, taken := l.jobs[key]
	l.jobs[key] = append(before, job)
	switch {
	case taken:
	case l.running == l.bound:
		l.waiting = append(l.waiting, key)
	default:
		l.running++
		go l.lane(key)
	}
}

// lane runs the jobs of a key, then those of a key that waits.
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

// wait waits until all jobs are done, at most so long. It returns the keys that have some
// left.
func (l *lanes[K]) wait(most time.Duration) (left []K) {
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
	timer := time.NewTimer(most)
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
