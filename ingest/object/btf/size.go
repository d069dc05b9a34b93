package btf

import (
	"errors"
	"fmt"
)

// maxRefs bounds the chain of qualifiers, typedefs and arrays of arrays of a type. The kernel
// accepts 32 (MAX_RESOLVE_DEPTH).
const maxRefs = 128

// maxSize bounds the size of a type, bytes. No real type is larger.
const maxSize = 1 << 40

// Errors of Size.
var (
	errEndless    = errors.New("a type that contains itself")
	errTooBig     = errors.New("a type of more than 1 TiB")
	errIncomplete = errors.New("a type without a size")
)

// Strip returns the type behind typedefs and qualifiers; 0 if they run in a circle.
func (t *Types) Strip(id ID) ID {
	for range maxRefs {
		if !kindTable[t.Kind(id)].transparent {
			return id
		}
		id = t.Ref(id)
	}
	return 0
}

// Size returns the size of values of a type in bytes. Void, functions and declarations have none,
// which is an error, as is a cycle.
func (t *Types) Size(id ID) (uint64, error) {
	size, asked := uint64(1), id
	for range maxRefs {
		owner, b := t.record(id)
		kind := t.Kind(id)
		switch {
		case kind == KindPtr:
			return t.bounded(size, t.ptr(), asked)
		case kind == KindArray:
			a := t.Array(id)
			var err error
			if size, err = t.bounded(size, uint64(a.Len), asked); err != nil {
				return 0, err
			}
			id = a.Elem
		case kindTable[kind].transparent, kind == KindVar:
			id = t.Ref(id)
		case kind == KindInt, kind == KindStruct, kind == KindUnion, kind == KindEnum,
			kind == KindEnum64, kind == KindFloat, kind == KindDatasec:
			return t.bounded(size, uint64(owner.u32(b[8:])), asked)
		default:
			return 0, fmt.Errorf("type %d: %w", asked, errIncomplete)
		}
	}
	return 0, fmt.Errorf("type %d: %w", asked, errEndless)
}

// bounded multiplies two factors below 2^41 and 2^32.
func (t *Types) bounded(size, n uint64, id ID) (uint64, error) {
	if n > 0 && size > maxSize/n {
		return 0, fmt.Errorf("type %d: %w", id, errTooBig)
	}
	return size * n, nil
}

// pointerSize derives the size of pointers from the size of long, as libbpf does; 8 without one.
func (t *Types) pointerSize() uint64 {
	for id := range ID(t.Len()) {
		if t.Kind(id) != KindInt {
			continue
		}
		switch t.Name(id) {
		case "long int", "long", "int long", "long unsigned int", "unsigned long",
			"unsigned long int", "long int unsigned", "int unsigned long", "unsigned int long":
			if size := t.Int(id).Size; size == 4 || size == 8 {
				return uint64(size)
			}
		}
	}
	return 8
}
