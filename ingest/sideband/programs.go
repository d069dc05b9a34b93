package sideband

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
)

// maxBPFSection bounds the features BPF_PROG_INFO and BPF_BTF in bytes. A thousand programs need
// about 3 MB.
const maxBPFSection = 64 << 20

// ReadPrograms decodes the features of a perf.data file with BPF programs, without its records.
func ReadPrograms(f *perfdata.File) ([]bpf.Program, error) {
	var p Programs
	p.read(&Records{File: f})
	return p.List, p.Err
}

// Types returns the BTF in a perf.data file, by its ID in the kernel. Damage of it is reported with
// the programs; name is for messages.
func Types(name string, f *perfdata.File) map[uint32]*btf.Types {
	sec, ok := f.Features.Section(perfdata.FeatureBPFBTF)
	if !ok {
		return nil
	}
	b, _ := f.FeatureBytes(perfdata.FeatureBPFBTF, maxBPFSection)
	types, _ := bpf.DecodeBTFs(name, b, sec.Offset, f.BigEndian)
	return types
}

// read decodes the features with BPF programs. Damage becomes warnings.
func (p *Programs) read(records *Records) {
	read := func(feature perfdata.Feature) (name string, b []byte, base int64) {
		sec, ok := records.File.Features.Section(feature)
		if !ok {
			return "", nil, 0
		}
		b, err := records.File.FeatureBytes(feature, maxBPFSection)
		if err != nil {
			p.damaged(records, sec.Offset, err)
		}
		return records.File.Name + ": " + feature.String() + " feature", b, sec.Offset
	}
	name, section, base := read(perfdata.FeatureBPFProgInfo)
	if len(section) == 0 {
		return
	}
	p.recorded = true
	btfName, blobs, btfBase := read(perfdata.FeatureBPFBTF)
	var btfs map[uint32]*btf.Types
	if len(blobs) > 0 {
		var err error
		btfs, err = bpf.DecodeBTFs(btfName, blobs, btfBase, records.File.BigEndian)
		if err != nil {
			p.damaged(records, btfBase, err)
		}
	}
	programs, err := bpf.DecodePrograms(name, section, base, records.File.BigEndian, btfs)
	if err != nil {
		p.damaged(records, base, err)
	}
	for i := range programs {
		if err := programs[i].Err; err != nil {
			records.Warn(Position(base), ingest.Warning{Text: err.Error(), Partial: true})
		}
		if note := programs[i].Note; note != nil {
			records.Warn(Position(base), ingest.Warning{Text: note.Error()})
		}
	}
	p.List = programs
}

func (p *Programs) damaged(x *Records, offset int64, err error) {
	p.Err = errors.Join(p.Err, err)
	x.Warn(Position(offset), ingest.Warning{Text: err.Error(), Partial: true,
		Hint: "unread BPF programs keep the names of their records"})
}

// metadata adds the metadata of a program to the comments of the profile.
func (x *Records) metadata(rec *perfdata.Record) error {
	m, err := bpf.DecodeMetadata(x.File.Name+": BPF_METADATA record", rec.Body,
		rec.Offset+int64(rec.Size)-int64(len(rec.Body)), x.File.BigEndian)
	for _, v := range m.Values {
		if len(x.Comments) < maxComments {
			x.Comments = append(x.Comments, fmt.Sprintf("%s: %s=%s", m.Program, v.Key, v.Value))
		}
	}
	return err
}

// maxComments bounds the comments of BPF_METADATA records.
const maxComments = 1000

// programLoad is the records of a load of a program.
type programLoad struct {
	id      uint32 // 0 if no BPF_EVENT followed
	symbols []int  // KSYMBOL records, by index in changes; main first
}

// loads groups the KSYMBOL records of BPF programs by the BPF_EVENT after them: the loading thread has
// one record per function, then the event. If the event was lost, each record is a load without an ID.
func (t *programMatcher) loads() []programLoad {
	var list []programLoad
	open := make(map[int32][]int) // by thread
	for i := range t.changes {
		switch e := &t.changes[i]; {
		case e.kind == changeKernelMapping && e.layer == addrspace.Program:
			open[e.tid] = append(open[e.tid], i)
		case e.kind == changeProgramLoad:
			group := open[e.tid]
			delete(open, e.tid)
			first := t.firstOf(group, bpf.Tag(tagBytes(e.a)))
			for _, at := range group[:first] {
				list = append(list, programLoad{symbols: []int{at}})
			}
			if first < len(group) {
				list = append(list, programLoad{id: e.ref, symbols: group[first:]})
			}
		}
	}
	rest := make([]int, 0, len(open))
	for _, group := range open {
		rest = append(rest, group...)
	}
	slices.Sort(rest)
	for _, at := range rest {
		list = append(list, programLoad{symbols: []int{at}})
	}
	return list
}

