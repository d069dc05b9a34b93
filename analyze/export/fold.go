package export

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// FoldedOptions are for Folded.
type FoldedOptions struct {
	Event     int  // which of Profile.Events
	Count     bool // samples instead of weight
	Annotate  bool // "_[k]" after kernel and BPF frames, "_[j]" after JIT frames, "_[i]" after inlined ones
	Addresses bool // unresolved frames one by one, "[libc.so.6+0x27220]", instead of "[libc.so.6]"
	PID       bool // "comm-pid" as the first frame, if the profile keeps pids apart
	Demangler *demangle.Demangler
}

// Folded writes folded stacks, one a line, root first:
//
//	comm;main;work;memcpy 1234
//
// The first element is the comm with '_' for spaces, ":unknown" for none; it is left out of stacks if
// no sample has one, as in most pprof files. FoldedName changes names. The number is the
// event's weight. Unresolved frames are grouped by object. Lines are distinct and
// sorted bytewise.
func Folded(w io.Writer, p *ingest.Profile, opts FoldedOptions) error {
	f := newFolder(p, &opts)
	items := f.sortSamples()
	if f.nameless() {
		w = &withoutFirst{w: w}
	}
	return f.print(w, items)
}

// NoComm is the first element of a folded stack of samples without a comm.
const NoComm = ":unknown"

// nameless reports whether the first element of all lines is NoComm.
func (f *folder) nameless() bool {
	for k := range f.index {
		if k.pid >= 0 || f.p.Strings[k.comm] != "" {
			return false
		}
	}
	return len(f.index) > 0
}

// withoutFirst removes NoComm from the beginning of lines with frames. It receives whole lines.
type withoutFirst struct{ w io.Writer }

func (x *withoutFirst) Write(lines []byte) (int, error) {
	short := bytes.ReplaceAll(bytes.TrimPrefix(lines, []byte(NoComm+";")), []byte("\n"+NoComm+";"), []byte("\n"))
	if _, err := x.w.Write(short); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// folder folds samples by the numbers of their frames' texts. Texts are numbered in bytewise order. A
// text has two numbers: one where ';' follows it, and one where it ends the line and a space follows.
//
// Lines are written in their order by a walk through the tree of stacks, and are never held: below
// the stacks that begin with equal texts, the next frames are sorted by their texts.
type folder struct {
	p     *ingest.Profile
	opts  *FoldedOptions
	texts numberedTexts // of frames
	first numberedTexts // comms

	// one holds for each location the inner number of its only frame's text; those with locations
	// with none or several have manyFrames; ends and many have their frames, outermost first.
	one  []uint32
	many map[ingest.LocationID][]uint32

	index map[commKey]uint32 // inner number of each comm

	order []uint32         // the samples of the event, by comm and stack
	ends  []ingest.StackID // by stack: the first after it that does not begin with it
}

const manyFrames = ^uint32(0)

func newFolder(p *ingest.Profile, opts *FoldedOptions) *folder {
	if opts.Demangler == nil {
		opts.Demangler = demangle.New(demangle.Simple)
	}
	opts.Demangler.Warm(p)
	f := &folder{p: p, opts: opts}
	f.numberTexts()
	return f
}

// numberTexts makes the text of every frame, each distinct one once, and gives each location its
// numbers.
func (f *folder) numberTexts() {
	p := f.p
	t := &frameTexts{f: f, textTable: newTextTable()}
	if p.Names != nil {
		t.functions = make([]uint32, 2*len(p.Names.Functions))
	}
	t.objects = make([]uint32, len(p.Objects))
	f.one = make([]uint32, len(p.Locations))
	f.many = make(map[ingest.LocationID][]uint32)
	for l := range p.Locations {
		var frames []ingest.Frame
		if p.Names != nil {
			frames = p.Names.At(ingest.LocationID(l))
		}
		switch len(frames) {
		case 0:
			f.one[l] = t.unresolved(&p.Locations[l])
		case 1:
			f.one[l] = t.frame(&frames[0])
		default:
			f.one[l] = manyFrames
			list := make([]uint32, 0, len(frames))
			for i := range slices.Backward(frames) {
				list = append(list, t.frame(&frames[i]))
			}
			f.many[ingest.LocationID(l)] = list
		}
	}
	f.sortTexts(t.textTable)
}

// frameTexts numbers the texts of frames.
type frameTexts struct {
	*textTable
	f         *folder
	functions []uint32 // by FuncID, twice: out of line and inlined; number plus one
	objects   []uint32 // of their unresolved frames; number plus one
}

func (t *frameTexts) frame(fr *ingest.Frame) uint32 {
	k := 2 * int(fr.Func)
	if fr.Inlined {
		k++
	}
	if t.functions[k] == 0 {
		fn := &t.f.p.Names.Functions[fr.Func]
		t.functions[k] = t.number(t.f.functionText(fn, fr.Inlined)) + 1
	}
	return t.functions[k] - 1
}

func (t *frameTexts) unresolved(loc *ingest.Location) uint32 {
	if t.f.opts.Addresses {
		return t.number(t.f.addressText(loc))
	}
	if t.objects[loc.Object] == 0 {
		t.objects[loc.Object] = t.number(t.f.objectText(&t.f.p.Objects[loc.Object])) + 1
	}
	return t.objects[loc.Object] - 1
}

// sortTexts renumbers the texts in bytewise order.
func (f *folder) sortTexts(t *textTable) {
	var inner []uint32
	f.texts, inner = t.numbered()
	for l, n := range f.one {
		if n != manyFrames {
			f.one[l] = inner[n]
		}
	}
	for _, list := range f.many {
		for i := range list {
			list[i] = inner[list[i]]
		}
	}
}

func (f *folder) functionText(fn *ingest.Function, inlined bool) string {
	text := FoldedName(f.opts.Demangler.Name(fn.SystemName))
	if !f.opts.Annotate {
		return text
	}
	return text + annotation(f.p.Objects[fn.Object].Domain(), inlined)
}

// FoldedName returns a frame's name fit for a folded stack: ';', which separates frames, becomes
// ':', and the space before a number at the name's end '_'. flamegraph.pl and inferno read two
// numbers at the end of a line as base and new value of a differential stack: "Stub 12 250" would
// be a function Stub that had 12 before.
func FoldedName(name string) string {
	name = strings.TrimRight(strings.ReplaceAll(name, ";", ":"), " ")
	at := strings.LastIndexByte(name, ' ')
	if at < 0 {
		return name
	}
	whole, fraction, _ := strings.Cut(name[at+1:], ".")
	if whole == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return name
	}
	return name[:at] + "_" + name[at+1:]
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

// commKey is the source of the first element of a line.
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
	var inner []uint32
	f.first, inner = t.numbered()
	for k, n := range f.index {
		f.index[k] = inner[n]
	}
}

// FoldedComm returns a printable comm fit for a folded stack; NoComm for "".
func FoldedComm(comm string) string {
	if comm == "" {
		return NoComm
	}
	return strings.NewReplacer(" ", "_", ";", ":").Replace(comm)
}

func commText(comm string, pid int32) string {
	text := FoldedComm(texts.Printable(comm))
	if pid >= 0 {
		text += "-" + strconv.Itoa(int(pid))
	}
	return text
}
