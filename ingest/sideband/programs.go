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
	sb := New()
	sb.Records.File = f
	sb.readPrograms()
	return sb.Programs.List, sb.Programs.Err
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

// readPrograms decodes the features with BPF programs. Damage becomes warnings.
func (sb *State) readPrograms() {
	read := func(x perfdata.Feature) (name string, b []byte, base int64) {
		sec, ok := sb.Records.File.Features.Section(x)
		if !ok {
			return "", nil, 0
		}
		b, err := sb.Records.File.FeatureBytes(x, maxBPFSection)
		if err != nil {
			sb.programsDamaged(sec.Offset, err)
		}
		return sb.Records.File.Name + ": " + x.String() + " feature", b, sec.Offset
	}
	name, section, base := read(perfdata.FeatureBPFProgInfo)
	if len(section) == 0 {
		return
	}
	sb.Programs.recorded = true
	btfName, blobs, btfBase := read(perfdata.FeatureBPFBTF)
	var btfs map[uint32]*btf.Types
	if len(blobs) > 0 {
		var err error
		btfs, err = bpf.DecodeBTFs(btfName, blobs, btfBase, sb.Records.File.BigEndian)
		if err != nil {
			sb.programsDamaged(btfBase, err)
		}
	}
	programs, err := bpf.DecodePrograms(name, section, base, sb.Records.File.BigEndian, btfs)
	if err != nil {
		sb.programsDamaged(base, err)
	}
	for i := range programs {
		if err := programs[i].Err; err != nil {
			sb.Warn(Position(base), ingest.Warning{Text: err.Error(), Partial: true})
		}
		if note := programs[i].Note; note != nil {
			sb.Warn(Position(base), ingest.Warning{Text: note.Error()})
		}
	}
	sb.Programs.List = programs
}

func (sb *State) programsDamaged(offset int64, err error) {
	sb.Programs.Err = errors.Join(sb.Programs.Err, err)
	sb.Warn(Position(offset), ingest.Warning{Text: err.Error(), Partial: true,
		Hint: "unread BPF programs keep the names of their records"})
}

// metadata adds the metadata of a program to the comments of the profile.
func (sb *State) metadata(rec *perfdata.Record) error {
	m, err := bpf.DecodeMetadata(sb.Records.File.Name+": BPF_METADATA record", rec.Body,
		rec.Offset+int64(rec.Size)-int64(len(rec.Body)), sb.Records.File.BigEndian)
	for _, v := range m.Values {
		if len(sb.Records.Comments) < maxComments {
			sb.Records.Comments = append(sb.Records.Comments, fmt.Sprintf("%s: %s=%s", m.Program, v.Key, v.Value))
		}
	}
	return err
}

// maxComments bounds the comments of BPF_METADATA records.
const maxComments = 1000

// programLoad is the records of a load of a program.
type programLoad struct {
	id      uint32 // 0 if no BPF_EVENT followed
	symbols []int  // KSYMBOL records, by index in State.changes; main first
}

// programLoads groups the KSYMBOL records of BPF programs by the BPF_EVENT after them: the loading
// thread has one record per function, then the event. If the event was lost, each record is a load
// without an ID.
func (sb *State) programLoads() []programLoad {
	var loads []programLoad
	open := make(map[int32][]int) // by thread
	for i := range sb.changes.list {
		switch e := &sb.changes.list[i]; {
		case e.kind == changeKernelMapping && e.layer == addrspace.Program:
			open[e.tid] = append(open[e.tid], i)
		case e.kind == changeProgramLoad:
			group := open[e.tid]
			delete(open, e.tid)
			first := sb.firstOf(group, bpf.Tag(tagBytes(e.a)))
			for _, at := range group[:first] {
				loads = append(loads, programLoad{symbols: []int{at}})
			}
			if first < len(group) {
				loads = append(loads, programLoad{id: e.ref, symbols: group[first:]})
			}
		}
	}
	rest := make([]int, 0, len(open))
	for _, group := range open {
		rest = append(rest, group...)
	}
	slices.Sort(rest)
	for _, at := range rest {
		loads = append(loads, programLoad{symbols: []int{at}})
	}
	return loads
}

