package sideband

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/procmaps"
)

// Contribution counts the facts that a bundle of the same boot adds to a capture, or gives the
// reason why it adds none.
type Contribution struct {
	From      string // path of the bundle
	Refused   string // why the bundle was not used; "" if it was
	Programs  int    // BPF programs with code and lines from it
	Symbols   int    // BPF functions without a record in the capture
	Modules   int    // kernel modules without a record in the capture
	Processes int    // processes without records of mappings in the capture
	Compiled  int    // perf maps and jitdump files
	Kernel    bool   // the address of the kernel, which the capture lacks
}

// String is a line of text: "taken from NAME: code and lines of 3 BPF programs, …",
// "nothing taken from NAME: it is of another boot …".
func (b *Contribution) String() string {
	if b.Refused != "" {
		return "nothing taken from " + b.From + ": " + b.Refused
	}
	var parts []string
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{b.Programs, "code and lines of 1 BPF program", "code and lines of %d BPF programs"},
		{b.Symbols, "the name of 1 BPF function", "names of %d BPF functions"},
		{b.Modules, "the place of 1 kernel module", "places of %d kernel modules"},
		{b.Processes, "the mappings of 1 process", "mappings of %d processes"},
		{b.Compiled, "1 list of code compiled at run time", "%d lists of code compiled at run time"},
	} {
		switch {
		case x.n == 1:
			parts = append(parts, x.one)
		case x.n > 1:
			parts = append(parts, fmt.Sprintf(x.many, x.n))
		}
	}
	if b.Kernel {
		parts = append(parts, "the address of the kernel")
	}
	if len(parts) == 0 {
		return "nothing taken from " + b.From + ": the capture has all that the bundle has"
	}
	return "taken from " + b.From + ": " + strings.Join(parts, ", ")
}

// Bundle is a bundle that may be of the same boot as a capture.
type Bundle struct {
	Path    string
	Bundle  *bundle.Bundle // nil if the file is not a bundle
	Records *perfdata.File // its side band; nil without one
	// Programs reads the bundle's BPF programs. Damage of them is reported by the profile of the
	// bundle itself.
	Programs func() ([]bpf.Program, error)
}

// bundlePrograms are the programs of bundles, and the contribution of each bundle.
type bundlePrograms struct {
	contributions []*Contribution
	open          []*bootBundle // the bundles in use
	programs      []bpf.Program
	programFrom   []*Contribution // by program
}

// bootBundle is a bundle of the same boot.
type bootBundle struct {
	*bundle.Bundle
	records      *perfdata.File
	programs     []bpf.Program
	convert      func(uint64) uint64 // a time in its records to the clock of the capture
	contribution *Contribution
}

// Contributions returns the contribution of each bundle, in their order; none for a nil State.
func (sb *State) Contributions() (list []Contribution) {
	if sb == nil {
		return nil
	}
	for _, c := range sb.bundles.contributions {
		list = append(list, *c)
	}
	return list
}

// addSameBoot adds the facts of bundles of the same boot that the capture lacks. It is called after
// all records were read, and before the changes are applied.
func (sb *State) addSameBoot(ctx context.Context, from []Bundle) error {
	for i := range from {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := &from[i]
		l, ok := sb.bootBundle(b)
		if !ok {
			continue
		}
		if l.contribution.Refused = sb.compare(l); l.contribution.Refused == "" {
			l.programs, _ = b.Programs()
			sb.add(l)
		}
	}
	return nil
}

// bootBundle adds a Contribution for a bundle; false if the file is not a bundle.
func (sb *State) bootBundle(b *Bundle) (l *bootBundle, ok bool) {
	l = &bootBundle{Bundle: b.Bundle, records: b.Records, contribution: &Contribution{From: b.Path}}
	if b.Bundle == nil {
		l.contribution.Refused = "it is not a bundle"
	}
	sb.bundles.contributions = append(sb.bundles.contributions, l.contribution)
	return l, b.Bundle != nil
}

// AddBundle adds all facts of a bundle without checking the boot: dumps of stack maps have nothing
// to compare it with.
func (sb *State) AddBundle(b Bundle) {
	l, ok := sb.bootBundle(&b)
	if !ok {
		return
	}
	sb.Host.Arch = b.Bundle.Manifest.Machine
	sb.Host.BigEndian = b.Bundle.Manifest.BigEndian()
	sb.Clock.Timed = true // the bundle's clock orders the states
	l.programs, _ = b.Programs()
	l.convert = func(t uint64) uint64 { return t }
	sb.add(l)
}

