package sideband

import (
	"bufio"
	"cmp"
	"io"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/object/kallsyms"
)

// take adds the programs, symbols, modules and mappings of a bundle that the capture lacks.
func (sb *State) take(l *bootBundle) {
	sb.bundles.open = append(sb.bundles.open, l)
	sb.noteMissing(l.Manifest.Missing)
	for i := range l.programs {
		p := l.programs[i]
		if p.Raw == nil {
			continue // known by its records only, which takeSymbols reads
		}
		p.Funcs = slices.Clone(p.Funcs) // the match may complete their names
		sb.bundles.programs = append(sb.bundles.programs, p)
		sb.bundles.programFrom = append(sb.bundles.programFrom, l.taken)
	}
	sb.takeSymbols(l)
	sb.takeKernel(l)
	sb.takeModules(l)
	sb.takeProcesses(l)
	sb.takeVDSO(l)
}

// insert adds a change of state for which the capture has no record, at a time of its clock.
func (sb *State) insert(time uint64, e change) {
	e.time, e.seq = time, uint32(len(sb.changes))
	if !sb.Clock.Timed {
		e.time = 0
	}
	sb.changes = append(sb.changes, e)
}

// codeRange identifies a function by its addresses.
type codeRange struct{ start, end uint64 }

// symbolGroup is the KSYMBOL records of a program that one thread loads.
type symbolGroup struct {
	symbols []change
	missing bool // the capture has no record of one of them
}

// takeSymbols takes the loads and unloads of BPF code for which the capture has no records:
// its recorder lacked the right to list loaded programs, or lost records.
func (sb *State) takeSymbols(l *bootBundle) {
	if l.records == nil {
		return
	}
	known := make(map[codeRange]bool)
	for i := range sb.changes {
		if e := &sb.changes[i]; e.kind == changeKernelMapping && e.layer != addrspace.Base &&
			e.layer != addrspace.Around {
			known[codeRange{e.a, e.b}] = true
		}
	}
	x := symbolTaker{sb: sb, l: l, known: known, open: make(map[int32]*symbolGroup)}
	for r := l.records.AllRecords(); r.Next(); {
		switch rec := r.Record(); rec.Type {
		case perfdata.TypeKSymbol:
			x.symbol(rec)
		case perfdata.TypeBPFEvent:
			x.event(rec)
		}
	}
	tids := make([]int32, 0, len(x.open))
	for tid := range x.open {
		tids = append(tids, tid)
	}
	slices.Sort(tids)
	for _, tid := range tids {
		x.flush(tid)
	}
}

type symbolTaker struct {
	sb    *State
	l     *bootBundle
	known map[codeRange]bool // by records of the capture
	open  map[int32]*symbolGroup
}

func (x *symbolTaker) symbol(rec *perfdata.Record) {
	var k perfdata.KSymbol
	id, err := x.l.records.SampleID(rec)
	if err != nil || x.l.records.KSymbol(rec, &k) != nil || k.Len == 0 {
		return // reported by the profile of the bundle
	}
	at := codeRange{k.Addr, endOf(k.Addr, uint64(k.Len))}
	e := change{kind: changeKernelMapping, layer: addrspace.Image, a: at.start, b: at.end, tid: id.TID,
		time: x.l.convert(id.Time)}
	program := bpf.IsSymbol(k.Name)
	if program {
		e.layer = addrspace.Program
	}
	if k.Unregister {
		if e.kind = changeKernelUnmapping; !x.known[at] {
			x.sb.insert(e.time, e)
		}
		return
	}
	e.ref = x.sb.Objects.ksymbol(&k, x.sb.Host.Arch)
	if !program {
		if !x.known[at] {
			x.sb.insert(e.time, e)
			x.count()
		}
		return
	}
	g := x.open[id.TID]
	if g == nil {
		g = new(symbolGroup)
		x.open[id.TID] = g
	}
	g.symbols = append(g.symbols, e)
	g.missing = g.missing || !x.known[at]
}

func (x *symbolTaker) count() { x.sb.bundles.taken[x.l.taken].Symbols++ }

// event ends a group of symbols: they belong to its program.
func (x *symbolTaker) event(rec *perfdata.Record) {
	var b perfdata.BPFEvent
	id, err := x.l.records.SampleID(rec)
	if err != nil || x.l.records.BPFEvent(rec, &b) != nil || b.Kind != perfdata.BPFLoad {
		return
	}
	if x.flush(id.TID) {
		t := x.l.convert(id.Time)
		x.sb.insert(t, change{kind: changeProgramLoad, ref: b.ID, a: tagWord(b.Tag), tid: id.TID})
	}
}

// flush takes the symbols of a group, if the capture lacks one of them, and reports
// whether it did.
func (x *symbolTaker) flush(tid int32) bool {
	g := x.open[tid]
	delete(x.open, tid)
	if g == nil || !g.missing {
		return false
	}
	for _, e := range g.symbols {
		x.sb.insert(e.time, e)
		x.sb.Programs.symbols++
		x.count()
	}
	return true
}

