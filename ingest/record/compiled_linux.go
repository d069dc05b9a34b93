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
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/procmaps"
)

// A perf map names code by address, and belongs to a process by its ID only. An earlier process
// with the same ID may have left its file, with wrong names. Run-time compilers write to the file
// while they run, so a file last written before its process started is left out and counted. A
// jitdump file is identified by the process's mapping of it.

// compiledSizes are the sizes of a process's files when last added to a bundle.
type compiledSizes struct{ perfMap, dump int64 }

// compiledFile is a perf map or a jitdump file.
type compiledFile struct {
	*os.File
	path    string // in the process's mount namespace
	size    int64  // bytes to copy
	written time.Time
	lines   bool // copy whole lines only
	held    bool // kept open
}

// addCompiled adds the files that run-time compilers wrote or are writing; they only grow. changed
// decides by a file's size when last added and its size now.
func (p *processes) addCompiled(w *bundle.Writer,
	changed func(pid int32, was, size int64) bool) error {
	p.mu.Lock()
	pids := slices.Sorted(maps.Keys(p.seen))
	p.mu.Unlock()
	x := compiledAdder{p: p, w: w, changed: changed, left: maxProcessBytes}
	for _, pid := range pids {
		if err := x.process(pid); err != nil {
			return err
		}
	}
	return nil
}

