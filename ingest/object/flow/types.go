package flow

import (
	"slices"
	"strings"

	"symbolize/ingest/object/btf"
)

// typ is a type as the analysis needs it: behind typedefs and qualifiers.
type typ struct {
	id      btf.ID // as printed: a typedef for a structure without a name
	own     btf.ID // behind typedefs and qualifiers
	kind    btf.Kind
	name    string
	size    int64 // bytes, −1 if not known
	elem    btf.ID
	count   int64 // of an array; 0 for a flexible one
	members []btf.Member
	tail    bool // the last member is an array without a length
}

// Layouts caches the types of one blob. It is for one goroutine.
type Layouts struct {
	types *btf.Types
	known map[btf.ID]*typ
	uses  map[named]use // by the structures and arrays of the blob; nil until it is needed
	// leaves has the results of leavesOf, at most maxKnownLeaves: code asks for the same members again and again.
	leaves map[place][]Leaf
}

const maxKnownLeaves = 1 << 14

// place is a part of a type.
type place struct {
	t         *typ
	off, size int64
}

// named identifies a structure in several units of a program.
type named struct {
	name string
	size int64
}

// use is how the types of a blob use a structure.
type use uint8

const (
	inStruct use = 1 << iota // it is a member, so that a pointer to it may be one into another structure
	inArray                  // it is an element
)

// useOf returns how a structure is used.
func (l *Layouts) useOf(t *typ) use {
	if l.uses == nil {
		l.uses = make(map[named]use)
		for id := range btf.ID(l.types.Len()) {
			switch l.types.Kind(id) {
			case btf.KindStruct, btf.KindUnion:
				for _, m := range l.types.Members(id) {
					l.note(m.Type, inStruct)
				}
			case btf.KindArray:
				l.note(l.types.Array(id).Elem, inArray)
			}
		}
	}
	return l.uses[named{t.name, t.size}]
}

func (l *Layouts) note(id btf.ID, u use) {
	if t := l.of(id); t.group() {
		l.uses[named{t.name, t.size}] |= u
	}
}

// NewLayouts returns the Layouts of a blob.
func NewLayouts(t *btf.Types) *Layouts {
	return &Layouts{types: t, known: make(map[btf.ID]*typ), leaves: make(map[place][]Leaf)}
}

var void = &typ{size: -1}

// of returns a type.
func (l *Layouts) of(id btf.ID) *typ {
	if t := l.known[id]; t != nil {
		return t
	}
	own := l.types.Strip(id)
	if own == 0 {
		l.known[id] = void
		return void
	}
	t := &typ{id: own, own: own, kind: l.types.Kind(own), name: l.types.Name(own), size: -1}
	if t.name == "" {
		t.id = l.alias(id, own)
	}
	l.known[id] = t
	if size, err := l.types.Size(own); err == nil {
		t.size = int64(size)
	}
	switch t.kind {
	case btf.KindPtr:
		t.elem = l.types.Ref(own)
	case btf.KindArray:
		a := l.types.Array(own)
		t.elem, t.count = a.Elem, int64(a.Len)
	case btf.KindStruct, btf.KindUnion:
		for _, m := range l.types.Members(own) {
			t.members = append(t.members, m)
		}
		if n := len(t.members); n > 0 {
			last := l.types.Strip(t.members[n-1].Type)
			t.tail = l.types.Kind(last) == btf.KindArray && l.types.Array(last).Len == 0
		}
	case btf.KindFwd:
		if d := l.definition(own, t.name); d != 0 {
			*t = *l.of(d)
		}
	}
	return t
}

// definition returns the definition of a declared type, by its name.
func (l *Layouts) definition(own btf.ID, name string) btf.ID {
	if name == "" {
		return 0
	}
	kind := btf.KindStruct
	if l.types.FwdUnion(own) {
		kind = btf.KindUnion
	}
	id, _ := l.types.ByName(kind, name)
	return id
}

