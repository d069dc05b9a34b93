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

var kindNames = [numKinds]string{"VOID", "INT", "PTR", "ARRAY", "STRUCT", "UNION", "ENUM", "FWD",
	"TYPEDEF", "VOLATILE", "CONST", "RESTRICT", "FUNC", "FUNC_PROTO", "VAR", "DATASEC", "FLOAT",
	"DECL_TAG", "TYPE_TAG", "ENUM64"}

// String returns the name as bpftool prints it: "INT", "FUNC_PROTO".
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return "KIND_" + strconv.Itoa(int(k))
}

// fixedPart is the size in bytes of the fixed data after a type of this kind, and perItem of the
// data for each of its items (Documentation/bpf/btf.rst).
func (k Kind) fixedPart() uint64 {
	switch k {
	case KindInt, KindVar, KindDeclTag:
		return 4
	case KindArray:
		return 12
	}
	return 0
}

func (k Kind) perItem() uint64 {
	switch k {
	case KindStruct, KindUnion, KindDatasec, KindEnum64:
		return 12
	case KindEnum, KindFuncProto:
		return 8
	}
	return 0
}

// refers reports whether the third word of a type is another type, not a size.
func (k Kind) refers() bool {
	switch k {
	case KindPtr, KindTypedef, KindVolatile, KindConst, KindRestrict, KindFunc, KindFuncProto,
		KindVar, KindDeclTag, KindTypeTag:
		return true
	}
	return false
}

// transparent reports whether values of the type are values of the referenced type.
func (k Kind) transparent() bool {
	switch k {
	case KindTypedef, KindVolatile, KindConst, KindRestrict, KindTypeTag:
		return true
	}
	return false
}