// takeKernel takes the kernel's build ID, and its address if the capture's recorder was not
// allowed to read that.
func (sb *State) takeKernel(l *bootBundle) {
	id := l.Manifest.KernelID()
	if NewIdentifier(sb, ObjectQuery{}, nil).kernel.IsZero() {
		sb.addBuildID(id, perfdata.CPUModeKernel, ingest.KernelMapName)
	}
	text := uint64(l.Manifest.Text)
	if sb.Kernel.Mapped || text == 0 {
		return
	}
	sb.Kernel.Mapped = true
	sb.insert(0, change{kind: changeKernelMapping, layer: addrspace.Around, a: text,
		b: kernelReach(sb.Host.Arch, text), ref: sb.Objects.kernel("_text", id)})
	sb.bundles.taken[l.taken].Kernel = true
}

// takeModules takes modules that were loaded or unloaded during the recording, for which
// perf.data has no record, those that its recorder was not allowed to list, and the build
// IDs of all.
func (sb *State) takeModules(l *bootBundle) {
	modules, err := l.Modules()
	if err != nil {
		return // reported by the profile of the bundle
	}
	known := make(map[uint64]bool)
	for i := range sb.changes {
		if e := &sb.changes[i]; e.kind == changeKernelMapping && e.layer == addrspace.Base {
			known[e.a] = true
		}
	}
	for i := range modules {
		m := &modules[i]
		name := "[" + m.Name + "]"
		sb.addBuildID(m.BuildID, perfdata.CPUModeKernel, name)
		start := uint64(m.Addr)
		if start == 0 || m.Size == 0 || known[start] {
			continue
		}
		e := change{kind: changeKernelMapping, layer: addrspace.Base, a: start, b: endOf(start, m.Size),
			ref: sb.Objects.module(&perfdata.Mmap{Filename: []byte(name), BuildID: m.BuildID})}
		sb.insert(l.convert(m.Loaded), e)
		if m.Unloaded != 0 {
			e.kind = changeKernelUnmapping
			sb.insert(l.convert(m.Unloaded), e)
		}
		sb.bundles.taken[l.taken].Modules++
	}
}

// takeProcesses takes the mappings of processes with samples for which the capture has none.
func (sb *State) takeProcesses(l *bootBundle) {
	known := make(map[int32]bool)
	for i := range sb.changes {
		if e := &sb.changes[i]; e.kind == changeMapping || e.kind == changeFork && e.pid != int32(e.a) {
			known[e.pid] = true
		}
	}
	for _, name := range l.Names() {
		pid, program, ok := bundle.MapsProgram(name)
		if !ok || known[pid] || !sb.sampled.processes[pid] || program != 0 && sb.Programs.spaces == nil {
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
			sb.bundles.taken[l.taken].Processes++
		}
	}
}

// AddProcessMaps adds the mappings of a /proc/PID/maps and reports whether one was of code.
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
		e := change{kind: changeMapping, pid: pid, a: m.Addr, b: endOf(m.Addr, m.Len), c: m.PgOff}
		if string(m.Filename) == ingest.VsyscallPath {
			e.ref = Vsyscall
		} else {
			e.ref = sb.Objects.user(&m, sb.Host.is64())
			sb.Objects.segment(e.ref, m.PgOff, m.Len)
		}
		sb.insert(0, e)
	}
	return found
}

// parseMapsLine parses a line of /proc/PID/maps as the record that perf has for such a
// mapping. ok is false for mappings without code, and for other text.
func parseMapsLine(line string) (m perfdata.Mmap, ok bool) {
	code, ok := procmaps.ParseCode(line)
	if !ok {
		return m, false
	}
	return perfdata.Mmap{Addr: code.Start, Len: code.End - code.Start, PgOff: code.Offset,
		Maj: code.File.Major, Min: code.File.Minor, Ino: code.File.Inode, Prot: perfdata.ProtExec,
		Filename: []byte(cmp.Or(code.File.Path, ingest.AnonymousPath))}, true
}

// takeVDSO takes the build ID of the vdso, if the bundle has only one.
func (sb *State) takeVDSO(l *bootBundle) {
	var ids []buildid.ID
	for _, name := range l.Names() {
		if hex, ok := bundle.CutVDSO(name); ok {
			if id, err := buildid.Parse(hex); err == nil {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 1 {
		sb.addBuildID(ids[0], perfdata.CPUModeUser, "[vdso]")
	}
}

// kallsym returns the address of a symbol of the kernel itself in the bundle's kallsyms; 0 if
// it is not there.
func (l *bootBundle) kallsym(name string) (addr uint64) {
	r, size, err := l.Entry(bundle.KallsymsName)
	if err != nil {
		return 0
	}
	// A list with an error is cut off; its lines before that are good.
	_ = kallsyms.Read(l.Name, io.NewSectionReader(r, 0, size), func(s kallsyms.Symbol) bool {
		if s.Name == name && s.Module == "" {
			addr = s.Addr
		}
		return addr == 0
	})
	return addr
}
