package dwarf

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// Functions of internal linkage, and those with types that have no linkage, have no linkage name:
// only the entries around their declaration tell in which namespaces, classes and functions they
// are. Such a Sub gets its qualified name after the walk, as demanglers write it, since references
// lead forward as well as backward:
//
//	app::score                      a static function in a namespace
//	app::(anonymous namespace)::f   in an unnamed one
//	app::f()::Local::run            a member of a type in a function
//	app::f()::{lambda:12}::operator()   a lambda, by the line of its declaration

// unqualified is a Sub without a linkage name, and the entry of its declaration.
type unqualified struct {
	sub int32
	at  scope
	off uint64
	sep string // between the parts of the name
}

// separatorOf returns what is between a scope and a name in a language, "" if names are not
// qualified. Ada's compiler writes them qualified.
func separatorOf(lang uint16) string {
	switch lang {
	case LangCpp, LangCpp03, LangCpp11, LangCpp14, LangCpp17, LangCpp20, LangObjCpp, LangRust:
		return "::"
	case LangD:
		return "."
	}
	return ""
}

// noteBare notes the Sub that is added next, if its declaration, an entry, needs scopes.
func (w *walker) noteBare(s Sub, at scope, off uint64) {
	if s.Name == nil || s.Linkage != nil || isOutlined(s.Name) {
		return
	}
	if sep := separatorOf(cmp.Or(at.u.language, w.res.Language)); sep != "" {
		w.bare = append(w.bare, unqualified{int32(len(w.res.Subs)), at, off, sep})
	}
}

// isOutlined reports whether a name is one of a function that a compiler made of a part of another
// one, as "main._omp_fn.0": it contains the name of that one, and is declared within it.
func isOutlined(name []byte) bool {
	name, _, _ = bytes.Cut(name, []byte("<"))
	return bytes.IndexByte(name, '.') >= 0 || bytes.HasPrefix(name, []byte("_Z"))
}

// qualify adds the scopes to the names of a unit's Subs.
func (w *walker) qualify() {
	if len(w.bare) == 0 {
		return
	}
	slices.SortFunc(w.bare, func(a, b unqualified) int {
		return cmp.Or(cmp.Compare(a.at.rank(w), b.at.rank(w)), cmp.Compare(a.off, b.off),
			cmp.Compare(a.sub, b.sub))
	})
	w.scopeLeft = scopeBudgetFloor + scopeBudgetFactor*int64(w.cur.u.end-w.cur.u.off)
	for i := range w.cursors {
		c := &w.cursors[i]
		*c = cursor{open: c.open[:0], text: c.text}
	}
	clear(w.outer)
	for i := range w.bare {
		b := &w.bare[i]
		s := &w.res.Subs[b.sub]
		text := w.scopeText(0, b, bytes.HasPrefix(s.Name, callOperator))
		if w.scopeLeft < 0 {
			w.lose(".debug_info", b.off, "scopes of functions are too far away")
			break
		}
		if len(text) == 0 {
			continue
		}
		if w.stringLeft -= int64(len(text) + len(s.Name)); w.stringLeft < 0 {
			w.lose(".debug_str", b.off, "strings of the unit overlap")
			break
		}
		s.Name = slices.Concat(text, s.Name)
	}
	clear(w.bare)
	w.bare = w.bare[:0]
}

// rank orders units: those of the walked file first.
func (c *scope) rank(w *walker) uint64 {
	if c.d == w.cur.d {
		return c.u.off
	}
	return 1<<63 | c.u.off
}

// callOperator begins the names of a lambda's functions, and lambdaType the name that some
// versions of gcc give to its type.
var callOperator, lambdaType = []byte("operator()"), []byte("<lambda")

// scopeText returns the scopes of a declaration, with a separator after each. calls reports that it
// is a call operator: a type without a name around it is a lambda's. The text is valid until the
// next call at this level, the number of functions and types so far that are declared elsewhere.
func (w *walker) scopeText(level int, b *unqualified, calls bool) []byte {
	if level == len(w.cursors) {
		return nil
	}
	cur := &w.cursors[level]
	if !cur.seek(w, b.at, b.off) {
		return nil
	}
	if len(cur.open) > maxScopes {
		w.lose(".debug_info", b.off, "scopes of a function are nested too deep")
		return nil
	}
	w.scopeLeft -= int64(len(cur.open)) * scopeCost
	text := cur.text[:0]
	for i, e := range cur.open {
		if !namesScope(e.tag) || !w.entryAt(b.at, e.off) {
			continue
		}
		line := w.chain.uint32(slotDeclLine)
		name, outer := w.scopeName(level, b)
		if outer != nil {
			text = append(text[:0], outer...)
		}
		switch {
		case e.tag == tagSubprogram && name == nil:
			continue
		case e.tag == tagSubprogram && string(name) != "main":
			text = append(append(text, name...), "()"...)
		case name != nil && !bytes.HasPrefix(name, lambdaType):
			text = append(text, name...)
		case e.tag == tagNamespace:
			text = append(text, "(anonymous namespace)"...)
		case w.holdsCall(b.at, cur.open[i+1:], calls):
			text = append(strconv.AppendUint(append(text, "{lambda:"...), uint64(line), 10), '}')
		default:
			text = append(text, unnamedTypes[e.tag]...)
		}
		text = append(text, b.sep...)
	}
	cur.text = text
	return text
}

