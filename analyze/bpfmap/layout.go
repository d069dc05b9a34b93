package bpfmap

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/object/btf"
)

// Errors about the choice of fields.
var (
	// ErrField: a field that was named is not there, or is no number.
	ErrField = errors.New("no such field")
	// ErrNoCount: no number of a value is known to be the count.
	ErrNoCount = errors.New("the count cannot be distinguished from other fields of the value")
	// ErrNoSlot: no field is known to be the slot of a histogram.
	ErrNoSlot = errors.New("the slot cannot be distinguished from other fields of the key")
)

// Bounds of the search in types.
const (
	maxMembers = 1 << 12
	maxNesting = 16
	maxNumber  = 8 // bytes
	maxLabel   = 256
)

// Layout describes the bytes of keys and values.
type Layout struct {
	// Types, Key and Value are the BTF; Types is nil where there is none.
	Types      *btf.Types
	Key, Value btf.ID
	// KeySize and ValueSize are bytes, of one CPU.
	KeySize, ValueSize int
	MapType            uint32 // enum bpf_map_type; 0 if not known
	BigEndian          bool
}

// Field is a number in a key or value.
type Field struct {
	Name         string // "key.location"; "key" and "value" are all of it
	Offset, Size int    // bytes
	Signed       bool
	top          int // number of the member of the key that contains it; -1: the whole key
}

// Uint reads the field of a key or value; the value of a signed one is extended.
func (f Field) Uint(data []byte, big bool) uint64 {
	var v uint64
	for i := range f.Size {
		b := data[f.Offset+i]
		if big {
			v = v<<8 | uint64(b)
		} else {
			v |= uint64(b) << (8 * i)
		}
	}
	if shift := 64 - 8*f.Size; f.Signed && shift > 0 {
		v = uint64(int64(v<<shift) >> shift)
	}
	return v
}

// KeyField finds a number in keys: "key" for all of it, the name of a member, of a
// member of a member "flow.src", or "OFFSET:SIZE" in bytes.
func (l *Layout) KeyField(name string) (Field, error) {
	return l.field("key", name, l.Key, l.KeySize)
}

// ValueField finds a number in values, as KeyField; "value" is all of it.
func (l *Layout) ValueField(name string) (Field, error) {
	return l.field("value", name, l.Value, l.ValueSize)
}

func (l *Layout) field(whole, name string, id btf.ID, size int) (Field, error) {
	if offset, length, ok := strings.Cut(name, ":"); ok {
		return place(name, offset, length, size)
	}
	if name == whole {
		f := Field{Name: whole, Size: size, top: -1}
		if l.Types != nil && id != 0 {
			f.Signed = l.signed(l.Types.Strip(id))
		}
		if size < 1 || size > maxNumber {
			return f, fmt.Errorf("%w: the %s has %d bytes; a number has 1, 2, 4 or 8%s", ErrField,
				whole, size,
				l.list(whole, id))
		}
		return f, nil
	}
	name = strings.TrimPrefix(name, whole+".")
	for _, f := range l.numbers(id, size) {
		if f.Name == name {
			return f, nil
		}
	}
	return Field{}, fmt.Errorf("%w: %q of the %s%s", ErrField, name, whole, l.list(whole, id))
}

// place reads "OFFSET:SIZE".
func place(text, offset, length string, size int) (Field, error) {
	at, err1 := strconv.Atoi(offset)
	n, err2 := strconv.Atoi(length)
	if err1 != nil || err2 != nil || at < 0 || n < 1 || n > maxNumber || at > size || n > size-at {
		return Field{}, fmt.Errorf("%w: %q is not a number of %d bytes", ErrField, text, size)
	}
	return Field{Name: text, Offset: at, Size: n, top: -1}, nil
}

// list names the fields, for errors.
func (l *Layout) list(whole string, id btf.ID) string {
	if l.Types == nil || id == 0 {
		return "; without BTF there is OFFSET:SIZE, in bytes"
	}
	var names []string
	for _, f := range l.numbers(id, 1<<30) {
		if names = append(names, f.Name); len(names) == 20 {
			names = append(names, "…")
			break
		}
	}
	if len(names) == 0 {
		return "; it has no numbers with a name"
	}
	return "; it has " + strings.Join(names, ", ")
}

// numbers lists the members of a type that are numbers, within size bytes.
func (l *Layout) numbers(id btf.ID, size int) []Field {
	if l.Types == nil || id == 0 {
		return nil
	}
	w := walker{l: l, size: size}
	w.members(l.Types.Strip(id), "", 0, -1, 0)
	return w.out
}

