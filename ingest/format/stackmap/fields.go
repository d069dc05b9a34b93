package stackmap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/decode"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/btf"
)

// FieldKind is the kind of a field of a count map's key.
type FieldKind uint8

// The fields of keys. A StackID identifies a user or a kernel stack.
const (
	UserStackID FieldKind = iota
	KernelStackID
	StackID
	PID // a process, or in keys with a TGID a thread, as the kernel uses the word
	TGID
	TID
	Comm
	// The fields from Program on occur only in bundles (package bundle), not in types or options.
	Program
	KernelTime
	UserTime
	State
	wakerUser // the waker's fields, see Waker
	wakerKernel
	wakerPID
	wakerComm
	wakerProgram
	wakerKernelTime
	wakerUserTime
	wakerBy
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
	State:      {"state"},

	wakerUser:       {"waker_user_stack_id"},
	wakerKernel:     {"waker_kernel_stack_id"},
	wakerPID:        {"waker_tgid"},
	wakerComm:       {"waker_comm"},
	wakerProgram:    {"waker_program"},
	wakerKernelTime: {"waker_kernel_time"},
	wakerUserTime:   {"waker_user_time"},
	wakerBy:         {"waker_by"},
}

// String returns the field's name for --key, "user_stack_id".
func (k FieldKind) String() string {
	if k < numFields {
		return fieldNames[k][0]
	}
	return "unknown field"
}

// FieldKindOf returns the kind of a field by its name in a program's source.
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

// Field is the place of a field in a key or value, in bytes.
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