type compiledAdder struct {
	p       *processes
	w       *bundle.Writer
	changed func(pid int32, was, size int64) bool
	left    int64 // remaining bytes
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

// file adds a file, if it changed, and sets its size.
func (x *compiledAdder) file(pid int32, f *compiledFile, of, entry string, size *int64) error {
	lost := func(why string) { x.p.s.lost(of+": "+why, 1) }
	switch {
	case f.size == 0 || f.size == *size:
	case x.p.isOlder(pid, f.written):
		if !x.p.stale[pid] {
			x.p.stale[pid] = true
			lost("of earlier processes with the same ID")
		}
	case f.size > min(maxCompiled, x.left):
		lost("too large")
	case x.changed(pid, *size, f.size):
		x.left -= f.size
		*size = f.size
		return x.w.AddReader(entry, io.NewSectionReader(f, 0, f.size))
	}
	return nil
}

// perfMap returns a process's perf map: below the process's root, named by its ID there, or below
// ours if the process ended. It returns nil if there is none.
func (p *processes) perfMap(pid, inner int32) *compiledFile {
	if c := p.containedAs(pid); c != nil && c.perfMap != nil {
		return c.perfMap.refresh()
	}
	if f := p.openMap(p.path(pid, "root"), inner); f != nil {
		return f
	}
	return p.openMap(p.host.Root, pid)
}

// openMap opens the perf map below a root, with a process ID there; nil if there is none.
func (p *processes) openMap(root string, pid int32) *compiledFile {
	path := "/tmp/" + symlist.PerfMapName(pid)
	f, err := files.OpenNoLink(root + path) // a directory like /tmp can contain anything
	if err != nil {
		return nil
	}
	return (&compiledFile{File: f, path: path, lines: true}).refresh()
}

// refresh reads the size and modification time of an open file; nil if that fails.
func (f *compiledFile) refresh() *compiledFile {
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

// Close closes the file unless it is kept open.
func (f *compiledFile) Close() {
	if !f.held {
		f.File.Close()
	}
}

// wholeLines returns the length of a file's whole lines: the last line may be incomplete. If the
// last line is longer than any function's, it returns the size of the file.
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

// jitDump returns the jitdump file that a process has mapped: below the process's root, or below
// ours if the process ended. It returns nil if there is none, or if the path has another file now.
func (p *processes) jitDump(pid, _ int32) *compiledFile {
	if c := p.containedAs(pid); c != nil && c.dump != nil {
		return c.dump.refresh()
	}
	if f := p.openDump(p.path(pid, "root"), pid); f != nil {
		return f
	}
	return p.openDump(p.host.Root, pid)
}

// containedAs returns a process in another mount namespace; nil for others.
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
	return (&compiledFile{File: f, path: mapped.Path}).refresh()
}

// hasDump reports whether a process has mapped a jitdump file.
func (p *processes) hasDump(pid int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dumps[pid].Path != ""
}

// setDump records the jitdump file in the mappings of a process. p.mu is held.
func (p *processes) setDump(pid int32, text []byte) {
	if !bytes.Contains(text, []byte(".dump\n")) {
		return
	}
	for m := range procmaps.Code(text) {
		if _, ok := jitdump.PIDOf(m.File.Path); ok {
			p.dumps[pid] = m.File
		}
	}
}

// vdsoOf returns the address of the vdso of a process, from the mappings read last; 0 if they have
// none.
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

// started records when the process with this ID started, in ticks since the boot.
func (p *processes) started(pid int32, ticks uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts[pid] = ticks
}

// tick is the unit of times in /proc/PID/stat (USER_HZ); times of files are more precise.
const tick = 10 * time.Millisecond

// began returns the start of a process in ns since 1970; 0 if it ended before that was read.
func (p *processes) began(pid int32) uint64 {
	p.mu.Lock()
	ticks, ok := p.starts[pid]
	p.mu.Unlock()
	if !ok {
		return 0
	}
	now := p.host.Now()
	return now.Realtime - now.Boottime + ticks*uint64(tick)
}

// isOlder reports whether a file was written before its process started. For a process that ended
// before its start was read, it reports whether the file is older than the recording.
func (p *processes) isOlder(pid int32, written time.Time) bool {
	begin := cmp.Or(p.began(pid), p.s.manifest.Begin.Realtime)
	return written.Before(time.Unix(0, int64(begin)).Add(-2 * tick))
}

// A container's /tmp disappears with its last process. Files of run-time compilers in other mount
// namespaces are therefore opened while their processes run: an open file stays readable and grows
// until it is copied.

// contained is a process in another mount namespace.
type contained struct {
	perfMap, dump *compiledFile // open; nil until they exist
	inner         int32         // process ID in its own namespace
	next          uint64        // time of the next attempt to open the files, ns of CLOCK_MONOTONIC
	pause         time.Duration
}

const (
	// firstLook is the delay of the first attempt to open the files, after the mappings were read.
	// Later delays double, up to flushEvery.
	firstLook = 100 * time.Millisecond
	// maxHeld limits the files kept open.
	maxHeld = 512
)

// trackContained registers a process that is in another mount namespace.
func (p *processes) trackContained(pid int32) {
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
		c = &contained{next: p.host.Monotonic() + uint64(firstLook), pause: firstLook}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contained[pid] = c
	if c != nil {
		p.s.wake()
	}
}

// openContained opens the files of contained processes that exist by now. It returns the time until
// the next attempt; 0 if none is needed.
func (p *processes) openContained() (again time.Duration) {
	now := p.host.Monotonic()
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
		p.openFiles(pid)
	}
	return again
}

// openFiles opens the existing files of a contained process.
func (p *processes) openFiles(pid int32) {
	status, err := os.ReadFile(p.path(pid, "status"))
	if err != nil {
		return // ended
	}
	inner := procmaps.InnerPID(string(status), pid)
	perfMap := p.openMap(p.path(pid, "root"), inner)
	dump := p.openDump(p.path(pid, "root"), pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contained[pid]
	if c == nil {
		c = &contained{perfMap: &compiledFile{}, dump: &compiledFile{}} // forgotten meanwhile
	}
	c.inner = inner
	p.keepOpen(&c.perfMap, perfMap)
	p.keepOpen(&c.dump, dump)
}

// keepOpen keeps a file open, which may be nil, unless another one is. p.mu is held.
func (p *processes) keepOpen(at **compiledFile, f *compiledFile) {
	switch {
	case f == nil:
	case *at != nil:
		f.Close()
	default:
		f.held, *at = true, f
		p.held++
	}
}

// release closes the files of a process that were kept open. p.mu is held.
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
