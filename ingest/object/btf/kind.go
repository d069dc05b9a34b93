package btf

import "strconv"

// Kind is the kind of a type, as the kernel numbers them (BTF_KIND_… of
// include/uapi/linux/btf.h). 0 is void.
type Kind uint8

// The kinds.
const (
	KindVoid Kind = iota
	KindInt
	KindPtr
	KindArray
	KindStruct
	KindUnion
	KindEnum
	KindFwd
	KindTypedef
	KindVolatile
	KindConst
	KindRestrict
	KindFunc
	KindFuncProto
	KindVar
	KindDatasec
	KindFloat
	KindDeclTag
	KindTypeTag
	KindEnum64
	numKinds
)

// kindTable has the layout of each kind of type (Documentation/bpf/btf.rst). After the head of a type are
// fixed bytes, and items.
var kindTable = [numKinds]struct {
	name        string // as bpftool prints it
	fixed, item uint64 // bytes of the fixed part, and of an item
	refs        []int  // offsets of types in an item
	names       bool   // an item begins with the offset of its name
	refers      bool   // the third word of the head is a type, not a size
	transparent bool   // its values are the referenced type's
}{
	KindVoid:      {name: "VOID"},
	KindInt:       {name: "INT", fixed: 4},
	KindPtr:       {name: "PTR", refers: true},
	KindArray:     {name: "ARRAY", fixed: 12},
	KindStruct:    {name: "STRUCT", item: 12, names: true, refs: []int{4}},
	KindUnion:     {name: "UNION", item: 12, names: true, refs: []int{4}},
	KindEnum:      {name: "ENUM", item: 8, names: true},
	KindFwd:       {name: "FWD"},
	KindTypedef:   {name: "TYPEDEF", refers: true, transparent: true},
	KindVolatile:  {name: "VOLATILE", refers: true, transparent: true},
	KindConst:     {name: "CONST", refers: true, transparent: true},
	KindRestrict:  {name: "RESTRICT", refers: true, transparent: true},
	KindFunc:      {name: "FUNC", refers: true},
	KindFuncProto: {name: "FUNC_PROTO", item: 8, names: true, refs: []int{4}, refers: true},
	KindVar:       {name: "VAR", fixed: 4, refers: true},
	KindDatasec:   {name: "DATASEC", item: 12, refs: []int{0}},
	KindFloat:     {name: "FLOAT"},
	KindDeclTag:   {name: "DECL_TAG", fixed: 4, refers: true},
	KindTypeTag:   {name: "TYPE_TAG", refers: true, transparent: true},
	KindEnum64:    {name: "ENUM64", item: 12, names: true},
}

// String returns the name as bpftool prints it: "INT", "FUNC_PROTO".
func (k Kind) String() string {
	if k < numKinds {
		return kindTable[k].name
	}
	return "KIND_" + strconv.Itoa(int(k))
}