// firstOf returns the index in a group of the main function of the program with a tag, which is in
// the function's name. Synthesized records have another tag; they are never lost.
func (t *programMatcher) firstOf(group []int, tag bpf.Tag) int {
	for i := len(group) - 1; i >= 0; i-- {
		if own, _, ok := bpf.SplitSymbol(t.symbolOf(group[i])); ok && own == tag {
			return i
		}
	}
	return 0
}

// symbolOf is the name in a KSYMBOL record, by index in changes.
func (t *programMatcher) symbolOf(at int) string { return t.objects.List[t.changes[at].ref].Symbol }

// tagBytes and tagWord convert a tag to a word of a change and back.
func tagBytes(w uint64) (b [8]byte) {
	binary.LittleEndian.PutUint64(b[:], w)
	return b
}

func tagWord(b [8]byte) uint64 { return binary.LittleEndian.Uint64(b[:]) }

// funcRef is a function of a program with recorded information.
type funcRef struct {
	p *bpf.Program
	i int
}

func (r funcRef) fn() *bpf.Func { return &r.p.Funcs[r.i] }

// programMatcher joins KSYMBOL records and the functions of programs.
type programMatcher struct {
	changes  []change
	objects  *Objects
	programs *Programs
	bundles  *bundlePrograms
	byID     map[uint32][]*bpf.Program // the best first
	starts   map[*bpf.Program]map[addr.PC]int
	byCode   map[codeKey]*codeFuncs
	matches  map[int]funcRef // by index of the record in changes
}

// codeKey is the description of a function in a KSYMBOL record.
type codeKey struct {
	start  addr.PC
	length uint32 // 0 if unknown
	tag    bpf.Tag
}

// codeFuncs are the functions of one codeKey, in the order of loading. Successive records get
// successive functions, further records the last one.
type codeFuncs struct {
	refs []funcRef
	next int
}

// matchPrograms finds the functions of the KSYMBOL records of BPF programs and gives the records'
// objects their identity, which name and length alone do not determine. Programs without recorded
// information are added to Programs.List. The changes must be sorted by time.
func (sb *State) matchPrograms() {
	if sb.Programs.symbols == 0 {
		return
	}
	t := newProgramMatcher(&sb.Programs, &sb.bundles)
	t.changes, t.objects = sb.changes.list, sb.Objects
	t.match()
}

// match matches the records of all loads.
func (t *programMatcher) match() {
	p := t.programs
	var gone []programLoad
	for _, load := range t.loads() {
		var left []int
		for k, at := range load.symbols {
			if r, ok := t.find(&load, k); ok {
				t.bind(at, r)
			} else {
				left = append(left, at)
			}
		}
		if len(left) > 0 && (load.id == 0 || len(t.byID[load.id]) == 0) {
			gone = append(gone, programLoad{load.id, left})
		}
	}
	t.finish()
	t.addMatched()
	for i := range gone {
		program := t.goneProgram(&gone[i])
		for _, at := range gone[i].symbols {
			if o := &t.objects.List[t.changes[at].ref]; o.WhyNoImage == "" {
				o.WhyNoImage = program.Missing
			}
		}
		p.List = append(p.List, program)
	}
	slices.SortStableFunc(p.List, func(a, b bpf.Program) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Funcs[0].Start, b.Funcs[0].Start))
	})
	p.List = slices.CompactFunc(p.List, sameGone)
}

// life is the times of the records of a program's load and unload; 0 for none.
type life struct{ loaded, unloaded uint64 }

// noteLife notes the time of a BPF_EVENT record. Records of programs that were loaded before the
// recording have the time 0.
func (p *Programs) noteLife(f *perfdata.File, rec *perfdata.Record, b *perfdata.BPFEvent) {
	id, err := f.SampleID(rec)
	if err != nil || id.Has&perfdata.SampleTime == 0 || id.Time == 0 || id.Time == NoTime {
		return
	}
	if p.lives == nil {
		p.lives = make(map[uint32]life)
	}
	l := p.lives[b.ID]
	switch b.Kind {
	case perfdata.BPFLoad:
		l.loaded = id.Time
	case perfdata.BPFUnload:
		l.unloaded = id.Time
	}
	p.lives[b.ID] = l
}

// setLives sets the times of the programs' records.
func (p *Programs) setLives() {
	for i := range p.List {
		program := &p.List[i]
		l := p.lives[program.ID]
		program.Loaded, program.Unloaded = l.loaded, l.unloaded
	}
}