// clockKind is a clock that both captures and bundles can have times of.
type clockKind uint8

const (
	noClock clockKind = iota
	perfClock
	monotonicClock
	boottimeClock
	realtimeClock
)

// clockOf returns the clock of a file's records (perf record -k).
func clockOf(f *perfdata.File) clockKind {
	if f == nil || len(f.Events) == 0 {
		return noClock
	}
	a := &f.Events[0].Attr
	if a.SampleType&perfdata.SampleTime == 0 {
		return noClock
	}
	if !a.Has(perfdata.FlagUseClockID) {
		return perfClock
	}
	const realtime, monotonic, boottime = 0, 1, 7 // clock_gettime(2)
	switch a.ClockID {
	case realtime:
		return realtimeClock
	case monotonic:
		return monotonicClock
	case boottime:
		return boottimeClock
	}
	return noClock
}

// read returns the reading of the clock.
func (k clockKind) read(c *bundle.Clocks) uint64 {
	switch k {
	case monotonicClock:
		return c.Monotonic
	case boottimeClock:
		return c.Boottime
	case realtimeClock:
		return c.Realtime
	}
	return c.Perf
}

// converter returns the conversion of times of clock from to clock to. As clocks drift it is linear
// between the two readings in the bundle.
func converter(m *bundle.Manifest, from, to clockKind) func(uint64) uint64 {
	if from == to {
		return func(t uint64) uint64 { return t }
	}
	begin, end := from.read(&m.Begin), from.read(&m.End)
	first := int64(to.read(&m.Begin) - begin)
	drift := float64(int64(to.read(&m.End)-end) - first)
	length := float64(max(end-begin, 1))
	if end < begin {
		drift = 0
	}
	return func(t uint64) uint64 {
		if t == 0 || t == NoTime {
			return t // not times of a clock: the start, and the order of the file
		}
		part := float64(int64(t-begin)) / length
		return t + uint64(first+int64(drift*part))
	}
}

// compare returns the reason why a bundle is not of the capture's boot, "" if it is. It compares
// the kernel's build ID, the run-time address of _text and the time span.
func (sb *State) compare(l *bootBundle) string {
	m := &l.Manifest
	own, theirs := NewIdentifier(sb, ObjectQuery{}, nil).kernel, m.KernelID()
	sameID := !own.IsZero() && !theirs.IsZero()
	if sameID && !own.Matches(theirs) {
		return fmt.Sprintf("it comes from another kernel: %s, the capture from %s", theirs, own)
	}
	text := uint64(m.Text)
	if sb.Kernel.symbol != "_text" {
		text = l.symbol(sb.Kernel.symbol)
	}
	sameText := sb.Kernel.address != 0 && text != 0
	if sameText && text != sb.Kernel.address {
		return fmt.Sprintf("it comes from another boot: %s at %#x, in the capture at %#x", sb.Kernel.symbol,
			text, sb.Kernel.address)
	}
	x := &sb.Records.File.Features
	switch {
	case !sameID && !sameText:
		return "they have neither the kernel's build ID nor its address in common"
	case !sameID && (x.OSRelease == "" || x.OSRelease != m.OSRelease):
		return "the capture does not name its kernel"
	case !sameText && (x.Hostname == "" || x.Hostname != m.Host):
		return "the kernel's address is hidden, and the hosts differ"
	}
	return sb.compareTimes(l)
}

// symbol returns the address of the symbol at the start of the bundle's kernel mapping, otherwise
// of a symbol in its kallsyms; 0 if it is unknown.
func (l *bootBundle) symbol(name string) uint64 {
	if l.records == nil || name == "" {
		return 0
	}
	var m perfdata.Mmap
	for r := l.records.AllRecords(); r.Next(); {
		rec := r.Record()
		if rec.Type != perfdata.TypeMmap && rec.Type != perfdata.TypeMmap2 ||
			rec.CPUMode() != perfdata.CPUModeKernel || l.records.Mmap(rec, &m) != nil {
			continue
		}
		if string(m.Filename) == ingest.KernelMapName+name {
			return m.PgOff
		}
	}
	return l.kallsym(name)
}

