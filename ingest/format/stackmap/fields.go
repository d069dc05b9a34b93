package stackmap

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FieldKind is the kind of a field of a count map's key.
type FieldKind uint8

// The fields that a key can have. A StackID is of a stack that may be the user's or the kernel's.
const (
	UserStackID FieldKind = iota
	KernelStackID
	StackID
	PID // a process, unless there is a TGID: then a thread, in the kernel's words
	TGID
	TID
	Comm
	// Those from Program on are of bundles alone (package bundle): no type or option names them.
	Program
	KernelTime
	UserTime
	numFields
)

var fieldNames = [numFields][]string{
	UserStackID: {"user_stack_id", "ustack_id", "user_stack", "ustack", "user_stackid", "ustackid"},
	KernelStackID: {"kernel_stack_id", "kern_stack_id", "kstack_id", "kernel_stack", "kernstack",
		"kern_stack", "kstack", "kernel_stackid", "kstackid"},
	StackID: {"stack_id", "stackid", "stack"},
	PID:     {"pid"},
	TGID:    {"tgid"},
	TID:     {"tid"},
	Comm:    {"comm", "name", "task"},

	Program:    {"program"},
	KernelTime: {"kernel_time"},
	UserTime:   {"user_time"},
}

// String returns the field's name as --key takes it, "user_stack_id".
func (k FieldKind) String() string {
	if k < numFields {
		return fieldNames[k][0]
	}
	return "unknown field"
}

// FieldKindOf returns the field that has a name in a program's source.
func FieldKindOf(name string) (FieldKind, bool) {
	k, ok := fieldKind(name)
	return k, ok && k <= Comm
}

func fieldKind(name string) (FieldKind, bool) {
	name = strings.ToLower(name)
	for k, names := range fieldNames {
		if slices.Contains(names, name) {
			return FieldKind(k), true
		}
	}
	return 0, false
}

// Field is where in a key or value something lies, in bytes.
type Field struct {
	Kind         FieldKind
	Offset, Size int
}

// ErrField is the error of ParseFields for text of another form.
var ErrField = errors.New("not of the form FIELD:OFFSET[:SIZE]")

// Bounds of keys and values with fields, in bytes.
const (
	maxKey   = 64 << 10
	maxValue = 16 << 20
)

// Sizes of fields, in bytes, by default: TASK_COMM_LEN, and an int.
const (
	commSize = 16
	intSize  = 4
)

// ParseFields reads "user_stack_id:0:4,kernel_stack_id:4,pid:8,comm:16:16": fields with
// their offset and size in bytes.
func ParseFields(text string) ([]Field, error) {
	var out []Field
	for word := range strings.SplitSeq(text, ",") {
		part := strings.Split(strings.TrimSpace(word), ":")
		kind, ok := fieldKind(part[0])
		if !ok || len(part) < 2 || len(part) > 3 {
			return nil, fmt.Errorf("%w: %q", ErrField, word)
		}
		f := Field{Kind: kind, Size: intSize}
		if kind == Comm {
			f.Size = commSize
		}
		var err error
		f.Offset, err = strconv.Atoi(part[1])
		if err == nil && len(part) == 3 {
			f.Size, err = strconv.Atoi(part[2])
		}
		limit := 8
		switch {
		case kind == Comm:
			limit = maxKey
		case kind <= StackID:
			limit = maxStackID
		}
		if err != nil || f.Offset < 0 || f.Offset > maxKey || f.Size < 1 || f.Size > limit {
			return nil, fmt.Errorf("%w: %q", ErrField, word)
		}
		if slices.ContainsFunc(out, func(o Field) bool { return o.Kind == kind }) {
			return nil, fmt.Errorf("%w: %s twice", ErrField, kind)
		}
		out = append(out, f)
	}
	return out, nil
}

// ParseValue reads "OFFSET[:SIZE]": where in a value the count lies.
func ParseValue(text string) (*Field, error) {
	at, size, sized := strings.Cut(text, ":")
	f := &Field{Size: 8}
	var err error
	f.Offset, err = strconv.Atoi(at)
	if err == nil && sized {
		f.Size, err = strconv.Atoi(size)
	}
	if err != nil || f.Offset < 0 || f.Offset > maxValue || f.Size < 1 || f.Size > 8 {
		return nil, fmt.Errorf("not of the form OFFSET[:SIZE]: %q", text)
	}
	return f, nil
}

// keyDecoder reads the key of a count map.
type keyDecoder struct {
	at  [numFields]*Field
	big bool
	// end is how long a key has to be.
	end int
}

func newKeyDecoder(fields []Field, big bool) keyDecoder {
	d := keyDecoder{big: big}
	for i := range fields {
		f := &fields[i]
		d.at[f.Kind] = f
		d.end = max(d.end, f.Offset+f.Size)
	}
	return d
}

func (d *keyDecoder) labels() Labels {
	thread := d.at[TID] != nil || d.at[TGID] != nil && d.at[PID] != nil
	return Labels{PID: d.at[PID] != nil || d.at[TGID] != nil, TID: thread, Comm: d.at[Comm] != nil}
}

// field returns the bytes of a field, nil if the key has none.
func (d *keyDecoder) field(kind FieldKind, key []byte) []byte {
	f := d.at[kind]
	if f == nil {
		return nil
	}
	return key[f.Offset : f.Offset+f.Size]
}

func (d *keyDecoder) number(kind FieldKind, key []byte) (int64, bool) {
	b := d.field(kind, key)
	if b == nil {
		return 0, false
	}
	return signed(b, d.big), true
}

// sample reads the labels of a key, which is at least d.end long.
func (d *keyDecoder) sample(s *Set, key []byte) Sample {
	sm := Sample{PID: -1, TID: -1}
	if v, ok := d.number(PID, key); ok {
		sm.PID = int32(v)
	}
	if v, ok := d.number(TGID, key); ok {
		if d.at[PID] != nil {
			sm.TID = sm.PID
		}
		sm.PID = int32(v)
	}
	if v, ok := d.number(TID, key); ok {
		sm.TID = int32(v)
	}
	if b := d.field(Program, key); b != nil {
		sm.Program = uint32(unsigned(b, d.big))
	}
	if b := d.field(KernelTime, key); b != nil {
		sm.KernelTime, sm.Timed = unsigned(b, d.big), true
	}
	if b := d.field(UserTime, key); b != nil {
		sm.UserTime = unsigned(b, d.big)
	}
	if f := d.at[Comm]; f != nil {
		sm.Comm = s.comm(cString(key[f.Offset : f.Offset+f.Size]))
	}
	return sm
}

func cString(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
