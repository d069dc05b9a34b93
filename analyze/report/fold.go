package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"symbolize/ingest"
)

// FoldedOptions are for Folded.
type FoldedOptions struct {
	Event     int  // which of Profile.Events
	Count     bool // samples instead of weight
	Annotate  bool // "_[k]" behind kernel and BPF frames, "_[j]" behind JITed, "_[i]" behind inlined ones
	Addresses bool // unresolved frames one by one, "[libc.so.6+0x27220]", instead of "[libc.so.6]"
	PID       bool // "comm-pid" as the first frame, if the profile keeps pids apart
	Demangler *Demangler
}

// Folded writes folded stacks, one a line, root first:
//
//	comm;main;work;memcpy 1234
//
// The first element is the comm with '_' for spaces; ';' inside a name becomes
// ':'. The number is the event's weight. Unresolved frames are those of their
// object together. Lines are distinct and sorted bytewise.
func Folded(w io.Writer, p *ingest.Profile, opts FoldedOptions) error {
	f := newFolder(p, &opts)
	return f.write(w, f.fold())
}

// folder folds samples by the numbers of their frames' texts. Texts are numbered
// in bytewise order, so that numbers compare as texts do.
type folder struct {
	p     *ingest.Profile
	opts  *FoldedOptions
	texts []string // of frames, by number
	first []string // comms, by number

	// one holds for each location the number of its only frame's text; those with
	// none or several have manyFrames and lie in ends and many, outermost first.
	one  []uint32
	many map[ingest.LocationID][]uint32

	index map[commKey]uint32 // number of each comm
}

const manyFrames = ^uint32(0)

func newFolder(p *ingest.Profile, opts *FoldedOptions) *folder {
	if opts.Demangler == nil {
		opts.Demangler = NewDemangler(Simple)
	}
	opts.Demangler.Warm(p)
	f := &folder{p: p, opts: opts}
	f.numberTexts()
	return f
}

// numberTexts makes the text of every frame, each distinct one once, and gives
// each location its numbers.
func (f *folder) numberTexts() {
	p, names := f.p, f.p.Names
	t := newTextTable()
	kinds := 1
	if f.opts.Annotate {
		kinds = 2 // inlined ones have another text
	}
	var funcs []uint32 // by FuncID and kind: text number plus one
	if names != nil {
		funcs = make([]uint32, len(names.Functions)*kinds)
	}
	frame := func(fr ingest.Frame) uint32 {
		k := int(fr.Func) * kinds
		if f.opts.Annotate && fr.Inlined {
			k++
		}
		if funcs[k] == 0 {
			fn := &names.Functions[fr.Func]
			funcs[k] = t.number(f.functionText(fn, fr.Inlined)) + 1
		}
		return funcs[k] - 1
	}
	f.one = make([]uint32, len(p.Locations))
	var many []uint32
	unresolved := uint32(manyFrames) // of the object seen last
	object := ingest.NoObject
	for l := range p.Locations {
		loc := &p.Locations[l]
		if loc.Object != object {
			object, unresolved = loc.Object, manyFrames
		}
		var frames []ingest.Frame
		if names != nil {
			frames = names.At(ingest.LocationID(l))
		}
		switch {
		case len(frames) == 1:
			f.one[l] = frame(frames[0])
		case len(frames) > 1:
			f.one[l] = manyFrames
			many = many[:0]
			for _, fr := range slices.Backward(frames) {
				many = append(many, frame(fr))
			}
			if f.many == nil {
				f.many = make(map[ingest.LocationID][]uint32)
			}
			f.many[ingest.LocationID(l)] = slices.Clone(many)
		case f.opts.Addresses:
			f.one[l] = t.number(f.addressText(loc))
		default:
			if unresolved == manyFrames {
				unresolved = t.number(f.objectText(&p.Objects[object]))
			}
			f.one[l] = unresolved
		}
	}
	f.sortTexts(t)
}

// sortTexts renumbers the texts in bytewise order.
func (f *folder) sortTexts(t *textTable) {
	order := t.order()
	rank := make([]uint32, len(order))
	f.texts = make([]string, len(order))
	for to, from := range order {
		rank[from] = uint32(to)
		f.texts[to] = t.texts[from]
	}
	for l, n := range f.one {
		if n != manyFrames {
			f.one[l] = rank[n]
		}
	}
	for _, list := range f.many {
		for i := range list {
			list[i] = rank[list[i]]
		}
	}
}

func (f *folder) functionText(fn *ingest.Function, inlined bool) string {
	text := strings.ReplaceAll(f.opts.Demangler.Name(fn.SystemName), ";", ":")
	if !f.opts.Annotate {
		return text
	}
	return text + annotation(f.p.Objects[fn.Object].Domain(), inlined)
}

// annotation is stackcollapse's suffix for a frame, "" for user code.
func annotation(d ingest.Domain, inlined bool) string {
	switch {
	case inlined:
		return "_[i]"
	case d == ingest.KernelDomain, d == ingest.BPFDomain:
		return "_[k]"
	case d == ingest.JITDomain:
		return "_[j]"
	}
	return ""
}

