package dwarfvar

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarf"
)

// converter makes definitions of BTF from the type entries of one unit, and of the entries of other
// units that they refer to.
type converter struct {
	r     *reader
	defs  []btf.Def
	pos   []dwarf.Pos // by definition; zero for those without an entry of their own
	num   numbers     // of the types at positions
	items []btf.DefItem
	done  int // definitions with entries that were read
}

// newConverter returns a converter, in the memory of the last one.
func newConverter(r *reader) *converter {
	c := r.last
	if c == nil {
		c = &converter{r: r}
		r.last = c
	}
	clear(c.defs) // of names and items
	c.defs, c.pos, c.items, c.done = c.defs[:0], c.pos[:0], c.items[:0], 0
	c.num.reset()
	return c
}

// since returns the items that were added after the first n.
func (c *converter) since(n int) []btf.DefItem { return slices.Clip(c.items[n:]) }

// at returns the number of the type at a position, which is read later.
func (c *converter) at(p dwarf.Pos) int {
	if n := c.num.of(p); n > 0 {
		return n
	}
	if to := c.r.definition(p); to != p {
		n := c.at(to)
		c.num.set(p, n)
		return n
	}
	d := btf.Def{}
	if p.Root.Shared {
		d.Known = c.r.shared[p]
	}
	n := c.add(d)
	c.pos[n-1] = p
	c.num.set(p, n)
	return n
}

// add adds a definition and returns its number.
func (c *converter) add(d btf.Def) int {
	c.defs, c.pos = append(c.defs, d), append(c.pos, dwarf.Pos{})
	return len(c.defs)
}

// ref returns the number of the type that an attribute refers to, 0 for none.
func (c *converter) ref(e *dwarf.Entry, attr uint16) int {
	p, ok := c.r.tree.Ref(e, attr)
	if !ok {
		return 0
	}
	return c.at(p)
}

// convert reads the entries of all definitions, and those that they refer to.
func (c *converter) convert() {
	var e dwarf.Entry
	for ; c.done < len(c.defs); c.done++ {
		p := c.pos[c.done]
		if p.Root == nil || c.defs[c.done].Known != 0 {
			continue
		}
		d := btf.Def{Kind: btf.KindTypedef}
		if c.r.tree.Read(p, &e) {
			d = c.entry(&e)
		}
		c.defs[c.done] = d
	}
}

// size returns DW_AT_byte_size.
func size(e *dwarf.Entry) uint64 {
	n, _, _ := e.Const(atByteSize)
	return n
}

// references are the tags that a kind of BTF stands for.
var references = map[uint16]btf.Kind{
	tagPointerType: btf.KindPtr, tagReferenceType: btf.KindPtr, tagRvalueReference: btf.KindPtr,
	tagConstType: btf.KindConst, tagVolatileType: btf.KindVolatile,
	tagRestrictType: btf.KindRestrict, tagTypedef: btf.KindTypedef,
	tagTemplateAlias: btf.KindTypedef, tagUnspecifiedType: btf.KindTypedef,
	tagAtomicType: btf.KindTypeTag, tagImmutableType: btf.KindTypeTag,
	tagPackedType: btf.KindTypeTag, tagSharedType: btf.KindTypeTag,
}

// typeTags are the names of tags for qualifiers that BTF does not have.
var typeTags = map[uint16]string{tagAtomicType: "atomic", tagImmutableType: "immutable",
	tagPackedType: "packed", tagSharedType: "shared"}

