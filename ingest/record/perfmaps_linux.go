package record

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/regular"
)

// A perf map names code by the address, and belongs to a process by its number alone, which an
// earlier process may have had: that one's file is still there, and its names would be wrong.
// Whoever compiles at run time writes to the file while it runs, so a file that was written
// before its process began is left out and counted.

// addPerfMaps adds the perf maps that processes left or are writing, which only grow. It asks
// whether one is wanted by its size when it was added last, and now.
func (p *processes) addPerfMaps(w *bundle.Writer,
	wanted func(pid int32, was, size int64) bool) error {
	p.mu.Lock()
	pids := slices.Sorted(maps.Keys(p.seen))
	p.mu.Unlock()
	left := int64(maxProcessBytes)
	for _, pid := range pids {
		f := p.perfMap(pid)
		if f == nil {
			continue
		}
		fi, err := f.Stat()
		switch {
		case err != nil:
		case p.isOlder(pid, fi.ModTime()):
			if !p.stale[pid] {
				p.stale[pid] = true
				p.s.lost("perf maps: of earlier processes with the same number", 1)
			}
		case fi.Size() > min(maxPerfMap, left):
			p.s.lost("perf maps: too large", 1)
		case fi.Size() > 0 && (fi.Size() == p.perfMaps[pid] ||
			!wanted(pid, p.perfMaps[pid], fi.Size())):
		default:
			left -= fi.Size()
			p.perfMaps[pid] = fi.Size()
			err = w.AddReader(bundle.PerfMapName(pid), io.LimitReader(f, fi.Size()))
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
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
		// Whoever owns /tmp may have put anything there.
		f, err := regular.OpenNoLink(path)
		if err == nil {
			return f
		}
	}
	return nil
}

// started notes when the process began that has a number now, in ticks as /proc/PID/stat has it.
func (p *processes) started(pid int32, ticks uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts[pid] = ticks
}

// tick is the unit of times in /proc/PID/stat (USER_HZ), and above that of times of files.
const tick = 10 * time.Millisecond

// isOlder reports whether a perf map was written before its process began. Of one that ended
// before its start was read the map was written in the time of the recording, or it is older.
func (p *processes) isOlder(pid int32, written time.Time) bool {
	p.mu.Lock()
	ticks, ok := p.starts[pid]
	p.mu.Unlock()
	if !ok {
		return written.Before(time.Unix(0, int64(p.s.manifest.Begin.Realtime)))
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return false
	}
	age := time.Duration(now.Nano()) - time.Duration(ticks)*tick
	return written.Before(time.Now().Add(-age - 2*tick))
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
