package stackmap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/format/rawdump"
)

// Input is a file to read, or a part of one.
type Input struct {
	Name string // for messages
	R    io.ReaderAt
	Size int64
}

func (in *Input) reader() io.Reader { return io.NewSectionReader(in.R, 0, in.Size) }

// head returns the first n bytes, fewer if there are no more.
func (in *Input) head(n int) []byte {
	b := make([]byte, min(int64(n), max(in.Size, 0)))
	got, err := in.R.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return b[:got]
}

// pairs returns the number of pairs in a dump, 0 if unknown, by its header and its size.
func (in *Input) pairs(h *rawdump.Header) int {
	if h.Entries == rawdump.UnknownEntries {
		return 0
	}
	return int(min(h.Entries, uint64(in.Size)/(uint64(h.KeySize)+4))) // 4: a length or a value
}

// table is a stack map: stacks by their ids.
type table struct {
	layout   layout
	byID     map[stackID]uint32 // index in list
	list     []tableEntry       // in the order of the dump
	keySize  int                // bytes
	longKeys bool               // keys are bytes, not numbers
}

// tableEntry is a stack of a table.
type tableEntry struct {
	part    Part
	counted bool // a count refers to it
}

// mapTypeStackTrace is BPF_MAP_TYPE_STACK_TRACE (include/uapi/linux/bpf.h).
const mapTypeStackTrace = 7

// stackID is the key of a stack: a bucket or an errno, as a number of 128 bits, or the bytes of a
// longer key, such as a hash. One map has only one of the two.
type stackID [maxStackID]byte

// maxStackID bounds the key of a stack, maxNumber a key that is a number; in bytes.
const (
	maxStackID = 16
	maxNumber  = 8
)

// idOf reads an ID of up to maxStackID bytes.
func idOf(b []byte, big bool) (id stackID) {
	if len(b) > maxNumber {
		copy(id[:], b)
		return id
	}
	n := signed(b, big)
	binary.LittleEndian.PutUint64(id[:], uint64(n))
	binary.LittleEndian.PutUint64(id[8:], uint64(n>>63))
	return id
}

// IsStacks reports whether a raw dump has stacks: it is a stack map of the kernel, or its header
// has a depth of stacks.
func IsStacks(h *rawdump.Header) bool { return h.Type == mapTypeStackTrace || h.Depth > 0 }

// mapTypesHash are the types of hash maps, enum bpf_map_type: hash, per-CPU, LRU, and per-CPU LRU.
var mapTypesHash = []uint32{1, 5, 9, 10}

// Counts reports whether one raw dump is of a hash map with a number for each stack of the other, a
// stack map: nine of ten of its keys, of 4 bytes, are IDs of stacks.
func Counts(counts, stacks *Input) bool {
	d, err := rawdump.Open(counts.Name, counts.R, counts.Size)
	if err != nil || !slices.Contains(mapTypesHash, d.Header.Type) || d.Header.KeySize != intSize ||
		d.Header.ValueSize != 4 && d.Header.ValueSize != 8 {
		return false
	}
	s, err := rawdump.Open(stacks.Name, stacks.R, stacks.Size)
	if err != nil || s.Header.KeySize != intSize {
		return false
	}
	ids := make(map[[intSize]byte]bool)
	for {
		key, _, ok := s.Next()
		if !ok {
			break
		}
		ids[[intSize]byte(key)] = true
	}
	keys, known := 0, 0
	for {
		key, _, ok := d.Next()
		if !ok {
			return keys > 0 && 10*known >= 9*keys
		}
		if keys++; ids[[intSize]byte(key)] {
			known++
		}
	}
}