// sameGone reports whether two programs without information are one: perf records a program twice
// that is loaded while it lists the loaded programs.
func sameGone(a, b bpf.Program) bool {
	return a.Raw == nil && b.Raw == nil && a.ID == b.ID && a.ID != 0 &&
		a.Funcs[0].Start == b.Funcs[0].Start && a.Funcs[0].Length == b.Funcs[0].Length
}

func newProgramMatcher(programs *Programs, bundles *bundlePrograms) *programMatcher {
	t := &programMatcher{programs: programs, bundles: bundles, byID: make(map[uint32][]*bpf.Program),
		starts: make(map[*bpf.Program]map[addr.PC]int),
		byCode: make(map[codeKey]*codeFuncs), matches: make(map[int]funcRef)}
	for _, list := range [...][]bpf.Program{programs.List, bundles.programs} {
		for i := range list {
			p := &list[i]
			t.byID[p.ID] = append(t.byID[p.ID], p)
			t.add(p)
		}
	}
	for _, list := range t.byID {
		slices.SortStableFunc(list, func(a, b *bpf.Program) int { // complete programs first
			return min(len(a.Missing), 1) - min(len(b.Missing), 1)
		})
	}
	for _, l := range t.byCode {
		slices.SortStableFunc(l.refs, func(a, b funcRef) int { return cmp.Compare(a.p.ID, b.p.ID) })
	}
	return t
}

// add adds the functions of a program by the facts in records.
func (t *programMatcher) add(p *bpf.Program) {
	starts := make(map[addr.PC]int, len(p.Funcs))
	t.starts[p] = starts
	for i := range p.Funcs {
		f := &p.Funcs[i]
		if f.Start == 0 {
			continue
		}
		if _, twice := starts[f.Start]; !twice {
			starts[f.Start] = i
		}
		t.addByCode(codeKey{f.Start, f.Length, f.Tag}, funcRef{p, i})
		if i == 0 && p.Tag != f.Tag {
			t.addByCode(codeKey{f.Start, f.Length, p.Tag}, funcRef{p, i})
		}
	}
}

func (t *programMatcher) addByCode(key codeKey, r funcRef) {
	l := t.byCode[key]
	if l == nil {
		l = new(codeFuncs)
		t.byCode[key] = l
	}
	l.refs = append(l.refs, r)
}

// find returns the function of a load's KSYMBOL record.
func (t *programMatcher) find(load *programLoad, k int) (funcRef, bool) {
	at := load.symbols[k]
	if load.id != 0 {
		for _, p := range t.byID[load.id] {
			if i := t.within(p, load, k); i >= 0 {
				return funcRef{p, i}, true
			}
		}
		return funcRef{}, false
	}
	return t.byAddress(at)
}

// within returns the index of the record's function in program p, or −1: the function at its
// address or, if addresses were hidden, with its index.
func (t *programMatcher) within(p *bpf.Program, load *programLoad, k int) int {
	e := &t.changes[load.symbols[k]]
	starts, length := t.starts[p], e.b-e.a
	if i, ok := starts[addr.PC(e.a)]; ok && fits(&p.Funcs[i], length) {
		return i
	}
	if len(starts) == 0 && len(load.symbols) == len(p.Funcs) && fits(&p.Funcs[k], length) {
		return k
	}
	return -1
}

// fits reports whether a function can have a length.
func fits(f *bpf.Func, length uint64) bool { return f.Length == 0 || uint64(f.Length) == length }

// byAddress finds the function of a record without a BPF_EVENT: the next loaded one with its
// address, length and tag.
func (t *programMatcher) byAddress(at int) (funcRef, bool) {
	e := &t.changes[at]
	tag, _, ok := bpf.SplitSymbol(t.symbolOf(at))
	if !ok {
		return funcRef{}, false
	}
	l := t.byCode[codeKey{addr.PC(e.a), uint32(e.b - e.a), tag}]
	if l == nil {
		if l = t.byCode[codeKey{addr.PC(e.a), 0, tag}]; l == nil {
			return funcRef{}, false
		}
	}
	r := l.refs[l.next]
	l.next = min(l.next+1, len(l.refs)-1)
	return r, true
}

// bind assigns a function to a record, and adds facts of the record that the kernel hid from the
// recorder. Without BTF the record has the better name: the name in the program is truncated to 15
// bytes, or made up.
func (t *programMatcher) bind(at int, r funcRef) {
	t.matches[at] = r
	e := &t.changes[at]
	f := *r.fn()
	_, name, ok := bpf.SplitSymbol(t.symbolOf(at))
	if ok && r.p.BTF == nil && len(name) > len(f.Name) &&
		(r.i > 0 || strings.HasPrefix(name, f.Name)) {
		f.Name = name
	}
	if f.Start == 0 {
		f.Start = addr.PC(e.a)
	}
	if f.Length == 0 {
		f.Length = uint32(e.b - e.a)
	}
	if old := r.fn(); f.Name != old.Name || f.Start != old.Start || f.Length != old.Length {
		r.p.Funcs = slices.Clone(r.p.Funcs) // a bundle shares its functions
		*r.fn() = f
	}
}

