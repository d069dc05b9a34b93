package dwarf

import (
	"cmp"
	"slices"

	"symbolize/ingest/addr"
)

// A result is a Unit with the storage after it, used again for other units.
type result struct {
	Unit
	inlines []Inline
	rows    []Row
	slab    rangeSlab
	mixed   bool // an inlined call of a function comes after the start of a later function
	// rangeBytes is the number of bytes read from the shared sections of range lists.
	rangeBytes int64
	split      *Data // .dwo file that the unit's slices may alias; closed after the visit
}

func (res *result) reset() {
	res.Unit.reset()
	res.inlines, res.rows = res.inlines[:0], res.rows[:0]
	res.slab.reset()
	res.mixed, res.rangeBytes = false, 0
}

// A walker decodes units into results, one at a time. Each worker has its own.
type walker struct {
	d   *Data
	res *result

	cur      scope // of the entries walked
	tab      *abbrevs
	own      abbrevs
	foreign  map[*unit]*abbrevs // tables of other units, from their Data's cache
	vals     values
	chain    values
	entry    uint64 // offset of the entry at hand, for messages
	text     text
	base     uint64 // of range lists
	baseDead bool   // which is of dropped code
	ranges   []addr.Range
	frames   []frame
	blocks   []blockRange // of functions of Haskell

	subs  subTable
	lines lineHeader
	files map[foreignFile]uint32

	tableFiles   int    // files of the unit's own line table
	tableVersion uint16 // which is of this version

	bare    []unqualified // Subs of the unit at hand without a linkage name
	cursors [4]cursor     // see scopeText
	outer   map[scopeKey][]byte

	rangeLeft, stringLeft, scopeLeft int64
}

// frame holds the function and the inlined call that contain the children of an entry; −1 is
// none. body is also set within subprograms that have no code themselves.
type frame struct {
	fn, inline int32
	body       bool
}

func newWalker(d *Data) *walker {
	return &walker{
		d:       d,
		foreign: make(map[*unit]*abbrevs),
		files:   make(map[foreignFile]uint32),
		outer:   make(map[scopeKey][]byte),
	}
}

func (w *walker) lose(section string, off uint64, reason string) {
	if w.cur.d != nil && w.cur.d.dwo && section == ".debug_info" {
		section = ".debug_info.dwo"
	}
	w.res.problem(section, off, reason)
}

// unit decodes unit u of w.d.
func (w *walker) unit(u *unit, res *result) {
	res.reset()
	w.res = res
	w.cur = w.d.scope(u)
	res.Offset, res.Version, res.Language = u.off, u.version, u.language
	if u.damage != "" {
		w.lose(".debug_info", u.off, u.damage)
		return
	}
	w.begin(u)
	w.fileTable(u)
	if u.ownsLine && w.lines.version != 0 {
		w.runLines(nil) // before the entries: it can define files
	}
	if u.kind != utSkeleton || !w.complete(u) {
		w.entries()
	}
	res.endSequences()
	if u.sharesLine {
		res.keepOwnSequences()
	}
	res.finish()
}

// begin sets up the unit's parameters for decoding its values.
func (w *walker) begin(u *unit) {
	res, c := w.res, &w.cur
	w.entry = u.die
	w.setBudgets(u)
	w.text = text{ranges: w.d.opts.Text, last: 1<<64 - 1}
	if u.enc.addrSize == 4 {
		w.text.last = 1<<32 - 1
	}
	w.base, _ = c.address(u.lowPC)
	w.baseDead = w.base >= w.text.last-1 || u.contiguous && w.text.tombstone(w.base)
	w.subs.reset()
	w.bare = w.bare[:0]
	clear(w.files)
	res.Name, res.CompDir = w.str(c, u.name), w.str(c, u.compDir)
}

func (w *walker) setBudgets(u *unit) {
	w.rangeLeft = min(rangeBudgetFloor+rangeBudgetFactor*int64(u.end-u.off),
		w.d.rangeLimit(w.cur.d))
	w.stringLeft = stringBudgetFloor + stringBudgetFactor*int64(u.end-u.off)
}

// complete walks the split unit of a skeleton. If it is not available, the skeleton's own
// entries, which some compilers write, are used.
func (w *walker) complete(u *unit) bool {
	d, su, reason := w.find(u)
	if su == nil {
		w.lose(".debug_info", u.off, reason)
		return false
	}
	if su.damage != "" {
		w.lose(".debug_info.dwo", su.off, su.damage)
		return false
	}
	if !w.d.walkSplit(d, int64(su.end-su.off)) {
		w.lose(".debug_info", u.off, "too many units are completed from "+d.opts.Name)
		return false
	}
	w.cur = scope{d: d, u: su, main: w.d, skel: u}
	w.setBudgets(su)
	res := w.res
	res.Split = true
	if su.language != 0 {
		res.Language = su.language
	}
	if len(res.Name) == 0 {
		res.Name = w.str(&w.cur, su.name)
	}
	w.entries()
	return true
}