type walker struct {
	l    *Layout
	size int
	out  []Field
	seen int
}

func (w *walker) members(id btf.ID, prefix string, at, top, depth int) {
	t := w.l.Types
	if k := t.Kind(id); depth > maxNesting || k != btf.KindStruct && k != btf.KindUnion {
		return
	}
	for i, m := range t.Members(id) {
		if w.seen++; w.seen > maxMembers {
			return
		}
		if m.BitSize != 0 || m.BitOffset%8 != 0 {
			continue
		}
		f := Field{Name: prefix + m.Name, Offset: at + int(m.BitOffset/8), top: top}
		if top < 0 {
			f.top = i
		}
		typ := t.Strip(m.Type)
		n, err := t.Size(typ)
		if err != nil || n > uint64(w.size) || f.Offset > w.size-int(n) {
			continue
		}
		switch t.Kind(typ) {
		case btf.KindStruct, btf.KindUnion:
			next := f.Name + "."
			if m.Name == "" {
				next = prefix
			}
			w.members(typ, next, f.Offset, f.top, depth+1)
		case btf.KindInt, btf.KindEnum, btf.KindEnum64, btf.KindPtr:
			if n > 0 && n <= maxNumber {
				f.Size, f.Signed = int(n), w.l.signed(typ)
				w.out = append(w.out, f)
			}
		}
	}
}

// signed reports whether a number is.
func (l *Layout) signed(id btf.ID) bool {
	switch l.Types.Kind(id) {
	case btf.KindInt:
		return l.Types.Int(id).Signed
	case btf.KindEnum, btf.KindEnum64:
		return l.Types.EnumSigned(id)
	}
	return false
}

// countNames are the usual names of a count among other fields.
var countNames = []string{"count", "cnt", "counts", "nr", "value", "val", "total", "hits", "calls"}

// Count finds the count in values: the field of this name, else the whole value if it is a number,
// else the only number in it, or a number with the name of a count.
func (l *Layout) Count(name string) (Field, error) {
	if name != "" {
		return l.ValueField(name)
	}
	if l.Types == nil || l.Value == 0 {
		if l.ValueSize == 8 || l.ValueSize == 4 {
			return l.ValueField("value")
		}
		return Field{}, fmt.Errorf("%w: it has %d bytes and no BTF", ErrNoCount, l.ValueSize)
	}
	if l.isNumber(l.Value) && l.ValueSize <= maxNumber {
		return l.ValueField("value")
	}
	list := l.numbers(l.Value, l.ValueSize)
	for _, n := range countNames {
		i := slices.IndexFunc(list, func(f Field) bool { return strings.EqualFold(f.Name, n) })
		if i >= 0 {
			return list[i], nil
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return Field{}, fmt.Errorf("%w%s", ErrNoCount, l.list("value", l.Value))
}

func (l *Layout) isNumber(id btf.ID) bool {
	switch l.Types.Kind(l.Types.Strip(id)) {
	case btf.KindInt, btf.KindEnum, btf.KindEnum64:
		return true
	}
	return false
}

// Label prints a key without one of its fields: "comm = \"dd\", pid = 7"; "" if there is nothing
// else.
func (l *Layout) Label(key []byte, but Field) string {
	if but.Size == len(key) && len(key) > 0 {
		return ""
	}
	if l.Types == nil || l.Key == 0 {
		rest := append(slices.Clone(key[:but.Offset]), key[but.Offset+but.Size:]...)
		return cut(hex.EncodeToString(rest))
	}
	id := l.Types.Strip(l.Key)
	if k := l.Types.Kind(id); k != btf.KindStruct && k != btf.KindUnion {
		return cut(l.text(l.Key, key))
	}
	var parts []string
	for i, m := range l.Types.Members(id) {
		if i == but.top && but.Size > 0 || i >= maxMembers {
			continue
		}
		at := int(m.BitOffset / 8)
		if m.BitSize != 0 || at > len(key) {
			continue // bit fields and padding distinguish no histograms
		}
		parts = append(parts, m.Name+" = "+l.text(m.Type, key[at:]))
	}
	return cut(strings.Join(parts, ", "))
}

// text writes a value in one line.
func (l *Layout) text(id btf.ID, data []byte) string {
	out, err := l.Types.AppendValue(nil, id, data,
		&btf.ValueOptions{JSON: true, MaxBytes: maxLabel})
	if err != nil && len(out) == 0 {
		return "?"
	}
	return string(out)
}

func cut(s string) string {
	if len(s) > maxLabel {
		return s[:maxLabel] + "…"
	}
	return s
}
