package record

import (
	"cmp"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sampler"
)

// places locates bare addresses in user stacks: by the mappings of their processes at that time,
// and by the build IDs of the mapped files, which were read while the processes lived.
type places struct {
	p      *processes
	mapped *mapLog           // of p
	of     programCopies     // last process looked up
	parent programCopies     // last parent looked up
	found  []*codeLine       // of records
	unread sampler.PlaceKind // why there are no copies of the mappings
	timed  bool              // the process has a jitdump file

	lines   []*codeLine          // of the program, with Mapped places
	numbers map[*codeLine]int    // indexes of lines
	tables  map[int32]*mapTables // by process
}

// processProgram is one program of one process ID.
type processProgram struct {
	pid     int32
	program uint64 // see sampler.ProgramFacts; 0: any
}

// programCopies are the copies of a program's mappings, newest first.
type programCopies struct {
	processProgram
	copies []codeCopy
	kept   bool // mappings of its process were saved
}

func newPlaces(p *processes) *places {
	none := programCopies{processProgram: processProgram{pid: -1}}
	return &places{p: p, mapped: p.mapped, of: none, parent: none, tables: make(map[int32]*mapTables),
		numbers: make(map[*codeLine]int)}
}

// codeCopy is the code in a copy of a program's mappings.
type codeCopy struct {
	first, last readTime // see mapsCopy
	lines       []codeLine
}

// codeLine is a line of /proc/PID/maps that maps code.
type codeLine struct {
	procmaps.Line
	id buildid.ID // zero if unknown
}

// Locate implements sampler.Explainer.
func (x *places) Locate(of sampler.Process, at uint64) sampler.Place {
	if now := (processProgram{of.PID, of.Program}); now != x.of.processProgram {
		x.of = x.p.code(now)
		x.unread = sampler.Unread
		if len(x.of.copies) == 0 && !x.p.lives(of) {
			x.unread = sampler.Gone
		}
		x.timed = x.p.hasDump(of.PID)
		x.found, x.lines = nil, nil
		clear(x.numbers)
	}
	switch {
	case procmaps.InVsyscall(at):
		return sampler.Place{Kind: sampler.Vsyscall}
	case at < procmaps.Lowest || at>>63 != 0:
		return sampler.Place{Kind: sampler.Outside}
	case of.Program == 0 && x.of.kept && x.mapped == nil: // program unknown when it was read
		return sampler.Place{Kind: sampler.Ambiguous}
	}
	l, kind := x.line(of, at)
	place := sampler.Place{Kind: kind}
	if len(x.of.copies) > 0 {
		place.Unproven = x.mapped == nil
	}
	if l == nil {
		return place
	}
	if !l.id.IsZero() {
		place.Kind, place.Offset = sampler.InFile, at-l.Start+l.Offset
		copy(place.BuildID[:], l.id.Bytes())
		return place
	}
	n, ok := x.numbers[l]
	if !ok {
		n = len(x.lines)
		x.lines, x.numbers[l] = append(x.lines, l), n
	}
	place.Mapping, place.Timed = n, x.timed
	return place
}

// line returns the mapping of an address and Mapped, or nil and another kind.
func (x *places) line(of sampler.Process, at uint64) (*codeLine, sampler.PlaceKind) {
	l, proof := x.proven(&x.of, of.Time, at)
	switch {
	case l != nil:
		return l, sampler.Mapped
	case proof == history.Nothing:
		return nil, sampler.Outside
	case proof == history.Uncertain:
		return nil, sampler.Ambiguous
	case len(x.of.copies) == 0:
		return nil, x.unread
	case slices.ContainsFunc(x.of.copies, func(c codeCopy) bool { return c.line(at) != nil }):
		return nil, sampler.Ambiguous
	}
	return nil, sampler.Outside
}

// maxForks limits the ancestors, without copies of their own, that are searched for a mapping.
const maxForks = 64

