package sideband

import (
	"crypto/sha1"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/jitdump"
)

// JITQuery is a query for the lists of code that a process compiled at run time.
type JITQuery struct {
	PID  int32
	Host string  // of the recording
	VDSO addr.PC // random address of the process's vdso; 0 if it was not recorded
	// Wall clock, ns since 1970, 0 if unknown: the start and the end of the recording, and when the
	// process began to run its program; 0 for before the recording.
	FirstNanos, EndNanos, BeginNanos int64
	// EarliestNanos is a lower bound of BeginNanos, if these times are derived from the
	// modification of the recording's file: perf may write for long after the end.
	EarliestNanos int64
	Memory        []addr.Range // anonymous, with code
	Files         []MappedFile // with code and no build ID, not of the program or libraries
	Dump          string       // path of the mapped jitdump file
	// PerfMaps and Dumps are the files in bundles of a process with this number.
	PerfMaps, Dumps []BundledFile
}

// MappedFile is a mapping of code in a file, which may not be an object file: a program image of
// another system, or a file that the process wrote code to.
type MappedFile struct {
	addr.Range
	File   ingest.FileRef
	object uint32
}

// Compiles reports whether the process has memory for code that it compiles.
func (q *JITQuery) Compiles() bool { return len(q.Memory) > 0 || q.Dump != "" }

// Has reports whether code of the process is in a range of addresses.
func (q *JITQuery) Has(r addr.Range) bool {
	overlaps := func(o addr.Range) bool { return r.Start < o.End && o.Start < r.End }
	return slices.ContainsFunc(q.Memory, overlaps) ||
		slices.ContainsFunc(q.Files, func(f MappedFile) bool { return overlaps(f.Range) })
}

// Process identifies the process over all recordings of it.
func (q *JITQuery) Process() buildid.ID { return ProcessIdentity(q.Host, q.PID, q.VDSO) }

// ProcessIdentity identifies a process by its host, its number and the address of its vdso, which
// the kernel chooses at random for each program, so that later processes with the same number
// differ. It is zero without a vdso.
func ProcessIdentity(host string, pid int32, vdso addr.PC) buildid.ID {
	if vdso == 0 {
		return buildid.ID{}
	}
	b := append([]byte("process\x00"+host), 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(pid))
	sum := sha1.Sum(binary.LittleEndian.AppendUint64(b, uint64(vdso)))
	return buildid.Make(buildid.JIT, sum[:])
}

// BundledFile is a perf map or a jitdump file in a bundle.
type BundledFile struct {
	Name    string // of the bundle and of the entry
	R       io.ReaderAt
	Size    int64
	Written int64   // last modification, ns since 1970
	Began   int64   // start of its process, ns since 1970; 0 if unknown
	VDSO    addr.PC // address of the process's vdso; 0 if unknown

	contribution *Contribution
}

// Use counts the file as a source of names.
func (f *BundledFile) Use() { f.contribution.Compiled++ }

// JITCode is the code that a process compiled at run time.
type JITCode struct {
	Map      buildid.ID   // of its perf map; zero for none
	InFiles  []addr.Range // ascending, apart: functions of the perf map in JITQuery.Files
	Reused   []addr.Range // ascending: addresses of several functions of the perf map
	Dump     buildid.ID   // of its jitdump file; zero for none
	File     *jitdump.File
	Warnings []ingest.Warning
}

// jitProcess is a process with memory of a run-time compiler.
type jitProcess struct {
	begin   uint64 // of its program, by the ordering clock
	query   JITQuery
	program string          // path; "" if unknown
	perfMap uint32          // object; 0 for none
	inFiles []addr.Range    // functions of the perf map in files
	files   map[uint32]bool // objects of query.Files
	// Addresses of several functions in the perf map, and in the jitdump file.
	mapReused, dumpReused []addr.Range
	timed                 bool // dumpReused has times of CLOCK_MONOTONIC
}

// Compiled is the code that processes compiled at run time.
type Compiled struct {
	objects   *Objects
	changes   *timeline
	processes map[int32]*jitProcess // those with a list of compiled code
}

// jitScan collects the processes that may have compiled code.
type jitScan struct {
	objects   *Objects
	ids       *Identifier
	processes map[int32]*jitProcess
	programs  map[int32]uint32 // objects
}

