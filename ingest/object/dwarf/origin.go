package dwarf

// subTable maps the offset of an entry to the number of its Sub: a hash table with open
// addressing that is cleared in constant time.
type subTable struct {
	slots []subSlot
	used  int
	round uint32
}

type subSlot struct {
	key   uint64
	sub   int32
	round uint32
}

func (t *subTable) reset() {
	t.round++
	t.used = 0
	if t.round == 0 || t.slots == nil {
		t.round = 1
		t.slots = make([]subSlot, 1024)
	}
}

// find returns the slot of a key, which is empty if its round is not the table's.
func (t *subTable) find(key uint64) *subSlot {
	if t.used*2 >= len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> 20 & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.round != t.round || s.key == key {
			return s
		}
	}
}

func (t *subTable) set(key uint64, sub int32) {
	if s := t.find(key); s.round != t.round {
		*s = subSlot{key, sub, t.round}
		t.used++
	} else {
		s.sub = sub
	}
}

func (t *subTable) grow() {
	old := t.slots
	t.slots = make([]subSlot, 2*len(old))
	t.used = 0
	for _, s := range old {
		if s.round == t.round {
			t.set(s.key, s.sub)
		}
	}
}

// describes reports whether an entry has attributes of its own about the function.
func describes(v *values) bool {
	const own = 1<<slotName | 1<<slotLinkage | 1<<slotDeclFile | 1<<slotDeclLine
	return v.mask&own != 0
}

// subOf returns the number of the Sub that the entry in v at the offset is an instance of, or
// NoSub.
func (w *walker) subOf(v *values, at uint64) int32 {
	c := w.cur
	if describes(v) {
		return w.resolve(v, c, at)
	}
	link := v.link()
	if link.form == 0 {
		return NoSub
	}
	to, off, ok := c.target(link)
	if !ok {
		w.lose(".debug_info", at, missingTarget(link))
		return NoSub
	}
	key := off << 1
	if to.d != c.d {
		key |= 1
	}
	if s := w.subs.find(key); s.round == w.subs.round {
		return s.sub
	}
	sub := NoSub
	if w.entryAt(to, off) {
		sub = w.resolve(&w.chain, to, off)
	}
	w.subs.set(key, sub)
	return sub
}

// missingTarget returns the reason why a reference has no target. Compilers refer by signature to
// types only: a class has a declaration in each unit, which its functions point to.
func missingTarget(link ref) string {
	if link.form == formRefSig8 {
		return "function in a type unit, which are not read"
	}
	return "reference leads out of the file"
}

// link returns the reference to the entry of which this is an instance or a definition.
func (v *values) link() ref {
	if v.has(slotOrigin) {
		return v.ref(slotOrigin)
	}
	return v.ref(slotSpec)
}

// entryAt reads the entry at an offset into w.chain.
func (w *walker) entryAt(c scope, off uint64) bool {
	tab := w.table(c)
	r := buf{b: c.d.sec.Info[:c.u.end], off: int(off), big: c.d.sec.BigEndian}
	ab := tab.lookup(r.uleb())
	if ab == nil {
		w.lose(".debug_info", off, "reference to no entry")
		return false
	}
	tab.read(ab.full, &r, c.u.enc, &w.chain)
	if r.bad {
		w.lose(".debug_info", off, "entry does not end")
	}
	return !r.bad
}

// table returns the abbreviations of a unit.
func (w *walker) table(c scope) *abbrevs {
	if c.u == w.cur.u {
		return w.tab
	}
	if t, ok := w.foreign[c.u]; ok {
		return t
	}
	t, _ := c.d.abbrevTable(c.u.abbrev, c.u.enc)
	w.foreign[c.u] = t
	return t
}

// resolve makes a Sub from an entry and the entries that it refers to. The first one with an
// attribute wins: a definition's line, not its declaration's.
func (w *walker) resolve(v *values, c scope, at uint64) int32 {
	sub := Sub{DeclFile: NoFile}
	named := false
	for range maxOriginChain {
		if sub.Name == nil && v.has(slotName) {
			sub.Name = w.str(&c, v.ref(slotName))
		}
		if sub.Linkage == nil && v.has(slotLinkage) {
			sub.Linkage = w.str(&c, v.ref(slotLinkage))
		}
		if sub.DeclLine == 0 {
			sub.DeclLine = v.uint32(slotDeclLine)
		}
		if sub.DeclFile == NoFile && v.has(slotDeclFile) {
			sub.DeclFile = w.fileOf(c, v.val[slotDeclFile])
		}
		named = named || sub.Name != nil || sub.Linkage != nil
		link := v.link()
		if link.form == 0 {
			w.noteBare(sub, c, at)
			return w.addSub(sub, named)
		}
		if sub.Name != nil && sub.Linkage != nil && sub.DeclLine != 0 {
			return w.addSub(sub, named)
		}
		to, off, ok := c.target(link)
		if !ok {
			w.lose(".debug_info", at, missingTarget(link))
			return w.addSub(sub, named)
		}
		if !w.entryAt(to, off) {
			return w.addSub(sub, named)
		}
		v, c, at = &w.chain, to, off
	}
	w.lose(".debug_info", at, "abstract origins go round in a circle")
	return w.addSub(sub, named)
}

func (w *walker) addSub(s Sub, named bool) int32 {
	if !named {
		return NoSub
	}
	w.res.Subs = append(w.res.Subs, s)
	return int32(len(w.res.Subs) - 1)
}