// readTable reads a stack map. The table holds the whole stacks before the error.
func readTable(set *Set, in *Input, opts *Options) (*table, error) {
	d, err := mapdump.Open(in.Name, in.R, in.Size)
	if err != nil {
		return nil, err
	}
	h := &d.Header
	if !IsStacks(h) && (h.Type != 0 || d.Form == mapdump.Raw) {
		return nil, fmt.Errorf("%s: %w: the map %q is a %s", in.Name, ErrNotStacks, h.Name,
			mapdump.TypeName(h.Type))
	}
	t := &table{byID: make(map[stackID]uint32, in.pairs(h)), keySize: int(h.KeySize),
		longKeys: h.KeySize > maxNumber}
	if d.Form == mapdump.Raw {
		t.layout.buildID, t.layout.big = h.Flags&rawdump.FlagBuildID != 0, h.BigEndian
		if h.Type != mapTypeStackTrace { // another map's flags do not describe its values
			t.layout.buildID = uint64(h.ValueSize) >= uint64(h.Depth)*frameSize
		}
	} else if t.layout, err = guessLayout(in); err != nil {
		return nil, err
	}
	t.layout.depth = opts.Depth
	frames := newFrameDecoder(t.layout, set, t.put)
	err = addStacks(frames, in, d)
	frames.finish()
	if err != nil {
		return nil, err
	}
	addLosses(set, in.Name, h.Lost)
	return t, d.Err()
}

// addStacks adds the stacks of a dump.
func addStacks(frames *frameDecoder, in *Input, d *mapdump.Dump) error {
	for {
		key, values, ok := d.Next()
		if !ok {
			return nil
		}
		if len(key) != intSize && !IsStacks(&d.Header) || len(key) > maxStackID || len(values) != 1 {
			return fmt.Errorf("%s: %w: keys of a stack map have %d bytes, these %d", in.Name,
				ErrNotStacks, intSize, len(key))
		}
		frames.add(idOf(key, frames.big), values[0])
	}
}

// addLosses adds the losses in a dump's header.
func addLosses(set *Set, name string, lost map[string]uint64) {
	for _, cause := range slices.Sorted(maps.Keys(lost)) {
		set.Losses = append(set.Losses, fmt.Sprintf("%s: lost while it was recorded: %d %s", name,
			lost[cause], cause))
	}
}

// guessLayout finds the layout of values of a dump without a header, by the first conclusive value.
func guessLayout(in *Input) (l layout, err error) {
	d, err := mapdump.Open(in.Name, in.R, in.Size)
	if err != nil {
		return l, err
	}
	empty := true
	for {
		_, values, ok := d.Next()
		if !ok {
			break
		}
		if l.guess(values[0]) {
			return l, nil
		}
		empty = empty && len(bytes.Trim(values[0], "\x00")) == 0
	}
	if empty {
		return l, nil
	}
	return l, fmt.Errorf("%s: %w: the values are neither addresses nor build IDs; is it the map that "+
		"counts them?", in.Name, ErrNotStacks)
}

func (t *table) put(id stackID, p Part) {
	n, ok := t.byID[id]
	if !ok {
		n = uint32(len(t.list))
		t.byID[id], t.list = n, append(t.list, tableEntry{})
	}
	t.list[n].part = p
}

// Errnos that bpf_get_stackid returns instead of an ID.
const (
	errNoMemory = -12
	errFault    = -14
	errExists   = -17
)

// part returns the stack identified by a field of a key and marks it as counted, or returns why
// there is none. A hash of zeros means no stack.
func (t *table) part(field []byte, big bool) Part {
	id := idOf(field, big)
	if n, ok := t.byID[id]; ok {
		t.list[n].counted = true
		return t.list[n].part
	}
	if len(field) > maxNumber {
		if id == (stackID{}) {
			return Part{Cause: Absent}
		}
		return Part{Cause: NotDumped}
	}
	switch n := signed(field, big); {
	case n >= 0:
		return Part{Cause: NotDumped}
	case n == errFault:
		return Part{Cause: Absent}
	case n == errExists:
		return Part{Cause: BucketTaken}
	case n == errNoMemory:
		return Part{Cause: NoMemory}
	}
	return Part{Cause: OtherError}
}

// signed reads a signed number of 1 to 8 bytes in the machine's order.
func signed(b []byte, big bool) int64 {
	v := unsigned(b, big)
	shift := 64 - 8*uint(len(b))
	return int64(v<<shift) >> shift
}

// unsigned reads a number of up to 8 bytes in the machine's order.
func unsigned(b []byte, big bool) uint64 {
	v := uint64(0)
	for i := range b {
		at := len(b) - 1 - i
		if big {
			at = i
		}
		v = v<<8 | uint64(b[at])
	}
	return v
}