// AddJIT maps the code of each process with memory for it, returned by find. It is called before
// Build.
func (sb *State) AddJIT(find func(*JITQuery) JITCode) {
	if find == nil {
		return
	}
	sb.changes.sort()
	x := jitScan{objects: sb.Objects, ids: NewIdentifier(sb, ObjectQuery{}, nil), processes: make(map[int32]*jitProcess),
		programs: make(map[int32]uint32)}
	x.collect(sb.changes.list)
	sb.Compiled.processes = make(map[int32]*jitProcess)
	for _, pid := range slices.Sorted(maps.Keys(x.processes)) {
		p := x.processes[pid]
		if pid <= 0 || !p.query.Compiles() && len(p.query.Files) == 0 {
			continue // numbers of SpaceOf belong to earlier programs
		}
		p.query.PID = pid
		if object, ok := x.programs[pid]; ok {
			p.program = sb.Objects.List[object].File.Path
		}
		sb.describeTimes(p)
		p.query.PerfMaps = sb.bundledFiles(pid, bundle.PerfMapName(pid))
		p.query.Dumps = sb.bundledFiles(pid, bundle.JITDumpName(pid))
		code := find(&p.query)
		for _, w := range code.Warnings {
			sb.Records.Warn(AtEnd, w)
		}
		sb.Compiled.place(p, &code)
	}
}

// describeTimes sets the host of a process and its known times.
func (sb *State) describeTimes(p *jitProcess) {
	q := &p.query
	q.Host = sb.Host.Name
	if sb.Records.File == nil {
		for _, b := range sb.bundles.open {
			m := &b.Manifest
			q.Host, q.FirstNanos, q.EndNanos = m.Host, int64(m.Begin.Realtime), int64(m.End.Realtime)
		}
		return
	}
	features := &sb.Records.File.Features
	wall := sb.Wall(features.FirstTime, features.LastTime)
	q.FirstNanos, q.EndNanos = wall.At(features.FirstTime), wall.At(features.LastTime)
	if p.begin == 0 {
		return
	}
	q.BeginNanos = wall.At(p.begin)
	q.EarliestNanos = q.BeginNanos
	if early := sb.clocks.file.Born + int64(p.begin-features.FirstTime); features.ClockData == nil &&
		sb.clocks.file.Born > 0 && features.FirstTime > 0 && early < q.BeginNanos {
		q.EarliestNanos = early
	}
}

// bundledFiles returns the entries with a name, of a process, in the bundles in use.
func (sb *State) bundledFiles(pid int32, name string) (list []BundledFile) {
	for _, b := range sb.bundles.open {
		r, size, err := b.Entry(name)
		if err != nil {
			continue // it is missing, or reported by the bundle's warnings
		}
		c, err := b.Compiled(pid)
		if err != nil {
			sb.Records.Warn(AtEnd, ingest.Warning{Text: err.Error(), Partial: true})
		}
		f := BundledFile{Name: b.Name + ": " + name, R: r, Size: size, Began: int64(c.Began),
			Written: int64(b.Manifest.End.Realtime), VDSO: addr.PC(c.VDSO),
			contribution: b.contribution}
		entry := c.PerfMap
		if name == bundle.JITDumpName(pid) {
			entry = c.JITDump
		}
		if entry != nil {
			f.Written = int64(entry.Written)
		}
		list = append(list, f)
	}
	return list
}

// collect finds the start of each process's program, then its memory. A child without a program of
// its own has the memory of its parent.
func (x *jitScan) collect(changes []change) {
	begins := make(map[int32]uint64)
	for i := range changes {
		e := &changes[i]
		if e.kind == changeName && e.flag || e.kind == changeFork && !e.flag && e.pid != int32(e.a) {
			begins[e.pid] = max(begins[e.pid], e.time)
		}
	}
	for i := range changes {
		e := &changes[i]
		switch {
		case e.time < begins[e.pid]:
		case e.kind == changeMapping:
			x.program(e)
			x.mapping(e, begins[e.pid])
		case e.kind == changeFork && !e.flag && e.pid != int32(e.a):
			x.fork(e)
		case e.kind == changeName && e.flag:
			delete(x.processes, e.pid)
			delete(x.programs, e.pid)
		}
	}
}

// fork gives a child the memory and the program of its parent.
func (x *jitScan) fork(e *change) {
	parent := int32(e.a)
	if program, ok := x.programs[parent]; ok {
		x.programs[e.pid] = program
	}
	if x.processes[parent] != nil {
		p := *x.processes[parent]
		p.begin, p.query.Dump = e.time, ""
		p.query.Memory, p.query.Files = slices.Clip(p.query.Memory), slices.Clip(p.query.Files)
		x.processes[e.pid] = &p
	}
}

// program notes the program of a process: the file that is mapped first.
func (x *jitScan) program(e *change) {
	if _, ok := x.programs[e.pid]; !ok && x.objects.List[e.ref].Kind == ingest.ELF {
		x.programs[e.pid] = e.ref
	}
}