// proven returns the mapping of an address at a time, from copies or else from records. For a child
// it uses its parent's, unless the parent has mapped other code since, in memory they may share.
func (x *places) proven(of *programCopies, time, at uint64) (*codeLine, history.Proof) {
	till := time
	for range maxForks {
		l, proof, unmapped := x.copied(of, time, at)
		if x.mapped == nil || proof != history.Unknown && !unmapped {
			return l, proof
		}
		c := x.mapped.log.At(of.pid, at, time)
		switch {
		case c.Proof == history.Mapped:
			return x.recorded(c.Mapping), history.Mapped
		case unmapped:
			return nil, history.Nothing
		case c.Proof != history.Inherited:
			return nil, c.Proof
		}
		if !x.mapped.unchanged(c.Parent, at, c.Forked, till) {
			return nil, history.Uncertain
		}
		if parent := (processProgram{pid: c.Parent}); parent != x.parent.processProgram {
			x.parent = x.p.code(parent)
		}
		of, time = &x.parent, c.Forked
	}
	return nil, history.Unknown
}

// copied returns the mapping of an address at a time from copies: of kind Mapped or Nothing if
// certain, Uncertain if they differ, Unknown if there are no usable copies. unmapped: only a later
// copy exists and lacks the mapping, which may have been unmapped before it.
func (x *places) copied(of *programCopies, time, at uint64) (l *codeLine, proof history.Proof,
	unmapped bool) {
	list, later := x.near(of, time, at)
	for _, c := range list {
		m := c.line(at)
		switch {
		case m == nil: // unmapping leaves no record
			if l == nil {
				proof = history.Nothing
			}
		case l == nil:
			l, proof = m, history.Mapped
		case !m.Same(&l.Mapping):
			return nil, history.Uncertain, false
		}
	}
	return l, proof, later && l == nil
}

// near returns the last copy before a time and the first one after it, if certainly nothing was
// mapped at the address in between. Without records it returns all copies. later: the only copy is
// after the time.
func (x *places) near(of *programCopies, time, at uint64) (list []*codeCopy, later bool) {
	var before, after struct {
		*codeCopy
		read readTime
	}
	for i := range of.copies {
		c := &of.copies[i]
		if x.mapped == nil {
			list = append(list, c)
			continue
		}
		for _, read := range [...]readTime{c.first, c.last} {
			switch {
			case read.begin <= time && (before.codeCopy == nil || read.begin > before.read.begin):
				before.codeCopy, before.read = c, read
			case read.begin > time && (after.codeCopy == nil || read.begin < after.read.begin):
				after.codeCopy, after.read = c, read
			}
		}
	}
	log := x.mapped
	if c := before.codeCopy; c != nil &&
		log.unchanged(of.pid, at, before.read.begin, max(time, before.read.end)) {
		list = append(list, c)
	}
	if c := after.codeCopy; c != nil && log.unchanged(of.pid, at, time, after.read.end) {
		later = len(list) == 0
		list = append(list, c)
	}
	return list, later
}

// recorded returns the mapping of a record: the same pointer for equal mappings.
func (x *places) recorded(m procmaps.Mapping) *codeLine {
	for _, l := range x.found {
		if l.Mapping == m {
			return l
		}
	}
	x.p.mu.Lock()
	l := x.p.codeLine(m, m.Line())
	x.p.mu.Unlock()
	x.found = append(x.found, l)
	return l
}

// line returns the line that maps an address, or nil.
func (c *codeCopy) line(at uint64) *codeLine {
	for i := range c.lines {
		if l := &c.lines[i]; l.Start <= at && at < l.End {
			return l
		}
	}
	return nil
}

// files returns the files with known build IDs that has accepts, sorted by build ID: for equal
// build IDs the first path in sort order.
func (p *processes) files(has func(id []byte) bool) (files []bundle.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for file, id := range p.ids {
		if has(id.Bytes()) {
			files = append(files, bundle.File{BuildID: id.Hex(), Path: file.Path})
		}
	}
	slices.SortFunc(files, func(a, b bundle.File) int {
		return cmp.Or(strings.Compare(a.BuildID, b.BuildID), strings.Compare(a.Path, b.Path))
	})
	return slices.CompactFunc(files, func(a, b bundle.File) bool { return a.BuildID == b.BuildID })
}

// code returns the code in the copies of a program's mappings.
func (p *processes) code(of processProgram) programCopies {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := programCopies{processProgram: of, kept: len(p.kept[of.pid]) > 0}
	for _, saved := range slices.Backward(p.kept[of.pid]) {
		if saved.program != of.program && of.program != 0 {
			continue
		}
		text, err := p.maps.read(saved.spooled, nil)
		if err != nil {
			continue
		}
		c := codeCopy{first: saved.first, last: saved.last}
		for m, row := range procmaps.Code(text) {
			c.lines = append(c.lines, *p.codeLine(m, string(row)))
		}
		x.copies = append(x.copies, c)
	}
	return x
}

