package record

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/object/perfmap"
)

// A perf map names code by the address, and belongs to a process by its number alone, which an
// earlier process may have had: that one's file is still there, and its names would be wrong.
// Whoever compiles at run time writes to the file while it runs, so a file that was written
// before its process began is left out and counted. A jitdump file is the one that the process has
// mapped.

// compiledSizes are the sizes of a process's files when they were added to a bundle last.
type compiledSizes struct{ perfMap, dump int64 }

// compiledFile is one of these files.
type compiledFile struct {
	*os.File
	path    string // as the process has it
	size    int64  // of which is taken
	written time.Time
	lines   bool // only whole lines of it are taken
	held    bool // it is kept open
}

// addCompiled adds the files that run-time compilers left or are writing, which only grow. It asks
// whether one is wanted by its size when it was added last, and now.
func (p *processes) addCompiled(w *bundle.Writer,
	wanted func(pid int32, was, size int64) bool) error {
	p.mu.Lock()
	pids := slices.Sorted(maps.Keys(p.seen))
	p.mu.Unlock()
	x := compiledAdder{p: p, w: w, wanted: wanted, left: maxProcessBytes}
	for _, pid := range pids {
		if err := x.process(pid); err != nil {
			return err
		}
	}
	return nil
}

type compiledAdder struct {
	p      *processes
	w      *bundle.Writer
	wanted func(pid int32, was, size int64) bool
	left   int64 // bytes that may be added
}