// firstOf returns the index in a group of the main function of the program with a tag, which is in
// the function's name. Synthesized records have another tag; they are never lost.
func (sb *State) firstOf(group []int, tag bpf.Tag) int {
	for i := len(group) - 1; i >= 0; i-- {
		if t, _, ok := bpf.SplitSymbol(sb.symbolOf(group[i])); ok && t == tag {
			return i
		}
	}
	return 0
}

// symbolOf is the name in a KSYMBOL record, by index in changes.
func (sb *State) symbolOf(at int) string { return sb.Objects.List[sb.changes.list[at].ref].Symbol }

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
	sb     *State
	byID   map[uint32][]*bpf.Program // the best first
	starts map[*bpf.Program]map[addr.PC]int
	byCode map[codeKey]*codeFuncs
	of     map[int]funcRef // by index of the record in changes
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
// information are added to sb.Programs. The changes must be sorted by time.
func (sb *State) matchPrograms() {
	if sb.Programs.symbols == 0 {
		return
	}
	t := sb.newProgramMatcher()
	var gone []programLoad
	for _, load := range sb.programLoads() {
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
	sb.addMatched(t)
	for i := range gone {
		p := sb.goneProgram(&gone[i])
		for _, at := range gone[i].symbols {
			if o := &sb.Objects.List[sb.changes.list[at].ref]; o.WhyNoImage == "" {
				o.WhyNoImage = p.Missing
			}
		}
		sb.Programs.List = append(sb.Programs.List, p)
	}
	slices.SortStableFunc(sb.Programs.List, func(a, b bpf.Program) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Funcs[0].Start, b.Funcs[0].Start))
	})
	sb.Programs.List = slices.CompactFunc(sb.Programs.List, sameGone)
}

// SeparateLoads gives the functions of these programs, by ID, objects of their own: without it the
// loads of a program are one object. It is called before Build.
func (sb *State) SeparateLoads(ids []uint32) { sb.Programs.alone = ids }

// life is the times of the records of a program's load and unload; 0 for none.
type life struct{ loaded, unloaded uint64 }

// noteLife notes the time of a BPF_EVENT record. Records of programs that were loaded before the
// recording have the time 0.
func (sb *State) noteLife(rec *perfdata.Record, b *perfdata.BPFEvent) {
	id, err := sb.Records.File.SampleID(rec)
	if err != nil || id.Has&perfdata.SampleTime == 0 || id.Time == 0 || id.Time == NoTime {
		return
	}
	if sb.Programs.lives == nil {
		sb.Programs.lives = make(map[uint32]life)
	}
	l := sb.Programs.lives[b.ID]
	switch b.Kind {
	case perfdata.BPFLoad:
		l.loaded = id.Time
	case perfdata.BPFUnload:
		l.unloaded = id.Time
	}
	sb.Programs.lives[b.ID] = l
}

// setLives sets the times of the programs' records.
func (sb *State) setLives() {
	for i := range sb.Programs.List {
		p := &sb.Programs.List[i]
		l := sb.Programs.lives[p.ID]
		p.Loaded, p.Unloaded = l.loaded, l.unloaded
	}
}

// sameGone reports whether two programs without information are one: perf records a program twice
// that is loaded while it lists the loaded programs.
func sameGone(a, b bpf.Program) bool {
	return a.Raw == nil && b.Raw == nil && a.ID == b.ID && a.ID != 0 &&
		a.Funcs[0].Start == b.Funcs[0].Start && a.Funcs[0].Length == b.Funcs[0].Length
}