// mapping adds a mapping of a process.
func (x *jitScan) mapping(e *change, begin uint64) {
	o := &x.objects.List[e.ref]
	dump := false
	if o.Kind == ingest.ELF {
		_, dump = jitdump.PIDOf(o.File.Path)
	}
	file := !dump && x.mayCompileInto(e, o)
	if o.Kind != ingest.Anonymous && o.Kind != ingest.VDSO && !dump && !file {
		return
	}
	p := x.processes[e.pid]
	if p == nil {
		p = &jitProcess{begin: begin}
		x.processes[e.pid] = p
	}
	switch m := &p.query.Memory; {
	case dump:
		p.query.Dump = o.File.Path
	case file && len(p.query.Files) < maxMappedFiles:
		p.query.Files = append(p.query.Files, MappedFile{Range: addr.Range{Start: addr.Addr(e.a), End: addr.Addr(e.b)},
			File: o.File, object: e.ref})
	case o.Kind == ingest.VDSO:
		p.query.VDSO = addr.PC(e.a)
	case !file && (len(*m) == 0 || (*m)[len(*m)-1] != (addr.Range{Start: addr.Addr(e.a), End: addr.Addr(e.b)})):
		*m = append(*m, addr.Range{Start: addr.Addr(e.a), End: addr.Addr(e.b)})
	}
}

// maxMappedFiles limits JITQuery.Files. A runtime maps some hundred images.
const maxMappedFiles = 4096

// mayCompileInto reports whether a mapping may belong to a file that is not an object file: the
// capture has no build ID for it, and it is neither the program nor a library by its name.
func (x *jitScan) mayCompileInto(e *change, o *ingest.Object) bool {
	base := ingest.BaseName(o.File.Path)
	if o.Kind != ingest.ELF || !o.ID.IsZero() || o.Reason != ingest.ReasonNone ||
		!x.ids.lists.ids[o.File.Path].IsZero() || x.programs[e.pid] == e.ref ||
		strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.") {
		return false
	}
	id, _ := x.ids.file(&o.File)
	return id.IsZero()
}

// place maps the code of a process.
func (c *Compiled) place(p *jitProcess, code *JITCode) {
	pid := p.query.PID
	if !code.Map.IsZero() {
		p.perfMap = c.objects.jit(ingest.PerfMap, ingest.PerfMapPath(pid), code.Map, p)
		p.mapReused, p.inFiles, p.files = code.Reused, code.InFiles, make(map[uint32]bool)
		for _, f := range p.query.Files {
			p.files[f.object] = true
		}
		c.processes[pid] = p
	}
	if code.File == nil || code.Dump.IsZero() {
		return
	}
	c.processes[pid] = p
	object := c.objects.jit(ingest.JITDump, p.query.Dump, code.Dump, p)
	f := code.File
	recording := c.changes.file
	p.timed = !f.ArchTime && (recording == nil ||
		c.changes.clock.Timed && clockOf(recording) == monotonicClock)
	p.dumpReused = f.Reused()
	place := func(time uint64, at addr.PC, l *jitdump.Load) {
		e := change{kind: changeMapping, pid: pid, a: uint64(at), b: uint64(at) + l.Size,
			c: uint64(l.Code), ref: object, time: max(time, p.begin), seq: c.changes.next()}
		c.changes.list = append(c.changes.list, e)
	}
	for i := range f.Placed {
		pl, time := &f.Placed[i], p.begin
		if p.timed {
			time = pl.Time
		}
		place(time, pl.Addr, &f.Loads[pl.Load])
	}
	if p.timed || recording == nil { // samples of stack maps use Reused
		return
	}
	for _, r := range p.dumpReused {
		c.changes.list = append(c.changes.list, change{kind: changeMapping, pid: pid, a: uint64(r.Start),
			b: uint64(r.End), ref: c.Ambiguous(), time: p.begin, seq: c.changes.next()})
	}
}

// Ambiguous returns the object for addresses of several functions of a run-time compiler.
func (c *Compiled) Ambiguous() uint32 {
	return c.objects.Nameless(ingest.Unmapped, ingest.AmbiguousJITPath, ingest.AddressReused)
}

// Reused reports whether a process's jitdump file has several successive functions at an
// address, and whether their times are known.
func (c *Compiled) Reused(pid int32, pc addr.PC) (reused, timed bool) {
	p := c.processes[pid]
	if p == nil || !inRanges(p.dumpReused, pc) {
		return false, false
	}
	return true, p.timed
}

func inRanges(list []addr.Range, pc addr.PC) bool {
	i := firstAfter(list, addr.Addr(pc))
	return i < len(list) && list[i].Start <= addr.Addr(pc)
}

