package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"strings"

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
	f.fold()
	return f.write(w)
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

	table foldTable
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

// fold adds up the samples by (comm, texts). Its keys are big-endian numbers, so
// that they compare as the texts do.
func (f *folder) fold() {
	comms := f.comms()
	f.table.init()
	key := make([]byte, 0, 1024)
	for i := range f.p.Samples {
		s := &f.p.Samples[i]
		if int(s.Event) != f.opts.Event {
			continue
		}
		key = binary.BigEndian.AppendUint32(key[:0], comms(s))
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
		f.table.add(key, value)
	}
}

// comms numbers the first elements of the lines.
func (f *folder) comms() func(*ingest.Sample) uint32 {
	t := newTextTable()
	type key struct {
		comm ingest.StringID
		pid  int32
	}
	seen := make(map[key]uint32)
	last, number := key{pid: -2}, uint32(0)
	keyOf := func(s *ingest.Sample) key {
		if f.opts.PID {
			return key{s.Comm, s.PID}
		}
		return key{s.Comm, -1}
	}
	for i := range f.p.Samples {
		k := keyOf(&f.p.Samples[i])
		if k == last {
			continue
		}
		last = k
		if _, ok := seen[k]; !ok {
			seen[k] = t.number(commText(f.p.Strings[k.comm], k.pid))
		}
	}
	order := t.order()
	rank := make([]uint32, len(order))
	for to, from := range order {
		rank[from] = uint32(to)
		f.first = append(f.first, t.texts[from])
	}
	last = key{pid: -2}
	return func(s *ingest.Sample) uint32 {
		if k := keyOf(s); k != last {
			last, number = k, rank[seen[k]]
		}
		return number
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

func (t *foldTable) init() {
	t.seed = maphash.MakeSeed()
	t.slots = make([]uint32, foldSlots)
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

// write prints the lines in order.
func (f *folder) write(w io.Writer) error {
	slices.SortFunc(f.table.entries, f.compare)
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	for i := range f.table.entries {
		line = f.appendLine(line[:0], &f.table.entries[i])
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// compare orders entries as their lines. Numbers compare as texts followed by ';'
// do; only where a text is the last of its line and the beginning of the other's
// do the lines themselves have to be looked at.
func (f *folder) compare(a, b foldEntry) int {
	ka, kb := f.table.key(&a), f.table.key(&b)
	n := min(len(ka), len(kb))
	for i := 0; i < n; i += 4 {
		x, y := binary.BigEndian.Uint32(ka[i:]), binary.BigEndian.Uint32(kb[i:])
		if x == y {
			continue
		}
		tx, ty := f.text(i, x), f.text(i, y)
		if i+4 == len(ka) && strings.HasPrefix(ty, tx) || i+4 == len(kb) && strings.HasPrefix(tx, ty) {
			return bytes.Compare(f.appendLine(nil, &a), f.appendLine(nil, &b))
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(ka), len(kb))
}

// text is that of number n at byte i of a key: a comm, then frames.
func (f *folder) text(i int, n uint32) string {
	if i == 0 {
		return f.first[n]
	}
	return f.texts[n]
}

func (f *folder) appendLine(b []byte, e *foldEntry) []byte {
	key := f.table.key(e)
	for i := 0; i < len(key); i += 4 {
		if i > 0 {
			b = append(b, ';')
		}
		b = append(b, f.text(i, binary.BigEndian.Uint32(key[i:]))...)
	}
	b = strconv.AppendUint(append(b, ' '), e.value, 10)
	return append(b, '\n')
}
