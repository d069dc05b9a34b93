package btf

import "iter"

// Ref returns the type referred to by a PTR, TYPEDEF, CONST, VOLATILE, RESTRICT, TYPE_TAG,
// DECL_TAG, VAR or FUNC, and the result of a FUNC_PROTO; 0 for others.
func (t *Types) Ref(id ID) ID {
	t, b := t.record(id)
	if b == nil {
		return 0
	}
	if kind, _, _ := t.info(b); !kindTable[kind].refers {
		return 0
	}
	return ID(t.u32(b[8:]))
}

// items returns the bytes after a type of one of these kinds, and its number of items.
func (t *Types) items(id ID, kinds ...Kind) (owner *Types, b []byte, n int, flag bool) {
	owner, b = t.record(id)
	if b == nil {
		return owner, nil, 0, false
	}
	kind, n, flag := owner.info(b)
	for _, k := range kinds {
		if k == kind {
			return owner, b[typeHead:], n, flag
		}
	}
	return owner, nil, 0, false
}

// each numbers the items of a type.
func each[T any](n int, item func(i int) T) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i := range n {
			if !yield(i, item(i)) {
				return
			}
		}
	}
}

// Int is the encoding of an INT: its value has Bits bits from bit Offset on of Size bytes. Other
// values than all bits and 0 only occur in the bit fields of old compilers.
type Int struct {
	Size               uint32 // bytes
	Bits, Offset       uint8
	Signed, Char, Bool bool
}

// Int returns the encoding of an INT; zero for other kinds.
func (t *Types) Int(id ID) Int {
	t, b, _, _ := t.items(id, KindInt)
	if b == nil {
		return Int{}
	}
	_, head := t.record(id)
	v := t.u32(b)
	return Int{
		Size: t.u32(head[8:]), Bits: uint8(v), Offset: uint8(v >> 16),
		Signed: v>>24&1 != 0, Char: v>>24&2 != 0, Bool: v>>24&4 != 0,
	}
}

// Member is a member of a STRUCT or UNION.
type Member struct {
	Name      string
	Type      ID
	BitOffset uint32 // from the beginning of the structure
	BitSize   uint8  // of a bit field; 0 for other members
}

// MemberCount returns the number of members of a STRUCT or UNION.
func (t *Types) MemberCount(id ID) int {
	_, _, n, _ := t.items(id, KindStruct, KindUnion)
	return n
}

// Members lists the members of a STRUCT or UNION in their order.
func (t *Types) Members(id ID) iter.Seq2[int, Member] {
	m := t.memberTable(id)
	return each(m.n, m.at)
}

// memberTable is Members without an iterator, for printing values: an iterator is allocated for
// each.
type memberTable struct {
	types, owner *Types
	b            []byte
	n            int
	bitFields    bool
}

func (t *Types) memberTable(id ID) memberTable {
	owner, b, n, flag := t.items(id, KindStruct, KindUnion)
	return memberTable{t, owner, b, n, flag}
}

// at returns the i-th member.
func (t *memberTable) at(i int) Member {
	m := t.b[12*i:]
	out := Member{Name: t.owner.str(t.owner.u32(m)), Type: ID(t.owner.u32(m[4:])),
		BitOffset: t.owner.u32(m[8:])}
	if t.bitFields {
		out.BitSize = uint8(out.BitOffset >> 24)
		out.BitOffset &= 0xffffff
		return out
	}
	v := t.types.Int(t.types.Strip(out.Type))
	if v.Offset != 0 || uint32(v.Bits) < 8*v.Size {
		out.BitSize = v.Bits
		out.BitOffset += uint32(v.Offset)
	}
	return out
}

// Enumerator is a name of an ENUM or ENUM64, its value sign-extended if EnumSigned.
type Enumerator struct {
	Name  string
	Value uint64
}

// EnumSigned reports whether the values of an ENUM or ENUM64 are signed.
func (t *Types) EnumSigned(id ID) bool {
	_, _, _, flag := t.items(id, KindEnum, KindEnum64)
	return flag
}