// firstAfter returns the index of the first range that ends after an address.
func firstAfter(list []addr.Range, at addr.Addr) int {
	return sort.Search(len(list), func(i int) bool { return list[i].End > at })
}

// jit returns the object of a process's perf map or jitdump file.
func (r *Objects) jit(kind ingest.ObjectKind, path string, id buildid.ID, p *jitProcess) uint32 {
	n := r.Add(ObjectKey{Kind: kind, Path: r.Path([]byte(path)), ID: id},
		ingest.Object{File: ingest.FileRef{Path: path}, PID: p.query.PID, Program: p.program})
	r.List[n].IDSource = ingest.IDDerived
	return n
}

// mapUser applies the mapping of a process. In a process with lists of code, anonymous memory gets
// the names of its perf map, and a file without a build ID those of the functions in the file; both
// do not cover functions of its jitdump file.
func (c *Compiled) mapUser(b *addrspace.Builder, e *change, m addrspace.Mapping) {
	p := c.processes[e.pid]
	anonymous := c.objects.List[e.ref].Kind == ingest.Anonymous
	if anonymous && (p == nil || p.perfMap == 0) {
		m.Object = c.objects.remapped(b, e.pid, m)
	}
	if p == nil || e.time < p.begin || !anonymous && !p.files[e.ref] {
		b.Map(e.time, e.pid, m)
		return
	}
	fill := func(m addrspace.Mapping) {
		b.Fill(e.time, e.pid, m, func(object uint32) bool {
			o := &c.objects.List[object]
			return o.Kind == ingest.JITDump || o.File.Path == ingest.AmbiguousJITPath
		})
	}
	if anonymous && p.perfMap != 0 {
		m.Object, m.PgOff = p.perfMap, uint64(m.Start)
	}
	fill(m)
	if p.perfMap == 0 {
		return
	}
	if !anonymous {
		p.eachIn(p.inFiles, m, func(start, end addr.PC) {
			fill(addrspace.Mapping{Start: start, End: end, PgOff: uint64(start), Object: p.perfMap})
		})
	}
	p.eachIn(p.mapReused, m, func(start, end addr.PC) {
		fill(addrspace.Mapping{Start: start, End: end, Object: c.Ambiguous()})
	})
}

// hugePage is the size of huge pages of x86-64 and of arm64 with pages of 4 KiB.
const hugePage = 2 << 20

// remapped returns the object of anonymous memory with code. Programs move their code to huge pages
// (node --use-largepages, Intel's iodlr): memory at multiples of huge pages is mapped over a part of
// the code of a file. A file that was unmapped before, of which there is no record, looks the same.
func (r *Objects) remapped(b *addrspace.Builder, pid int32, m addrspace.Mapping) uint32 {
	if (m.Start|m.End)%hugePage != 0 || m.Start >= m.End {
		return m.Object
	}
	before, ok := b.Covering(pid, m.Start)
	if !ok || before.End < m.End {
		return m.Object
	}
	o := &r.List[before.Object]
	switch {
	case o.Reason == ingest.TextRemapped:
		return before.Object
	case o.Kind != ingest.ELF || !strings.HasPrefix(o.File.Path, "/"):
		return m.Object
	}
	path := ingest.RemappedPath(o.File.Path)
	return r.Add(ObjectKey{Kind: ingest.Anonymous, Path: r.Path([]byte(path))},
		ingest.Object{File: ingest.FileRef{Path: path}, Reason: ingest.TextRemapped})
}

// eachIn calls place for the parts of ranges, which ascend, that are inside a mapping.
func (p *jitProcess) eachIn(ranges []addr.Range, m addrspace.Mapping, place func(start, end addr.PC)) {
	for i := firstAfter(ranges, addr.Addr(m.Start)); i < len(ranges) && addr.PC(ranges[i].Start) < m.End; i++ {
		place(max(m.Start, addr.PC(ranges[i].Start)), min(m.End, addr.PC(ranges[i].End)))
	}
}

// fork gives a child the names of its own perf map in memory inherited from its parent.
func (c *Compiled) fork(b *addrspace.Builder, e *change) {
	p := c.processes[e.pid]
	if p == nil || p.perfMap == 0 || e.time != p.begin {
		return
	}
	for _, m := range b.Mappings(e.pid) {
		if k := c.objects.List[m.Object].Kind; k == ingest.Anonymous || k == ingest.PerfMap {
			m.Object, m.PgOff = p.perfMap, uint64(m.Start)
			b.Map(e.time, e.pid, m)
		}
	}
}