// maxAlias bounds a chain of typedefs.
const maxAlias = 32

// alias returns the last typedef before a type without a name, or the type.
func (l *Layouts) alias(id, own btf.ID) btf.ID {
	name := own
	for range maxAlias {
		if id == own {
			break
		}
		if l.types.Kind(id) == btf.KindTypedef {
			name = id
		}
		id = l.types.Ref(id)
	}
	return name
}

func (t *typ) group() bool   { return t.kind == btf.KindStruct || t.kind == btf.KindUnion }
func (t *typ) pointer() bool { return t.kind == btf.KindPtr }

// empty reports whether a pointer to the type gives no type of the memory.
func (t *typ) empty() bool {
	return t.kind == btf.KindVoid || t.kind == btf.KindFuncProto || t.kind == btf.KindFunc
}

// same reports whether two types are one, perhaps from two units of the program.
func same(a, b *typ) bool {
	return a == b || a != nil && b != nil && (a.own == b.own ||
		a.kind == b.kind && a.name != "" && a.name == b.name && a.size == b.size)
}

// target returns what a pointer points to: of an array the element.
func (l *Layouts) target(t *typ) *typ { return l.element(l.of(t.elem)) }

// element returns the element of arrays of arrays.
func (l *Layouts) element(t *typ) *typ {
	for n := 0; t.kind == btf.KindArray && n < maxAlias; n++ {
		t = l.of(t.elem)
	}
	return t
}

// Leaf is a member, or an element, at an access.
type Leaf struct {
	// Path has the names of members, with [] for elements: "k_next", "entries[].lock". It is empty
	// for the whole type.
	Path string
	Type btf.ID
	// Offset is its place in the type, in bytes; of elements the place in the first one.
	Offset int64
	// Exact is set if the access begins where it begins, and is as long; also for bit fields.
	Exact bool
	// Stride is the size of the elements of the innermost array, 0 outside of arrays.
	Stride int64

	t *typ
}

// Bounds of Leaves.
const (
	maxLeaves = 64
	maxDepth  = 20
	maxVisits = 4096
)

// leaves lists the members at an access of size bytes at an offset: several in unions, and where bit
// fields share a byte.
type leaves struct {
	l         *Layouts
	off, size int64
	out       []Leaf
	visits    int
}

// Leaves returns the members that an instruction accesses: several in unions, and of a pair. One that
// begins at the access and has its size replaces the others.
func (l *Layouts) Leaves(a *Access) []Leaf {
	t, size := l.of(a.Type), int64(a.Size)
	if !a.Pair {
		return l.leavesOf(t, a.Offset, size)
	}
	size /= 2
	return append(l.leavesOf(t, a.Offset, size), l.leavesOf(t, a.Offset+size, size)...)
}

// leavesOf returns the members at an access. Exact ones replace the others. The result must not be changed.
func (l *Layouts) leavesOf(t *typ, off, size int64) []Leaf {
	p := place{t, off, size}
	if list, ok := l.leaves[p]; ok {
		return list
	}
	w := leaves{l: l, off: off, size: max(size, 1)}
	w.visit(t, 0, "", 0, 0)
	if size > 0 && slices.ContainsFunc(w.out, func(x Leaf) bool { return x.Exact }) {
		w.out = slices.DeleteFunc(w.out, func(x Leaf) bool { return !x.Exact })
	}
	if len(l.leaves) >= maxKnownLeaves {
		clear(l.leaves)
	}
	l.leaves[p] = slices.Clip(w.out)
	return l.leaves[p]
}

// OfVariable returns the access to a variable of a type at an offset in it, of a size that is not known. Of an array it has
// the type of the elements, as accesses of instructions have.
func (l *Layouts) OfVariable(id btf.ID, off int64) Access {
	t := l.of(id)
	if e := l.element(t); e != t && e.size > 0 {
		t, off = e, mod(off, e.size)
	}
	return Access{Type: t.id, Offset: off}
}