// find searches the split unit of a skeleton in the .dwp file, then as a .dwo file.
func (w *walker) find(u *unit) (*Data, *unit, string) {
	opts := &w.d.opts
	if opts.DWP != nil {
		if su := opts.DWP.packaged(u.id); su != nil {
			return opts.DWP, su, ""
		}
	}
	name := string(w.str(&w.cur, u.dwoName))
	if opts.DWO == nil {
		return nil, nil, "split unit " + name + " was not looked for"
	}
	d, err := opts.DWO(name, string(w.res.CompDir), u.id)
	if err != nil {
		return nil, nil, "split unit " + name + ": " + err.Error()
	}
	if d == nil {
		return nil, nil, "split unit " + name + " was not found"
	}
	w.res.split = d
	if su := d.splitUnit(u.id); su != nil {
		return d, su, ""
	}
	return nil, nil, "file " + name + " has another split unit"
}

// str returns a string of a unit, nil if there is none or it is damaged, and charges it to the
// budget of the unit at hand.
func (w *walker) str(c *scope, v ref) []byte {
	if w.stringLeft < 0 {
		w.lose(".debug_str", v.val, "strings of the unit overlap")
		return nil
	}
	s, ok := c.str(v)
	if !ok {
		w.lose(".debug_str", v.val, "string lies outside its section or does not end")
		return nil
	}
	if w.stringLeft -= int64(len(s)); w.stringLeft < 0 {
		w.lose(".debug_str", v.val, "strings of the unit overlap")
		return nil
	}
	return s
}

// entries walks the entries of w.cur.
func (w *walker) entries() {
	u, d := w.cur.u, w.cur.d
	if u.kids == 0 {
		return
	}
	var reason string
	if u.shared {
		w.tab, reason = d.abbrevTable(u.abbrev, u.enc)
	} else {
		w.tab = &w.own
		reason = w.own.parse(d.sec.Abbrev, u.abbrev, u.enc)
	}
	if reason != "" {
		w.lose(".debug_abbrev", u.abbrev, reason)
	}
	if reason, at := w.walk(); reason != "" {
		w.lose(".debug_info", at, reason)
	}
	w.addBlocks()
	w.qualify()
}

// typesHoldCode reports whether producers of a language put subprograms with addresses into any
// type. C++ compilers put them beside, with a DW_AT_specification, except for local types
// (lambdas): gcc puts the code of their members right there, even within the abstract instance of
// an inlined function. Other types make up most of a C++ file and are jumped over.
func typesHoldCode(lang uint16) bool {
	switch lang {
	case LangC89, LangC, LangCpp, LangC99, LangObjC, LangObjCpp, LangGo, LangCpp03, LangCpp11,
		LangC11, LangCpp14, LangCpp17, LangCpp20, LangC17, LangMips:
		return false
	}
	return true
}

// walk goes through the entries from the unit's first child on. It returns the reason and
// position of an early stop.
func (w *walker) walk() (string, uint64) {
	u := w.cur.u
	r := buf{b: w.cur.d.sec.Info[:u.end], off: int(u.kids), big: w.cur.d.sec.BigEndian}
	into := typesHoldCode(u.language)
	top := frame{-1, -1, false}
	w.frames = append(w.frames[:0], top)
	for len(w.frames) > 0 {
		at := r.off
		code := r.uleb()
		if code == 0 {
			if r.bad && uint64(at) == u.end && len(w.frames) == 1 {
				return "", 0 // perf inject --jit ends no list of entries, nothing is missing
			}
			if r.bad {
				return "entries of the unit do not end", u.end
			}
			outer := w.frames[len(w.frames)-1]
			w.frames = w.frames[:len(w.frames)-1]
			if top.inline != outer.inline { // not only a block within the call
				w.leave(top)
			}
			top = outer
			continue
		}
		ab := w.tab.lookup(code)
		if ab == nil {
			return "entry without abbreviation", uint64(at)
		}
		child := top
		switch {
		case ab.class == classFunc:
			child = w.function(ab, &r, uint64(at))
		case ab.class == classInline && top.fn >= 0:
			child = w.inlined(ab, &r, top, uint64(at))
		case ab.tag == tagLexicalBlock && u.language == LangHaskell && top.fn >= 0:
			w.block(ab, &r, top.fn, uint64(at))
		default:
			jump := ab.class == classOther || ab.class == classType && !into && !top.body
			if !ab.children && ab.skip.lo == ab.skip.hi { // most entries
				r.skip(uint64(ab.skip.tail))
			} else if w.pass(ab, &r, jump) {
				if r.bad {
					return "sibling lies outside the unit or behind", uint64(at)
				}
				continue
			}
			if ab.class == classOther || ab.class == classBody {
				child = frame{-1, -1, ab.class == classBody || top.body}
			}
		}
		if r.bad {
			return "entry does not end", uint64(at)
		}
		if ab.children {
			if len(w.frames) >= maxDepth {
				return "entries are nested too deep", uint64(at)
			}
			w.frames = append(w.frames, top)
			top = child
		}
	}
	return "", 0
}