// lives reports whether a process still exists, as far as known.
func (p *processes) lives(of sampler.Process) bool {
	if sampler.IsOutside(of.PID) {
		return true // processes outside the namespace cannot be read
	}
	if !p.exists(int(of.PID)) {
		return false
	}
	now := p.program(of.PID)
	return now == of.Program || p.mapped == nil || !p.mapped.log.ForkedSince(of.PID, of.Time)
}

// codeLine returns a line and the build ID of its file. p.mu is held.
func (p *processes) codeLine(m procmaps.Mapping, text string) *codeLine {
	l := &codeLine{Line: procmaps.Line{Mapping: m, Text: text}, id: p.ids[m.File]}
	if m.File.Path == procmaps.VDSO && m.Start>>32 != 0 { // a 32-bit program has a different vdso
		l.id = p.vdso
	}
	return l
}

// maxFiles limits the cache of files' build IDs.
const maxFiles = 1 << 14

// requestID starts reading, once, the build ID of a file that a process mapped as code at a time.
// p.mu is held.
func (p *processes) requestID(pid int32, m procmaps.Mapping, since uint64) {
	if m.File.Inode == 0 || p.requestedIDs[m.File] || len(p.requestedIDs) >= maxFiles {
		return
	}
	p.requestedIDs[m.File] = true
	p.opens.run(device{m.File.Major, m.File.Minor}, func() {
		id, ok := p.readID(pid, &m, since)
		p.mu.Lock()
		defer p.mu.Unlock()
		if ok && !p.closed {
			p.ids[m.File] = id
		} else { // another process may have the file
			delete(p.requestedIDs, m.File)
		}
	})
}

// mapping requests the build ID of a mapped file, if the process's stacks have bare addresses.
func (p *processes) mapping(pid int32, m *procmaps.Mapping, at uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids != nil && (len(p.kept[pid]) > 0 || p.bare[pid]) {
		p.requestID(pid, *m, at)
	}
}

// sampled records that a process has stacks with bare addresses. It reads the build IDs of the
// mapped files, and the mappings of the parent, which the process shares until exec: the process
// may have ended before its own are read.
func (p *processes) sampled(pid int32) {
	for child := true; pid > 0; child = false {
		p.mu.Lock()
		known := p.bare[pid]
		p.bare[pid] = true
		copied := len(p.kept[pid]) > 0
		if p.mapped != nil && !known && !copied {
			for time, m := range p.mapped.log.Mappings(pid) {
				p.requestID(pid, m, time)
			}
		}
		p.mu.Unlock()
		if known || p.mapped == nil {
			return
		}
		if !child && !copied && !p.recorded(pid) {
			p.readNow(pid)
		}
		pid = p.mapped.log.Parent(pid)
	}
}

// recorded reports whether a copy of a process's mappings would add nothing to the last one, or to
// the records of its program. Of run-time compilers a copy is needed, which leads to their files.
func (p *processes) recorded(pid int32) bool {
	p.mu.Lock()
	copied := uint64(0)
	if n := len(p.kept[pid]); n > 0 {
		copied = p.kept[pid][n-1].last.begin
	}
	whole := p.whole[pid]
	p.mu.Unlock()
	if whole || p.mapped == nil {
		return false
	}
	now := p.host.Monotonic()
	if copied > 0 && p.mapped.log.Still(pid, copied, now) {
		return true
	}
	code, ok := p.mapped.log.Whole(pid, now)
	return ok && !slices.ContainsFunc(code, func(m procmaps.Mapping) bool {
		_, dump := jitdump.PIDOf(m.File.Path)
		return dump || m.File.Path != procmaps.VDSO &&
			(m.File.Inode == 0 || m.File.IsDeleted())
	})
}