// finish gives the records the objects of their functions.
func (t *programMatcher) finish() {
	objects := make(map[funcRef]uint32)
	for at := range t.changes {
		e := &t.changes[at]
		if e.kind != changeKernelMapping || e.layer != addrspace.Program {
			continue
		}
		r, ok := t.matches[at]
		if !ok {
			t.objects.List[e.ref].NoImage = true
			continue
		}
		n, ok := objects[r]
		if !ok {
			n = t.objects.program(r.p, r.i, e.b-e.a, t.programs.host.Arch,
				slices.Contains(t.programs.alone, r.p.ID))
			objects[r] = n
		}
		e.ref = n
	}
}

// addMatched adds programs of bundles that were matched with records to the capture's list,
// replacing programs without code.
func (t *programMatcher) addMatched() {
	matched := make(map[*bpf.Program]bool)
	for _, r := range t.matches {
		matched[r.p] = true
	}
	last := make(map[uint32]int) // by ID: the last matched program
	for i := range t.bundles.programs {
		if p := &t.bundles.programs[i]; matched[p] {
			last[p.ID] = i
			t.bundles.programFrom[i].Programs++
		}
	}
	if len(last) == 0 {
		return
	}
	t.programs.recorded = true
	t.programs.List = slices.DeleteFunc(slices.Clone(t.programs.List), func(o bpf.Program) bool {
		_, ok := last[o.ID]
		return ok && o.Missing != ""
	})
	for i := range t.bundles.programs {
		p := &t.bundles.programs[i]
		if matched[p] && (p.Missing == "" || last[p.ID] == i) {
			t.programs.List = append(t.programs.List, *p)
		}
	}
}

// goneProgram makes a program without recorded information from its records.
func (t *programMatcher) goneProgram(load *programLoad) bpf.Program {
	p := bpf.Program{ID: load.id, Missing: bpf.MissingGone, BigEndian: t.programs.host.BigEndian}
	switch why := t.programs.missing[load.id]; {
	case why != "":
		p.Missing = why
	case !t.programs.recorded || load.id == 0:
		p.Missing = bpf.MissingNotRecorded
	}
	for _, at := range load.symbols {
		e := &t.changes[at]
		f := bpf.Func{Start: addr.PC(e.a), Length: uint32(e.b - e.a)}
		f.Tag, f.Name, _ = bpf.SplitSymbol(t.symbolOf(at))
		p.Funcs = append(p.Funcs, f)
		p.JITedLen += f.Length
	}
	p.Tag, p.Name = p.Funcs[0].Tag, p.Funcs[0].Name[:min(len(p.Funcs[0].Name), maxProgramName)]
	return p
}

// noteMissing adds the reasons of a bundle's recorder for programs without code. Reasons of the
// first bundle have precedence.
func (p *Programs) noteMissing(list []bundle.MissingProgram) {
	for i := range list {
		m := &list[i]
		if m.ID == 0 || m.Reason == "" || p.missing[m.ID] != "" {
			continue
		}
		if p.missing == nil {
			p.missing = make(map[uint32]string)
		}
		p.missing[m.ID] = m.Reason
	}
}

// addMissing adds the programs in a bundle's own list without records: they were loaded before the
// recording and unloaded before they could be read. It sets the reasons of the other programs.
func (p *Programs) addMissing(list []bundle.MissingProgram) {
	known := make(map[uint32]bool, len(p.List))
	for i := range p.List {
		program := &p.List[i]
		known[program.ID] = true
		if program.Missing != "" && p.missing[program.ID] != "" {
			program.Missing = p.missing[program.ID]
		}
	}
	for i := range list {
		m := &list[i]
		if known[m.ID] || p.missing[m.ID] == "" {
			continue
		}
		known[m.ID] = true
		f := bpf.Func{Name: m.Symbol}
		if tag, name, ok := bpf.SplitSymbol(m.Symbol); ok {
			f.Tag, f.Name = tag, name
		}
		p.List = append(p.List, bpf.Program{ID: m.ID, Missing: m.Reason, Tag: f.Tag,
			Name: f.Name[:min(len(f.Name), maxProgramName)], BigEndian: p.host.BigEndian,
			Funcs: []bpf.Func{f}})
	}
	slices.SortStableFunc(p.List,
		func(a, b bpf.Program) int { return cmp.Compare(a.ID, b.ID) })
}

// maxProgramName is the longest name of a program in the kernel: BPF_OBJ_NAME_LEN − 1.
const maxProgramName = 15