// entry converts the entry of a type.
func (c *converter) entry(e *dwarf.Entry) btf.Def {
	if kind, ok := references[e.Tag]; ok {
		d := btf.Def{Kind: kind, Ref: c.ref(e, atType), Name: typeTags[e.Tag]}
		if kind == btf.KindTypedef {
			d.Name = c.r.typeName(e)
		}
		return d
	}
	switch e.Tag {
	case tagBaseType:
		return c.base(e)
	case tagStructureType, tagClassType, tagInterfaceType, tagUnionType:
		return c.structure(e)
	case tagEnumerationType:
		return c.enumeration(e)
	case tagArrayType, tagCoarrayType:
		return c.array(e)
	case tagSubroutineType, tagSubprogram:
		return c.prototype(e)
	case tagPtrToMember:
		return c.memberPointer(e)
	case tagSubrangeType:
		return btf.Def{Kind: btf.KindTypedef, Name: c.r.typeName(e), Ref: c.ref(e, atType)}
	}
	return c.opaque(c.r.typeName(e), size(e))
}

// opaque returns a type with only a size: bytes.
func (c *converter) opaque(name string, size uint64) btf.Def {
	d := btf.Def{Kind: btf.KindTypedef, Name: name}
	if size > 0 && size <= math.MaxUint32 {
		d.Ref = c.add(btf.Def{Kind: btf.KindArray, Ref: c.byte(), Len: uint32(size)})
	}
	return d
}

// byte returns the number of a type for bytes of unknown use.
func (c *converter) byte() int {
	return c.add(btf.Def{Kind: btf.KindInt, Name: "unsigned char", Size: 1, Int: btf.Int{Bits: 8}})
}

// base converts a base type.
func (c *converter) base(e *dwarf.Entry) btf.Def {
	name, n := c.r.typeName(e), size(e)
	enc, _, _ := e.Const(atEncoding)
	switch enc {
	case ateFloat, ateDecimalFloat, ateImaginary:
		if slices.Contains([]uint64{2, 4, 8, 12, 16}, n) {
			return btf.Def{Kind: btf.KindFloat, Name: name, Size: uint32(n)}
		}
		return c.opaque(name, n)
	case ateComplexFloat:
		return c.complex(name, n)
	}
	if n == 0 { // the () and ! of Rust
		return btf.Def{Kind: btf.KindStruct, Name: name}
	}
	if n > 16 {
		return c.opaque(name, n)
	}
	bits, _, ok := e.Const(atBitSize)
	if !ok || bits == 0 || bits > 8*n {
		bits = 8 * n
	}
	return btf.Def{Kind: btf.KindInt, Name: name, Size: uint32(n), Int: btf.Int{Bits: uint8(bits),
		Signed: enc == ateSigned || enc == ateSignedChar || enc == ateSignedFixed,
		Bool:   enc == ateBoolean}}
}

// complex converts a complex number to a structure of its parts.
func (c *converter) complex(name string, n uint64) btf.Def {
	part := n / 2
	if n%2 != 0 || !slices.Contains([]uint64{2, 4, 8, 12, 16}, part) {
		return c.opaque(name, n)
	}
	names := map[uint64]string{4: "float", 8: "double", 12: "long double", 16: "long double"}
	f := c.add(btf.Def{Kind: btf.KindFloat, Name: cmp.Or(names[part], "_Float16"),
		Size: uint32(part)})
	return btf.Def{Kind: btf.KindStruct, Name: name, Size: uint32(n), Items: []btf.DefItem{
		{Name: "real", Ref: f}, {Name: "imag", Ref: f, Value: 8 * part}}}
}

// memberPointer converts a pointer to a member, which C++ implements as an offset, or for functions
// as an address and the offset of the object (Itanium C++ ABI, 2.3).
func (c *converter) memberPointer(e *dwarf.Entry) btf.Def {
	word := e.Root.AddrSize
	long := btf.Def{Kind: btf.KindInt, Name: "long int", Size: uint32(word),
		Int: btf.Int{Bits: uint8(8 * word), Signed: true}}
	if !c.toFunction(e) {
		return long
	}
	return btf.Def{Kind: btf.KindStruct, Size: uint32(2 * word), Items: []btf.DefItem{
		{Name: "__pfn", Ref: c.add(btf.Def{Kind: btf.KindPtr})},
		{Name: "__delta", Ref: c.add(long), Value: uint64(8 * word)}}}
}