// maxClockStep is the largest step of the wall clock between two captures of one boot.
const maxClockStep = uint64(time.Hour)

// compareTimes returns the reason why the time spans of bundle and capture do not overlap, "" if
// they do, and prepares the conversion of times.
func (sb *State) compareTimes(l *bootBundle) string {
	m := &l.Manifest
	clock := clockOf(sb.Records.File)
	switch {
	case clock == noClock || sb.sampled.from == 0:
		return "the capture's records have no times to compare with the bundle"
	case m.End.Perf == 0:
		return "the bundle has no creation time"
	}
	begin, end := clock.read(&m.Begin), clock.read(&m.End)
	switch {
	case sb.sampled.to < begin:
		return fmt.Sprintf("no time in common: the capture ends %v before the bundle begins",
			span(sb.sampled.to, begin))
	case sb.sampled.from > end:
		return fmt.Sprintf("no time in common: the capture begins %v after the bundle ends",
			span(end, sb.sampled.from))
	}
	if cd := sb.Records.File.Features.ClockData; cd != nil {
		wall := cd.WallNanos + (begin - cd.ClockNanos)
		if step := max(wall, m.Begin.Realtime) - min(wall, m.Begin.Realtime); step > maxClockStep {
			return fmt.Sprintf("it comes from another boot: the wall clocks are %v apart", span(0, step))
		}
	}
	from := clockOf(l.records)
	if from == noClock {
		from = perfClock // of the modules' times
	}
	l.convert = converter(m, from, clock)
	return ""
}

// span formats the time between two readings.
func span(from, to uint64) time.Duration {
	return time.Duration(min(to-from, math.MaxInt64)).Round(time.Millisecond)
}

// add adds the programs, symbols, modules and mappings of a bundle that the capture lacks.
func (sb *State) add(l *bootBundle) {
	sb.bundles.open = append(sb.bundles.open, l)
	sb.Programs.noteMissing(l.Manifest.Missing)
	for i := range l.programs {
		p := l.programs[i]
		if p.Raw == nil {
			continue // known only by its records, which addSymbols reads
		}
		p.Funcs = slices.Clone(p.Funcs) // the match may complete their names
		sb.bundles.programs = append(sb.bundles.programs, p)
		sb.bundles.programFrom = append(sb.bundles.programFrom, l.contribution)
	}
	sb.addSymbols(l)
	sb.addKernel(l)
	sb.addModules(l)
	sb.addProcesses(l)
	sb.addVDSO(l)
}

// codeRange identifies a function by its addresses.
type codeRange struct{ start, end uint64 }

// symbolGroup is the KSYMBOL records of a program loaded by one thread.
type symbolGroup struct {
	symbols []change
	missing bool // the capture has no record of one of them
}

// addSymbols adds the loads and unloads of BPF code without records in the capture: its recorder
// lacked the right to list loaded programs, or lost records.
func (sb *State) addSymbols(l *bootBundle) {
	if l.records == nil {
		return
	}
	known := make(map[codeRange]bool)
	for i := range sb.changes.list {
		if e := &sb.changes.list[i]; e.kind == changeKernelMapping && e.layer != addrspace.Base &&
			e.layer != addrspace.Around {
			known[codeRange{e.a, e.b}] = true
		}
	}
	x := symbolAdder{sb: sb, l: l, known: known, open: make(map[int32]*symbolGroup)}
	for r := l.records.AllRecords(); r.Next(); {
		switch rec := r.Record(); rec.Type {
		case perfdata.TypeKSymbol:
			x.symbol(rec)
		case perfdata.TypeBPFEvent:
			x.event(rec)
		}
	}
	for _, tid := range slices.Sorted(maps.Keys(x.open)) {
		x.flush(tid)
	}
}

type symbolAdder struct {
	sb    *State
	l     *bootBundle
	known map[codeRange]bool // recorded in the capture
	open  map[int32]*symbolGroup
}

func (x *symbolAdder) symbol(rec *perfdata.Record) {
	var k perfdata.KSymbol
	id, err := x.l.records.SampleID(rec)
	if err != nil || x.l.records.KSymbol(rec, &k) != nil || k.Len == 0 {
		return // reported by the profile of the bundle
	}
	e, program := x.sb.codeChange(&k)
	e.tid, e.time = id.TID, x.l.convert(id.Time)
	known := x.known[codeRange{e.a, e.b}]
	if k.Unregister || !program {
		if !known {
			x.sb.changes.insert(e.time, e)
		}
		if !known && !k.Unregister {
			x.l.contribution.Symbols++
		}
		return
	}
	g := x.open[id.TID]
	if g == nil {
		g = new(symbolGroup)
		x.open[id.TID] = g
	}
	g.symbols = append(g.symbols, e)
	g.missing = g.missing || !known
}

