package stackmap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/btf"
)

// ErrTypes: BTF does not describe the key of a count map, or several types could.
var ErrTypes = errors.New("the BTF does not describe the fields of the key")

// Limits of the search in a key's type: how deep structs lie in each other, and members altogether.
const (
	maxTypeDepth   = 8
	maxTypeMembers = 1 << 12
)

// described are the fields of a key, and of a value where the types have it.
type described struct {
	key   []Field
	value *Field
	seen  int // members that were looked at
}

func (d *described) hasStack() bool {
	return slices.ContainsFunc(d.key, func(f Field) bool { return f.Kind <= StackID })
}

// describe finds the fields of a count map by BTF: by the type ids that a raw dump has of
// the kernel's BTF; else by the definition of the map in a BPF object, by its name or
// because no other has stacks in its keys; else by the one struct of the key's size
// that has a stack.
func describe(t *btf.Types, h *rawdump.Header) (*described, error) {
	size := int(h.KeySize)
	if h.KeyType != 0 {
		d := describeTypes(t, btf.ID(h.KeyType), btf.ID(h.ValueType))
		if n, err := t.Size(btf.ID(h.KeyType)); err == nil && n == uint64(size) && d.hasStack() {
			return d, nil
		}
	}
	var found candidates
	var named candidates // a name of the kernel's may be cut, and of several maps
	for _, m := range t.Maps() {
		if m.Key == 0 {
			continue
		}
		n, err := t.Size(m.Key)
		if err != nil || n != uint64(size) {
			continue
		}
		d := describeTypes(t, m.Key, m.Value)
		if h.Name != "" && m.Name == h.Name && d.hasStack() {
			return d, nil
		}
		if h.Name != "" && m.KernelName() == h.Name {
			named.add(m.Name, d, size)
		}
		found.add(m.Name, d, size)
	}
	if len(named.list) > 0 {
		return named.only("maps named "+h.Name+" in the kernel", size)
	}
	if len(found.list) == 0 {
		for id := btf.ID(1); int(id) < t.Len(); id++ {
			if t.Kind(id) != btf.KindStruct {
				continue
			}
			if n, err := t.Size(id); err == nil && n == uint64(size) {
				found.add("struct "+t.Name(id), describeTypes(t, id, 0), size)
			}
		}
	}
	return found.only("types", size)
}

// candidates are the different things that a key may be.
type candidates struct {
	names []string
	list  []*described
}

// add adds a type that a key of size bytes may have, if it has stacks.
func (c *candidates) add(name string, d *described, size int) {
	if d.hasStack() && keyEnd(d.key) <= size && !slices.ContainsFunc(c.list, d.equal) {
		c.names, c.list = append(c.names, name), append(c.list, d)
	}
}

// maxNamed is how many candidates an error names.
const maxNamed = 4

// only returns the candidate that is the only one.
func (c *candidates) only(what string, size int) (*described, error) {
	if len(c.list) == 1 {
		return c.list[0], nil
	}
	names := ""
	if n := len(c.names); n > 0 {
		names = ": " + strings.Join(c.names[:min(n, maxNamed)], ", ")
	}
	if len(c.names) > maxNamed {
		names += ", …"
	}
	return nil, fmt.Errorf("%w: %d %s have stacks in keys of %d bytes%s", ErrTypes, len(c.list),
		what,
		size, names)
}

// HasStacks reports whether the keys of a map have stacks by BTF: that it counts them. types may be
// nil.
func HasStacks(types *btf.Types, h *rawdump.Header) bool {
	if types == nil {
		return false
	}
	_, err := describe(types, h)
	return err == nil
}

func (d *described) equal(o *described) bool {
	same := d.value == o.value || d.value != nil && o.value != nil && *d.value == *o.value
	return same && slices.Equal(d.key, o.key)
}

func keyEnd(fields []Field) (end int) {
	for _, f := range fields {
		end = max(end, f.Offset+f.Size)
	}
	return end
}

// describeTypes finds fields by the names of members.
func describeTypes(t *btf.Types, key, value btf.ID) *described {
	d := &described{}
	d.members(t, t.Strip(key), 0, 0)
	if value != 0 {
		d.value = valueField(t, t.Strip(value))
	}
	return d
}

// members takes in the members of a struct in a key, at an offset in bytes.
func (d *described) members(t *btf.Types, id btf.ID, at, depth int) {
	if depth > maxTypeDepth || t.Kind(id) != btf.KindStruct {
		return
	}
	for _, m := range t.Members(id) {
		if d.seen++; d.seen > maxTypeMembers {
			return
		}
		if m.BitSize != 0 || m.BitOffset%8 != 0 {
			continue
		}
		offset, typ := at+int(m.BitOffset/8), t.Strip(m.Type)
		size, err := t.Size(typ)
		if err != nil || size == 0 {
			continue
		}
		switch t.Kind(typ) {
		case btf.KindStruct:
			d.members(t, typ, offset, depth+1)
		case btf.KindArray:
			d.array(t, m.Name, typ, Field{Offset: offset, Size: int(min(size, maxKey))})
		case btf.KindInt, btf.KindEnum:
			d.number(t, m.Name, offset, int(size))
		}
	}
}

// array takes in a member that is an array: of characters, the name of a task; of 16
// bytes, a hash that identifies a stack.
func (d *described) array(t *btf.Types, name string, typ btf.ID, f Field) {
	kind, ok := FieldKindOf(name)
	elem, err := t.Size(t.Array(typ).Elem)
	f.Kind = kind
	if ok && err == nil && (kind == Comm && elem == 1 || kind <= StackID && f.Size == maxStackID) {
		d.add(f)
	}
}

// number takes in a member that is a number.
func (d *described) number(t *btf.Types, name string, offset, size int) {
	const both = 8 // the value of bpf_get_current_pid_tgid: the process above, the thread below
	if strings.EqualFold(name, "pid_tgid") && size == both {
		process, thread := offset+intSize, offset
		if t.BigEndian() {
			process, thread = thread, process
		}
		d.add(Field{TGID, process, intSize})
		d.add(Field{PID, thread, intSize})
		return
	}
	kind, ok := FieldKindOf(name)
	if ok && kind != Comm && (size <= both || kind <= StackID && size <= maxStackID) {
		d.add(Field{kind, offset, size})
	}
}

// add takes the first field of a kind.
func (d *described) add(f Field) {
	if !slices.ContainsFunc(d.key, func(o Field) bool { return o.Kind == f.Kind }) {
		d.key = append(d.key, f)
	}
}

// countNames are common names of a count in a value that is a struct.
var countNames = []string{"count", "cnt", "counts", "samples", "nr_samples", "nr", "value", "val",
	"total", "hits"}

// valueField finds the count in a value; nil for a value that is the count, and where
// it is unknown.
func valueField(t *btf.Types, id btf.ID) *Field {
	if t.Kind(id) != btf.KindStruct {
		return nil
	}
	at := len(countNames)
	var found, only *Field
	numbers := 0
	for _, m := range t.Members(id) {
		typ := t.Strip(m.Type)
		size, err := t.Size(typ)
		if err != nil || t.Kind(typ) != btf.KindInt || m.BitSize != 0 || m.BitOffset%8 != 0 ||
			size > 8 {
			continue
		}
		f := &Field{Offset: int(m.BitOffset / 8), Size: int(size)}
		numbers++
		only = f
		if i := slices.Index(countNames, strings.ToLower(m.Name)); i >= 0 && i < at {
			at, found = i, f
		}
	}
	if found == nil && numbers == 1 {
		return only
	}
	return found
}