func (sb *State) newProgramMatcher() *programMatcher {
	t := &programMatcher{sb: sb, byID: make(map[uint32][]*bpf.Program),
		starts: make(map[*bpf.Program]map[addr.PC]int),
		byCode: make(map[codeKey]*codeFuncs), of: make(map[int]funcRef)}
	for _, programs := range [...][]bpf.Program{sb.Programs.List, sb.bundles.programs} {
		for i := range programs {
			p := &programs[i]
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
	e := &t.sb.changes.list[load.symbols[k]]
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
	e := &t.sb.changes.list[at]
	tag, _, ok := bpf.SplitSymbol(t.sb.symbolOf(at))
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
	t.of[at] = r
	e := &t.sb.changes.list[at]
	f := *r.fn()
	_, name, ok := bpf.SplitSymbol(t.sb.symbolOf(at))
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
	sb := t.sb
	objects := make(map[funcRef]uint32)
	for at := range sb.changes.list {
		e := &sb.changes.list[at]
		if e.kind != changeKernelMapping || e.layer != addrspace.Program {
			continue
		}
		r, ok := t.of[at]
		if !ok {
			sb.Objects.List[e.ref].NoImage = true
			continue
		}
		n, ok := objects[r]
		if !ok {
			n = sb.Objects.program(r.p, r.i, e.b-e.a, sb.Host.Arch,
				slices.Contains(sb.Programs.alone, r.p.ID))
			objects[r] = n
		}
		e.ref = n
	}
}

// goneProgram makes a program without recorded information from its records.
func (sb *State) goneProgram(load *programLoad) bpf.Program {
	p := bpf.Program{ID: load.id, Missing: bpf.MissingGone, BigEndian: sb.Host.BigEndian}
	switch why := sb.Programs.missing[load.id]; {
	case why != "":
		p.Missing = why
	case !sb.Programs.recorded || load.id == 0:
		p.Missing = bpf.MissingNotRecorded
	}
	for _, at := range load.symbols {
		e := &sb.changes.list[at]
		f := bpf.Func{Start: addr.PC(e.a), Length: uint32(e.b - e.a)}
		f.Tag, f.Name, _ = bpf.SplitSymbol(sb.symbolOf(at))
		p.Funcs = append(p.Funcs, f)
		p.JITedLen += f.Length
	}
	p.Tag, p.Name = p.Funcs[0].Tag, p.Funcs[0].Name[:min(len(p.Funcs[0].Name), maxProgramName)]
	return p
}

// noteMissing adds the reasons of a bundle's recorder for programs without code. Reasons of the
// first bundle have precedence.
func (sb *State) noteMissing(list []bundle.MissingProgram) {
	for i := range list {
		m := &list[i]
		if m.ID == 0 || m.Reason == "" || sb.Programs.missing[m.ID] != "" {
			continue
		}
		if sb.Programs.missing == nil {
			sb.Programs.missing = make(map[uint32]string)
		}
		sb.Programs.missing[m.ID] = m.Reason
	}
}

// addMissing adds the programs in a bundle's own list without records: they were loaded before the
// recording and unloaded before they could be read. It sets the reasons of the other programs.
func (sb *State) addMissing(list []bundle.MissingProgram) {
	known := make(map[uint32]bool, len(sb.Programs.List))
	for i := range sb.Programs.List {
		p := &sb.Programs.List[i]
		known[p.ID] = true
		if p.Missing != "" && sb.Programs.missing[p.ID] != "" {
			p.Missing = sb.Programs.missing[p.ID]
		}
	}
	for i := range list {
		m := &list[i]
		if known[m.ID] || sb.Programs.missing[m.ID] == "" {
			continue
		}
		known[m.ID] = true
		f := bpf.Func{Name: m.Symbol}
		if tag, name, ok := bpf.SplitSymbol(m.Symbol); ok {
			f.Tag, f.Name = tag, name
		}
		sb.Programs.List = append(sb.Programs.List, bpf.Program{ID: m.ID, Missing: m.Reason, Tag: f.Tag,
			Name: f.Name[:min(len(f.Name), maxProgramName)], BigEndian: sb.Host.BigEndian,
			Funcs: []bpf.Func{f}})
	}
	slices.SortStableFunc(sb.Programs.List,
		func(a, b bpf.Program) int { return cmp.Compare(a.ID, b.ID) })
}

// maxProgramName is the longest name of a program in the kernel: BPF_OBJ_NAME_LEN − 1.
const maxProgramName = 15