// toFunction reports whether a pointer to a member points to a function.
func (c *converter) toFunction(e *dwarf.Entry) bool {
	p, ok := c.r.tree.Ref(e, atType)
	var to dwarf.Entry
	return ok && c.r.tree.Read(p, &to) && to.Tag == tagSubroutineType
}

// array converts an array: one of arrays for each further dimension.
func (c *converter) array(e *dwarf.Entry) btf.Def {
	var dims []uint32
	c.r.tree.Kids(e, func(k *dwarf.Entry, _ int) dwarf.Step {
		switch k.Tag {
		case tagSubrangeType, tagEnumerationType, tagGenericSubrange:
			if len(dims) < maxDims {
				dims = append(dims, c.length(k))
			}
		}
		return dwarf.Over
	}, nil)
	if len(dims) == 0 {
		dims = []uint32{0}
	}
	elem := c.ref(e, atType)
	for i := len(dims) - 1; i > 0; i-- {
		elem = c.add(btf.Def{Kind: btf.KindArray, Ref: elem, Len: dims[i]})
	}
	return btf.Def{Kind: btf.KindArray, Ref: elem, Len: dims[0]}
}

// maxDims bounds the dimensions of an array: Fortran has 15.
const maxDims = 32

// length returns the elements of a dimension, 0 if they are not constant.
func (c *converter) length(k *dwarf.Entry) uint32 {
	n, _, ok := k.Const(atCount)
	if !ok {
		upper, signed, known := k.Const(atUpperBound)
		if w := k.Width(atUpperBound); known && !signed && w > 0 && w < 8 && upper == 1<<(8*w)-1 {
			return 0 // -1 of old compilers: no element
		}
		if !known {
			return 0
		}
		lower, _, _ := k.Const(atLowerBound) // of C and C++; others write it
		n = upper - lower + 1
	}
	if n > math.MaxUint32 {
		if int64(n) > 0 {
			c.r.tree.Lose(k.Pos, "array of more than 4294967295 elements")
		}
		return 0
	}
	return uint32(n)
}

// prototype converts the type of a function, or a subprogram as one.
func (c *converter) prototype(e *dwarf.Entry) btf.Def {
	d, from := btf.Def{Kind: btf.KindFuncProto, Ref: c.ref(e, atType)}, len(c.items)
	c.r.tree.Kids(e, func(k *dwarf.Entry, _ int) dwarf.Step {
		switch k.Tag {
		case tagFormalParameter:
			c.items = append(c.items, btf.DefItem{Name: c.r.tree.String(k, atName), Ref: c.ref(k, atType)})
		case tagUnspecifiedParams:
			c.items = append(c.items, btf.DefItem{})
		}
		return dwarf.Over
	}, nil)
	d.Items = c.since(from)
	return d
}

// enumeration converts an enumeration: to ENUM64 if a value has more than 32 bits.
func (c *converter) enumeration(e *dwarf.Entry) btf.Def {
	d := btf.Def{Kind: btf.KindEnum, Name: c.r.typeName(e)}
	n := size(e)
	if p, ok := c.r.tree.Ref(e, atType); ok && n == 0 {
		var under dwarf.Entry
		if c.r.tree.Read(p, &under) {
			n = size(&under)
		}
	}
	from := len(c.items)
	c.r.tree.Kids(e, func(k *dwarf.Entry, _ int) dwarf.Step {
		if k.Tag == tagEnumerator {
			v, signed, _ := k.Const(atConstValue)
			d.Flag = d.Flag || signed && int64(v) < 0 || k.Width(atConstValue) == 8 && int64(v) < 0
			if n := len(c.items) - from; n < math.MaxUint16 {
				c.items = append(c.items, btf.DefItem{Name: c.r.tree.String(k, atName), Value: v})
			} else if n == math.MaxUint16 {
				c.r.tree.Lose(k.Pos, "enumeration of more than 65535 names")
			}
		}
		return dwarf.Over
	}, nil)
	d.Items = c.since(from)
	for _, it := range d.Items {
		v := int64(it.Value)
		if d.Flag && v != int64(int32(v)) || !d.Flag && it.Value > math.MaxUint32 {
			d.Kind = btf.KindEnum64
		}
	}
	if d.Kind == btf.KindEnum64 || n > 8 {
		d.Size = 8
	} else {
		d.Size = uint32(n)
	}
	if n == 1 || n == 2 || n == 4 || n == 8 {
		d.Size = uint32(n)
	} else if d.Size == 0 {
		d.Size = 4
	}
	if !slices.Contains([]uint32{1, 2, 4, 8}, d.Size) {
		return c.opaque(d.Name, n)
	}
	return d
}