// fileID reads the build ID of a mapped file; zero if there is none that fits into a frame. It
// reads through the mapping, which also works for a deleted file, or by path if the process has
// ended or replaced the mapping. ok is false if the file could not be opened.
func (p *processes) fileID(pid int32, m *procmaps.Mapping, since uint64) (id buildid.ID, ok bool) {
	name := p.path(pid, "map_files/"+strconv.FormatUint(m.Start, 16)+"-"+
		strconv.FormatUint(m.End, 16))
	if id, ok = readID(name, m, &m.File); ok {
		return id, true
	}
	if id, ok = readID(p.host.Path(m.File.Path), m, &m.File); ok {
		return id, true
	}
	// An overlay's mapping has other device and inode numbers than the file.
	id, ok = readID(name, m, nil)
	return id, ok && p.stillMaps(pid, m, since)
}

// stillMaps reports whether a process has had a mapping without change since a time.
func (p *processes) stillMaps(pid int32, m *procmaps.Mapping, since uint64) bool {
	b, err := readSome(p.path(pid, "maps"), nil, maxMaps)
	if err != nil {
		return false
	}
	now := p.host.Monotonic()
	for o := range procmaps.Code(b) {
		if o == *m {
			p.mapped.sync()
			return p.mapped == nil || p.mapped.unchanged(pid, m.Start, since, now)
		}
	}
	return false
}

// readID reads the build ID of the file at a path, which must be the mapped file if is is not nil.
func readID(path string, m *procmaps.Mapping, is *procmaps.File) (id buildid.ID, ok bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || is != nil && st.Ino != is.Inode {
		return id, false
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG { // opening a device may have effects
		return id, true
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return id, false
	}
	defer f.Close()
	if unix.Fstat(int(f.Fd()), &st) != nil || is != nil && !sameFile(f, &st, is) {
		return id, false
	}
	object, err := elf.Open(m.File.Path, io.NewSectionReader(f, 0, st.Size), st.Size)
	if err != nil || object.ID.Space() != buildid.GNU || object.ID.Len() > sampler.BuildIDSize {
		return id, true
	}
	return object.ID, true
}

// sameFile reports whether an open file is the mapped one.
func sameFile(open *os.File, st *unix.Stat_t, f *procmaps.File) bool {
	return st.Ino == f.Inode && files.MappedDevice(open, st.Dev) == unix.Mkdev(f.Major, f.Minor)
}

// mapTables are the mappings of a process that a bundle keeps for addresses without a build ID, by
// number: separate ones for each program, and several for a program if the code at an address
// changed. Number 0, of the last program, is /proc/PID/maps.
type mapTables struct {
	programs []uint64 // see processes.programs
	list     []mapTable
}

// mapTable is a table of mappings that do not overlap.
type mapTable struct {
	program uint64
	layout  procmaps.Layout // of a process that is kept whole: from its last complete mappings
}

// mapTables returns the tables of a process. Its list of programs is made at the first call: the
// recording may add others later.
func (x *places) mapTables(pid int32) *mapTables {
	t := x.tables[pid]
	if t != nil {
		return t
	}
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	t = &mapTables{programs: x.p.programs(pid)}
	x.tables[pid] = t
	for i, program := range t.programs {
		t.list = append(t.list, mapTable{program: program})
		if i == 0 && x.p.whole[pid] {
			t.list[0].layout = x.p.layoutOf(pid, program)
		}
	}
	return t
}

// layoutOf returns the newest mappings of a program. p.mu is held.
func (p *processes) layoutOf(pid int32, program uint64) procmaps.Layout {
	for _, saved := range slices.Backward(p.kept[pid]) {
		if saved.program != program {
			continue
		}
		if text, err := p.maps.read(saved.spooled, nil); err == nil {
			return procmaps.NewLayout(text)
		}
	}
	return procmaps.Layout{}
}

// Number implements sampler.Explainer.
func (x *places) Number(of sampler.Process, mappings []int) uint32 {
	t := x.mapTables(of.PID)
	lines := make([]procmaps.Line, len(mappings))
	for i, n := range mappings {
		lines[i] = x.lines[n].Line
	}
	for i := range t.list {
		m := &t.list[i]
		if (m.program == of.Program || of.Program == 0) && m.layout.Add(lines) {
			return uint32(i)
		}
	}
	t.list = append(t.list, mapTable{program: of.Program})
	t.list[len(t.list)-1].layout.Add(lines)
	return uint32(len(t.list) - 1)
}