// scopeName returns the name of the entry in w.chain, which is in the unit of b, or of its
// declaration, and the scopes of a declaration elsewhere: not nil if there is one.
func (w *walker) scopeName(level int, b *unqualified) (name, outer []byte) {
	c, off := b.at, uint64(0)
	name = w.str(&c, w.chain.ref(slotName))
	for range maxOriginChain {
		to, next, ok := c.target(w.chain.link())
		if !ok || !w.entryAt(to, next) {
			break
		}
		c, off = to, next
		if name == nil {
			name = w.str(&c, w.chain.ref(slotName))
		}
	}
	if off == 0 {
		return name, nil
	}
	key := scopeKey{c.d, off}
	outer, ok := w.outer[key]
	if !ok {
		decl := unqualified{at: c, off: off, sep: b.sep}
		outer = append([]byte{}, w.scopeText(level+1, &decl, false)...)
		w.outer[key] = outer
	}
	return name, outer
}

// scopeKey is the declaration of a function or type around others.
type scopeKey struct {
	d   *Data
	off uint64
}

// holdsCall reports whether the innermost function, or otherwise the first one among the entries
// within a type, is a call operator.
func (w *walker) holdsCall(c scope, inner []opened, calls bool) bool {
	for _, e := range inner {
		if e.tag == tagSubprogram {
			return w.entryAt(c, e.off) &&
				bytes.HasPrefix(w.str(&c, w.chain.ref(slotName)), callOperator)
		}
	}
	return calls && len(inner) == 0
}

// unnamedTypes are the texts for types without a name.
var unnamedTypes = map[uint16]string{
	tagClassType: "(anonymous class)", tagStructureType: "(anonymous struct)",
	tagUnionType: "(anonymous union)", tagEnumerationType: "(anonymous enum)",
	tagInterfaceType: "(anonymous interface)", tagModule: "(anonymous module)",
}

// namesScope reports whether names within an entry with this tag are qualified by its name.
func namesScope(tag uint16) bool {
	return tag == tagNamespace || tag == tagSubprogram || unnamedTypes[tag] != ""
}

// A cursor finds the entries around others. It moves forward through a unit, since most
// declarations are looked up in order.
type cursor struct {
	at   scope
	r    buf
	open []opened // the entries around r.off, outermost first
	text []byte   // scratch of scopeText
}

type opened struct {
	off uint64
	tag uint16
}

// seek moves to the entry at an offset. It reports false if the unit is damaged or the unit at hand
// has used up its budget.
func (c *cursor) seek(w *walker, at scope, off uint64) bool {
	if c.at.u != at.u || c.at.d != at.d || uint64(c.r.off) > off {
		c.at, c.open = at, c.open[:0]
		c.r = buf{b: at.d.sec.Info[:at.u.end], off: int(at.u.kids), big: at.d.sec.BigEndian}
	}
	tab := w.table(at)
	for uint64(c.r.off) < off {
		entry := c.r.off
		code := c.r.uleb()
		if code == 0 {
			if c.r.bad || len(c.open) == 0 {
				return false
			}
			c.open = c.open[:len(c.open)-1]
			continue
		}
		ab := tab.lookup(code)
		if ab == nil || len(c.open) >= maxDepth {
			return false
		}
		to := c.pass(tab, ab, &w.chain)
		if w.scopeLeft -= int64(c.r.off - entry); c.r.bad || w.scopeLeft < 0 {
			return false
		}
		if ab.children && to > uint64(c.r.off) && to <= off {
			c.r.off = int(to)
		} else if ab.children {
			c.open = append(c.open, opened{uint64(entry), ab.tag})
		}
	}
	return uint64(c.r.off) == off
}

// pass skips the attributes of an entry and returns the offset of its sibling, 0 if that is
// not known.
func (c *cursor) pass(tab *abbrevs, ab *abbrev, v *values) uint64 {
	u := c.at.u
	if ab.skip.lo == ab.skip.hi {
		c.r.skip(uint64(ab.skip.tail))
		return 0
	}
	tab.read(ab.skip, &c.r, u.enc, v)
	if !v.has(slotSibling) {
		return 0
	}
	switch v.form[slotSibling] {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		return u.off + v.val[slotSibling]
	}
	return 0
}