// isMembuf reports whether a class is storage for an object of its template's type, as libstdc++
// has it in nodes of containers.
func isMembuf(name string) bool {
	return strings.HasPrefix(name, "__gnu_cxx::__aligned_membuf<") ||
		strings.HasPrefix(name, "__gnu_cxx::__aligned_buffer<")
}

// structure converts a structure, class or union; one that is only declared to FWD.
func (c *converter) structure(e *dwarf.Entry) btf.Def {
	d := btf.Def{Kind: btf.KindStruct, Name: c.r.typeName(e)}
	union := e.Tag == tagUnionType
	if union {
		d.Kind = btf.KindUnion
	}
	if e.Flag(atDeclaration) {
		if d.Name == "" { // nothing to find the definition by
			return c.opaque("", size(e))
		}
		return btf.Def{Kind: btf.KindFwd, Name: d.Name, Flag: union}
	}
	n := size(e)
	if n > math.MaxUint32 {
		c.r.tree.Lose(e.Pos, "structure of more than 4294967295 bytes")
		return c.opaque(d.Name, 0)
	}
	d.Size = uint32(n)
	m, from := memberList{c: c, bytes: n, storage: isMembuf(d.Name)}, len(c.items)
	c.r.tree.Kids(e, m.kid, nil)
	d.Items = c.since(from)
	if m.object != 0 && len(d.Items) == 1 {
		d.Items[0].Ref = m.object
	}
	if m.variants.Kind != 0 {
		m.variants.Size = d.Size
		d.Items = append(d.Items, btf.DefItem{Ref: c.add(m.variants)})
	}
	if !union {
		slices.SortStableFunc(d.Items, func(a, b btf.DefItem) int { return cmp.Compare(a.Value, b.Value) })
	}
	if len(d.Items) > math.MaxUint16 {
		c.r.tree.Lose(e.Pos, "structure of more than 65535 members")
		d.Items = d.Items[:math.MaxUint16]
	}
	return d
}

// memberList collects the members of a structure.
type memberList struct {
	c        *converter
	bytes    uint64  // size of the structure
	storage  bool    // of an object of the template's type
	object   int     // which is this one
	variants btf.Def // of Rust's enumerations: a union
}

func (m *memberList) kid(k *dwarf.Entry, _ int) dwarf.Step {
	switch k.Tag {
	case tagMember, tagInheritance:
		if it, ok := m.member(k); ok {
			m.c.items = append(m.c.items, it)
		}
	case tagTemplateType:
		if m.storage && m.object == 0 {
			m.object = m.c.ref(k, atType)
		}
	case tagVariantPart:
		m.variantPart(k)
	}
	return dwarf.Over
}

