package record

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/procmaps"
)

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