// event ends a group of symbols, which belong to its program.
func (x *symbolAdder) event(rec *perfdata.Record) {
	var b perfdata.BPFEvent
	id, err := x.l.records.SampleID(rec)
	if err != nil || x.l.records.BPFEvent(rec, &b) != nil || b.Kind != perfdata.BPFLoad {
		return
	}
	if x.flush(id.TID) {
		t := x.l.convert(id.Time)
		x.sb.changes.insert(t, change{kind: changeProgramLoad, ref: b.ID, a: tagWord(b.Tag), tid: id.TID})
	}
}

// flush adds the symbols of a group if the capture lacks one of them, and reports whether it did.
func (x *symbolAdder) flush(tid int32) bool {
	g := x.open[tid]
	delete(x.open, tid)
	if g == nil || !g.missing {
		return false
	}
	for _, e := range g.symbols {
		x.sb.changes.insert(e.time, e)
		x.sb.Programs.symbols++
		x.l.contribution.Symbols++
	}
	return true
}

// addKernel adds the kernel's build ID, and its address if the capture's recorder was not allowed
// to read it.
func (sb *State) addKernel(l *bootBundle) {
	id := l.Manifest.KernelID()
	if NewIdentifier(sb, ObjectQuery{}, nil).kernel.IsZero() {
		sb.buildIDs.add(id, perfdata.CPUModeKernel, ingest.KernelMapName)
	}
	text := uint64(l.Manifest.Text)
	if sb.Kernel.Mapped || text == 0 {
		return
	}
	sb.Kernel.Mapped = true
	sb.changes.insert(0, change{kind: changeKernelMapping, layer: addrspace.Around, a: text,
		b: kernelReach(sb.Host.Arch, text), ref: sb.Objects.kernel("_text", id)})
	l.contribution.Kernel = true
}

// addModules adds modules that were loaded or unloaded during the recording, which perf does not
// record, modules that the recorder was not allowed to list, and the build IDs of all.
func (sb *State) addModules(l *bootBundle) {
	modules, err := l.Modules()
	if err != nil {
		return // reported by the profile of the bundle
	}
	known := make(map[uint64]bool)
	for i := range sb.changes.list {
		if e := &sb.changes.list[i]; e.kind == changeKernelMapping && e.layer == addrspace.Base {
			known[e.a] = true
		}
	}
	for i := range modules {
		m := &modules[i]
		name := "[" + m.Name + "]"
		sb.buildIDs.add(m.BuildID.ID, perfdata.CPUModeKernel, name)
		start := uint64(m.Addr)
		if start == 0 || m.Size == 0 || known[start] {
			continue
		}
		e := change{kind: changeKernelMapping, layer: addrspace.Base, a: start, b: endOf(start, m.Size),
			ref: sb.Objects.module(&perfdata.Mmap{Filename: []byte(name), BuildID: m.BuildID.ID})}
		sb.changes.insert(l.convert(m.Loaded), e)
		if m.Unloaded != 0 {
			e.kind = changeKernelUnmapping
			sb.changes.insert(l.convert(m.Unloaded), e)
		}
		l.contribution.Modules++
	}
}

// addProcesses adds the mappings of processes without mappings in the capture: the records that the
// bundle has of them, and of processes with samples its copies of /proc/PID/maps, which are older
// than the records.
func (sb *State) addProcesses(l *bootBundle) {
	known := make(map[int32]bool)
	for i := range sb.changes.list {
		if e := &sb.changes.list[i]; e.kind == changeMapping || e.kind == changeFork && e.pid != int32(e.a) {
			known[e.pid] = true
		}
	}
	added := sb.addMappings(l, known)
	for _, name := range l.Names() {
		pid, program, ok := bundle.MapsProgram(name)
		if !ok || known[pid] || !sb.sampled.processes[pid] || program != 0 && sb.spaces == nil {
			continue
		}
		if program != 0 {
			pid = sb.SpaceOf(pid, program)
		}
		r, size, err := l.Entry(name)
		if err != nil {
			continue
		}
		if sb.AddProcessMaps(pid, io.NewSectionReader(r, 0, size)) {
			added[pid] = true
		}
	}
	for pid := range added {
		if sb.sampled.processes[pid] || pid < 0 {
			l.contribution.Processes++
		}
	}
}