// Enumerators lists the names of an ENUM or ENUM64 in their order. Compilers before the sign flag
// stored signed values without it; those are not converted. An ENUM of 8 bytes, from compilers
// before ENUM64 (Clang 14), has lost the upper halves of its values.
func (t *Types) Enumerators(id ID) iter.Seq2[int, Enumerator] {
	e := t.enumTable(id)
	return each(e.n, e.at)
}

// enumTable is Enumerators without an iterator, as memberTable is Members.
type enumTable struct {
	owner        *Types
	b            []byte
	n            int
	wide, signed bool // an ENUM64; values have a sign
	cut          bool // values of 8 bytes with only the low 4 recorded
}

func (t *Types) enumTable(id ID) enumTable {
	if owner, b, n, flag := t.items(id, KindEnum); b != nil {
		size, _ := t.Size(id)
		return enumTable{owner: owner, b: b, n: n, signed: flag, cut: size == 8}
	}
	owner, b, n, flag := t.items(id, KindEnum64)
	return enumTable{owner: owner, b: b, n: n, wide: true, signed: flag}
}

// at returns the i-th enumerator.
func (t *enumTable) at(i int) Enumerator {
	if t.wide {
		v := t.b[12*i:]
		return Enumerator{Name: t.owner.str(t.owner.u32(v)),
			Value: uint64(t.owner.u32(v[4:])) | uint64(t.owner.u32(v[8:]))<<32}
	}
	v := t.owner.u32(t.b[8*i+4:])
	value := uint64(v)
	if t.signed {
		value = uint64(int64(int32(v)))
	}
	return Enumerator{Name: t.owner.str(t.owner.u32(t.b[8*i:])), Value: value}
}

// Array is the element and index type of an ARRAY, and its Len elements.
type Array struct {
	Elem, Index ID
	Len         uint32
}

// Array returns the parts of an ARRAY; zero for other kinds.
func (t *Types) Array(id ID) Array {
	t, b, _, _ := t.items(id, KindArray)
	if b == nil {
		return Array{}
	}
	return Array{Elem: ID(t.u32(b)), Index: ID(t.u32(b[4:])), Len: t.u32(b[8:])}
}

// Param is a parameter of a FUNC_PROTO. A last one of type 0 is "...".
type Param struct {
	Name string
	Type ID
}

// Params lists the parameters of a FUNC_PROTO.
func (t *Types) Params(id ID) iter.Seq2[int, Param] {
	t, b, n, _ := t.items(id, KindFuncProto)
	return each(n, func(i int) Param {
		return Param{Name: t.str(t.u32(b[8*i:])), Type: ID(t.u32(b[8*i+4:]))}
	})
}

// Section is the position of a variable in a DATASEC, bytes. Object files that libbpf has not
// linked have zeros there.
type Section struct {
	Type         ID // a VAR, or a FUNC in .ksyms
	Offset, Size uint32
}

// Sections lists the variables of a DATASEC.
func (t *Types) Sections(id ID) iter.Seq2[int, Section] {
	t, b, n, _ := t.items(id, KindDatasec)
	return each(n, func(i int) Section {
		v := b[12*i:]
		return Section{Type: ID(t.u32(v)), Offset: t.u32(v[4:]), Size: t.u32(v[8:])}
	})
}

// FuncLinkage returns the linkage of a FUNC: 0 static, 1 global, 2 extern.
func (t *Types) FuncLinkage(id ID) int {
	_, _, n, _ := t.items(id, KindFunc)
	return n
}

// VarLinkage returns the linkage of a VAR: 0 static, 1 global, 2 extern.
func (t *Types) VarLinkage(id ID) int {
	t, b, _, _ := t.items(id, KindVar)
	if b == nil {
		return 0
	}
	return int(t.u32(b))
}

// FwdUnion reports whether a FWD declares a union, not a struct.
func (t *Types) FwdUnion(id ID) bool {
	_, _, _, flag := t.items(id, KindFwd)
	return flag
}

// DeclTagComponent returns the index of the member or parameter of a DECL_TAG: −1 is the whole.
func (t *Types) DeclTagComponent(id ID) int {
	t, b, _, _ := t.items(id, KindDeclTag)
	if b == nil {
		return -1
	}
	return int(int32(t.u32(b)))
}