// Bounds of Compatible.
const maxCompatible = 256

// Compatible reports whether an access to some type can be one to a variable of type id at an offset in it. The
// types of the access are those of of. Arrays of bytes can have anything.
func (l *Layouts) Compatible(id btf.ID, off int64, a *Access, of *Layouts) bool {
	c := comparison{l: l, a: a, of: of, want: of.of(a.Type), left: maxCompatible}
	return c.at(l.of(id), off)
}

// comparison is the state of Compatible.
type comparison struct {
	l, of *Layouts
	a     *Access
	want  *typ
	left  int
}

// at compares the access with a type in the variable.
func (c *comparison) at(t *typ, off int64) bool {
	if c.left--; c.left <= 0 {
		return true
	}
	switch {
	case t.size == 1, t.size < 0:
		return true // storage, or not known
	case t.kind == btf.KindArray:
		e := c.l.of(t.elem)
		return e.size <= 0 || c.at(e, mod(off, e.size))
	case c.same(t) && c.member(t, off):
		return true
	case !t.group():
		return !c.want.group() && t.size == c.want.size
	}
	for i := range t.members {
		m := &t.members[i]
		at, x := int64(m.BitOffset/8), c.l.of(m.Type)
		if off >= at && (off < at+x.size || x.size <= 0) && c.at(x, off-at) {
			return true
		}
	}
	return false
}

// same reports whether the access has a type of the variable.
func (c *comparison) same(t *typ) bool {
	w := c.want
	return t.kind == w.kind && t.size == w.size && c.l.types.TypeName(t.id) == c.of.types.TypeName(w.id)
}

// member reports whether an offset in the type is of the members that the access has.
func (c *comparison) member(t *typ, off int64) bool {
	if !t.group() {
		return true
	}
	has := c.of.Leaves(c.a)
	for _, x := range c.l.leavesOf(t, off, int64(c.a.Size)) {
		if slices.ContainsFunc(has, func(y Leaf) bool { return x.Path == y.Path }) {
			return true
		}
	}
	return len(has) == 0
}

func (w *leaves) visit(t *typ, base int64, path string, stride int64, depth int) {
	if w.visits++; depth > maxDepth || len(w.out) >= maxLeaves || w.visits > maxVisits {
		return
	}
	switch {
	case t.group():
		for i := range t.members {
			w.member(&t.members[i], base, path, stride, depth)
		}
	case t.kind == btf.KindArray:
		e := w.l.of(t.elem)
		if e.size <= 0 {
			w.out = append(w.out, Leaf{Path: path + "[]", Type: t.id, Offset: base, Stride: stride, t: t})
			return
		}
		if d := w.off - base; t.count == 0 || d < e.size*t.count {
			// Accesses are compared with the first element.
			n := d / e.size
			w.off -= n * e.size
			w.visit(e, base, path+"[]", e.size, depth+1)
			w.off += n * e.size
		}
	default:
		w.out = append(w.out, Leaf{Path: path, Type: t.id, Offset: base,
			Exact: base == w.off && t.size == w.size, Stride: stride, t: t})
	}
}

func (w *leaves) member(m *btf.Member, base int64, path string, stride int64, depth int) {
	t := w.l.of(m.Type)
	at := base + int64(m.BitOffset/8)
	name := path
	if m.Name != "" {
		name = strings.TrimPrefix(path+"."+m.Name, ".")
	}
	if m.BitSize > 0 {
		end := base + (int64(m.BitOffset)+int64(m.BitSize)+7)/8
		if w.off < end && w.off+w.size > at {
			w.out = append(w.out, Leaf{Path: name, Type: t.id, Offset: at, Exact: true, Stride: stride, t: t})
		}
		return
	}
	size := t.size
	if t.kind == btf.KindArray && t.count == 0 {
		size = 1 << 40
	}
	if w.off >= at && w.off < at+size {
		w.visit(t, at, name, stride, depth+1)
	}
}