// process adds the files of one process, and the facts about them.
func (x *compiledAdder) process(pid int32) error {
	was := x.p.compiled[pid]
	now, of := was, bundle.Compiled{}
	inner := pid
	if c := x.p.containedAs(pid); c != nil && c.inner > 0 {
		inner = c.inner
	} else if b, err := os.ReadFile(x.p.path(pid, "status")); err == nil {
		inner = procmaps.InnerPID(string(b), pid)
	}
	for _, one := range []struct {
		open  func(pid, inner int32) *compiledFile
		of    string
		entry string
		size  *int64
		fact  **bundle.ForeignFile
	}{
		{x.p.perfMap, "perf maps", bundle.PerfMapName(pid), &now.perfMap, &of.PerfMap},
		{x.p.jitDump, "jitdump files", bundle.JITDumpName(pid), &now.dump, &of.JITDump},
	} {
		f := one.open(pid, inner)
		if f == nil {
			continue
		}
		err := x.file(pid, f, one.of, one.entry, one.size)
		if *one.size > 0 {
			*one.fact = &bundle.ForeignFile{Path: f.path, Written: uint64(f.written.UnixNano())}
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	if now == was {
		return nil
	}
	x.p.compiled[pid] = now
	of.Began, of.VDSO = x.p.began(pid), bundle.HexAddr(x.p.vdsoOf(pid))
	b, err := of.Encode()
	if err != nil {
		return err
	}
	return x.w.Add(bundle.CompiledName(pid), b)
}

// file adds a file, if it is wanted, and sets its size.
func (x *compiledAdder) file(pid int32, f *compiledFile, of, entry string, size *int64) error {
	lost := func(why string) { x.p.s.lost(of+": "+why, 1) }
	switch {
	case f.size == 0 || f.size == *size:
	case x.p.isOlder(pid, f.written):
		if !x.p.stale[pid] {
			x.p.stale[pid] = true
			lost("of earlier processes with the same number")
		}
	case f.size > min(maxCompiled, x.left):
		lost("too large")
	case x.wanted(pid, *size, f.size):
		x.left -= f.size
		*size = f.size
		return x.w.AddReader(entry, io.NewSectionReader(f, 0, f.size))
	}
	return nil
}

// perfMap returns a process's perf map: of its own root, by the number that it has
// there, or of ours if it is gone. It is nil if there is none.
func (p *processes) perfMap(pid, inner int32) *compiledFile {
	if c := p.containedAs(pid); c != nil && c.perfMap != nil {
		return c.perfMap.again()
	}
	if f := p.openMap(p.path(pid, "root"), inner); f != nil {
		return f
	}
	return p.openMap(p.s.host.Root, pid)
}

// openMap opens the perf map below a root of the process with a number there; nil if there is none.
func (p *processes) openMap(root string, pid int32) *compiledFile {
	path := "/tmp/" + perfmap.FileName(pid)
	f, err := files.OpenNoLink(root + path) // whoever owns /tmp may have put anything there
	if err != nil {
		return nil
	}
	return (&compiledFile{File: f, path: path, lines: true}).again()
}

// again reads how large an opened file is, and when it was written; it returns nil if that cannot
// be read.
func (f *compiledFile) again() *compiledFile {
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil
	}
	f.size, f.written = fi.Size(), fi.ModTime()
	if f.lines {
		f.size = wholeLines(f, f.size)
	}
	return f
}

// Close closes the file, unless it is kept open.
func (f *compiledFile) Close() {
	if !f.held {
		f.File.Close()
	}
}

// wholeLines returns how many of a file's bytes are whole lines: the last may be being written.
// A file whose last line is longer than any function's is taken as it is.
func wholeLines(f io.ReaderAt, size int64) int64 {
	const longest = 64 << 10
	b := make([]byte, min(size, longest))
	if _, err := f.ReadAt(b, size-int64(len(b))); err != nil {
		return size
	}
	i := bytes.LastIndexByte(b, '\n')
	if i < 0 && size > longest {
		return size
	}
	return size - int64(len(b)-i-1)
}

// jitDump returns the jitdump file that a process has mapped: of its own root, or of ours if it is
// gone. It is nil if there is none, or if another file is there now.
func (p *processes) jitDump(pid, _ int32) *compiledFile {
	if c := p.containedAs(pid); c != nil && c.dump != nil {
		return c.dump.again()
	}
	if f := p.openDump(p.path(pid, "root"), pid); f != nil {
		return f
	}
	return p.openDump(p.s.host.Root, pid)
}

// containedAs returns the process as one of another mount namespace; nil if it is not.
func (p *processes) containedAs(pid int32) *contained {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.contained[pid]
}

// openDump opens the jitdump file of a process below a root.
func (p *processes) openDump(root string, pid int32) *compiledFile {
	p.mu.Lock()
	mapped := p.dumps[pid]
	p.mu.Unlock()
	if mapped.Path == "" {
		return nil
	}
	f, err := files.OpenNoLink(root + mapped.Path)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Ino != mapped.Inode {
		f.Close()
		return nil
	}
	return (&compiledFile{File: f, path: mapped.Path}).again()
}

// hasDump reports whether a process has mapped a jitdump file.
func (p *processes) hasDump(pid int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dumps[pid].Path != ""
}

// noteDump notes the jitdump file in the mappings of a process. p.mu is held.
func (p *processes) noteDump(pid int32, text []byte) {
	if !bytes.Contains(text, []byte(".dump\n")) {
		return
	}
	for m := range procmaps.Code(text) {
		if _, ok := jitdump.PIDOf(m.File.Path); ok {
			p.dumps[pid] = m.File
		}
	}
}

// vdsoOf returns where the vdso of a process lies, by the mappings that were read last; 0 if
// they do not have it.
func (p *processes) vdsoOf(pid int32) addr.PC {
	p.mu.Lock()
	defer p.mu.Unlock()
	versions := p.kept[pid]
	if len(versions) == 0 {
		return 0
	}
	text, err := p.maps.read(versions[len(versions)-1].spooled, nil)
	if err != nil {
		return 0
	}
	for m := range procmaps.Code(text) {
		if m.File.Path == procmaps.VDSO {
			return addr.PC(m.Start)
		}
	}
	return 0
}

// started notes when the process began that has a number now, in ticks as /proc/PID/stat has it.
func (p *processes) started(pid int32, ticks uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts[pid] = ticks
}

// tick is the unit of times in /proc/PID/stat (USER_HZ), and above that of times of files.
const tick = 10 * time.Millisecond

// began returns when a process did, ns since 1970; 0 if it ended before that was read.
func (p *processes) began(pid int32) uint64 {
	p.mu.Lock()
	ticks, ok := p.starts[pid]
	p.mu.Unlock()
	if !ok {
		return 0
	}
	now := p.s.host.Now()
	return now.Realtime - now.Boottime + ticks*uint64(tick)
}

// isOlder reports whether a file was written before its process began. Of one that ended
// before its start was read the file was written in the time of the recording, or it is older.
func (p *processes) isOlder(pid int32, written time.Time) bool {
	begin := cmp.Or(p.began(pid), p.s.manifest.Begin.Realtime)
	return written.Before(time.Unix(0, int64(begin)).Add(-2 * tick))
}

// A container has a /tmp of its own, which is gone when its last process is. So the files of
// run-time compilers in other mount namespaces are opened while their processes run: an open file
// stays, and grows on until it is taken.

// contained is a process in another mount namespace.
type contained struct {
	perfMap, dump *compiledFile // open; nil until they are there
	inner         int32         // its number in its own namespace
	next          uint64        // when to look for the files again, ns of CLOCK_MONOTONIC
	pause         time.Duration
}

const (
	// firstLook is when files of a process are looked for first, after its mappings were read;
	// the pauses between looks double up to flushEvery.
	firstLook = 100 * time.Millisecond
	// maxHeld bounds the files that are kept open.
	maxHeld = 512
)

// contain notes a process that is in another mount namespace.
func (p *processes) contain(pid int32) {
	p.mu.Lock()
	_, known := p.contained[pid]
	p.mu.Unlock()
	if known {
		return
	}
	of, err := os.Readlink(p.path(pid, "ns/mnt"))
	if err != nil {
		return
	}
	var c *contained
	if p.mounts != "" && of != p.mounts {
		c = &contained{next: p.s.host.Monotonic() + uint64(firstLook), pause: firstLook}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contained[pid] = c
	if c != nil {
		p.s.wake()
	}
}

// hold opens the files of contained processes that are there by now, and returns when to look
// again; 0 if there is nothing to wait for.
func (p *processes) hold() (again time.Duration) {
	now := p.s.host.Monotonic()
	var due []int32
	p.mu.Lock()
	for pid, c := range p.contained {
		switch {
		case c == nil || c.perfMap != nil && (c.dump != nil || p.dumps[pid].Path == ""):
			continue
		case p.held >= maxHeld:
			continue
		case c.next <= now:
			due = append(due, pid)
			c.pause = min(2*c.pause, flushEvery)
			c.next = now + uint64(c.pause)
		}
		if wait := time.Duration(c.next - now); again == 0 || wait < again {
			again = wait
		}
	}
	p.mu.Unlock()
	for _, pid := range due {
		p.look(pid)
	}
	return again
}

// look opens the files of a contained process that are there.
func (p *processes) look(pid int32) {
	status, err := os.ReadFile(p.path(pid, "status"))
	if err != nil {
		return // gone
	}
	inner := procmaps.InnerPID(string(status), pid)
	perfMap := p.openMap(p.path(pid, "root"), inner)
	dump := p.openDump(p.path(pid, "root"), pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contained[pid]
	if c == nil {
		c = &contained{perfMap: &compiledFile{}, dump: &compiledFile{}} // it was forgotten meanwhile
	}
	c.inner = inner
	p.holdOne(&c.perfMap, perfMap)
	p.holdOne(&c.dump, dump)
}

// holdOne keeps an opened file, which may be nil, unless there is one already. p.mu is held.
func (p *processes) holdOne(at **compiledFile, f *compiledFile) {
	switch {
	case f == nil:
	case *at != nil:
		f.Close()
	default:
		f.held, *at = true, f
		p.held++
	}
}

// release closes the files of a process that are held. p.mu is held.
func (p *processes) release(pid int32) {
	if c := p.contained[pid]; c != nil {
		for _, f := range []*compiledFile{c.perfMap, c.dump} {
			if f != nil {
				f.File.Close()
				p.held--
			}
		}
	}
	delete(p.contained, pid)
}
