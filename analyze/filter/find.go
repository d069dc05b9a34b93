package filter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"symbolize/analyze/demangle"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// Bounds of the objects kept between batches: with open tables, and in all.
const (
	maxObjects = 64
	maxLooked  = 1 << 14
)

// finder answers places from a view.
type finder struct {
	view      store.View
	policy    resolve.NamePolicy
	noInlines bool
	files     func(string) []buildid.ID
	programs  []buildid.ID
	demangler *demangle.Demangler
	objects   map[string]*object // by build ID in the text
	problems  []string           // errors of tables, each once
	conflicts []string           // objects with contradicting files, by ConflictText
	opened    int                // existing objects
	texts     int                // strings in the objects, roughly
}

// object is an object of the view, or the reason for its absence.
type object struct {
	conflict bool // listed in conflicts
	manifest *store.Manifest
	reason   ingest.Reason
	finder   *resolve.Finder
	offsets  resolve.Addresses // of ELF files
	layout   ingest.Reason     // why offsets has none
	symbols  map[string][]span // by name; nil until needed

	asked []asked
	addrs []addr.Addr
}

// span is a symbol with a name.
type span struct {
	start addr.Addr
	size  uint64
}

// asked is a place with a known address in an object.
type asked struct {
	at     addr.Addr // looked up
	place  *place
	answer *answer
	exact  bool // see settle
}

// find answers places of a batch.
func (f *finder) find(places []*place, answers []*answer) {
	if f.opened > maxObjects || len(f.objects) > maxLooked || f.texts > maxTexts {
		f.objects, f.opened, f.texts = nil, 0, 0
	}
	if f.objects == nil {
		f.objects = make(map[string]*object)
	}
	var used []*object
	for i, p := range places {
		o, at, why := f.locate(p, answers[i])
		if why != ingest.ReasonNone {
			answers[i].reason = why
		}
		if o == nil {
			continue
		}
		if len(o.asked) == 0 {
			used = append(used, o)
		}
		o.asked = append(o.asked, asked{at: at, place: p, answer: answers[i]})
	}
	for _, o := range used {
		f.join(o)
	}
}

// locate finds the object of a place and the address in its tables. The object is nil if there is
// nothing to look up, with a reason or an answer.
func (f *finder) locate(p *place, a *answer) (*object, addr.Addr, ingest.Reason) {
	if p.form == formBPF || p.form == formTag {
		return f.locateBPF(p, a)
	}
	if p.why != ingest.ReasonNone {
		return nil, 0, p.why
	}
	id := p.buildID()
	if id.IsZero() {
		if id, a.reason = f.fileID(p); a.reason != ingest.ReasonNone {
			return nil, 0, a.reason
		}
		a.byFile = true
	}
	o := f.object(id)
	if o.reason != ingest.ReasonNone {
		return nil, 0, o.reason
	}
	at, why := f.address(o, p)
	if why != ingest.ReasonNone {
		return nil, 0, why
	}
	return o, at, ingest.ReasonNone
}

// address returns the address to look up in an object's tables for a place.
func (f *finder) address(o *object, p *place) (at addr.Addr, why ingest.Reason) {
	kind := o.manifest.Kind
	switch {
	case p.form == formSymbol:
		start, why := f.symbolStart(o, p)
		return addr.Site(start+addr.Addr(p.offset), p.isReturn()), why
	case p.form == formOffset && (kind == ingest.ELF || kind == ingest.VDSO):
		if o.layout != ingest.ReasonNone {
			return 0, o.layout
		}
		at, ok := o.offsets.Of(addr.Site(addr.Offset(p.offset), p.isReturn()))
		if !ok {
			return 0, ingest.OutsideObject
		}
		return at, ingest.ReasonNone
	case p.form == formModule:
		return f.moduleAddress(o, p)
	case p.form == formAddress && kind == ingest.Kernel:
		return 0, ingest.LayoutUnknown // the link address is not kept
	}
	at = addr.Site(addr.Addr(p.offset), p.isReturn())
	if len(p.file) > 0 && !covers(o.manifest, at) {
		return 0, ingest.OutsideObject
	}
	return at, ingest.ReasonNone
}

// symbolStart returns the start of a place's symbol. Of several symbols with the name it is the
// only one with the length in the text.
func (f *finder) symbolStart(o *object, p *place) (addr.Addr, ingest.Reason) {
	if p.length && p.offset > p.size {
		return 0, ingest.OutsideObject
	}
	if o.symbols == nil {
		f.readSymbols(o)
	}
	list := o.symbols[string(p.symbol)]
	if len(list) == 0 {
		return 0, ingest.Stripped
	}
	if p.length {
		list = slices.DeleteFunc(slices.Clone(list), func(s span) bool { return !fits(s, p.size) })
	}
	switch len(list) {
	case 0:
		return 0, ingest.Mismatch
	case 1:
		if list[0].size > 0 && p.offset > list[0].size && !p.length {
			return 0, ingest.OutsideObject // in another function
		}
		return list[0].start, ingest.ReasonNone
	}
	return 0, ingest.Ambiguous
}

// maxPadding bounds the padding after a symbol: the kernel counts it to the symbol, up to the next
// one.
const maxPadding = 4096

// fits reports whether the kernel may print length as the length of a symbol.
func fits(s span, length uint64) bool {
	return s.size <= length && length-s.size <= maxPadding
}

