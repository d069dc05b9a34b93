package btf

import (
	"cmp"
	"errors"
	"fmt"
)

// Bounds of AppendValue. Printed values have at most maxValueText bytes unless ValueOptions has a
// lower limit, and types are nested at most maxNesting deep.
const (
	maxValueText = 16 << 20
	maxNesting   = 64
)

// Errors of AppendValue. They come with the text before them, brackets closed.
var (
	ErrShortValue = errors.New("fewer bytes than the type has")
	ErrLongValue  = errors.New("a printed value over the limit")
	errNested     = fmt.Errorf("types nested more than %d deep", maxNesting)
)

// ValueOptions controls the format of AppendValue.
type ValueOptions struct {
	// JSON prints one line of valid JSON, else the text of `bpftool map dump`.
	JSON bool
	// Indent is the level of indentation of the value, in levels of 4 spaces.
	Indent int
	// Pointer names the target of a pointer; "" prints the address. It is called for each
	// pointer, 0 as well. nil names none.
	Pointer func(id ID, value uint64) string
	// MaxBytes bounds the appended text; 0 is 16 MiB. It is checked at each value within the
	// value, so that a little more can be appended.
	MaxBytes int
}

// AppendValue appends the value of a type in the first bytes of data, in the byte order of the
// blob. Nil options print text without indentation.
//
// Layout and values are as printed by `bpftool map dump` (7.1), except values that
// bpftool prints wrong or not at all:
//   - floats are printed; NaN and the infinities are strings in JSON;
//   - bit fields are numbers by their type, with sign, true and false, and names;
//   - arrays of char are strings also where they fill the array, and where they are no
//     plain ASCII: up to the first zero, or a list where other bytes follow a zero;
//   - a value of an enumeration of 64 bits without a name has a sign only if the
//     enumeration has one;
//   - values of types without a size are bytes in hexadecimal;
//   - the second anonymous member of a structure is called "#2", not "" again: JSON
//     readers keep only one of two members of a name;
//   - a flexible array has the elements present, if data is longer than the structure
//     that ends in it.
//
// The error is ErrShortValue if data ends too early, ErrLongValue if the text would be too long,
// or describes the invalid type.
func (t *Types) AppendValue(dst []byte, id ID, data []byte, o *ValueOptions) ([]byte, error) {
	if o == nil {
		o = &ValueOptions{}
	}
	limit := cmp.Or(o.MaxBytes, maxValueText)
	v := valuePrinter{
		t: t, opts: o, limit: len(dst) + min(limit, maxValueText),
		w: layout{b: dst, compact: o.JSON, depth: o.Indent},
	}
	v.value(id, data)
	if v.err != nil {
		return v.w.b, fmt.Errorf("value of type %d: %w", id, v.err)
	}
	return v.w.b, nil
}

// valuePrinter prints one value. After an error nothing but closing brackets is printed.
type valuePrinter struct {
	t     *Types
	opts  *ValueOptions
	w     layout
	limit int // length of the buffer
	depth int
	err   error
}

func (v *valuePrinter) fail(err error) {
	if v.err == nil {
		v.err = err
	}
}

// null prints null for a value that cannot be printed, with its error.
func (v *valuePrinter) null(err error) {
	v.fail(err)
	v.w.word("null")
}

// value prints the value at the beginning of data, which can be longer than it.
func (v *valuePrinter) value(id ID, data []byte) {
	if len(v.w.b) > v.limit {
		v.null(ErrLongValue)
		return
	}
	if v.depth++; v.depth > maxNesting {
		v.null(errNested)
	} else {
		v.sized(v.t.resolve(id), data)
	}
	v.depth--
}

// resolve follows names, qualifiers and variables.
func (t *Types) resolve(id ID) ID {
	if id = t.Strip(id); t.Kind(id) == KindVar {
		id = t.Strip(t.Ref(id))
	}
	return id
}

// sized checks the length of data, and prints the value by its kind.
func (v *valuePrinter) sized(id ID, data []byte) {
	kind := v.t.Kind(id)
	switch kind {
	case KindStruct, KindUnion:
		v.members(id, data)
		return
	case KindArray:
		v.array(id, data)
		return
	case KindDatasec:
		v.section(id, data)
		return
	}
	size, err := v.t.Size(id)
	if errors.Is(err, errIncomplete) {
		v.bytes(data)
		return
	}
	if err != nil || uint64(len(data)) < size {
		v.null(cmp.Or(err, ErrShortValue))
		return
	}
	data = data[:size]
	switch kind {
	case KindInt:
		v.integer(id, data)
	case KindEnum, KindEnum64:
		v.enum(id, uint(8*size), v.t.bits(data, 0, uint(8*size)))
	case KindFloat:
		v.float(id, data)
	case KindPtr:
		v.pointer(id, v.t.bits(data, 0, uint(8*size)).lo)
	default:
		v.bytes(data)
	}
}