// ParseFields parses "user_stack_id:0:4,kernel_stack_id:4,pid:8,comm:16:16": fields with
// offset and size in bytes.
func ParseFields(text string) ([]Field, error) {
	var out []Field
	for word := range strings.SplitSeq(text, ",") {
		part := strings.Split(strings.TrimSpace(word), ":")
		kind, ok := fieldKind(part[0])
		if !ok || len(part) < 2 || len(part) > 3 {
			return nil, fmt.Errorf("%w: %q", ErrField, word)
		}
		f := Field{Kind: kind, Size: intSize}
		if kind == Comm || kind == wakerComm {
			f.Size = commSize
		}
		var err error
		f.Offset, err = strconv.Atoi(part[1])
		if err == nil && len(part) == 3 {
			f.Size, err = strconv.Atoi(part[2])
		}
		limit := 8
		switch {
		case kind == Comm, kind == wakerComm:
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

// ParseValue parses "OFFSET[:SIZE]", the place of the count in a value.
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
	end int // the minimum length of a key
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

// sample reads the labels of a key of at least d.end bytes.
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
	if b := d.field(State, key); b != nil {
		sm.State = 1 + uint32(min(unsigned(b, d.big), math.MaxUint32-1))
	}
	if f := d.at[Comm]; f != nil {
		sm.Comm = s.comm(cString(key[f.Offset : f.Offset+f.Size]))
	}
	return sm
}

// waker reads the waker of a key. ok is false if it is unknown.
func (c *counter) waker(key []byte) (w Waker, ok bool) {
	d := &c.key
	by, ok := d.number(wakerBy, key)
	if !ok || by == 0 {
		return w, false
	}
	w.Interrupt = by == wokenByInterrupt
	w.User.Cause, w.Kernel.Cause = Absent, Absent
	if b := d.field(wakerUser, key); b != nil {
		w.User = c.user.part(b, d.big)
	}
	if b := d.field(wakerKernel, key); b != nil {
		w.Kernel = c.kernel.part(b, d.big)
	}
	pid, _ := d.number(wakerPID, key)
	program, _ := d.number(wakerProgram, key)
	kernelTime, _ := d.number(wakerKernelTime, key)
	userTime, _ := d.number(wakerUserTime, key)
	w.PID, w.Program = int32(pid), uint32(program)
	w.KernelTime, w.UserTime = uint64(kernelTime), uint64(userTime)
	w.Comm = c.set.comm(cString(d.field(wakerComm, key)))
	return w, true
}

const wokenByInterrupt = 2

func cString(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

// ErrTypes is the error for a count map with a key that BTF does not describe, or describes by
// several types.
var ErrTypes = errors.New("the BTF does not describe the fields of the key")

// Limits of the search in a key's type: nesting of structs, and members altogether.
const (
	maxTypeDepth   = 8
	maxTypeMembers = 1 << 12
)

// described holds the fields of a key, and of a value if its type is known.
type described struct {
	key   []Field
	value *Field
	seen  int // members visited
}

func (d *described) hasStack() bool {
	return slices.ContainsFunc(d.key, func(f Field) bool { return f.Kind <= StackID })
}

// describe finds the fields of a count map in BTF: by the type IDs of a raw dump; otherwise by
// the definition of the map in a BPF object, found by its name or as the only one with stacks in
// its keys; otherwise by the only struct of the key's size that has a stack.
func describe(t *btf.Types, h *rawdump.Header) (*described, error) {
	size := int(h.KeySize)
	if h.KeyType != 0 {
		d := describeTypes(t, btf.ID(h.KeyType), btf.ID(h.ValueType))
		if n, err := t.Size(btf.ID(h.KeyType)); err == nil && n == uint64(size) && d.hasStack() {
			return d, nil
		}
	}
	var found candidates
	var named candidates // the kernel truncates names, so that several maps can match
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

// candidates are the possible descriptions of a key.
type candidates struct {
	names []string
	list  []*described
}

// add adds a type of a key of size bytes, if it has stacks and is new.
func (c *candidates) add(name string, d *described, size int) {
	if d.hasStack() && keyEnd(d.key) <= size && !slices.ContainsFunc(c.list, d.equal) {
		c.names, c.list = append(c.names, name), append(c.list, d)
	}
}

// maxNamed bounds the candidates that an error names.
const maxNamed = 4

// only returns the only candidate.
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
		what, size, names)
}

// HasStacks reports whether by BTF the keys of a map have stacks, which the map then counts. types
// may be nil.
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

// members adds the members of a struct in a key, at an offset in bytes.
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

// array adds a member that is an array: characters are the name of a task, 16 bytes a hash that
// identifies a stack.
func (d *described) array(t *btf.Types, name string, typ btf.ID, f Field) {
	kind, ok := FieldKindOf(name)
	elem, err := t.Size(t.Array(typ).Elem)
	f.Kind = kind
	if ok && err == nil && (kind == Comm && elem == 1 || kind <= StackID && f.Size == maxStackID) {
		d.add(f)
	}
}

// number adds a member that is a number.
func (d *described) number(t *btf.Types, name string, offset, size int) {
	const both = 8 // bpf_get_current_pid_tgid: process in the upper half, thread in the lower
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

// add adds a field, if it is the first of its kind.
func (d *described) add(f Field) {
	if !slices.ContainsFunc(d.key, func(o Field) bool { return o.Kind == f.Kind }) {
		d.key = append(d.key, f)
	}
}

// countNames are common names of a count in a value that is a struct.
var countNames = []string{"count", "cnt", "counts", "samples", "nr_samples", "nr", "value", "val",
	"total", "hits"}

// valueField finds the count in a value; nil if the whole value is the count, or if it is unknown.
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

// Sizes of struct bpf_stack_build_id and of its fields, in bytes.
const (
	frameSize     = 32
	addressSize   = 8
	buildIDAt     = 4
	frameOffsetAt = 24
)

// layout is the layout of the values of a stack map.
type layout struct {
	buildID bool // BPF_F_STACK_BUILD_ID: records of 32 bytes, else addresses
	big     bool
	depth   int // frames to read from a value; 0 for all
}

// Ranges of code addresses: user code from lowestAddress (smaller numbers are counts) to userEnd,
// the kernel from kernelTop.
const (
	lowestAddress = 1 << 16
	userEnd       = 1 << 56
	kernelTop     = 0xff << 56
)

// guess finds the layout by a value: a record begins with a status of 4 bytes, which as half of an
// address would not be code. It returns false for an inconclusive value, such as an empty one.
func (l *layout) guess(value []byte) (ok bool) {
	if len(value) < addressSize {
		return false
	}
	first := value[:4]
	little, big := binary.LittleEndian.Uint32(first), binary.BigEndian.Uint32(first)
	if len(value)%frameSize == 0 {
		for status := uint32(Valid); status <= uint32(IP); status++ {
			if little == status || big == status {
				l.buildID, l.big = true, big == status
				return true
			}
		}
	}
	word := value[:addressSize]
	le, be := binary.LittleEndian.Uint64(word), binary.BigEndian.Uint64(word)
	code := func(v uint64) bool { return v >= lowestAddress && v < userEnd || v >= kernelTop }
	switch {
	case code(le):
		l.big = false
	case code(be):
		l.big = true
	default:
		return false
	}
	return true
}

// frameSize is the size of a frame in bytes.
func (l layout) frameSize() int {
	if l.buildID {
		return frameSize
	}
	return addressSize
}

// frames returns the frames of a value, up to the first empty one.
func (l layout) frames(value []byte) []byte {
	size, end := l.frameSize(), 0
	for n := 0; len(value)-end >= size && (l.depth == 0 || n < l.depth); n++ {
		if frame := value[end:]; l.buildID && binary.LittleEndian.Uint32(frame) == uint32(Empty) ||
			!l.buildID && binary.LittleEndian.Uint64(frame) == 0 {
			break
		}
		end += size
	}
	return value[:end]
}

// frame decodes a frame that is not empty.
func (l layout) frame(s *Set, b []byte) Frame {
	order := decode.OrderOf(l.big)
	if !l.buildID {
		return Frame{Offset: order.Uint64(b), Status: IP}
	}
	offset := order.Uint64(b[frameOffsetAt:])
	if order.Uint32(b) == uint32(Valid) {
		raw := [buildid.KeyLen]byte(b[buildIDAt : buildIDAt+buildid.KeyLen])
		if raw != ([buildid.KeyLen]byte{}) {
			return s.valid(raw, offset)
		}
	}
	// IP, or a status of later kernels, with unknown fields.
	return Frame{Offset: offset, Status: IP}
}