// readSymbols lists the symbols of all tables of an object by name.
func (f *finder) readSymbols(o *object) {
	o.symbols = make(map[string][]span)
	for i := range o.manifest.Sources {
		kind := o.manifest.Sources[i].Kind
		if kind.Fallback() || !kind.Names() {
			continue
		}
		table, err := f.view.Open(o.manifest, i)
		if err != nil {
			f.problem(o.manifest, i, err)
			continue
		}
		for fn, err := range table.All() {
			if err != nil {
				f.problem(o.manifest, i, err)
				break
			}
			list := o.symbols[fn.Name]
			if slices.ContainsFunc(list, func(s span) bool { return s.start == fn.Start }) {
				continue
			}
			o.symbols[fn.Name] = append(list, span{fn.Start, fn.Size})
		}
	}
	f.texts += len(o.symbols)
}

// problem notes that a table could not be read.
func (f *finder) problem(m *store.Manifest, source int, err error) {
	f.addProblem(fmt.Sprintf("%s of %s: %v", m.Sources[source].Kind, m.ID, err))
}

// addProblem notes a problem, once.
func (f *finder) addProblem(text string) {
	text = texts.Printable(text)
	if len(f.problems) < maxProblems && !slices.Contains(f.problems, text) {
		f.problems = append(f.problems, text)
	}
}

// object returns the object with a build ID.
func (f *finder) object(id buildid.ID) *object {
	key := id.String()
	if o := f.objects[key]; o != nil {
		return o
	}
	o := &object{}
	f.objects[key] = o
	var err error
	if o.manifest, o.reason, err = store.FindCode(f.view, id); err != nil {
		f.addProblem(fmt.Sprintf("build ID %s: %v", id, err))
	}
	if o.manifest != nil {
		f.opened++
		o.finder = resolve.NewFinder(f.view, o.manifest)
		o.offsets, o.layout = resolve.NewAddresses(&ingest.Object{Kind: o.manifest.Kind}, o.manifest)
	}
	return o
}

// join answers the look-ups in an object: its tables are read once, in order.
func (f *finder) join(o *object) {
	f.settle(o)
	slices.SortFunc(o.asked, func(a, b asked) int { return cmp.Compare(a.at, b.at) })
	o.addrs = o.addrs[:0]
	for i := range o.asked {
		o.addrs = append(o.addrs, o.asked[i].at)
	}
	before := o.finder.NumTexts()
	o.finder.Join(o.addrs)
	f.texts += o.finder.NumTexts() - before
	for _, err := range o.finder.Errors() {
		f.addProblem(err.Error())
	}
	if !o.conflict {
		how := o.finder.Contradiction(o.addrs)
		if o.conflict = how != ""; o.conflict && len(f.conflicts) < maxProblems {
			f.conflicts = append(f.conflicts, resolve.ConflictText(o.manifest, how))
		}
	}
	for i := range o.asked {
		f.answer(o, i)
	}
	o.asked = o.asked[:0]
}

// settle corrects addresses that the tables prove not to be return addresses.
func (f *finder) settle(o *object) {
	if o.manifest.Kind == ingest.JIT {
		return // the code of a program ends with it
	}
	o.addrs = o.addrs[:0]
	for _, q := range o.asked {
		if q.place.isReturn() {
			o.addrs = append(o.addrs, addr.Return(q.at, true))
		}
	}
	slices.Sort(o.addrs)
	exact := o.finder.Exact(o.addrs)
	for i := range o.asked {
		q := &o.asked[i]
		if !q.place.isReturn() {
			continue
		}
		pc := addr.Return(q.at, true)
		if _, found := slices.BinarySearch(exact, pc); found {
			q.at, q.exact = pc, true
		}
	}
}

// answer makes the answer of a place.
func (f *finder) answer(o *object, i int) {
	q := &o.asked[i]
	a, p := q.answer, o.finder.Place(i)
	frames := o.finder.Frames(p)
	name, start := o.finder.Function(p, f.policy)
	a.source = f.source(o.finder, frames)
	switch {
	case q.place.form == formSymbol || q.place.form == formBPF:
	case name == 0 || p.SymbolKind.Nameless() && len(frames) == 0:
		a.source = ""
	default:
		pc := addr.Return(q.at, q.place.isReturn() && !q.exact)
		text := o.finder.Text(name)
		a.trampoline, a.atStart = ingest.IsSignalReturn(text), pc == start
		text = texts.Printable(f.demangler.Name(text))
		a.name = withOffset(text, uint64(pc-start))
	}
	switch {
	case !a.empty():
		if symbol := string(q.place.symbol); q.place.form == formBPF {
			a.name = restOf(symbol, resolve.WholeSymbol(f.view, symbol))
		}
	case len(o.finder.Errors()) > 0:
		a.reason = ingest.TableDamaged
	case q.place.form == formBPF:
		f.lineless(o, q)
	default:
		a.reason = ingest.Stripped
	}
}

// source is the text of frames: inlined ones with function and line, the last one with its line.
func (f *finder) source(names *resolve.Finder, frames []resolve.Frame) string {
	last := len(frames) - 1
	if last < 0 || frames[last].File == 0 {
		return ""
	}
	if f.noInlines {
		frames = frames[last:]
	}
	var b strings.Builder
	for i := range frames {
		fr := &frames[i]
		if i > 0 {
			b.WriteString(", ")
		}
		if i < len(frames)-1 && fr.Name != 0 {
			b.WriteString(texts.Printable(f.demangler.Name(names.Text(fr.Name))) + " at ")
		}
		b.WriteString(fileLine(names.Text(fr.File), fr.Line))
	}
	return b.String()
}