// member converts a member, or a base class, which has no name. Static members and virtual bases,
// which have no fixed place, are left out.
func (m *memberList) member(k *dwarf.Entry) (it btf.DefItem, ok bool) {
	if k.Flag(atExternal) || k.Flag(atDeclaration) {
		return it, false
	}
	if v, _, _ := k.Const(atVirtuality); v != 0 {
		return it, false
	}
	at, ok := m.c.memberOffset(k)
	if !ok {
		return it, false
	}
	it = btf.DefItem{Ref: m.c.ref(k, atType), Value: 8 * at}
	if k.Tag == tagMember {
		it.Name = m.c.r.tree.String(k, atName)
	}
	if bits, _, is := k.Const(atBitSize); is && bits > 0 && bits <= math.MaxUint8 {
		it.Bits = uint8(bits)
		it.Value = m.c.bitOffset(k, 8*at, bits)
	}
	if it.Value+uint64(it.Bits) > 8*m.bytes || it.Bits > 0 && it.Value > 0xffffff ||
		it.Value > math.MaxUint32 {
		m.c.r.tree.Lose(k.Pos, "member begins outside its structure")
		return it, false
	}
	return it, true
}

// memberOffset returns the bytes before a member. DWARF 2 has an expression: DW_OP_plus_uconst.
func (c *converter) memberOffset(k *dwarf.Entry) (uint64, bool) {
	switch k.Class(atMemberLocation) {
	case dwarf.ClassNone:
		return 0, true
	case dwarf.ClassConst, dwarf.ClassSigned:
		n, _, _ := k.Const(atMemberLocation)
		return n, n < 1<<40
	case dwarf.ClassBlock:
		b, _ := k.Block(atMemberLocation)
		if len(b) > 0 && b[0] == opPlusUconst {
			p := evaluate(c.r.tree, k.Root, unknown, append([]byte{opLit0}, b...))
			return uint64(p.Off), p.Kind == Static && p.Off >= 0 && p.Off < 1<<40
		}
		p := evaluate(c.r.tree, k.Root, unknown, b)
		return uint64(p.Off), p.Kind == Static && p.Off >= 0 && p.Off < 1<<40
	}
	return 0, false
}

// bitOffset returns the bits before a bit field. Up to DWARF 3 they are counted from the most
// significant bit of a storage unit.
func (c *converter) bitOffset(k *dwarf.Entry, at, bits uint64) uint64 {
	if off, _, ok := k.Const(atDataBitOffset); ok {
		return at + off
	}
	off, _, ok := k.Const(atBitOffset) // negative where a field crosses its unit
	switch {
	case !ok:
		return at
	case c.r.tree.BigEndian():
		return at + off
	}
	storage := size(k)
	if storage == 0 {
		storage = c.typeSize(k)
	}
	return at + 8*storage - off - bits
}

// typeSize returns the size of a member's type behind typedefs and qualifiers.
func (c *converter) typeSize(k *dwarf.Entry) uint64 {
	p, ok := c.r.tree.Ref(k, atType)
	var e dwarf.Entry
	for range maxChain {
		if !ok || !c.r.tree.Read(p, &e) {
			return 0
		}
		if n := size(&e); n > 0 {
			return n
		}
		p, ok = c.r.tree.Ref(&e, atType)
	}
	return 0
}

// maxChain bounds chains of references: typedefs, origins and specifications.
const maxChain = 32

// variantPart converts the variants of an enumeration of Rust: a union of the structures of its
// variants, and of the discriminant.
func (m *memberList) variantPart(k *dwarf.Entry) {
	u := &m.variants
	u.Kind = btf.KindUnion
	m.c.r.tree.Kids(k, func(v *dwarf.Entry, depth int) dwarf.Step {
		switch {
		case v.Tag == tagVariant && depth == 1:
			return dwarf.Into
		case v.Tag != tagMember:
			return dwarf.Over
		}
		it, ok := m.member(v)
		if !ok {
			return dwarf.Over
		}
		if it.Name == "" {
			it.Name = "__discriminant"
		}
		if it.Value != 0 || it.Bits != 0 { // within a structure that begins where the union does
			in := it
			it = btf.DefItem{Ref: m.c.add(btf.Def{Kind: btf.KindStruct, Size: uint32(m.bytes),
				Items: []btf.DefItem{in}})}
		}
		u.Items = append(u.Items, it)
		return dwarf.Over
	}, nil)
}
