package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	"symbolize/ingest/bundle"
	"symbolize/ingest/perfdata"
	"symbolize/ingest/procmaps"
)

const (
	// maxProcesses bounds the processes whose mappings are taken.
	maxProcesses = 4096
	// maxMaps and maxPerfMap bound the files of one process, bytes.
	maxMaps    = 16 << 20
	maxPerfMap = 256 << 20
	// maxProcessBytes bounds those of all together.
	maxProcessBytes = 1 << 30
)

// processFlags ask for what a process maps, which programs it runs and which
// processes it starts.
const processFlags = perfdata.FlagMmap | perfdata.FlagMmap2 | perfdata.FlagComm |
	perfdata.FlagCommExec | perfdata.FlagTask

// processes takes the mappings of the command's processes: as records with times, and
// as /proc/PID/maps, read again when they have changed, for a process may be gone at
// the end. Of the processes that Options name it takes what they have at the end.
type processes struct {
	s    *session
	root string // before /proc; "" but in tests
	fds  []int
	maps *spool
	last map[int32]spooled // newest copy of maps, by pid

	// Of stacks with bare addresses: the build IDs of files; that of the vdso; and what the
	// addresses turned out to be.
	ids    map[procmaps.File]buildid.ID
	vdso   buildid.ID
	places *places

	mu    sync.Mutex
	whole map[int32]bool // all mappings of these are wanted, whatever addresses need
	dirty map[int32]bool // mapped something since they were read
	seen  map[int32]bool
}

func newProcesses(s *session, root string) (*processes, error) {
	p := &processes{s: s, root: root, last: make(map[int32]spooled),
		dirty: make(map[int32]bool), seen: make(map[int32]bool), whole: make(map[int32]bool)}
	var err error
	p.maps, err = newSpool()
	return p, err
}

