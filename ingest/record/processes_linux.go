package record

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/procmaps"
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