func (f *folder) objectText(o *ingest.Object) string {
	text := strings.ReplaceAll("["+ingest.ShortName(o)+"]", ";", ":")
	if f.opts.Annotate {
		text += annotation(o.Domain(), false)
	}
	return text
}

func (f *folder) addressText(loc *ingest.Location) string {
	o := &f.p.Objects[loc.Object]
	text := strings.ReplaceAll(string(ingest.AppendUnresolved(nil, o, loc.Offset)), ";", ":")
	if f.opts.Annotate {
		text += annotation(o.Domain(), false)
	}
	return text
}

// foldPart is how many samples make it worth to fold on another core.
const foldPart = 16 << 10

// fold adds up the samples by (comm, texts), each core a part of them, and sorts
// what comes out.
func (f *folder) fold() []*foldTable {
	f.numberComms()
	n := len(f.p.Samples)
	parts := make([]*foldTable, min(runtime.GOMAXPROCS(0), 1+n/foldPart))
	var wg sync.WaitGroup
	for i := range parts {
		parts[i] = newFoldTable()
		wg.Go(func() {
			f.foldSamples(parts[i], f.p.Samples[n*i/len(parts):n*(i+1)/len(parts)])
			t := parts[i]
			slices.SortFunc(t.entries, func(a, b foldEntry) int { return f.compare(t.key(&a), t.key(&b)) })
		})
	}
	wg.Wait()
	return parts
}

// foldSamples adds samples to t. Keys are big-endian numbers, so that they
// compare as the texts do.
func (f *folder) foldSamples(t *foldTable, samples []ingest.Sample) {
	key := make([]byte, 0, 1024)
	last, comm := commKey{pid: -2}, uint32(0)
	for i := range samples {
		s := &samples[i]
		if int(s.Event) != f.opts.Event {
			continue
		}
		if k := f.commOf(s); k != last {
			last, comm = k, f.index[k]
		}
		key = binary.BigEndian.AppendUint32(key[:0], comm)
		locs := f.p.Stack(s.Stack)
		for k := len(locs) - 1; k >= 0; k-- {
			n := f.one[locs[k]]
			if n != manyFrames {
				key = binary.BigEndian.AppendUint32(key, n)
				continue
			}
			for _, n := range f.many[locs[k]] {
				key = binary.BigEndian.AppendUint32(key, n)
			}
		}
		value := s.Weight
		if f.opts.Count {
			value = s.Count
		}
		t.add(key, value)
	}
}

// commKey is what the first element of a line is made of.
type commKey struct {
	comm ingest.StringID
	pid  int32 // -1 if not shown
}

func (f *folder) commOf(s *ingest.Sample) commKey {
	if f.opts.PID {
		return commKey{s.Comm, s.PID}
	}
	return commKey{s.Comm, -1}
}

// numberComms numbers the first elements of the lines in bytewise order.
func (f *folder) numberComms() {
	t := newTextTable()
	f.index = make(map[commKey]uint32)
	last := commKey{pid: -2}
	for i := range f.p.Samples {
		k := f.commOf(&f.p.Samples[i])
		if k == last {
			continue
		}
		last = k
		if _, ok := f.index[k]; !ok {
			f.index[k] = t.number(commText(f.p.Strings[k.comm], k.pid))
		}
	}
	order := t.order()
	rank := make([]uint32, len(order))
	for to, from := range order {
		rank[from] = uint32(to)
		f.first = append(f.first, t.texts[from])
	}
	for k, n := range f.index {
		f.index[k] = rank[n]
	}
}

func commText(comm string, pid int32) string {
	text := strings.NewReplacer(" ", "_", ";", ":").Replace(ingest.Printable(comm))
	if text == "" {
		text = ":unknown"
	}
	if pid >= 0 {
		text += "-" + strconv.Itoa(int(pid))
	}
	return text
}

// textTable numbers distinct texts.
type textTable struct {
	index map[string]uint32
	texts []string
}

func newTextTable() *textTable { return &textTable{index: make(map[string]uint32)} }

func (t *textTable) number(s string) uint32 {
	n, ok := t.index[s]
	if !ok {
		n = uint32(len(t.texts))
		t.texts = append(t.texts, s)
		t.index[s] = n
	}
	return n
}

// order gives the numbers in the order in which the texts stand in sorted lines,
// where most are followed by ';'.
func (t *textTable) order() []uint32 {
	order := make([]uint32, len(t.texts))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return compareBefore(t.texts[a], t.texts[b]) })
	return order
}

// compareBefore compares a+";" with b+";".
func compareBefore(a, b string) int {
	n := min(len(a), len(b))
	if c := cmp.Compare(a[:n], b[:n]); c != 0 || len(a) == len(b) {
		return c
	}
	if len(a) > n {
		return cmp.Compare(a[n], ';')
	}
	return cmp.Compare(';', b[n])
}

// foldTable adds up values by key: open addressing over keys in one arena.
type foldTable struct {
	seed    maphash.Seed
	slots   []uint32 // entry plus one; 0 is free
	entries []foldEntry
	arena   []byte
}

