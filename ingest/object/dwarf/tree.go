package dwarf

import (
	"errors"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// A Tree reads single entries of a Data with all their attributes: of variables and types, which
// Walk passes over. It is not safe for concurrent use, but several Trees can read one Data. Entries
// can refer to any other entry, so each read has a budget: what a small file could make a reader
// repeat without end is lost after it, with a problem.
type Tree struct {
	// Problems are losses, at most maxProblems of them; Lost is their number.
	Problems []*decode.Error
	Lost     int

	d      *Data
	alt    *Data // Options.Alt
	big    bool
	w      *walker // for ranges and split units
	roots  map[*unit]*Root
	tables map[treeTable]*entryTable // at most maxTables
	users  []*Root                   // of these tables
	recent []recentString
	splits []*Data // open .dwo files
	typed  int     // how many of them have their type units in types
	types  map[uint64]Pos
	free   []*Entry

	entriesLeft, stringsLeft, listsLeft int64
}

type treeTable struct {
	d   *Data
	off uint64
	enc encoding
}

// A Root is a unit of a Tree: for a skeleton, the split unit that completes it.
type Root struct {
	Offset   uint64 // of the unit in .debug_info
	Size     uint64 // bytes
	Language uint16 // DW_LANG_ code, 0 if none
	Version  uint8
	AddrSize int  // bytes
	Is64     bool // offsets have 8 bytes
	Shared   bool // a unit of parts or a type unit: others refer to its entries

	c      scope
	listed *unit // the skeleton
	info   buf   // of the unit's section, up to its end
	first  uint64
	enc    encoding
	abbrev treeTable
	table  *entryTable // nil if it is not in memory
	lists  locLists
}

// A Pos is the position of an entry. Positions are comparable.
type Pos struct {
	Root *Root
	Off  uint64 // in the unit's section
}

// Budgets of a Tree, as floor + factor × size of the sections: entries passed, bytes of strings and
// of location lists. A real file's types are read two or three times over.
const (
	treeEntriesFloor  = 1 << 20
	treeEntriesFactor = 32
	treeStringsFloor  = 16 << 20
	treeStringsFactor = 64
	treeListsFloor    = 1 << 20
	treeListsFactor   = 64
	maxOpenSplits     = 1 << 13 // .dwo files open at the same time; seen: 2,352
	treeTypesBudget   = 1 << 22 // type units; seen: 200,000
)

// Tree returns a reader of entries. Close releases the .dwo files that it opens.
func (d *Data) Tree() *Tree {
	alt, dwp := d.others()
	n := int64(len(d.sections().Info))
	for _, more := range []*Data{alt, dwp} {
		if more != nil {
			n += int64(len(more.sections().Info))
		}
	}
	t := &Tree{
		d: d, alt: alt, big: d.sections().BigEndian, w: newWalker(d), roots: make(map[*unit]*Root), tables: make(map[treeTable]*entryTable), recent: make([]recentString, recentStrings),
		entriesLeft: treeEntriesFloor, stringsLeft: treeStringsFloor, listsLeft: treeListsFloor,
	}
	t.allow(n)
	return t
}

// allow adds the budgets for n bytes of entries.
func (t *Tree) allow(n int64) {
	t.entriesLeft += treeEntriesFactor * n
	t.stringsLeft += treeStringsFactor * n
	t.listsLeft += treeListsFactor * n
}

// Close closes the .dwo files that were opened.
func (t *Tree) Close() error {
	var errs []error
	for _, d := range t.splits {
		errs = append(errs, d.Close())
	}
	t.splits = nil
	return errors.Join(errs...)
}

// Guard runs f, which reads from t, and returns ErrChanged if a mapped file shrank meanwhile.
func (t *Tree) Guard(f func()) error {
	if guarded(f) {
		return ErrChanged
	}
	return nil
}

// sections returns the sections of a file, others the supplementary file and the package.
func (d *Data) sections() *Sections      { return &d.sec }
func (d *Data) others() (alt, dwp *Data) { return d.opts.Alt, d.opts.DWP }

// listed returns all units, and why there may be more.
func (d *Data) listed() ([]*unit, trouble) {
	d.scan()
	d.units.wait()
	return d.units.list, d.scanErr
}

// BigEndian reports the byte order.
func (t *Tree) BigEndian() bool { return t.big }

// Lose counts a loss at an entry and keeps the first ones.
func (t *Tree) Lose(p Pos, reason string) {
	section := ".debug_info"
	if p.Root != nil && p.Root.lists.split {
		section = ".debug_info.dwo"
	}
	t.lose(section, p.Off, reason)
}

func (t *Tree) lose(section string, off uint64, reason string) {
	t.Lost++
	if len(t.Problems) < maxProblems {
		t.Problems = append(t.Problems,
			&decode.Error{Name: section, Offset: int64(off), Reason: reason})
	}
}

// Roots lists the units in their order: those that can hold code, then those of the supplementary
// file if alt is set. A unit that cannot be read is a problem, and left out.
func (t *Tree) Roots(alt bool, visit func(*Root) bool) {
	lists := []*Data{t.d}
	if alt && t.alt != nil {
		lists = append(lists, t.alt)
	}
	for _, d := range lists {
		units, damage := d.listed()
		for _, u := range units {
			if r := t.root(d.scope(u)); r != nil && !visit(r) {
				return
			}
		}
		if damage.reason != "" {
			t.lose(damage.section, damage.off, damage.reason)
		}
	}
}

// root returns the Root of a unit, nil if it cannot be read.
func (t *Tree) root(c scope) *Root {
	if r, ok := t.roots[c.u]; ok {
		return r
	}
	listed := c.u
	t.roots[listed] = nil
	if c.u.damage != "" {
		t.lose(".debug_info", c.u.off, c.u.damage)
		return nil
	}
	if c.u.kind == utSkeleton && c.d == t.d {
		if split, ok := t.complete(c); ok {
			c = split
		}
	}
	r := newRoot(c, listed)
	r.Shared = r.Shared || t.alt != nil && c.d == t.alt
	t.roots[listed], t.roots[c.u] = r, r
	return r
}

func newRoot(c scope, listed *unit) *Root {
	u := c.u
	r := &Root{Offset: listed.off, Size: u.end - u.off, Language: u.language, Version: u.version,
		AddrSize: int(u.enc.addrSize), Is64: u.enc.is64, c: c, listed: listed, first: u.die, enc: u.enc,
		info:   buf{b: c.d.sections().Info[:u.end], big: c.d.sections().BigEndian},
		abbrev: treeTable{c.d, u.abbrev, u.enc}, lists: c.locLists()}
	switch u.kind {
	case utPartial, utType, utSplitType:
		r.Shared = true
	}
	if r.Language == 0 {
		r.Language = listed.language
	}
	return r
}

// complete finds the split unit of a skeleton.
func (t *Tree) complete(c scope) (scope, bool) {
	if len(t.splits) >= maxOpenSplits {
		t.lose(".debug_info", c.u.off, "too many .dwo files")
		return c, false
	}
	split, opened, reason := t.w.splitOf(c)
	if opened != nil {
		t.splits = append(t.splits, opened)
		t.allow(int64(len(opened.sections().Info)))
	}
	if reason != "" {
		t.lose(".debug_info", c.u.off, reason)
		return c, false
	}
	return split, true
}

// splitOf finds the split unit of a skeleton, and returns the file that was opened for it.
func (w *walker) splitOf(c scope) (split scope, opened *Data, reason string) {
	w.res, w.cur = new(result), c
	w.begin(c.u)
	d, su, reason := w.find(c.u)
	opened = w.res.split
	w.res = nil
	if su != nil {
		reason = su.damage
	}
	return scope{d: d, u: su, main: c.d, skel: c.u}, opened, reason
}

// single sets the walker up for the values of one entry.
func (w *walker) single(main *Data, r *Root, off uint64, left int64) {
	if w.cur.u != r.c.u || w.res == nil {
		w.res = new(result)
		w.cur = r.c
		if r.c.main == main {
			w.cur = main.scope(r.listed)
		}
		w.begin(w.cur.u)
		w.cur = r.c
	}
	w.res.Problems, w.res.Lost = w.res.Problems[:0], 0
	w.entry = off
	w.rangeLeft = left
}

// end returns the position after the entries of the unit.
func (r *Root) end() uint64 { return uint64(len(r.info.b)) }

// start returns the position of the unit.
func (r *Root) start() uint64 { return r.end() - r.Size }

// First returns the position of a unit's root entry.
func (r *Root) First() Pos { return Pos{r, r.first} }

// Read reads the entry at a position into e.
func (t *Tree) Read(p Pos, e *Entry) bool {
	e.reset(p)
	if p.Root == nil || p.Off < p.Root.first {
		return false
	}
	if ok := t.read(p, e); !ok {
		t.Lose(p, "entry cannot be read")
		return false
	}
	return e.Tag != 0
}

// read reads an entry, or the end of a list of children, which has the tag 0.
func (t *Tree) read(p Pos, e *Entry) bool {
	e.reset(p)
	if t.entriesLeft--; t.entriesLeft <= 0 {
		return false
	}
	r := p.Root.info
	r.seek(p.Off)
	code := r.uleb()
	if code == 0 {
		e.next = r.position()
		return !r.failed()
	}
	tab := t.table(p.Root)
	ab := tab.lookup(code)
	if ab == nil {
		return false
	}
	e.Tag, e.Children = ab.tag, ab.children
	if !tab.read(ab, &r, p.Root.enc, e) {
		return false
	}
	e.next = r.position()
	return true
}

// Step is what a visit of Kids wants next.
type Step uint8

// The steps: to the next child, to the children of this one, or no further.
const (
	Over Step = iota
	Into
	Stop
)

// Kids visits the children of an entry that was read, and those of each child for which visit
// returns Into, at depth 1 and more. The Entry is valid until visit returns; leave, if not nil, is called after the last child of an entry
// that was entered, with its depth.
func (t *Tree) Kids(parent *Entry, visit func(e *Entry, depth int) Step, leave func(depth int)) {
	if !parent.Children {
		return
	}
	e := t.Entry()
	defer t.Release(e)
	skipped := 0 // depth within an entry that is passed over
	depth := 0
	p := Pos{parent.Root, parent.next}
	for {
		if p.Off >= p.Root.end() && depth == 0 && parent.Tag == tagCompileUnit {
			return // perf inject --jit ends no list of entries
		}
		if !t.read(p, e) {
			t.Lose(p, "entries of the unit cannot be read further")
			return
		}
		from := p.Off
		p.Off = e.next
		switch {
		case e.Tag == 0 && skipped > 0:
			skipped--
			continue
		case e.Tag == 0 && depth == 0:
			return
		case e.Tag == 0:
			if leave != nil {
				leave(depth)
			}
			depth--
			continue
		}
		step := Over
		if skipped == 0 {
			if step = visit(e, depth+1); step == Stop {
				return
			}
		}
		if !e.Children {
			continue
		}
		if step == Into {
			if depth++; depth >= maxDepth {
				t.Lose(Pos{p.Root, from}, "entries are nested too deep")
				return
			}
			continue
		}
		if to, ok := e.sibling(); ok {
			p.Off = to
			continue
		}
		skipped++
	}
}

// Entry returns an Entry for Read, which Release gives back: entries are used again.
func (t *Tree) Entry() *Entry {
	if n := len(t.free); n > 0 {
		e := t.free[n-1]
		t.free = t.free[:n-1]
		return e
	}
	return new(Entry)
}

// Release gives an Entry back that is not used any more.
func (t *Tree) Release(e *Entry) { t.free = append(t.free, e) }

// maxTables bounds the tables of abbreviations in memory: units are read one after the other, and most have one of
// their own.
const maxTables = 64

// table returns the abbreviations of a unit.
func (t *Tree) table(r *Root) *entryTable {
	if r.table != nil {
		return r.table
	}
	key := r.abbrev
	tab, ok := t.tables[key]
	if !ok {
		if len(t.tables) >= maxTables {
			t.dropTables()
		}
		tab = new(entryTable)
		if reason := tab.parse(key.d.sections().Abbrev, key.off, key.enc); reason != "" {
			t.lose(".debug_abbrev", key.off, reason)
		}
		t.tables[key] = tab
	}
	r.table, t.users = tab, append(t.users, r)
	return tab
}

func (t *Tree) dropTables() {
	clear(t.tables)
	for _, r := range t.users {
		r.table = nil
	}
	t.users = t.users[:0]
}

// recentString is a string that was read from .debug_str of d.
type recentString struct {
	d    *Data
	off  uint64
	text string
}

// Strings that are kept, by a hash of their offset: units of a program have the same names. Longer ones than
// maxRecent are rare.
const (
	recentStrings = 1 << 13
	maxRecent     = 256
)

// String returns the string of an attribute, "" if there is none.
func (t *Tree) String(e *Entry, attr uint16) string {
	a := e.attr(attr)
	if a == nil {
		return ""
	}
	s, ok := t.text(&e.Root.c, ref{a.val, a.form})
	if !ok {
		t.Lose(e.Pos, "string lies outside its section or does not end")
		return ""
	}
	if t.stringsLeft -= int64(len(s)); t.stringsLeft < 0 {
		t.Lose(e.Pos, "limit reached: strings overlap")
		return ""
	}
	return s
}

// text returns a string of a unit.
func (t *Tree) text(c *scope, v ref) (string, bool) {
	d, off, ok := c.shared(v)
	if !ok {
		s, ok := c.str(v)
		return string(s), ok
	}
	r := &t.recent[off*0x9e3779b97f4a7c15>>32%recentStrings]
	if r.d == d && r.off == off {
		return r.text, true
	}
	s, ok := c.str(v)
	if ok && len(s) <= maxRecent {
		*r = recentString{d, off, string(s)}
		return r.text, true
	}
	return string(s), ok
}

// Ref returns the position that an attribute refers to; ok is false if there is no such attribute
// or no such entry.
func (t *Tree) Ref(e *Entry, attr uint16) (p Pos, ok bool) {
	a := e.attr(attr)
	if a == nil {
		return Pos{}, false
	}
	if a.form == formRefSig8 {
		if p, ok = t.signature(a.val); !ok {
			t.Lose(e.Pos, "no type unit has the signature of a reference")
		}
		return p, ok
	}
	c := &e.Root.c
	to, off, ok := c.target(ref{a.val, a.form})
	if !ok {
		t.Lose(e.Pos, "reference leads out of the file")
		return Pos{}, false
	}
	r := t.root(to)
	return Pos{r, off}, r != nil
}

// Address returns the address that an attribute gives.
func (t *Tree) Address(e *Entry, attr uint16) (uint64, bool) {
	a := e.attr(attr)
	if a == nil {
		return 0, false
	}
	return e.Root.c.address(ref{a.val, a.form})
}

// Indexed returns an address of .debug_addr.
func (t *Tree) Indexed(r *Root, i uint64) (uint64, bool) { return r.c.addrx(i) }

// Ranges returns the addresses of an entry: not empty ranges with code, as the file orders them. The
// slice is valid until the next call.
func (t *Tree) Ranges(e *Entry) []addr.Range {
	var v values
	for _, a := range e.attrs {
		s := slotNone
		switch a.code {
		case atLowPC:
			s = slotLowPC
		case atHighPC:
			s = slotHighPC
		case atRanges:
			s = slotRanges
		default:
			continue
		}
		v.val[s], v.form[s] = a.val, a.form
		v.mask |= 1 << s
	}
	if v.mask == 0 {
		return nil
	}
	w := t.enter(e)
	w.entryRanges(&v)
	t.leave(w)
	return w.ranges
}

// enter sets the walker up for values of an entry.
func (t *Tree) enter(e *Entry) *walker {
	t.w.single(t.d, e.Root, e.Off, t.listsLeft)
	return t.w
}

// leave charges what was read to the budget, and collects problems.
func (t *Tree) leave(w *walker) {
	t.listsLeft = w.rangeLeft
	for _, p := range w.res.Problems {
		t.lose(p.Name, uint64(p.Offset), p.Reason)
	}
}