// pass skips the attributes of an entry. If jump allows it and the entry names its
// sibling, it goes there and reports true.
func (w *walker) pass(ab *abbrev, r *buf, jump bool) bool {
	u := w.cur.u
	if jump && ab.sibling >= 0 {
		from := r.off
		r.skip(uint64(ab.sibling))
		to := u.off + uint64(r.u32())
		if !r.bad {
			r.off = from
			w.jump(r, to)
		}
		return true
	}
	if ab.skip.lo == ab.skip.hi {
		r.skip(uint64(ab.skip.tail))
		return false
	}
	w.tab.read(ab.skip, r, u.enc, &w.vals)
	if !jump || !ab.children || !w.vals.has(slotSibling) || r.bad {
		return false
	}
	switch w.vals.form[slotSibling] {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		w.jump(r, u.off+w.vals.val[slotSibling])
		return true
	}
	return false
}

// jump goes forward to an entry of the unit; anything else makes r bad.
func (w *walker) jump(r *buf, to uint64) {
	if to <= uint64(r.off) || to > uint64(len(r.b)) {
		r.fail()
		return
	}
	r.off = int(to)
}

// function reads a subprogram with addresses and returns the frame of its children.
func (w *walker) function(ab *abbrev, r *buf, at uint64) frame {
	v := &w.vals
	w.tab.read(ab.full, r, w.cur.u.enc, v)
	none := frame{-1, -1, true}
	if r.bad {
		return none
	}
	w.entry = at
	w.entryRanges(v)
	res := w.res
	if len(w.ranges) == 0 {
		res.Dead++
		return none
	}
	res.Functions = append(res.Functions, Function{
		Sub:    w.subOf(v, at),
		Offset: at,
		Ranges: res.slab.keep(w.ranges),
		first:  len(res.inlines),
	})
	return frame{int32(len(res.Functions) - 1), -1, true}
}

// block reads a lexical block of Haskell. GHC describes a function as its entry, and the code that
// follows, often after tables, as blocks outside of it.
func (w *walker) block(ab *abbrev, r *buf, fn int32, at uint64) {
	w.tab.read(ab.full, r, w.cur.u.enc, &w.vals)
	if r.bad {
		return
	}
	w.entry = at
	w.entryRanges(&w.vals)
	for _, part := range w.ranges {
		w.blocks = append(w.blocks, blockRange{fn, part})
	}
}

// blockRange is a range of a block of a function.
type blockRange struct {
	fn int32
	addr.Range
}

// addBlocks adds the ranges of blocks to their functions.
func (w *walker) addBlocks() {
	slices.SortStableFunc(w.blocks, func(a, b blockRange) int { return cmp.Compare(a.fn, b.fn) })
	for len(w.blocks) > 0 {
		f := &w.res.Functions[w.blocks[0].fn]
		w.ranges = append(w.ranges[:0], f.Ranges...)
		fn := w.blocks[0].fn
		for len(w.blocks) > 0 && w.blocks[0].fn == fn {
			if part := w.blocks[0].Range; !slices.ContainsFunc(f.Ranges, func(r addr.Range) bool {
				return r.Start <= part.Start && part.End <= r.End
			}) {
				w.ranges = append(w.ranges, part)
			}
			w.blocks = w.blocks[1:]
		}
		f.Ranges = w.res.slab.keep(w.ranges)
	}
	w.blocks = nil
}

// inlined reads an inlined call within the function and call of top.
func (w *walker) inlined(ab *abbrev, r *buf, top frame, at uint64) frame {
	v := &w.vals
	w.tab.read(ab.full, r, w.cur.u.enc, v)
	if r.bad {
		return top
	}
	w.entry = at
	w.entryRanges(v)
	if len(w.ranges) == 0 && !ab.children {
		return top
	}
	res := w.res
	depth := uint32(0)
	if top.inline >= 0 {
		depth = res.inlines[top.inline].Depth + 1
	}
	in := Inline{
		Sub:        w.subOf(v, at),
		Parent:     top.inline,
		Depth:      depth,
		CallFile:   NoFile,
		CallLine:   v.uint32(slotCallLine),
		CallColumn: v.uint32(slotCallColumn),
		Ranges:     res.slab.keep(w.ranges),
		fn:         top.fn,

		CallDiscriminator: v.uint32(slotDiscriminator),
	}
	if v.has(slotCallFile) {
		in.CallFile = w.fileNumber(v.val[slotCallFile])
	}
	res.inlines = append(res.inlines, in)
	res.mixed = res.mixed || int(top.fn) != len(res.Functions)-1
	return frame{top.fn, int32(len(res.inlines) - 1), true}
}

// leave ends the children of an inlined call, if f is one: a call without code that turned out
// to have no calls with code in it is dropped.
func (w *walker) leave(f frame) {
	n := len(w.res.inlines)
	if f.inline >= 0 && int(f.inline) == n-1 && len(w.res.inlines[n-1].Ranges) == 0 {
		w.res.inlines = w.res.inlines[:n-1]
	}
}