// open has the records of this thread's children to come written into the rings, and
// returns the ids of the events. The events are inherited; the command must be
// started from the calling thread.
func (p *processes) open(rings []*ring) (ids []uint64) {
	if len(p.s.opts.Command) == 0 {
		return nil
	}
	flags := processFlags | perfdata.FlagInherit | perfdata.FlagBuildID
	for _, r := range rings {
		fd, id, err := openEvent(dummyAttr(flags), 0, r.cpu)
		if errors.Is(err, unix.EINVAL) && flags&perfdata.FlagBuildID != 0 { // before Linux 5.12
			flags &^= perfdata.FlagBuildID
			fd, id, err = openEvent(dummyAttr(flags), 0, r.cpu)
		}
		if err == nil {
			err = redirect(fd, r)
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

// redirect has the records of an event written into a ring. After an error the event
// is closed.
func redirect(fd int, r *ring) error {
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, r.fd); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("PERF_EVENT_IOC_SET_OUTPUT", err)
	}
	return nil
}

// record notes the process that a COMM, FORK or MMAP2 record is of.
func (p *processes) record(body []byte) {
	if len(body) < 4 {
		return
	}
	if pid := int32(binary.NativeEndian.Uint32(body)); pid > 0 && int(pid) != os.Getpid() {
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

func (p *processes) start() error { return nil }

// drain reads the mappings of processes that have changed them.
func (p *processes) drain() time.Duration {
	p.mu.Lock()
	pids := slices.Sorted(maps.Keys(p.dirty))
	clear(p.dirty)
	p.mu.Unlock()
	for _, pid := range pids {
		p.read(pid)
	}
	return 0
}

// path returns the path of a file of /proc.
func (p *processes) path(pid int32, file string) string {
	return p.root + "/proc/" + strconv.Itoa(int(pid)) + "/" + file
}

// read keeps a process's mappings as they are now. What it maps without code and
// without an end, as a kernel thread, is not kept.
func (p *processes) read(pid int32) {
	f, err := os.Open(p.path(pid, "maps"))
	var b []byte
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(f, maxMaps+1))
		f.Close()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return // gone; the records have what it mapped
	case errors.Is(err, fs.ErrPermission):
		p.s.lost("mappings of processes: no rights to read them", 1)
		return
	case err != nil:
		p.s.warn("%v", err)
		return
	case len(b) > maxMaps || p.maps.size+int64(len(b)) > maxProcessBytes:
		p.s.lost("mappings of processes: too large", 1)
		return
	case len(b) == 0:
		return
	}
	if old, ok := p.last[pid]; ok && int(old.len) == len(b) {
		if was, err := p.maps.read(old, nil); err == nil && bytes.Equal(was, b) {
			return
		}
	}
	if err := p.maps.add(uint32(pid), b); err != nil {
		p.s.warn("%v", err)
		return
	}
	if p.ids != nil {
		p.readIDs(pid, b)
	}
	p.last[pid] = p.maps.entries[len(p.maps.entries)-1]
}

// stop reads the processes that Options name, and the command's once more.
func (p *processes) stop() {
	p.drain()
	pids := p.s.opts.PIDs
	if p.s.opts.AllProcesses {
		pids = slices.Concat(pids, p.all())
	}
	for _, pid := range pids {
		switch {
		case len(p.seen) >= maxProcesses && !p.seen[int32(pid)]:
			p.s.lost("processes beyond the bound", 1)
			continue
		case !p.exists(pid):
			p.s.warn("there is no process %d", pid)
			continue
		}
		p.seen[int32(pid)], p.whole[int32(pid)] = true, true
		p.read(int32(pid))
	}
}

func (p *processes) exists(pid int) bool {
	_, err := os.Stat(p.path(int32(pid), ""))
	return err == nil
}

// all returns the processes that are there, but this one.
func (p *processes) all() (pids []int) {
	entries, err := os.ReadDir(p.root + "/proc")
	if err != nil {
		p.s.warn("%v", err)
	}
	for _, e := range entries {
		if pid, err := strconv.ParseInt(e.Name(), 10, 32); err == nil && int(pid) != os.Getpid() {
			pids = append(pids, int(pid))
		}
	}
	return pids
}

// add adds the mappings, and the perf maps that processes left.
func (p *processes) add(w *bundle.Writer) error {
	for _, pid := range slices.Sorted(maps.Keys(p.last)) {
		b, err := p.wanted(pid)
		if err == nil && len(b) > 0 {
			p.s.summary.Processes++
			err = w.Add(bundle.MapsName(pid), b)
		}
		if err != nil {
			return err
		}
	}
	left := int64(maxProcessBytes)
	for _, pid := range slices.Sorted(maps.Keys(p.seen)) {
		f := p.perfMap(pid)
		if f == nil {
			continue
		}
		fi, err := f.Stat()
		switch {
		case err != nil || !fi.Mode().IsRegular():
		case fi.Size() > min(maxPerfMap, left):
			p.s.lost("perf maps: too large", 1)
		default:
			left -= fi.Size()
			err = w.AddReader(bundle.PerfMapName(pid), io.LimitReader(f, fi.Size()))
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// wanted returns the mappings of a process that are to be kept: none where addresses in its
// stacks need none.
func (p *processes) wanted(pid int32) ([]byte, error) {
	if p.places != nil && !p.whole[pid] {
		return p.places.maps(pid), nil
	}
	return p.maps.read(p.last[pid], nil)
}

// perfMap opens a process's perf map: in its own root, by the number that it has
// there, or in ours if it is gone. It is nil if there is none.
func (p *processes) perfMap(pid int32) *os.File {
	own := pid
	if b, err := os.ReadFile(p.path(pid, "status")); err == nil {
		own = innerPID(string(b), pid)
	}
	for _, path := range []string{
		p.path(pid, fmt.Sprintf("root/tmp/perf-%d.map", own)),
		fmt.Sprintf("%s/tmp/perf-%d.map", p.root, pid),
	} {
		// Whoever owns /tmp may have put a pipe there, which would not open.
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		if err == nil {
			return f
		}
	}
	return nil
}

// innerPID returns the number that a process has in its own namespace, by its
// /proc/PID/status.
func innerPID(status string, pid int32) int32 {
	_, rest, ok := strings.Cut(status, "\nNSpid:")
	if !ok {
		return pid
	}
	line, _, _ := strings.Cut(rest, "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return pid
	}
	n, err := strconv.ParseInt(fields[len(fields)-1], 10, 32)
	if err != nil || n <= 0 {
		return pid
	}
	return int32(n)
}

func (p *processes) close() {
	for _, fd := range p.fds {
		unix.Close(fd)
	}
	p.fds = nil
	p.maps.close()
}