// addMappings adds the records of mappings, and of forks and programs on which they depend, of all
// processes that are not known; it returns the processes with mappings. Of a bundle with samples it
// adds nothing: their addresses were located while they were recorded.
func (sb *State) addMappings(l *bootBundle, known map[int32]bool) map[int32]bool {
	added := make(map[int32]bool)
	if l.records == nil || len(l.Manifest.Samples) > 0 {
		return added
	}
	for r := l.records.AllRecords(); r.Next(); {
		rec := r.Record()
		e, ok := sb.processChange(l.records, rec)
		id, err := l.records.SampleID(rec)
		if !ok || err != nil || known[e.pid] {
			continue // errors are reported by the profile of the bundle
		}
		sb.changes.insert(l.convert(id.Time), e)
		if e.kind == changeMapping {
			added[e.pid] = true
		}
	}
	return added
}

// processChange returns the change of a process that a record of a bundle reports; ok is false for
// other records.
func (sb *State) processChange(f *perfdata.File, rec *perfdata.Record) (e change, ok bool) {
	switch rec.Type {
	case perfdata.TypeMmap, perfdata.TypeMmap2:
		var m perfdata.Mmap
		if f.Mmap(rec, &m) == nil && !m.Data && m.PID != -1 && rec.CPUMode() == perfdata.CPUModeUser {
			return sb.mappedFile(&m), true
		}
	case perfdata.TypeComm:
		var c perfdata.Comm
		if f.Comm(rec, &c) == nil && c.Exec {
			return sb.Threads.named(&c), true
		}
	case perfdata.TypeFork:
		var t perfdata.Task
		if f.Task(rec, &t) == nil && t.PID != t.PPID {
			return forked(&t), true
		}
	}
	return change{}, false
}

// AddProcessMaps adds the mappings of a /proc/PID/maps and reports whether there is code among
// them.
func (sb *State) AddProcessMaps(pid int32, r io.Reader) bool {
	found := false
	lines := bufio.NewScanner(r) // a line is at most a path and 100 bytes
	for lines.Scan() {
		m, ok := parseMapsLine(lines.Text())
		if !ok {
			continue
		}
		m.PID, m.TID = pid, pid
		found = true
		sb.changes.insert(0, sb.mappedFile(&m))
	}
	return found
}

// parseMapsLine converts a line of /proc/PID/maps to a record of the mapping. It returns false for
// mappings without code, and for other text.
func parseMapsLine(line string) (m perfdata.Mmap, ok bool) {
	code, ok := procmaps.ParseCode(line)
	if !ok {
		return m, false
	}
	return perfdata.Mmap{Addr: code.Start, Len: code.End - code.Start, PgOff: code.Offset,
		Maj: code.File.Major, Min: code.File.Minor, Ino: code.File.Inode, Prot: perfdata.ProtExec,
		Filename: []byte(cmp.Or(code.File.Path, ingest.AnonymousPath))}, true
}

// addVDSO adds the build ID of the vdso, if the bundle has only one.
func (sb *State) addVDSO(l *bootBundle) {
	var ids []buildid.ID
	for _, name := range l.Names() {
		if hex, ok := bundle.CutVDSO(name); ok {
			if id, err := buildid.Parse(hex); err == nil {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 1 {
		sb.buildIDs.add(ids[0], perfdata.CPUModeUser, "[vdso]")
	}
}

// kallsym returns the address of a symbol of the kernel itself in the bundle's kallsyms; 0 if there
// is none.
func (l *bootBundle) kallsym(name string) (addr uint64) {
	r, size, err := l.Entry(bundle.KallsymsName)
	if err != nil {
		return 0
	}
	// With an error the text is cut off, and the lines before it are good.
	list := io.NewSectionReader(r, 0, size)
	_ = symlist.ReadKallsyms(l.Name, list, func(s symlist.KernelSymbol) bool {
		if s.Name == name && s.Module == "" {
			addr = s.Addr
		}
		return addr == 0
	})
	return addr
}