type foldEntry struct {
	hash  uint64
	from  uint64 // in the arena
	size  uint32
	value uint64
}

const foldSlots = 1 << 14 // to begin with; a power of two

func newFoldTable() *foldTable {
	return &foldTable{seed: maphash.MakeSeed(), slots: make([]uint32, foldSlots)}
}

func (t *foldTable) key(e *foldEntry) []byte { return t.arena[e.from : e.from+uint64(e.size)] }

func (t *foldTable) add(key []byte, value uint64) {
	h := maphash.Bytes(t.seed, key)
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		e := &t.entries[t.slots[i]-1]
		if e.hash == h && bytes.Equal(t.key(e), key) {
			e.value += value
			return
		}
	}
	t.entries = append(t.entries,
		foldEntry{hash: h, from: uint64(len(t.arena)), size: uint32(len(key)), value: value})
	t.arena = append(t.arena, key...)
	t.slots[i] = uint32(len(t.entries))
	if len(t.entries)*2 > len(t.slots) {
		t.grow()
	}
}

func (t *foldTable) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n := range t.entries {
		i := t.entries[n].hash & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint32(n + 1)
	}
}

// foldLine is one line of the output.
type foldLine struct {
	key   []byte
	value uint64
}

// merge puts the sorted parts together.
func (f *folder) merge(parts []*foldTable) []foldLine {
	n := 0
	for _, t := range parts {
		n = max(n, len(t.entries))
	}
	lines := make([]foldLine, 0, n)
	at := make([]int, len(parts)) // what of each part is in lines
	for {
		var first []byte
		for i, t := range parts {
			if at[i] < len(t.entries) {
				if key := t.key(&t.entries[at[i]]); first == nil || f.compare(key, first) < 0 {
					first = key
				}
			}
		}
		if first == nil {
			return lines
		}
		line := foldLine{key: first}
		for i, t := range parts {
			if at[i] < len(t.entries) && bytes.Equal(t.key(&t.entries[at[i]]), first) {
				line.value += t.entries[at[i]].value
				at[i]++
			}
		}
		lines = append(lines, line)
	}
}

// write prints the lines in bytewise order.
func (f *folder) write(w io.Writer, parts []*foldTable) error {
	lines := f.merge(parts)
	exact := func(a, b foldLine) int {
		if !f.beginsOther(a.key, b.key) {
			return f.compare(a.key, b.key)
		}
		return bytes.Compare(f.appendLine(nil, &a), f.appendLine(nil, &b))
	}
	if !slices.IsSortedFunc(lines, exact) {
		slices.SortFunc(lines, exact)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	for i := range lines {
		line = f.appendLine(line[:0], &lines[i])
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// difference returns the first bytes in which two keys differ, and the texts
// there; both are whole numbers.
func (f *folder) difference(a, b []byte) (at int, x, y uint32) {
	n := min(len(a), len(b))
	for i := 0; i < n; i += 4 {
		x, y = binary.BigEndian.Uint32(a[i:]), binary.BigEndian.Uint32(b[i:])
		if x != y {
			return i, x, y
		}
	}
	return n, 0, 0
}

// compare orders keys as the texts of their lines. Numbers compare as texts
// followed by ';' do; the last text of a line is followed by a space instead, and
// no character sorts before that.
func (f *folder) compare(a, b []byte) int {
	i, x, y := f.difference(a, b)
	switch {
	case i == min(len(a), len(b)):
		return cmp.Compare(len(a), len(b))
	case i+4 == len(a) && strings.HasPrefix(f.text(i, y), f.text(i, x)):
		return -1
	case i+4 == len(b) && strings.HasPrefix(f.text(i, x), f.text(i, y)):
		return 1
	}
	return cmp.Compare(x, y)
}

// beginsOther reports whether the whole text of one line is the beginning of the
// other's and a space follows there too, so that the order depends on the value.
func (f *folder) beginsOther(a, b []byte) bool {
	i, x, y := f.difference(a, b)
	if i == min(len(a), len(b)) {
		return false
	}
	tx, ty := f.text(i, x), f.text(i, y)
	return i+4 == len(a) && spaceAfter(ty, tx) || i+4 == len(b) && spaceAfter(tx, ty)
}

// text is that of number n at byte i of a key: a comm, then frames.
func (f *folder) text(i int, n uint32) string {
	if i == 0 {
		return f.first[n]
	}
	return f.texts[n]
}

// appendLine appends a line to b.
func (f *folder) appendLine(b []byte, line *foldLine) []byte {
	for i := 0; i < len(line.key); i += 4 {
		if i > 0 {
			b = append(b, ';')
		}
		b = append(b, f.text(i, binary.BigEndian.Uint32(line.key[i:]))...)
	}
	b = strconv.AppendUint(append(b, ' '), line.value, 10)
	return append(b, '\n')
}

// spaceAfter reports whether s begins with prefix and a space.
func spaceAfter(s, prefix string) bool {
	return len(s) > len(prefix) && s[len(prefix)] == ' ' && s[:len(prefix)] == prefix
}
